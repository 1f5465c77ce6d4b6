"""What makes the load and takes the time: wrk, pgbench, and commands that are timed; runs of several sides in turn."""
import os
import re
import resource
import signal
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
MOMENT = 0         # in place of seconds: until ENOUGH answers have come
ENOUGH = 20


class BenchError(Exception):
    """A run that measured something else than it should have."""


@dataclass
class Run:
    """One run: rate in 1/s; latencies in ms; processor time of a piece in µs, of all that took part, load generator
    included, and of what answered alone; private memory of the largest process that answered, in bytes."""
    rate: float
    p50: float = None
    p99: float = None
    p999: float = None
    cost: float = None
    own: float = None
    memory: int = None
    refused: float = None  # of all requests, by the server


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
        self.waits = self.disturbed = self.repeated = 0
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


class Hurry:
    """In place of Calm, when figures do not matter: nothing is waited for."""
    waits = disturbed = repeated = 0

    def wait(self):
        pass


def rounds(count, sides, calm):
    """Runs A B C A B C ...; the first of each is a warm-up and forgotten.  Lists of runs by the name of the side."""
    runs = {name: [] for name in sides}
    for run in () if isinstance(calm, Hurry) else sides.values():
        twice_at_most(run, calm)
    for _ in range(count):
        calm.wait()
        for name, run in sides.items():
            runs[name].append(twice_at_most(run, calm))
    return runs


def twice_at_most(run, calm):
    """A machine that stood still for a second spoils a run, not all that were made before it."""
    try:
        return run()
    except BenchError:
        calm.repeated += 1
        return run()


class Meter:
    """Processor time that the processes of a server and the commands run meanwhile take; `own`: the part that answers."""

    def __init__(self, server, own):
        parts = ('stampd', 'nginx') if server.beside else ('stampd', 'nginx', 'postgres')
        self.leaders = {part: server.pid(part) for part in parts}
        self.part = own
        self.started = self.look()

    def look(self):
        """Seconds of all, and of the part.  Leaders count with those of their children that have ended, the others as they are."""
        spent = {part: own_time(leader) + ended_children_time(leader) + sum(own_time(child) for child in children(leader))
                 for part, leader in self.leaders.items()}
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return sum(spent.values()) + used.ru_utime + used.ru_stime, spent[self.part]

    def costs(self, amount):
        """µs a piece: of all, of the part."""
        return {name: (now - started) / amount * 1e6 for name, now, started in zip(('cost', 'own'), self.look(), self.started)}

    def memory(self):
        """Private memory of the largest child of the part, which is not looked at while it is measured."""
        return max((private_bytes(child) for child in stack.children(self.leaders[self.part])), default=None)


def children(pid):
    """Those that have ended and are not waited for as well: their time is in nobody else's yet."""
    found = []
    for entry in Path('/proc').iterdir():
        if entry.name.isdigit():
            try:
                if int((entry / 'stat').read_text().rpartition(')')[2].split()[1]) == pid:
                    found.append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def own_time(pid):
    """Seconds of a process with one thread, to the nanosecond: ticks are too coarse for many processes and short runs."""
    try:
        return int(Path(f'/proc/{pid}/schedstat').read_text().split()[0]) / 1e9
    except (FileNotFoundError, ProcessLookupError):
        return 0


def ended_children_time(pid):
    try:
        words = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(words[13]) + int(words[14])) / os.sysconf('SC_CLK_TCK')


def memory_of(pid, name):
    """Lines of its file in /proc, which root alone may read: stampd's processes let nobody look into their memory."""
    try:
        return Path(f'/proc/{pid}/{name}').read_text().splitlines()
    except PermissionError:
        return subprocess.run(['sudo', '-n', 'cat', f'/proc/{pid}/{name}'], check=True, capture_output=True, text=True).stdout.splitlines()


def private_bytes(pid):
    """Memory that is nobody else's; of the shared segment even what nobody else has touched is shared."""
    total, counts = 0, True
    try:
        lines = memory_of(pid, 'smaps')
    except (FileNotFoundError, ProcessLookupError):
        return 0
    for words in (line.split() for line in lines):
        if '-' in words[0]:
            counts = not words[-1].endswith('/segment')
        elif counts and words[0] in ('Private_Clean:', 'Private_Dirty:'):
            total += int(words[1]) * 1024
    return total


