"""The servers that are measured: stampd, and its anchors with a constant answer; how they are filled."""
import json
import os
import re
import shutil
from pathlib import Path

import stack
from generators import BenchError

HERE = Path(__file__).resolve().parent
WORKERS = 8
VERSION = 261101000000000  # of every row that is written behind the server's back


class Server(stack.Stack):
    """stampd as it is installed, with a PostgreSQL that keeps what it has confirmed."""
    in_turn = False

    def __init__(self, namespaces=None, workers=WORKERS, postgres=None, **settings):
        super().__init__('bench', workers=workers, settings=settings, namespaces={'z': 'closed', **(namespaces or {'lab': 'open'})},
                         postgres={'fsync': 'on', 'synchronous_commit': 'on', 'shared_buffers': '256MB', **(postgres or {})})

    def start(self):
        try:
            return super().start()
        except BaseException:
            self.remove()
            raise

    def fill(self, ns, sql):
        """Runs SQL that writes rows as a worker would, then lets PostgreSQL come to rest."""
        self.psql(ns, "set stampd.worker = 'on'")
        self.psql(ns, sql)
        for rest in ('vacuum analyze doc', 'vacuum analyze item', 'checkpoint'):
            self.psql(ns, rest)

    def fill_lines(self, ns, count, items=5):
        """Documents Doc 1 to `count`, each with so many items Line of 200 bytes."""
        self.fill(ns, f"""
            insert into doc (class, id, version, ctime, dtime, v1, v2)
              select 'Doc', n, {VERSION}, {VERSION}, {VERSION}, 0, 0 from generate_series(1, {count}) n;
            insert into item (class, id, iclass, key, version, vop, content)
              select 'Doc', n, 'Line', k, {VERSION}, {VERSION},
                     '"' || left(repeat(md5(n || '.' || k) || md5(k || '.' || n), 4), 198) || '"'
              from generate_series(1, {count}) n, generate_series(1, {items}) k;
            update doc d set v1 = i.volume from (select id, sum(octet_length(key) + octet_length(content)) as volume
              from item group by id) i where i.id = d.id""")


class Anchor(stack.Stack):
    """A program with a constant answer in stampd's place, behind an nginx of its own that is configured alike."""
    in_turn = False
    sockets = None    # how many; as many as stampd's
    processes = 1     # that share a socket

    def __init__(self, server, program):
        # With the server's segment it belongs to the same installation: its workers, too, may use the databases.
        super().__init__(program, workers=self.sockets or server.workers, beside=server,
                         settings={**server.settings, 'segment': server.path / 'run/stampd/segment'})
        self.program = program
        self.build = self.path / 'build'

    def start(self):
        for part in ('etc', 'build/src'):
            (self.path / part).mkdir(parents=True)
        for name in ('namespaces.map', 'namespaces.map.homes'):
            shutil.copy(self.beside.path / 'etc' / name, self.path / 'etc')
        (self.build / 'src/stampd').symlink_to(stack.BUILD / 'test/bench' / self.program)
        (self.build / 'src/stampctl').symlink_to(stack.BUILD / 'src/stampctl')
        self.answer = self.path / 'answer'
        self.answer.write_bytes(b'{}')
        try:
            super().start()
            self.reconfigure()
            return self
        except BaseException:
            self.remove()
            raise

    def reconfigure(self):
        """Changes what stampctl wrote for nginx."""

    def rewrite(self, text):
        """Another configuration for nginx."""
        self.step('nginx', 'stop')
        (self.path / 'etc/nginx.conf').write_text(text)
        self.step('nginx', 'start')

    def step(self, *words):
        installed, stack.BUILD = stack.BUILD, self.build
        os.environ['STAMPD_BENCH_ANSWER'] = str(self.path / 'answer')
        os.environ['STAMPD_BENCH_PROCESSES'] = str(self.processes)
        try:
            return super().step(*words)
        finally:
            stack.BUILD = installed

    def answer_with(self, answer):
        self.answer.write_bytes(answer)
        self.restart_stampd()


class Lean(Anchor):
    """The empty responder in the shape that was found best, behind an nginx that does no more than it must; beside it,
    at /file, the answer as a file of nginx's own."""
    sockets, processes = 1, 2

    def reconfigure(self):
        text = (HERE / 'lean.conf.in').read_text()
        values = {'USER': 'www-data', 'FOLDER': self.path, 'PORT': self.port}
        self.rewrite(re.sub('@([A-Z]+)@', lambda found: str(values[found.group(1)]), text))


class Prefork(Anchor):
    """libfcgi's loop takes a connection a request: one that is kept would hold its process."""

    def reconfigure(self):
        text = (self.path / 'etc/nginx.conf').read_text()
        text = re.sub(r'(?m)^ *keepalive 256;\n|^ *fastcgi_keep_conn on;\n', '', text)
        self.rewrite(re.sub(r'(?m)^ *keepalive_(requests|timeout|time) (10000|10s|30s);\n', '', text))


# What stands beside stampd, by name: its class and its program.
ANCHORS = {
    'constant': (Anchor, 'constant'),
    'constant, but parsed': (Anchor, 'parsed'),
    'empty': (Anchor, 'empty'),
    'empty, lean nginx': (Lean, 'empty'),
    'libfcgi prefork': (Prefork, 'prefork'),
}


def make_anchor(server, name):
    kind, program = ANCHORS[name]
    return kind(server, program)


def ask(server, path, body, etag=None):
    """One request as the load generator sends it; the answer, which must be a good one."""
    headers = {'Content-Type': 'application/json', 'Accept-Encoding': 'identity'}
    if etag:
        headers['If-None-Match'] = etag
    response = server.http.request('GET' if body is None else 'POST', server.url + path, data=body, headers=headers, timeout=30)
    if response.status_code not in (200, 304):
        raise BenchError(f'{path}: {response.status_code} {response.text}')
    return response


def imitate(server, anchors, question):
    """Makes the anchors answer as the server does, to the byte, and behind the same nginx with a head of the same size
    (which has no ETag); returns the answer."""
    wanted = question.path, question.body, question.etag
    ask(server, *wanted)
    real = ask(server, *wanted)
    for anchor in anchors:
        anchor.answer_with(real.content)
        same = ask(anchor, *wanted)
        sizes = [sum(len(name) + len(value) for name, value in answer.headers.items()) for answer in (real, same)]
        is_alike = type(anchor) is Anchor and 'ETag' not in real.headers
        if same.content != real.content or (is_alike and sizes[0] != sizes[1]):
            raise BenchError(f'{anchor.program} does not answer as stampd: {same.headers} {real.headers}')
    return real.content


def to_json(value):
    return json.dumps(value, separators=(',', ':')).encode()
