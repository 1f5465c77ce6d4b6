"""A queue manager under test, beside a server that is only said to be one: doc/reference/tasks.md, in memory, without a worker."""
import contextlib
import datetime
import json
import signal
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fastcgi import Connection
from stack import BUILD, SERVER_USER, give, wait_until

KEY = 'the-key-of-managers'
PARKED = 991231235959999


def stamp(delay_s=0):
    now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=delay_s)
    return int(now.strftime('%y%m%d%H%M%S') + f'{now.microsecond // 1000:03}')


class Server(ThreadingHTTPServer):
    """Tasks are dicts, by id: rows of `due`.  `works` has, by operation, a function of the task, which gives the member of
    the answer, or raises: then the connection is cut after the work was done."""
    daemon_threads = True

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Handler)
        self.lock = threading.RLock()
        self.tasks, self.runs, self.scans, self.batches, self.works, self.lost = {}, [], [], [], {}, []
        self.retries = []  # of the tasks of each batch
        self.reported = set()  # (id, failures): administrators were told
        self.running, self.most_running = set(), 0
        self.trouble = None  # a status in place of every answer
        self.scan_limit = 1000
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server_port}'

    def add(self, number, op='Work', delay_s=0, ns='lab', **more):
        task = {'id': f'task{number:06}', 'op': op, 'qn': 0, 'priority': 20, 'startat': stamp(delay_s), 'retry': 0, 'batch': 1,
                **more}
        with self.lock:
            self.tasks[ns, task['id']] = task
        return task

    def run(self, ns, id):
        with self.lock:
            task = self.tasks.get((ns, id))
            if task is None:
                return {'id': id, 'result': 'gone'}
            if (ns, id) in self.running:
                return {'id': id, 'result': 'running'}
            if task['startat'] > stamp(1):
                return {'id': id, 'result': 'waiting', 'startat': task['startat']}
            if task.get('domain') and task not in self.due(ns, stamp(1)):
                return {'id': id, 'result': 'turn'}
            self.running.add((ns, id))
            self.runs.append(id)
            self.most_running = max(self.most_running, len(self.running))
        try:
            member = self.works.get(task['op'], lambda task: {'result': 'done'})(task)
        finally:
            with self.lock:
                self.running.discard((ns, id))
        with self.lock:
            if member['result'] == 'done':
                del self.tasks[ns, id]
            elif member['result'] == 'failed':
                task['retry'] += 1
                task['startat'] = member.get('startat', PARKED - 1)
                member = {**member, 'retry': task['retry']}
            if 'domain' in task:
                member = {**member, **{'next': row for row in self.due(ns, stamp()) if row.get('domain') == task['domain']}}
        return {'id': id, **member}

    def due(self, ns, before):
        waiting = [task for (of, id), task in self.tasks.items()
                   if of == ns and (of, id) not in self.running and task['startat'] <= before]
        waiting.sort(key=lambda task: (task['qn'], task['priority'], task['startat']))
        seen, rows = {self.tasks[other].get('domain') for other in self.running}, []
        for task in waiting:
            if task.get('domain') and task['domain'] in seen:
                continue
            seen.add(task.get('domain'))
            rows.append(task)
        return rows

    def scan(self, ns, wanted):
        with self.lock:
            self.scans.append(ns)
            lost, self.lost = self.lost, []
            unreported = [{'code': 'XBROKEN', 'report': 'It is broken.', **task} for (of, id), task in self.tasks.items()
                      if of == ns and (id, task['retry']) not in self.reported and (of, id) not in self.running and task['retry']
                      and (task['startat'] == PARKED or task['retry'] >= wanted['failures'])] if 'unreported' in wanted else []
            return {'t': stamp(), 'due': self.due(ns, wanted['before'])[:wanted['limit']], 'running': [], 'lost': lost, 'purged': 0,
                    'unreported': unreported}


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        ns, od, *id = self.path.strip('/').split('/')
        server = self.server
        assert od == 'od'
        if server.trouble or body.get('key') != KEY:
            return self.answer(server.trouble or 403, {'code': 'XAWAY'})
        try:
            if id:
                member = server.run(ns, id[0])
                failed = {'message': 'It is broken.', 'detail': 'really'} if member['result'] == 'failed' else {}
                return self.answer(500 if failed else 200, {'tasks': [member], **failed})
            if 'scan' in body['param']:
                return self.answer(200, server.scan(ns, body['param']['scan']))
            if 'reported' in body['param']:
                with server.lock:
                    server.reported |= {(row['id'], row['retry']) for row in body['param']['reported']}
                return self.answer(200, {})
            with server.lock:
                server.batches.append(len(body['param']['run']))
                server.retries.append([server.tasks[ns, one]['retry'] for one in body['param']['run'] if (ns, one) in server.tasks])
            return self.answer(200, {'tasks': [server.run(ns, one) for one in body['param']['run']]})
        except ConnectionAbortedError:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def answer(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Manager:
    """The program; `settings` are more lines of its file."""

    def __init__(self, home, url, name='qm', **settings):
        self.home = home
        self.run_directory = home / f'run-{name}'
        self.run_directory.mkdir(exist_ok=True)
        give(self.run_directory)
        (home / 'key').write_text(KEY + '\n')
        (home / 'key').chmod(0o600)
        self.path, self.log_path = home / f'{name}.conf', home / f'{name}.log'
        self.socket = self.run_directory / 'wake-ups.sock'
        settings = {'queue_url': url, 'queue_code': name, 'queue_key_file': home / 'key', 'queue_namespaces': 'lab',
                    'run_directory': self.run_directory, 'queue_socket': self.socket, 'log_level': 'debug', 'task_wakeup_s': 3600, **SERVER_USER,
                    **settings}
        self.path.write_text(''.join(f'{name} = {value}\n' for name, value in settings.items()))
        self.socket_path = self.run_directory / f'{name}.sock'
        self.process = None

    def start(self):
        with self.log_path.open('ab') as log:
            self.process = subprocess.Popen([BUILD / 'src/stamp-queue', '--config', self.path], stdin=subprocess.DEVNULL, stderr=log)
        wait_until(lambda: self.socket_path.exists() or self.process.poll() is not None, what='the socket')
        assert self.process.poll() is None, self.log
        return self

    def stop(self, how=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(60)

    @property
    def log(self):
        return self.log_path.read_text(errors='replace')

    def wakeup(self, row, ns='lab'):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
            speaker.sendto(json.dumps({'ns': ns, **(row or {})}).encode(), str(self.socket))

    def ask(self, op, param=None, key=KEY, **more):
        body = json.dumps({'op': op, 'key': key, **({'param': param} if param is not None else {})}).encode()
        with contextlib.closing(Connection(self.socket_path)) as connection:
            return connection.ask('/qm/op', **{'method': 'POST', 'CONTENT_TYPE': 'application/json', 'body': body, **more})

    def out(self, op, param=None):
        answer = self.ask(op, param)
        assert answer.status == 200, answer.body
        return json.loads(answer.body)['out']
