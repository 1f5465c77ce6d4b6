"""What makes the load and takes the time: wrk, pgbench, and commands that are timed; runs in pairs beside an anchor."""
import os
import re
import resource
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import stack

HERE = Path(__file__).resolve().parent
POSTGRES_BIN = Path(os.environ.get('POSTGRES_BIN', '/usr/lib/postgresql/15/bin'))
BUSY_PERCENT = 15  # of the machine, by others
CALM_S = 15        # how long to wait for less
IMPATIENT_S = 2    # the same after a wait that was in vain


class BenchError(Exception):
    """A run that measured something else than it should have."""


@dataclass
class Run:
    """One run: rate in 1/s, latencies in ms, processor time of all that took part, load generator included, in µs a piece."""
    rate: float
    p50: float = None
    p99: float = None
    cost: float = None
    refused: int = 0


@dataclass
class Pairs:
    """Runs of two sides in turn."""
    ours: list
    anchors: list

    @property
    def ratios(self):
        return [ours.rate / anchor.rate for ours, anchor in zip(self.ours, self.anchors)]

    @property
    def cost_ratios(self):
        return [anchor.cost / ours.cost for ours, anchor in zip(self.ours, self.anchors)]


# --- a machine that others use too ---

def busy_percent(seconds=0.4):
    def look():
        numbers = [int(word) for word in Path('/proc/stat').read_text().split('\n', 1)[0].split()[1:9]]
        return numbers[3] + numbers[4], sum(numbers)

    idle, total = look()
    time.sleep(seconds)
    idle_after, total_after = look()
    return 100 - 100 * (idle_after - idle) / max(1, total_after - total)


class Calm:
    """Waits for a machine that is otherwise idle, and counts how often that was in vain."""

    def __init__(self):
        self.waits = self.disturbed = 0
        self.patience_s = CALM_S

    def wait(self):
        self.waits += 1
        end = time.monotonic() + self.patience_s
        while busy_percent() > BUSY_PERCENT:
            if time.monotonic() > end:
                self.disturbed += 1
                self.patience_s = IMPATIENT_S
                return
        self.patience_s = CALM_S


def pairs(count, ours, anchor, calm):
    """Runs A B A B ...; the first of each is a warm-up and forgotten."""
    found = Pairs([], [])
    ours(), anchor()
    for _ in range(count):
        calm.wait()
        found.ours.append(ours())
        found.anchors.append(anchor())
    return found


def rounds(count, sides, calm):
    """The same with several anchors: A B C A B C ...; the first side is ours.  Pairs by the name of the anchor."""
    runs = {name: [] for name in sides}
    for run in sides.values():
        run()
    for _ in range(count):
        calm.wait()
        for name, run in sides.items():
            runs[name].append(run())
    ours, *anchors = runs
    return {name: Pairs(runs[ours], runs[name]) for name in anchors}


class Meter:
    """Processor time that the processes of a server and the commands run meanwhile take."""

    def __init__(self, server):
        parts = ('stampd', 'nginx') if server.beside else ('stampd', 'nginx', 'postgres')
        self.leaders = [server.pid(part) for part in parts]
        self.begun = self.look()

    def look(self):
        """Leaders count with those of their children that have ended, the others as they are."""
        ticks = 0
        for leader in self.leaders:
            ticks += sum(process_times(leader))
            ticks += sum(sum(process_times(child)[:2]) for child in stack.children(leader))
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ticks / os.sysconf('SC_CLK_TCK') + used.ru_utime + used.ru_stime

    def cost(self, amount):
        return (self.look() - self.begun) / amount * 1e6


def process_times(pid):
    """utime, stime, and both of the children that ended, in ticks."""
    try:
        return [int(word) for word in Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[11:15]]
    except (FileNotFoundError, ProcessLookupError):
        return [0, 0, 0, 0]


# --- wrk ---

