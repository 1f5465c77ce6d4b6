"""Servers of the protocol of Amazon S3 on the loopback: one from the npm registry (s3rver), and one that checks every signature and fails or
lies as a test wants."""
import datetime
import fcntl
import hashlib
import hmac
import shutil
import subprocess
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from stack import SOURCE, free_port, wait_until

KEY_ID, SECRET, BUCKET = 'KEYOFTESTS', 'a-secret/of+tests', 'files'
PACKAGES = Path('/var/tmp/stampd-s3rver-3.7.1')


def hmac_of(key, text):
    return hmac.new(key, text.encode(), 'sha256').digest()


class Service(ThreadingHTTPServer):
    """`objects` by name.  `troubles`: functions of the handler, each for one request; true: it has answered."""
    daemon_threads = True

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Handler)
        self.objects, self.uploads, self.requests, self.refused, self.troubles, self.always = {}, {}, [], [], [], None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def section(self, name='own', secret=SECRET, host='127.0.0.1', **more):
        lines = {'endpoint': f'http://{host}:{self.server_port}', 'bucket': BUCKET, 'key_id': KEY_ID, 'secret_key': secret, **more}
        return f'[{name}]\n' + ''.join(f'{key} = {value}\n' for key, value in lines.items())

    def stop(self):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def answer(self, status, body=b'', **headers):
        self.send_response(status)
        self.send_header('Content-Length', headers.pop('length', len(body)))
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)
        return True

    def refuse(self, status, code, **headers):
        return self.answer(status, f'<Error><Code>{code}</Code></Error>'.encode(), **headers)

    def is_signed(self, body):
        """Signature version 4, computed a second time."""
        words = dict(word.split('=', 1) for word in self.headers['Authorization'].removeprefix('AWS4-HMAC-SHA256 ').split(','))
        key_id, day, region, service, end = words['Credential'].split('/')
        date, names = self.headers['x-amz-date'], words['SignedHeaders'].split(';')
        path, _, query = self.path.partition('?')
        pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
        canonical = '&'.join(f"{urllib.parse.quote(name, safe='-_.~')}={urllib.parse.quote(value, safe='-_.~')}" for name, value in pairs)
        digest = hashlib.sha256(body).hexdigest()
        lines = [self.command, path, canonical, *(f'{name}:{self.headers[name].strip()}' for name in names), '', ';'.join(names), digest]
        scope = '/'.join((day, region, service, end))
        text = '\n'.join(('AWS4-HMAC-SHA256', date, scope, hashlib.sha256('\n'.join(lines).encode()).hexdigest()))
        key = f'AWS4{SECRET}'.encode()
        for word in (day, region, service, end):
            key = hmac_of(key, word)
        moment = datetime.datetime.strptime(date, '%Y%m%dT%H%M%SZ').replace(tzinfo=datetime.timezone.utc)
        is_fresh = abs(moment - datetime.datetime.now(datetime.timezone.utc)) < datetime.timedelta(minutes=15)
        return (key_id == KEY_ID and hmac_of(key, text).hex() == words['Signature'] and self.headers['x-amz-content-sha256'] == digest
                and {'host', 'x-amz-date', 'x-amz-content-sha256'} <= set(names) and is_fresh)

    def name(self, path):
        """Of the object: the bucket is in the host or in the path."""
        if self.headers['Host'].startswith(f'{BUCKET}.'):
            return path.removeprefix('/')
        return path.removeprefix(f'/{BUCKET}/') if path.startswith(f'/{BUCKET}/') else None

    def serve(self):
        server = self.server
        size = int(self.headers['Content-Length'] or 0)
        body = self.rfile.read(size)
        if len(body) < size:  # who sent it has ended in the middle: it is no request, and not wrongly signed
            self.close_connection = True
            return
        path, _, query = self.path.partition('?')
        server.requests.append((self.command, self.path))
        trouble = server.troubles.pop(0) if server.troubles else server.always
        if trouble and trouble(self):
            return
        name, query = self.name(path), dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        if not self.is_signed(body):
            server.refused.append(self.path)
            self.refuse(403, 'SignatureDoesNotMatch')
        elif name is None:
            self.refuse(404, 'NoSuchBucket')
        else:
            getattr(self, f'take_{self.command.lower()}')(name, query, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve

    def take_put(self, name, query, body):
        if query:
            self.server.uploads[query['uploadId']][int(query['partNumber'])] = body
        else:
            self.server.objects[name] = body
        self.answer(200, ETag=f'"{hashlib.md5(body).hexdigest()}"')

    def take_post(self, name, query, body):
        uploads = self.server.uploads
        if 'uploads' in query:
            id_ = f'id/{len(uploads)}+='
            uploads[id_] = {}
            self.answer(200, f'<R><UploadId>{id_}</UploadId></R>'.encode())
            return
        parts = uploads.pop(query['uploadId'])
        expected = ''.join(f'<Part><PartNumber>{number}</PartNumber><ETag>"{hashlib.md5(part).hexdigest()}"</ETag></Part>'
                           for number, part in sorted(parts.items()))
        if body.decode() != f'<CompleteMultipartUpload>{expected}</CompleteMultipartUpload>':
            self.refuse(400, 'InvalidPart')
            return
        self.server.objects[name] = b''.join(part for _, part in sorted(parts.items()))
        self.answer(200, b'<CompleteMultipartUploadResult></CompleteMultipartUploadResult>')

    def take_head(self, name, query, body):
        content = self.server.objects.get(name)
        self.answer(404 if content is None else 200, length=len(content or b''))

    def take_get(self, name, query, body):
        content, wanted = self.server.objects.get(name), self.headers['Range']
        if content is None:
            self.refuse(404, 'NoSuchKey')
        elif wanted:
            first, last = wanted.removeprefix('bytes=').split('-')
            start = int(first) if first else max(0, len(content) - int(last))
            end = min(int(last), len(content) - 1) if first and last else len(content) - 1
            if start >= len(content):
                self.refuse(416, 'InvalidRange')
            else:
                self.answer(206, content[start:end + 1], Content_Range=f'bytes {start}-{end}/{len(content)}')
        else:
            self.answer(200, content)

    def take_delete(self, name, query, body):
        if query:
            self.server.uploads.pop(query['uploadId'], None)
        else:
            self.server.objects.pop(name, None)
        self.answer(204)


def install_s3rver():
    """From the npm registry, once for a machine, as package-lock.json has it; skips the test when that is not possible."""
    source = SOURCE / 'test/system/s3rver'
    with open(f'{PACKAGES}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (PACKAGES / 'whole').exists():
            shutil.rmtree(PACKAGES, ignore_errors=True)
            PACKAGES.mkdir()
            for name in ('package.json', 'package-lock.json', '.npmrc'):
                shutil.copy(source / name, PACKAGES)
            done = subprocess.run([SOURCE / 'scripts/npm-install', PACKAGES], capture_output=True, text=True, timeout=600)
            if done.returncode == 77:
                pytest.skip(done.stdout.strip())
            assert done.returncode == 0, done.stdout + done.stderr
            (PACKAGES / 'whole').touch()


class S3rver:
    """Keeps its objects in a folder; does not check signatures of version 4."""

    def __init__(self, folder):
        install_s3rver()
        self.port, self.log = free_port(), folder / 's3rver.log'
        words = ['node', PACKAGES / 'node_modules/s3rver/bin/s3rver.js', '--directory', folder / 's3rver', '--address', '127.0.0.1',
                 '--port', self.port, '--no-vhost-buckets', '--configure-bucket', BUCKET]
        (folder / 's3rver').mkdir()
        with open(self.log, 'wb') as log:
            self.process = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: 'listening' in self.log.read_text(), what='s3rver')

    def section(self, name='near'):
        return f'[{name}]\nendpoint = http://127.0.0.1:{self.port}\nbucket = {BUCKET}\nkey_id = S3RVER\nsecret_key = S3RVER\n'

    def stop(self):
        self.process.terminate()
        self.process.wait()
