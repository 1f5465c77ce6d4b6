"""An OpenID provider for tests, on the loopback, by HTTPS: its keys, the tokens that it signs, and what it answers when it is asked."""
import base64
import datetime
import http.server
import ipaddress
import json
import ssl
import tempfile
import threading
import time
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.x509.oid import NameOID


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


def number(value, size=None):
    return encode(value.to_bytes(size or (value.bit_length() + 7) // 8, 'big'))


def part(value):
    """A header or claims; a text, or bytes, are taken as they are."""
    text = value if isinstance(value, (str, bytes)) else json.dumps(value)
    return encode(text if isinstance(text, bytes) else text.encode())


class Key:
    """A key pair of one algorithm."""

    def __init__(self, algorithm, kid, bits=2048, curve=None):
        self.algorithm, self.kid = algorithm, kid
        if algorithm == 'RS256':
            self.pair = rsa.generate_private_key(65537, bits)
        elif algorithm == 'ES256':
            self.pair = ec.generate_private_key(curve or ec.SECP256R1())
        else:
            self.pair = ed25519.Ed25519PrivateKey.generate()

    @property
    def jwk(self):
        named = {'kid': self.kid} if self.kid else {}
        if self.algorithm == 'RS256':
            numbers = self.pair.public_key().public_numbers()
            return {'kty': 'RSA', 'use': 'sig', 'alg': 'RS256', 'n': number(numbers.n), 'e': number(numbers.e), **named}
        if self.algorithm == 'ES256':
            numbers = self.pair.public_key().public_numbers()
            return {'kty': 'EC', 'crv': 'P-256', 'use': 'sig', 'x': number(numbers.x, 32), 'y': number(numbers.y, 32), **named}
        raw = self.pair.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return {'kty': 'OKP', 'crv': 'Ed25519', 'x': encode(raw), **named}

    @property
    def pem(self):
        return self.pair.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    def sign(self, text):
        if self.algorithm == 'RS256':
            return self.pair.sign(text, padding.PKCS1v15(), hashes.SHA256())
        if self.algorithm == 'ES256':
            r, s = utils.decode_dss_signature(self.pair.sign(text, ec.ECDSA(hashes.SHA256())))
            return r.to_bytes(32, 'big') + s.to_bytes(32, 'big')
        return self.pair.sign(text)

    def header(self, **more):
        header = {'alg': self.algorithm, 'typ': 'JWT', 'kid': self.kid, **more}
        return {name: value for name, value in header.items() if value is not None}

    def token(self, claims, header=None, sign=None):
        """`header` replaces the whole; `sign` makes the signature of the text."""
        text = f'{part(self.header() if header is None else header)}.{part(claims)}'
        return f'{text}.{encode((sign or self.sign)(text.encode()))}'


class Provider:
    """Listens on a port of its own; `answers` maps a path to a text, a status, or a function of the handler; `seen` has the paths."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix='stampd-provider-')
        Path(self.folder.name).chmod(0o755)
        self.ca_file = Path(self.folder.name) / 'ca.pem'
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), self.handler())
        self.server.daemon_threads = True
        self.server.socket = self.context().wrap_socket(self.server.socket, server_side=True)
        self.url = f'https://127.0.0.1:{self.server.server_port}'
        self.keys = [Key('RS256', 'rsa'), Key('ES256', 'curve'), Key('EdDSA', 'edwards')]
        self.answers, self.seen = {}, []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def context(self):
        pair = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, 'provider')])
        begin = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
        made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(pair.public_key())
        made = made.serial_number(1).not_valid_before(begin).not_valid_after(begin + datetime.timedelta(days=30))
        made = made.add_extension(x509.BasicConstraints(True, None), True)
        made = made.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address('127.0.0.1'))]), False)
        self.ca_file.write_bytes(made.sign(pair, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        secret = Path(self.folder.name) / 'key.pem'
        secret.write_bytes(pair.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca_file, secret)
        return context

    def handler(self):
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                provider.seen.append(self.path)
                answer = provider.answer(self.path)
                if callable(answer):
                    answer(self)
                elif isinstance(answer, int):
                    self.send_error(answer)
                else:
                    self.reply(answer)

            def reply(self, text, status=200, **headers):
                body = text if isinstance(text, bytes) else text.encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                pass

        return Handler

    @property
    def jwks(self):
        return json.dumps({'keys': [key.jwk for key in self.keys]})

    def answer(self, path):
        if path in self.answers:
            return self.answers[path]
        if path == '/.well-known/openid-configuration':
            return json.dumps({'issuer': self.url, 'jwks_uri': f'{self.url}/keys', 'authorization_endpoint': f'{self.url}/auth'})
        return self.jwks if path == '/keys' else 404

    @property
    def settings(self):
        return {'issuer_addresses': 'any', 'issuer_ca_file': str(self.ca_file)}

    def claims(self, subject='ann', **more):
        now = int(time.time())
        claims = {'iss': self.url, 'aud': 'app', 'sub': subject, 'iat': now - 5, 'exp': now + 3600, **more}
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, subject='ann', key=None, **claims):
        return (key or self.keys[0]).token(self.claims(subject, **claims))
