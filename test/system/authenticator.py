"""A software authenticator and browser: makes passkeys and signs with them, as WebAuthn level 3 describes, or wrongly, where a test asks."""
import base64
import hashlib
import json
import os

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

PRESENT, VERIFIED, MAY_BACKUP, BACKED_UP, CREDENTIAL, EXTENSIONS = 0x01, 0x04, 0x08, 0x10, 0x40, 0x80
ALGORITHMS = {'ES256': -7, 'EdDSA': -8, 'RS256': -257}


def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip('=')


def from_base64url(text):
    return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))


def cbor(value):
    """RFC 8949 for integers, texts, bytes, lists and maps, in the shortest form."""
    def head(major, number):
        for size, sign in ((0, number), (1, 24), (2, 25), (4, 26), (8, 27)):
            if size == 0 and number < 24 or size and number < 256 ** size:
                return bytes([major << 5 | sign]) + (number.to_bytes(size, 'big') if size else b'')
        raise ValueError(number)
    if value is True or value is False:
        return b'\xf5' if value else b'\xf4'
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b''.join(map(cbor, value))
    return head(5, len(value)) + b''.join(cbor(key) + cbor(one) for key, one in value.items())


class Key:
    """A key pair, and its public half as COSE writes it."""

    def __init__(self, algorithm='ES256'):
        self.algorithm = algorithm
        if algorithm == 'ES256':
            self.private = ec.generate_private_key(ec.SECP256R1())
            numbers = self.private.public_key().public_numbers()
            self.cose = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, 'big'), -3: numbers.y.to_bytes(32, 'big')}
        elif algorithm == 'EdDSA':
            self.private = ed25519.Ed25519PrivateKey.generate()
            public = self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
            self.cose = {1: 1, 3: -8, -1: 6, -2: public}
        else:
            self.private = rsa.generate_private_key(65537, 2048)
            numbers = self.private.public_key().public_numbers()
            self.cose = {1: 3, 3: -257, -1: numbers.n.to_bytes(256, 'big'), -2: b'\x01\x00\x01'}

    def sign(self, text):
        if self.algorithm == 'ES256':
            return self.private.sign(text, ec.ECDSA(hashes.SHA256()))
        if self.algorithm == 'EdDSA':
            return self.private.sign(text)
        return self.private.sign(text, padding.PKCS1v15(), hashes.SHA256())



class Passkey:
    """A discoverable credential in a browser at `origin`.  `counts`: does its authenticator count signatures?"""

    def __init__(self, origin, algorithm='ES256', counts=True, key=None):
        self.origin, self.key, self.id = origin, key or Key(algorithm), os.urandom(32)
        self.handle, self.rp, self.count, self.counts = None, None, 0, counts

    def client_data(self, kind, options, **changes):
        """Of changes, None removes a member."""
        members = {'type': kind, 'challenge': options['challenge'], 'origin': self.origin, 'crossOrigin': False, **changes}
        return json.dumps({name: value for name, value in members.items() if value is not None}, separators=(',', ':')).encode()

    def data(self, flags, rp=None, count=None, credential=None, extensions=None, after=b''):
        number = self.count if count is None else count
        flags |= (CREDENTIAL if credential is not None else 0) | (EXTENSIONS if extensions is not None else 0)
        return (hashlib.sha256((rp or self.rp).encode()).digest() + bytes([flags]) + number.to_bytes(4, 'big') + (credential or b'')
                + (cbor(extensions) if extensions is not None else b'') + after)

    def credential(self, id_=None, cose=None):
        id_ = self.id if id_ is None else id_
        return bytes(16) + len(id_).to_bytes(2, 'big') + id_ + (cbor(self.key.cose) if cose is None else cose)

    def create(self, options, flags=PRESENT | VERIFIED, client=None, data=None, fmt='none', statement=None, attestation=None, **members):
        """What `navigator.credentials.create()` gives, as JSON; `members` replaces members of the response."""
        self.rp, self.handle = options['rp']['id'], options['user']['id']
        client = client if isinstance(client, bytes) else self.client_data('webauthn.create', options, **(client or {}))
        data = data if isinstance(data, bytes) else self.data(flags, **{'credential': self.credential(), **(data or {})})
        if statement == 'self':
            statement = {'alg': ALGORITHMS[self.key.algorithm], 'sig': self.key.sign(data + hashlib.sha256(client).digest())}
        attestation = cbor({'fmt': fmt, 'attStmt': statement or {}, 'authData': data}) if attestation is None else attestation
        return self.json({'clientDataJSON': base64url(client), 'attestationObject': base64url(attestation), 'transports': ['internal'], **members})

    def get(self, options, flags=PRESENT | VERIFIED, client=None, data=None, signature=None, key=None, handle=None, **members):
        """What `navigator.credentials.get()` gives, as JSON."""
        self.count += 1 if self.counts else 0
        client = client if isinstance(client, bytes) else self.client_data('webauthn.get', options, **(client or {}))
        data = data if isinstance(data, bytes) else self.data(flags, **(data or {}))
        signature = (key or self.key).sign(data + hashlib.sha256(client).digest()) if signature is None else signature
        return self.json({'clientDataJSON': base64url(client), 'authenticatorData': base64url(data), 'signature': base64url(signature),
                          'userHandle': handle or self.handle, **members})

    def json(self, response):
        id_ = response.pop('id', base64url(self.id))
        return {'id': id_, 'rawId': id_, 'type': 'public-key', 'authenticatorAttachment': 'platform', 'clientExtensionResults': {},
                'response': {name: value for name, value in response.items() if value is not None}}
