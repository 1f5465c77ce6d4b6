"""What requests cost, counted by callgrind and strace, which do not depend on who else uses the machine.

A worker alone (test/bench/lone, its rows in memory) and a nginx alone, with the configuration that stampctl writes, without and with the
module, run under one of the tools.  Counted are the instructions of what we choose: the program itself, libfcgi, libyajl and the like; of libraries whose code depends on
the processor (libc, libcrypto) and of compiled expressions the calls count instead.
"""
import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

from fastcgi import Connection
from stack import BUILD, SOURCE, free_port, stampctl

DOCUMENTS, VERSION = 100, 261121000000000
# What these do depends on the processor, or is not written by anybody: their calls are counted.
FOREIGN = re.compile(r'^(?:|\?\?\?|.*/(?:ld-linux|libc\.|libm\.|libcrypto|libssl|libz\.|libpcre|libxxhash|vgpreload).*)$')
WARM_UP, TIMES = 20, 100


def named(count, **more):
    return [{'c': 'Bench', 'id': f'n{i % DOCUMENTS}', **more} for i in range(count)]


def query(param):
    return '/lab/op/get?param=' + urllib.parse.quote(json.dumps(param, separators=(',', ':')), safe='')


def held(count):
    return [{**document, 'v': VERSION + i % DOCUMENTS, 'ct': VERSION + i % DOCUMENTS, 'dt': VERSION + i % DOCUMENTS}
            for i, document in enumerate(named(count))]


def put(number):
    return {'param': {'docs': [{'c': 'Written', 'id': 'n0', 'items': [{'c': 'Sta', 'j': {'number': 1000000 + number}}]}]}}


def record(do, **more):
    return {'param': {'commands': [{'do': do, 'key': 'key:000001', **more}]}}


KEPT = {'STAMPD_NS': 'kept', 'STAMPD_DATABASE': 'stampd_kept'}
# name: address; JSON body, or what makes the one of each request; more parameters of FastCGI
CASES = {
    'ping': ('/ping', None, {}),
    'read, GET': (query({'docs': named(1)}), None, {}),
    'read, POST': ('/lab/op/get', {'param': {'docs': named(1)}}, {}),
    'read, POST, quotas': ('/rated/op/get', {'param': {'docs': named(1)}}, {'STAMPD_NS': 'rated', 'STAMPD_DATABASE': 'stampd_rated'}),
    'read, tolerance 10 s': ('/lab/op/get', {'param': {'docs': named(1, age=10)}}, {}),
    'resource': ('/lab/doc/Bench/n0', None, {}),
    'resource, 304': ('/lab/doc/Bench/n0', None, {'HTTP_IF_NONE_MATCH': f'"{VERSION}"'}),
    'read of 32': ('/lab/op/get', {'param': {'docs': named(32)}}, {}),
    'synchronisation of 1': ('/lab/op/sync', {'syncs': held(1)}, {}),
    'synchronisation of 100': ('/lab/op/sync', {'syncs': held(100)}, {}),
    'synchronisation of 1,000': ('/lab/op/sync', {'syncs': held(1000)}, {}),
    'commit of one': ('/lab/op/put', put, {}),
    'record, SET': ('/kept/op/record', record('set', value='x' * 100, overwrite=True), KEPT),
    'record, GET': ('/kept/op/record', record('get'), KEPT),
}
# Those that are guarded: of a worker and of nginx.
GUARDED = {
    'worker': ['read, GET', 'read, POST', 'resource', 'resource, 304', 'read of 32', 'synchronisation of 100', 'commit of one', 'record, SET',
               'record, GET'],
    'nginx': ['read, GET', 'resource', 'read of 32', 'commit of one'],
    'module': ['read, GET', 'resource', 'resource, 304', 'commit of one'],  # the last one goes to a worker
}
# What nginx says of every request (nginx/nginx.conf.in).
ALWAYS = {'STAMPD_REQUEST_ID': '', 'STAMPD_CLIENT': '198.51.100.1', 'STAMPD_NS': 'lab', 'STAMPD_DATABASE': 'stampd_lab', 'STAMPD_TOKEN': '12345-123456-1000-1763715600.123'}


def missing():
    """The tools that are not installed: names of Debian's packages."""
    return [tool for tool in ('valgrind', 'strace') if not shutil.which(tool)]


def body_of(param, number):
    param = param(number) if callable(param) else param
    return b'' if param is None else json.dumps(param, separators=(',', ':')).encode()


class Process:
    """A program under a tool, or alone."""

    def __init__(self, words, connect):
        self.process = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        start_new_session=True)
        end = time.monotonic() + 120
        while True:
            try:
                self.link = connect()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.stop()
                    raise RuntimeError(f'{words} does not start: {self.process.stderr.read().decode()}') from None
                time.sleep(0.05)

    def stop(self):
        """At once: what the tool has to say is said by then."""
        self.process.kill()
        self.process.wait(timeout=60)


