"""Opens and makes what the server signs: cursors, tokens, ids of live events; with the secret of the namespace, which clients do not have."""
import hashlib
import hmac
import os

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from push_service import decode, encode

NONCE, KEY = 12, 16


def part(text):
    return f'{len(text.encode())}:{text}'


def cipher(stack, ns, question, nonce):
    secret = stack.psql(ns, 'select secret from namespace')[0][0]
    digest = hmac.new(secret.encode(), nonce + ''.join(map(part, question)).encode(), hashlib.sha256).digest()
    return AESGCM(digest[:KEY]), digest[KEY:KEY + NONCE]


def sign(stack, ns, payload, *question):
    nonce = os.urandom(NONCE)
    gcm, inner = cipher(stack, ns, question, nonce)
    return encode(nonce + gcm.encrypt(inner, payload.encode(), None))


def read_signed(stack, ns, signed, *question):
    raw = decode(signed)
    gcm, inner = cipher(stack, ns, question, raw[:NONCE])
    return gcm.decrypt(inner, raw[NONCE:], None).decode()
