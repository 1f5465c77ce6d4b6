"""A requests.Session for the requests that tests send by the ten thousand: those with nothing special are sent and read here, which takes
a sixth of the time; all others are sent by requests.  The answers are its own kind in both cases, and so are the exceptions."""
import http.client
import json
import re
import select
import socket
import ssl
import time
import zlib
from datetime import timedelta
from email.message import Message
from types import SimpleNamespace
from urllib.parse import urlsplit

import requests
import urllib3
from requests.cookies import RequestsCookieJar, extract_cookies_to_jar
from requests.models import RequestEncodingMixin
from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers

LARGEST_BODY = 64 << 10  # the answer to a larger one may come before all of it is sent
LONGEST_LINE = 64 << 10
PLAIN_PATH = re.compile(r"/[A-Za-z0-9/_.~:@!$&'()*+,;=?-]*")  # requests would send it as it is, but for "/."
PLAIN_NAME = re.compile(r'[A-Za-z0-9-]+')
PLAIN_VALUE = re.compile(r'[!-~][ -~]*|')
FRAMING = {'content-length', 'transfer-encoding', 'expect'}
REDIRECTS = {301, 302, 303, 307, 308}


class NotPlain(Exception):
    """A request that requests must send."""


class Answer(requests.Response):
    def __init__(self, method, url, status, reason, pairs, content, took):  # the constructor of the class makes much that is never asked for
        headers = CaseInsensitiveDict()
        for name, value in pairs:
            headers[name] = f'{headers[name]}, {value}' if name in headers else value
        self.__dict__.update(
            _content=content, _content_consumed=True, _next=None, status_code=status, reason=reason, headers=headers, url=url, raw=None, history=[],
            encoding='utf-8' if 'json' in headers.get('Content-Type', '') else get_encoding_from_headers(headers), elapsed=timedelta(seconds=took),
            request=SimpleNamespace(method=method, url=url, headers={}), connection=None, cookies=RequestsCookieJar() if 'Set-Cookie' in headers else {})

    def close(self):
        pass


class Connection:
    """One that is kept; its answers are read whole."""

    def __init__(self, origin, context, timeout):
        try:
            self.socket = socket.create_connection((origin.hostname, origin.port), timeout)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context:
                self.socket = context.wrap_socket(self.socket, server_hostname=origin.hostname)
        except ssl.SSLError as error:
            raise requests.exceptions.SSLError(error) from error
        except TimeoutError as error:
            raise requests.ConnectTimeout(error) from error
        except OSError as error:
            raise requests.ConnectionError(error) from error
        self.file = self.socket.makefile('rb', 1 << 16)
        self.looker = select.poll()
        self.looker.register(self.socket, select.POLLIN)

    def is_dropped(self):
        return bool(self.looker.poll(0))

    def close(self):
        self.file.close()
        self.socket.close()

    def line(self):
        line = self.file.readline(LONGEST_LINE)
        if not line.endswith(b'\n'):
            raise http.client.RemoteDisconnected('Remote end closed connection without response') if not line else http.client.IncompleteRead(line)
        return line

    def head(self):
        """Status, reason, fields."""
        while True:
            version, status, reason = re.fullmatch(rb'HTTP/1\.([01]) (\d{3}) ?(.*?)\r?\n', self.line()).groups()
            pairs = []
            while (line := self.line().rstrip(b'\r\n').decode('latin-1')):
                name, _, value = line.partition(':')
                pairs.append((name, value.strip()))
            if int(status) >= 200:
                return version == b'1', int(status), reason.decode('latin-1'), pairs

    def exactly(self, size):
        piece = self.file.read(size)
        if len(piece) < size:
            raise http.client.IncompleteRead(piece, size - len(piece))
        return piece

    def chunks(self):
        while (size := int(self.line().split(b';')[0], 16)):
            yield self.exactly(size)
            self.exactly(2)
        while self.line().strip():
            pass

    def exchange(self, method, message):
        """Status, reason, fields, body; whether it can be used again."""
        try:
            self.socket.sendall(message)
        except BrokenPipeError:
            pass  # perhaps there is an answer nevertheless
        is_kept, status, reason, pairs = self.head()
        fields = {name.lower(): value for name, value in pairs}
        if method == 'HEAD' or status in (204, 304):
            content = b''
        elif 'chunked' in fields.get('transfer-encoding', ''):
            content = b''.join(self.chunks())
        elif 'content-length' in fields:
            content = self.exactly(int(fields['content-length']))
        else:
            content, is_kept = self.file.read(), False
        if content and fields.get('content-encoding') == 'gzip':
            content = zlib.decompress(content, 16 + zlib.MAX_WBITS)
        return status, reason, pairs, content, is_kept and 'close' not in fields.get('connection', '').lower()


def body_of(data, json_):
    """The bytes and their type; each may be None."""
    if not data and json_ is not None:
        try:
            return json.dumps(json_, allow_nan=False).encode(), 'application/json'
        except (TypeError, ValueError):
            raise NotPlain from None  # let requests say what is wrong
    if not data:
        if data not in (None, b'', '', {}):
            raise NotPlain
        return None, None
    if isinstance(data, dict):
        return RequestEncodingMixin._encode_params(data).encode(), 'application/x-www-form-urlencoded'
    if isinstance(data, str) and data.isascii():
        return data.encode(), None
    if not isinstance(data, bytes):
        raise NotPlain
    return data, None