class Worker(Process):
    def __init__(self, folder, *tool, program='lone', words=()):
        self.numbers = iter(range(10**6))
        self.path = Path(folder) / 'run/worker-0.sock'
        self.path.parent.mkdir(exist_ok=True)
        self.path.unlink(missing_ok=True)
        super().__init__([*tool, BUILD / 'test/bench' / program, self.path, *words], lambda: Connection(self.path, timeout=60))

    def ask(self, case):
        address, param, more = CASES[case]
        body = body_of(param, next(self.numbers))
        parameters = {**ALWAYS, **more}
        if body:
            parameters.update(method='POST', CONTENT_TYPE='application/json')
        answer = self.link.ask(address, body=body, **parameters)
        if answer.status not in (200, 304):
            raise RuntimeError(f'{case}: {answer.status} {answer.body.decode()}')


class Nginx(Process):
    """One process, before a worker."""
    module = None

    def __init__(self, folder, *tool):
        folder = Path(folder)
        self.numbers = iter(range(10**6))
        self.worker = Worker(folder, words=['public'] if self.module else [])
        port, context = free_port(), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        configure_nginx(folder, port, self.module)

        def connect():
            return context.wrap_socket(socket.create_connection(('127.0.0.1', port), timeout=60))
        super().__init__([*tool, shutil.which('nginx', path='/usr/sbin:/usr/bin'), '-c', folder / 'nginx.conf', '-g', 'daemon off; master_process off;'],
                         connect)

    def ask(self, case):
        address, param, more = CASES[case]
        body = body_of(param, next(self.numbers))
        lines = [f'{"POST" if body else "GET"} {address} HTTP/1.1', 'Host: localhost']
        if body:
            lines += ['Content-Type: application/json', f'Content-Length: {len(body)}']
        if 'HTTP_IF_NONE_MATCH' in more:
            lines.append(f'If-None-Match: {more["HTTP_IF_NONE_MATCH"]}')
        self.link.sendall('\r\n'.join([*lines, '', '']).encode() + body)  # at once, so that nginx always reads as often
        answer = http.client.HTTPResponse(self.link)
        answer.begin()
        text = answer.read()
        if answer.status not in (200, 304):
            raise RuntimeError(f'{case}: {answer.status} {text.decode()}')

    def stop(self):
        super().stop()
        self.worker.stop()


class Module(Nginx):
    """With the module, which finds in the segment what the worker has answered."""
    module = BUILD / 'nginx/module/ngx_http_stampd_module.so'


def configure_nginx(folder, port, module=None):
    """Its configuration, as `stampctl nginx` and `stampctl ns map` write it for one worker and few namespaces."""
    (folder / 'stampd.conf').write_text(f'run_directory = {folder}/run\nworkers = 1\nsegment = {folder}/run/worker-0.sock.segment\n'
                                        f'public_answers_mb = {1 if module else 0}\n')
    (folder / 'namespaces.map').write_text('lab stampd_lab;\nrated stampd_rated;\nkept stampd_kept;\n')
    (folder / 'namespaces.map.homes').write_text('map $stampd_ns $stampd_home {\n    default "";\n}\n'
                                                 'map $stampd_body $stampd_workers {\n    large stampd_large;\n    default stampd;\n}\n'
                                                 'map $stampd_home $stampd_workers_only {\n    default stampd;\n}\n'
                                                 'map "$stampd_ns $http_origin" $stampd_origin {\n    default "";\n}\n'
                                                 'map "$stampd_ns $http_origin" $stampd_origin_cookies {\n    default "";\n}\n'
                                                 'map $stampd_ns $stampd_origin_vary {\n    default "";\n}\n')
    if not (folder / 'certificate.pem').exists():
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj',
                        '/CN=localhost', '-keyout', folder / 'certificate.key', '-out', folder / 'certificate.pem'], check=True, capture_output=True)
    stampctl('nginx', '--config', folder / 'stampd.conf', '--listen', f'127.0.0.1:{port}', '--probe-listen', f'127.0.0.1:{free_port()}',
             '--certificate', folder / 'certificate.pem', '--key', folder / 'certificate.key', '--folder', folder / 'nginx',
             '--map', folder / 'namespaces.map', '--workers', '1', '--output', folder / 'nginx.conf',
             environment={'STAMPD_NGINX': str(SOURCE / 'nginx'), 'STAMPD_NGINX_MODULE': str(module or '')})


SIDES = {'worker': Worker, 'nginx': Nginx, 'module': Module}


# --- instructions ---

def add_up(path):
    """A file of callgrind: instructions of what is ours, calls from there of what is foreign, all instructions."""
    names, own, calls, everything, ours, target, skipped = {}, 0, 0, 0, True, True, False

    def is_ours(text):
        number, _, name = text.partition(' ')
        return not FOREIGN.match(names.setdefault(number, name))
    for line in path.read_text().splitlines():
        if skipped:
            skipped = False
        elif line.startswith('ob='):
            ours = target = is_ours(line[3:])
        elif line.startswith('cob='):
            target = is_ours(line[4:])
        elif line.startswith('fn='):
            target = ours
        elif line.startswith('calls='):
            if ours and not target:
                calls += int(line[6:].split()[0])
            target, skipped = ours, True
        elif line and line[0] in '0123456789+-*':
            cost = int((line.split() + ['0'])[1])  # what costs nothing has no number
            everything += cost
            own += cost if ours else 0
    return own, calls, everything