# --- wrk ---

def wrk(server, path, seconds, clients, kind='fixed', body=None, may_refuse=False, own='stampd', **more):
    """`body`: bytes of a POST that is always the same; `more`: what load.lua wants to know for the kind."""
    environment = dict(os.environ, BENCH_KIND=kind, **{f'BENCH_{name.upper()}': str(value) for name, value in more.items()})
    with tempfile.NamedTemporaryFile() as file:
        if body is not None:
            file.write(body)
            file.flush()
            environment['BENCH_BODY'] = file.name
        meter = Meter(server, own)
        status, text = run_wrk(server.url + path, seconds, clients, environment)
    figures = re.search(r'^FIGURES (.*)$', text, re.MULTILINE)
    if status or not figures:
        raise BenchError(f'wrk {path}: {text.strip()}')
    requests, duration, p50, p99, p999, refused, broken = map(int, figures.group(1).split())
    if not requests or broken or (refused > requests / 1000 and not may_refuse):
        raise BenchError(f'wrk {path}: of {requests} requests {refused} were not answered 200, {broken} broke')
    return Run((requests - refused) / duration * 1e6, p50 / 1000, p99 / 1000, p999 / 1000, **meter.costs(requests),
               memory=meter.memory() if own == 'stampd' else None, refused=refused / requests if may_refuse else None)


def run_wrk(url, seconds, clients, environment):
    """Its exit status, and what it printed."""
    longest = 60
    command = ['wrk', '-t1', f'-c{clients}', f'-d{seconds or longest}s', '--timeout', '10s', '-s', HERE / 'load.lua', url]
    if seconds == MOMENT:
        environment['BENCH_ENOUGH'] = str(ENOUGH)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        text = ''
        if seconds == MOMENT:
            for line in process.stdout:
                text += line
                if line == 'ENOUGH\n':
                    process.send_signal(signal.SIGINT)
                    break
        text += process.communicate(timeout=seconds + longest)[0]
    return process.returncode, text


# --- PostgreSQL ---

def role_settings():
    """What a worker's session asks of the server, from the source."""
    text = c_texts((stack.SOURCE / 'src/store/session.c').read_text().partition('ROLE_SETTINGS = ')[2].partition(';')[2])
    words = [word for word in re.findall(r'-c ((?:\\ |[^ ])+)', text.replace('\\\\', '\\')) if '%' not in word]
    return ' '.join(f'-c {word}' for word in [*words, 'statement_timeout=30000', 'lock_timeout=5000'])


def statement(name):
    """SQL of a statement of the server, from its table."""
    table = '\n\n'.join(path.read_text() for path in sorted(stack.SOURCE.glob('src/store/statements_*_table.h')))
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
        meter = Meter(server, 'postgres')
        done = subprocess.run([POSTGRES_BIN / 'pgbench', '-n', '-M', mode, '-f', path, f'-c{clients}', '-j1', *([f'-T{seconds}'] if seconds else ['-t', str(ENOUGH)]),
                               '-D', 'is_new=1', '--log', f'--log-prefix={folder}/log'],
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=seconds + 60)
        count = re.search(r'^number of transactions actually processed: ([0-9]+)', done.stdout, re.MULTILINE)
        costs = meter.costs(int(count.group(1))) if count and int(count.group(1)) else {}
        times = sorted(int(line.split()[2]) / 1000 for log in Path(folder).glob('log.*') for line in log.read_text().splitlines())
    rate = re.search(r'^tps = ([0-9.]+)', done.stdout, re.MULTILINE)
    failed = re.search(r'^number of failed transactions: ([1-9][0-9]*)', done.stdout, re.MULTILINE)
    if done.returncode or not rate or failed or len(times) < 20:
        raise BenchError(f'pgbench: {done.stdout.strip()} {done.stderr.strip()}')
    return Run(float(rate.group(1)), *(times[int(len(times) * share)] for share in (0.5, 0.99, 0.999)), **costs)


# --- commands ---

def timed(server, amount, command):
    """A command that does `amount` of something at the server."""
    meter = Meter(server, 'postgres')
    started = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=600)
    spent = time.monotonic() - started
    if done.returncode:
        raise BenchError(f'{command[0]}: {done.stdout.strip()}')
    return Run(amount / spent, cost=meter.costs(amount)['cost'])
