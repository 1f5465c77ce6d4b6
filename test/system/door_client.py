"""A client with an address of its own on the loopback: 127.0.0.2, 127.0.0.3 and so on; limits of clients hold for these, while
127.0.0.1 is exempt (scripts/lib/stack.sh)."""
import http.client
import json
import ssl

from stack import PATIENCE_S


class Reply:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, dict((name.lower(), value) for name, value in response.getheaders()), response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """Of a fault; '' for none."""
        return self.json['code'] if self.headers.get('content-type') == 'application/problem+json' else ''

    @property
    def args(self):
        return self.json['args']

    def __repr__(self):
        return f'{self.status} {self.body[:300]!r}'


class Client:
    """Keeps one connection, as browsers do, and opens it again when it was closed.  `timeout` is of one read."""

    def __init__(self, stack, address='127.0.0.2', timeout=PATIENCE_S):
        self.stack, self.address, self.timeout = stack, address, timeout
        self.context = ssl.create_default_context(cafile=str(stack.path / 'etc/certificate.pem'))
        self.connection = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def connect(self):
        """A connection of its own, for requests that are not finished."""
        return http.client.HTTPSConnection('127.0.0.1', self.stack.port, timeout=self.timeout, context=self.context, source_address=(self.address, 0))

    def send(self, connection, method, path, body=None, **headers):
        headers = {name.replace('_', '-'): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body, headers = json.dumps(body).encode(), {'Content-Type': 'application/json', **headers}
        connection.request(method, path, body, headers)

    def ask(self, method, path, body=None, **headers):
        for is_last in (False, True):
            self.connection = self.connection or self.connect()
            try:
                self.send(self.connection, method, path, body, **headers)
                return Reply(self.connection.getresponse())
            except (ConnectionError, ssl.SSLEOFError):
                self.close()
                if is_last:
                    raise

    def op(self, ns, name, param=None, **more):
        return self.ask('POST', f'/{ns}/op/{name}', {'param': param, **more} if param is not None else more)

    def get(self, ns, class_, id_):
        return self.ask('GET', f'/{ns}/doc/{class_}/{id_}')
