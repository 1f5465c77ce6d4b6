"""A push service for tests, on the loopback, and the browsers that subscribe there: it verifies who sends, answers as it is
told to, and keeps what the browsers would have read."""
import base64
import http.server
import json
import secrets
import threading
import time

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

HALF_A_DAY, DAY = 12 * 3600, 24 * 3600


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def decode(text):
    return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))


def point_of(key):
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def read_point(data):
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), data)


def derive(salt, secret, info, size):
    return HKDF(hashes.SHA256(), size, salt, info).derive(secret)


class Browser:
    def __init__(self, service):
        self.service, self.key, self.auth = service, ec.generate_private_key(ec.SECP256R1()), secrets.token_bytes(16)
        self.path = '/' + secrets.token_urlsafe(24)
        self.endpoint = service.url + self.path
        self.answers = []  # statuses, or (status, headers), or what gives one, of the next messages; then 201
        self.seen = []     # (headers, message) of each, whatever was answered
        self.arrived = []  # (when, message) of each, by the monotonic clock
        self.wrong = []
        service.browsers[self.path] = self

    @property
    def subscription(self):
        """As PushSubscription.toJSON() has it."""
        return {'endpoint': self.endpoint, 'keys': {'p256dh': encode(point_of(self.key.public_key())), 'auth': encode(self.auth)}}

    @property
    def messages(self):
        return [message for _, message in self.seen]

    def decrypt(self, body):
        """RFC 8291, from the browser's side."""
        salt, size, length = body[:16], int.from_bytes(body[16:20], 'big'), body[20]
        sender, sealed = body[21:21 + length], body[21 + length:]
        assert len(body) <= 4096 and len(sealed) <= size == 4096 and length == 65
        shared = self.key.exchange(ec.ECDH(), read_point(sender))
        secret = derive(self.auth, shared, b'WebPush: info\0' + point_of(self.key.public_key()) + sender, 32)
        record = AESGCM(derive(salt, secret, b'Content-Encoding: aes128gcm\0', 16)).decrypt(
            derive(salt, secret, b'Content-Encoding: nonce\0', 12), sealed, None)
        assert len(record) % 512 in (1, 3993 % 512 + 1)
        text = record.rstrip(b'\0')
        assert text[-1] == 2
        return json.loads(text[:-1])


class PushService(http.server.ThreadingHTTPServer):
    """`contact` is what senders must say of themselves; `key` by which the browsers have subscribed is set later."""
    daemon_threads = True

    def __init__(self, contact):
        super().__init__(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self.server_address[1]}'
        self.contact, self.key, self.browsers = contact, None, {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """A worker that was killed breaks its connection: nothing to tell."""

    def verify(self, authorization):
        """RFC 8292: the sender has the key by which the browser has subscribed, and means this service."""
        assert authorization.startswith('vapid ')
        token, key = (part.partition('=')[2] for part in authorization[len('vapid '):].split(', '))
        assert key == self.key
        head, claims, signature = token.split('.')
        raw = decode(signature)
        assert len(raw) == 64
        pair = utils.encode_dss_signature(int.from_bytes(raw[:32], 'big'), int.from_bytes(raw[32:], 'big'))
        read_point(decode(key)).verify(pair, f'{head}.{claims}'.encode(), ec.ECDSA(hashes.SHA256()))
        assert json.loads(decode(head)) == {'typ': 'JWT', 'alg': 'ES256'}
        claims = json.loads(decode(claims))
        assert claims['aud'] == self.url and claims['sub'] == self.contact
        assert time.time() < claims['exp'] < time.time() + DAY


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_POST(self):
        size = int(self.headers['Content-Length'])
        body = self.rfile.read(size)
        if len(body) < size:  # a worker that was killed in the middle has sent no message
            self.close_connection = True
            return
        browser = self.server.browsers.get(self.path)
        answer = 404
        if browser:
            answer = browser.answers.pop(0) if browser.answers else 201
            try:
                self.server.verify(self.headers['Authorization'])
                assert self.headers['Content-Encoding'] == 'aes128gcm'
                message = browser.decrypt(body)
                browser.seen.append((dict(self.headers), message))
                browser.arrived.append((time.monotonic_ns(), message))
            except Exception as wrong:  # whatever it is, it is for the test that asks
                browser.wrong.append(wrong)
                answer = 400
        answer = answer() if callable(answer) else answer
        status, more = answer if isinstance(answer, tuple) else (answer, {})
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header('Content-Length', '0')
        self.end_headers()