class ThinSession(requests.Session):
    """`origins` are those to which it sends by itself, as https://127.0.0.1:20000; `verify` must be the file of a certificate."""

    def __init__(self, *origins):
        super().__init__()
        self.origins = {origin: urlsplit(origin) for origin in origins}
        self.idle = {origin: [] for origin in origins}
        self.context, self.context_of = None, None
        self.usual = ''.join(f'{name}: {value}\r\n' for name, value in self.headers.items())

    def close(self):
        super().close()
        self.drop_idle()

    def drop_idle(self):
        for connections in self.idle.values():
            while connections:
                connections.pop().close()

    def request(self, method, url, params=None, data=None, headers=None, json=None, timeout=None, allow_redirects=True, **more):
        if more.get('stream') is False:
            del more['stream']
        plain = None
        try:
            if more or self.cookies or not isinstance(self.verify, str) or not (timeout is None or isinstance(timeout, (int, float))):
                raise NotPlain
            method = method.upper()
            plain = self.message(method, url, params, data, headers, json)
        except NotPlain:
            pass
        if plain is None:
            return super().request(method, url, params=params, data=data, headers=headers, json=json, timeout=timeout,
                                   allow_redirects=allow_redirects, **more)
        answer = self.deliver(method, *plain, timeout)
        if allow_redirects and answer.status_code in REDIRECTS and 'Location' in answer.headers:
            return super().request(method, url, params=params, data=data, headers=headers, json=json, timeout=timeout)
        return answer

    def message(self, method, url, params, data, headers, json_):
        """The origin, the whole address and the bytes that are sent."""
        origin = '/'.join(url.split('/', 3)[:3])
        path = url[len(origin):]
        if origin not in self.origins or not PLAIN_PATH.fullmatch(path) or '/.' in path or not isinstance(params, (dict, type(None))):
            raise NotPlain
        if params:
            query = RequestEncodingMixin._encode_params(params)
            path += ('&' if '?' in path else '?') + query if query else ''
        body, kind = body_of(data, json_)
        if body is not None and len(body) > LARGEST_BODY:
            raise NotPlain
        lines, usual, given = [], self.usual, set()
        for name, value in (headers or {}).items():
            if not (isinstance(name, str) and isinstance(value, str) and PLAIN_NAME.fullmatch(name) and PLAIN_VALUE.fullmatch(value)):
                raise NotPlain
            given.add(name.lower())
            lines.append(f'{name}: {value}\r\n')
        if given & FRAMING or len(given) < len(lines):
            raise NotPlain
        if any(name.lower() in given for name in self.headers):
            usual = ''.join(f'{name}: {value}\r\n' for name, value in self.headers.items() if name.lower() not in given)
        if 'host' not in given:
            lines.insert(0, f'Host: {self.origins[origin].netloc}\r\n')
        if kind and 'content-type' not in given:
            lines.append(f'Content-Type: {kind}\r\n')
        if body is not None or method not in ('GET', 'HEAD'):
            lines.append(f'Content-Length: {len(body or b"")}\r\n')
        return origin, origin + path, f'{method} {path} HTTP/1.1\r\n{usual}{"".join(lines)}\r\n'.encode() + (body or b'')

    def deliver(self, method, origin, url, message, timeout):
        begun = time.monotonic()
        connection = self.connection(origin, timeout)
        try:
            connection.socket.settimeout(timeout)
            status, reason, pairs, content, is_kept = connection.exchange(method, message)
        except BaseException as error:
            connection.close()
            if isinstance(error, TimeoutError):
                raise requests.ReadTimeout(error) from error
            if isinstance(error, http.client.IncompleteRead):
                raise requests.exceptions.ChunkedEncodingError(error) from error
            if isinstance(error, (OSError, http.client.HTTPException)):
                raise requests.ConnectionError(urllib3.exceptions.ProtocolError('Connection aborted.', error)) from error
            raise
        if is_kept:
            self.idle[origin].append(connection)
        else:
            connection.close()
        answer = Answer(method, url, status, reason, pairs, content, time.monotonic() - begun)
        if 'Set-Cookie' in answer.headers:
            self.keep_cookies(answer, pairs)
        return answer

    def connection(self, origin, timeout):
        idle = self.idle[origin]
        while True:
            try:
                connection = idle.pop()
            except IndexError:
                return Connection(self.origins[origin], self.tls() if origin.startswith('https:') else None, timeout)
            if not connection.is_dropped():
                return connection
            connection.close()

    def tls(self):
        if self.context_of != self.verify:
            try:
                self.context = ssl.create_default_context(cafile=self.verify)
            except FileNotFoundError as error:
                raise OSError(f'Could not find a suitable TLS CA certificate bundle, invalid path: {self.verify}') from error
            self.context_of = self.verify
        return self.context

    def keep_cookies(self, answer, pairs):
        message = Message()
        for name, value in pairs:
            message[name] = value
        for jar in (self.cookies, answer.cookies):
            extract_cookies_to_jar(jar, answer.request, SimpleNamespace(_original_response=SimpleNamespace(msg=message)))
