"""A small FastCGI client: what nginx says to a worker, said by a test."""
import socket
import struct

BEGIN_REQUEST, ABORT_REQUEST, END_REQUEST, PARAMS, STDIN, STDOUT = 1, 2, 3, 4, 5, 6
RECORD_BYTES = 32768


def record(kind, content):
    return struct.pack('>BBHHBB', 1, kind, 1, len(content), 0, 0) + content


def pair(name, value):
    def size(text):
        return struct.pack('>B', len(text)) if len(text) < 128 else struct.pack('>I', len(text) | 1 << 31)
    name, value = name.encode(), value.encode()
    return size(name) + size(value) + name + value


class Answer:
    def __init__(self, text):
        head, _, self.body = text.partition(b'\r\n\r\n')
        lines = head.decode().split('\r\n')
        self.headers = dict(line.split(': ', 1) for line in lines)
        self.status = int(self.headers['Status'].split()[0])


class Connection:
    """One connection to a worker's socket; kept unless a request says otherwise."""

    def __init__(self, path, timeout=60):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(str(path))
        self.rest = b''

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def head(self, uri, method='GET', length='', keep=True, **parameters):
        given = {'REQUEST_METHOD': method, 'REQUEST_URI': uri, 'STAMPD_REQUEST_ID': '0a1b2c', **parameters}
        if length != '':
            given['CONTENT_LENGTH'] = str(length)
        return (record(BEGIN_REQUEST, b'\0\1' + bytes([keep]) + bytes(5))
                + record(PARAMS, b''.join(pair(*both) for both in given.items())) + record(PARAMS, b''))

    def send(self, uri='/ping', body=b'', **more):
        said = self.head(uri, length=len(body) if body else '', **more)
        for start in range(0, len(body), RECORD_BYTES):
            said += record(STDIN, body[start:start + RECORD_BYTES])
        self.socket.sendall(said + record(STDIN, b''))

    def read(self, size):
        while len(self.rest) < size:
            more = self.socket.recv(65536)
            if not more:
                raise EOFError('the worker has closed the connection')
            self.rest += more
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def receive(self):
        text = b''
        while True:
            _, kind, _, size, padding, _ = struct.unpack('>BBHHBB', self.read(8))
            content = self.read(size)
            self.read(padding)
            if kind == STDOUT:
                text += content
            elif kind == END_REQUEST:
                return Answer(text)

    def ask(self, uri='/ping', **more):
        self.send(uri, **more)
        return self.receive()

    def is_closed(self):
        try:
            return not self.socket.recv(1)
        except ConnectionError:
            return True
