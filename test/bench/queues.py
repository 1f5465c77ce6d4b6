"""What the figures of tasks are made of: queues that are drained by stamp-queue, and the same by the peers."""
import hashlib
import json
import os
import re
import secrets
import subprocess
import time
from pathlib import Path

import stack
from generators import POSTGRES_BIN, BenchError, Run, role_settings

HERE = Path(__file__).resolve().parent
PACKAGES = ['graphile-worker@0.17', 'pg-boss@10']
PATIENCE_S = 600
INSERT = """insert into taskqueue (taskid, opname, param, startat, batch, created)
    select 'bench' || lpad(nextval('task_number')::text, 12, '0'), '{op}', '{{}}', stamp_now(), {batch}, stamp_now() from generate_series(1, {count})"""
QUEUE = 16  # of external workers
INSERT_FOR_WORKERS = """insert into taskqueue (taskid, opname, param, qn, startat, created)
    select 'bench' || lpad(nextval('task_number')::text, 12, '0'), 'work', '{{}}', {queue}, stamp_now(), stamp_now()
    from generate_series(1, {count})"""
# Tasks that are of no concern to the others: of another century's half, and behind two domains at work on another host.
CROWDS = {
    'far in the future': """insert into taskqueue (taskid, opname, param, startat, created)
        select 'crowd' || lpad(n::text, 12, '0'), 'Crowd', '{{}}', 600101000000000 + n, stamp_now() from generate_series(1, {count}) n""",
    'stuck behind two domains': """insert into taskqueue (taskid, opname, param, startat, created, domain, starttime, holder)
        select 'crowd' || lpad(n::text, 12, '0'), 'Crowd', '{{}}', stamp_now(), stamp_now(), 'd' || n % 2,
               case when n <= 2 then stamp_now() end, case when n <= 2 then 'elsewhere-1-1' end from generate_series(1, {count}) n""",
}


def manage(server, op):
    """What stamp-queue answers at its socket."""
    answer = server.request('POST', '/qm/op', form={'key': server.queue_key, 'op': op})
    if answer.status_code != 200:
        raise BenchError(f'stamp-queue, {op}: {answer.status_code} {answer.text}')
    return answer.json()['out']


def rest(server, ns):
    server.psql(ns, 'vacuum analyze taskqueue')
    server.psql(ns, 'checkpoint')


def drain(server, op, count, batch=1, ns='lab'):
    """Tasks a second, from the word that ends the suspension to the last commit."""
    manage(server, 'suspend')
    server.psql(ns, INSERT.format(op=op, batch=batch, count=count))
    rest(server, ns)
    manage(server, 'scan')
    stack.wait_until(lambda: manage(server, 'list')['due'], 60, 'the scan')
    before = ended(server, ns)
    started = time.monotonic()
    manage(server, 'restart')
    while True:  # the manager is queried, not the database, which has enough to do
        counts = manage(server, 'list')
        if not counts['due'] + counts['running']:
            if server.psql(ns, "select exists (select from taskqueue where opname <> 'Crowd')") == [(False,)]:
                break
            manage(server, 'scan')
        if time.monotonic() - started > PATIENCE_S:
            raise BenchError(f'{count} tasks did not end in {PATIENCE_S} s')
        time.sleep(0.05)
    spent = time.monotonic() - started
    if ended(server, ns) - before != count:
        raise BenchError(f'{count} tasks were requested, {ended(server, ns) - before} have ended')
    return Run(count / spent)


def ended(server, ns):
    return server.psql(ns, 'select count(*) from task_history where exc is null')[0][0]


# --- external workers ---

def declare_worker(server):
    """The key of a worker of the queue QUEUE."""
    key = secrets.token_hex(16)
    conf = next(item['j'] for item in server.get('z', ('Namespace', 'lab'), admin=True)['items'] if item['c'] == 'Conf')
    queue = {'qn': QUEUE, 'ops': ['work'], 'key': hashlib.sha256(key.encode()).hexdigest()}
    server.put('z', {'c': 'Namespace', 'id': 'lab', 'items': [{'c': 'Conf', 'j': {**conf, 'workers': [queue]}}]}, admin=True)
    return key