def wrk(server, path, seconds, clients, kind='fixed', body=None, may_refuse=False, **more):
    """`body`: bytes of a POST that is always the same; `more`: class and count for the kinds that choose at random."""
    environment = dict(os.environ, BENCH_KIND=kind, **{f'BENCH_{name.upper()}': str(value) for name, value in more.items()})
    with tempfile.NamedTemporaryFile() as file:
        if body is not None:
            file.write(body)
            file.flush()
            environment['BENCH_BODY'] = file.name
        meter = Meter(server)
        done = subprocess.run(['wrk', '-t1', f'-c{clients}', f'-d{seconds}s', '--timeout', '10s',
                               '-s', HERE / 'load.lua', server.url + path],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=seconds + 60)
    figures = re.search(r'^FIGURES (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)$', done.stdout, re.MULTILINE)
    if done.returncode or not figures:
        raise BenchError(f'wrk {path}: {done.stdout.strip()}')
    requests, duration, p50, p99, refused, broken = map(int, figures.groups())
    if not requests or broken or (refused > requests / 1000 and not may_refuse):
        raise BenchError(f'wrk {path}: of {requests} requests {refused} were not answered 200, {broken} broke')
    return Run((requests - refused) / duration * 1e6, p50 / 1000, p99 / 1000, meter.cost(requests), refused)


# --- PostgreSQL ---

def role_settings():
    """What a worker's session asks of the server, from the source."""
    text = c_texts((stack.SOURCE / 'src/document/session.c').read_text().partition('role_settings[')[2].partition(';')[2])
    words = [word for word in re.findall(r'-c ((?:\\ |[^ ])+)', text.replace('\\\\', '\\')) if '%' not in word]
    return ' '.join(f'-c {word}' for word in [*words, 'statement_timeout=30000', 'lock_timeout=5000'])


def statement(name):
    """SQL of a statement of the server, from its table."""
    table = (stack.SOURCE / 'src/document/statements_table.h').read_text()
    found = re.search(r'STATEMENT\(\s*' + name + r',(.*?)\)\n\n', table + '\n\n', re.DOTALL)
    return c_texts(found.group(1).partition('"')[2].partition('"')[2])


def c_texts(source):
    """The string literals at the beginning of a C expression, up to its end, joined."""
    source = re.sub(r'/\*.*?\*/', '', source, flags=re.DOTALL)
    literals = re.match(r'[^"]*((?:"(?:\\.|[^"\\])*"\s*)+)', source, re.DOTALL).group(1)
    return ''.join(re.findall(r'"((?:\\.|[^"\\])*)"', literals)).replace('\\"', '"')


def pgbench(server, ns, script, seconds, clients, mode):
    """Runs the script as the workers' role with the settings of their sessions.  `is_new` is 1 at the start of each client."""
    environment = dict(os.environ, PGHOST=str(server.database), PGUSER='stampd', PGDATABASE=f'stampd_{ns}',
                       PGOPTIONS=role_settings())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'script.sql'
        path.write_text(script)
        meter = Meter(server)
        done = subprocess.run([POSTGRES_BIN / 'pgbench', '-n', '-M', mode, '-f', path, f'-c{clients}', '-j1', f'-T{seconds}',
                               '-D', 'is_new=1', '--log', '--sampling-rate=0.2', f'--log-prefix={folder}/log'],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=seconds + 60)
        count = re.search(r'^number of transactions actually processed: ([0-9]+)', done.stdout, re.MULTILINE)
        cost = meter.cost(int(count.group(1))) if count and int(count.group(1)) else None
        times = sorted(int(line.split()[2]) / 1000 for log in Path(folder).glob('log.*') for line in log.read_text().splitlines())
    rate = re.search(r'^tps = ([0-9.]+)', done.stdout, re.MULTILINE)
    failed = re.search(r'^number of failed transactions: ([1-9][0-9]*)', done.stdout, re.MULTILINE)
    if done.returncode or not rate or failed or len(times) < 20:
        raise BenchError(f'pgbench: {done.stdout.strip()} {done.stderr.strip()}')
    return Run(float(rate.group(1)), statistics.median(times), times[len(times) * 99 // 100], cost)


# --- commands ---

def timed(server, amount, command):
    """A command that does `amount` of something at the server."""
    meter = Meter(server)
    begun = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=600)
    spent = time.monotonic() - begun
    if done.returncode:
        raise BenchError(f'{command[0]}: {done.stdout.strip()}')
    return Run(amount / spent, cost=meter.cost(amount))
