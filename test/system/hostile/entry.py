"""The entry of a stack, for requests that no library would send: TLS by hand, answers read as they come."""
import json
import math
import socket
import ssl
import time

from hostile import ADMIN
from stack import PATIENCE_S


class Answer:
    def __init__(self, status=0, headers=None, body=b''):
        self.status, self.headers, self.body = status, headers or {}, body

    def problem(self):
        return json.loads(self.body) if self.headers.get('content-type') == 'application/problem+json' else None

    def __repr__(self):
        return f'{self.status} {self.body[:300]!r}'


class Entry:
    def __init__(self, stack):
        self.port, self.key = stack.port, stack.key.encode()
        assert len(self.key) == len(ADMIN)
        self.context = ssl.create_default_context(cafile=str(stack.path / 'etc/certificate.pem'))
        self.context.set_alpn_protocols(['http/1.1'])
        self.hanging = set()  # connections of slow clients
        self.patience_s = math.inf  # how long nginx waits for a request

    def plain(self):
        return socket.create_connection(('127.0.0.1', self.port), timeout=PATIENCE_S)

    def connect(self):
        return self.context.wrap_socket(self.plain(), server_hostname='localhost')

    def ask(self, text):
        """Sends the bytes on a connection of their own; the answer, or one of status 0 when none comes.  On a busy machine the client may
        stand still for longer than nginx waits for its request: then it comes again."""
        text = text.replace(ADMIN, self.key)
        for _ in range(3):
            begun = time.monotonic()
            answer = self.ask_once(text)
            if answer.status not in (0, 408) or time.monotonic() - begun < self.patience_s:
                break
        return answer

    def ask_once(self, text):
        with self.connect() as client:
            try:
                client.sendall(text)
            except OSError:
                pass  # refused before it was whole: the answer may be there
            return self.receive(client, text[:5] == b'HEAD ')

    def receive(self, client, is_head=False):
        said = b''
        while not self.is_whole(said, is_head):
            try:
                more = client.recv(1 << 20)
            except TimeoutError:
                raise
            except OSError:
                break
            if not more:
                break
            said += more
        return self.parse(said)

    @staticmethod
    def split(said):
        head, end, body = said.partition(b'\r\n\r\n')
        lines = head.decode('latin-1').split('\r\n')
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(':') for line in lines[1:])}
        return lines[0], headers, body, bool(end)

    def is_whole(self, said, is_head):
        line, headers, body, has_head = self.split(said)
        if not has_head:
            return False
        if is_head or line.split()[1] in ('204', '304'):
            return True
        if headers.get('transfer-encoding') == 'chunked':
            return body.endswith(b'0\r\n\r\n')
        return 'content-length' in headers and len(body) >= int(headers['content-length'])

    def parse(self, said):
        line, headers, body, has_head = self.split(said)
        if not has_head:
            assert not said or json.loads(said), said  # of HTTP/0.9: a body alone
            return Answer(0, {}, said)
        assert line.startswith('HTTP/1.1 '), line
        if headers.get('transfer-encoding') == 'chunked':
            body = unchunk(body)
        return Answer(int(line.split()[1]), headers, body)


def unchunk(body):
    whole = b''
    while body:
        size, _, body = body.partition(b'\r\n')
        count = int(size, 16)
        whole, body = whole + body[:count], body[count + 2:]
        if not count:
            break
    return whole
