"""A kept connection to nginx."""
import http.client
import ssl
from urllib.parse import urlsplit

TIMEOUT_S = 30
ADDRESS = '127.0.0.11'  # of the clients: one, since tasks of two addresses are in two domains


class Lost(Exception):
    """No answer; `was_sent` False: the server has not got the request either."""

    def __init__(self, was_sent):
        super().__init__()
        self.was_sent = was_sent


class Wire:
    """One kept connection to nginx.  `source`: the address that it comes from; without one, that of this host, which has no shares."""

    def __init__(self, url, certificate, source=None):
        self.host, self.source = urlsplit(url), (source, 0) if source else None
        self.context = ssl.create_default_context(cafile=certificate)
        self.connection = None

    def send(self, method, path, body=None, headers=None):
        try:
            if self.connection is None:
                self.connection = http.client.HTTPSConnection(self.host.hostname, self.host.port, timeout=TIMEOUT_S,
                                                              context=self.context, source_address=self.source)
                self.connection.connect()
        except OSError:
            self.close()
            raise Lost(False) from None
        try:
            self.connection.request(method, path, body, headers or {})
        except (OSError, http.client.HTTPException):
            self.close()
            raise Lost(True) from None

    def receive(self):
        try:
            answer = self.connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise Lost(True) from None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None