def serve(server, key, count, workers, *words):
    """Tasks a second that external workers take and end one by one; `words` as of worker_load."""
    server.psql('lab', 'truncate taskqueue, task_history')
    server.psql('lab', INSERT_FOR_WORKERS.format(queue=QUEUE, count=count))
    rest(server, 'lab')
    done = subprocess.run([stack.BUILD / 'test/bench/worker_load', f'{server.url}/lab', server.path / 'etc/certificate.pem', key, str(QUEUE), str(workers), *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
    if done.returncode:
        raise BenchError(f'worker_load: {done.stderr.strip()}')
    found = json.loads(done.stdout)
    if found['tasks'] != count or ended(server, 'lab') != count:
        raise BenchError(f'{count} tasks were requested, {ended(server, "lab")} have ended')
    return Run(found['per_second'])


def fill_crowd(server, ns, kind, count):
    server.psql(ns, 'truncate taskqueue, task_history')
    server.psql(ns, CROWDS[kind].format(count=count))
    rest(server, ns)


def delete_by_pgbench(server, count, clients):
    """As many rows deleted by primary key, a durable commit each."""
    each = max(1, count // clients)
    for sql in ('drop table if exists public.bench_task', 'create table public.bench_task as select * from taskqueue with no data',
                'alter table public.bench_task add primary key (taskid)',
                "insert into public.bench_task (taskid, number, opname, param, info, retry, startat, qn, priority, batch, step, created)"
                " select 'bench' || n, n, 'Nothing', '{}', '', 0, stamp_now(), 0, 20, 1, 0, stamp_now()"
                f" from generate_series(1, {each * clients}) n",
                'grant select, delete on public.bench_task to stampd', 'vacuum analyze public.bench_task', 'checkpoint'):
        server.psql('lab', sql)
    script = server.path / 'delete.sql'
    script.write_text(f"\\set k :k + 1\n\\set n :client_id * {each} + :k\n"
                      "delete from public.bench_task where taskid = 'bench' || :n::bigint::text;\n")
    done = subprocess.run([POSTGRES_BIN / 'pgbench', '-n', '-M', 'prepared', '-c', str(clients), '-j', '1', '-t', str(each), '-D', 'k=0',
                           '-f', script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S,
                          env={**os.environ, 'PGHOST': str(server.database), 'PGUSER': 'stampd', 'PGDATABASE': 'stampd_lab',
                               'PGOPTIONS': role_settings()})
    rate = re.search(r'^tps = ([\d.]+)', done.stdout, re.MULTILINE)
    if done.returncode or not rate or server.psql('lab', 'select count(*) from public.bench_task') != [(0,)]:
        raise BenchError(f'pgbench: {done.stdout.strip()} {done.stderr.strip()}')
    return Run(float(rate[1]))


# --- the peers ---

def install_peers(folder):
    """The folder of the peers' packages, which npm fetches unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not all((folder / 'node_modules' / package.partition('@')[0]).is_dir() for package in PACKAGES):
        try:
            done = subprocess.run(['npm', 'install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', *PACKAGES],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S)
        except FileNotFoundError:
            raise BenchError('npm is not installed (Debian: apt-get install npm)') from None
        if done.returncode:
            raise BenchError(f'npm install: {done.stdout.strip()}')
    return folder


def version_of(folder, package):
    return json.loads((folder / 'node_modules' / package / 'package.json').read_text())['version']


def ask_peer(server, folder, script, *words):
    """Jobs a second as a script of peers/ tells them; it works in a database of its own."""
    server.psql(None, 'drop database if exists bench_peer')
    server.psql(None, 'create database bench_peer')
    done = subprocess.run(['node', HERE / 'peers' / script, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=PATIENCE_S, env={**os.environ, 'NODE_PATH': str(folder / 'node_modules'), 'PGUSER': 'postgres',
                                                   'PGHOST': str(server.database), 'PGDATABASE': 'bench_peer'})
    if done.returncode or not done.stdout.split():
        raise BenchError(f'{script}: {done.stdout.strip()} {done.stderr.strip()}')
    return Run(float(done.stdout.split()[-1]))