def instructions(side, folder, cases, warm_up=WARM_UP, times=TIMES, **more):
    """Of each case, for a request: instructions of what is ours, calls of what is foreign, all instructions."""
    path = Path(folder) / f'callgrind.{side}'
    running = SIDES[side](folder, 'valgrind', '-q', '--tool=callgrind', f'--callgrind-out-file={path}', f'--vgdb-prefix={folder}/vgdb', **more)
    dumps, found = 0, {}

    def dump():
        nonlocal dumps
        subprocess.run(['vgdb', f'--vgdb-prefix={folder}/vgdb', f'--pid={running.process.pid}', 'dump'], check=True, capture_output=True, timeout=60)
        dumps += 1
        return add_up(path.with_name(f'{path.name}.{dumps}'))
    try:
        for case in cases:
            for _ in range(warm_up):
                running.ask(case)
            dump()
            for _ in range(times):
                running.ask(case)
            found[case] = tuple(round(count / times) for count in dump())
    finally:
        running.stop()
    return found


def share_of_traces(folder, case):
    """What traces of one request of a hundred add to all instructions of a request; the three figures that decide it."""
    plain, drawn, traced = (instructions('worker', folder, [case], words=words)[case][2] for words in ((), ('traced', 0), ('traced', 1000000)))
    return (drawn + (traced - drawn) / 100) / plain - 1, (plain, drawn, traced)


# --- system calls ---

def system_calls(side, folder, cases, warm_up=WARM_UP, times=TIMES):
    """Of each case: of each system call, how many for a request, without the waits for events, which depend on who is faster."""
    path = Path(folder) / f'strace.{side}'
    running = SIDES[side](folder, 'strace', '-D', '-f', '-qq', '-o', path)

    def made():
        """All that were made, once the process waits for a request."""
        size = -1
        while size != path.stat().st_size:
            size = path.stat().st_size
            time.sleep(0.2)
        return [name for name in re.findall(r'^\d+ +(\w+)\(', path.read_text(), re.MULTILINE) if not name.startswith('epoll_')]
    found = {}
    try:
        for case in cases:
            for _ in range(warm_up):
                running.ask(case)
            before = len(made())
            for _ in range(times):
                running.ask(case)
            names = made()[before:]
            rates = {name: round(names.count(name) / times) for name in sorted(set(names))}
            found[case] = {name: rate for name, rate in rates.items() if rate}
    finally:
        running.stop()
    return found


# --- the guard ---

FIGURES = Path(__file__).with_name('costs.md')
MOST, FEW = 0.03, 3  # as much dearer, or cheaper, is as before; of calls so many, since the order of events is not always the same
ROW = re.compile(r'^\| (\w+) \| ([^|]+) \| ([\d,]+) \| (\d+) \| (\d+): ([^|]*) \|$', re.MULTILINE)
NAMES = ('instructions', 'library calls', 'system calls')


def count(folder, guarded=None):
    """(side, case): instructions, calls of libraries, system calls, words for these."""
    found = {}
    for side, cases in (guarded or GUARDED).items():
        counted, called = instructions(side, folder, cases), system_calls(side, folder, cases)
        for case in cases:
            words = ', '.join(f'{name} {number}' for name, number in called[case].items())
            found[side, case] = (*counted[case][:2], sum(called[case].values()), words)
    return found


def read_figures(text):
    return {(side, case): (int(own.replace(',', '')), int(calls), int(system), words)
            for side, case, own, calls, system, words in ROW.findall(text)}


def write_figures(text, found):
    """The text of the file with these figures."""
    rows = [f'| {side} | {case} | {own:,} | {calls} | {system}: {words} |' for (side, case), (own, calls, system, words) in found.items()]
    return text[:text.index('| worker |')] + '\n'.join(rows) + '\n'


def compare(former, found):
    """One line for each figure that differs too much, and for each path that only one of them has."""
    lines = [f'{" ".join(path)}: it has no figure' for path in found if path not in former]
    lines += [f'{" ".join(path)}: it is no longer counted' for path in former if path not in found]
    for path in (path for path in found if path in former):
        for name, before, now in zip(NAMES, former[path], found[path]):
            if name == 'library calls' and abs(now - before) <= FEW:
                continue
            if now > before * (1 + MOST):
                lines.append(f'{" ".join(path)}: {now:,} {name}, dearer than {before:,}')
            elif now < before * (1 - MOST):
                lines.append(f'{" ".join(path)}: {now:,} {name}, cheaper than {before:,}: the new figure is wanted')
    return lines
