"""Whoever has a dump of an encrypted namespace, its files and its records, without a key, confirms no guess: each digest that is stored is keyed."""
import base64
import hashlib
import hmac
import json
import re
import struct
import subprocess
import tempfile

import pytest

from schema import Schemas
from stack import give, wait_until
from test_records import state
from test_uploads import create as begin_upload, send
from vault import create, new_site_key

pytestmark = pytest.mark.plain

CLIENT = '127.0.0.2'
STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'},
         'settings': {'records_mb': 2, 'records_disk_mb': 64, 'mail_from': 'accounts@example.org', 'mail_server': 'smtp://127.0.0.1:1', 'exempt_clients': '',
                      'subscription_trial_min': 0}}
PERSON = {'items': {'Main': {'singleton': True}, 'Seen': {'singleton': True, 'fields': {'code': 'hash'}}},
          'collections': {'team': {'key': ['Main.team']}}, 'unique': {'mail': {'key': ['Main.mail']}}}
ID, TEAM, MAIL, CODE, PIN = 'anna-1984', 'red team', 'anna@example.org', 'four-7719', 4711
ADDRESS, NAME, SUBJECT = 'berta@example.org', 'berta', 'carla@example.org'
MAIN = {'team': TEAM, 'mail': MAIL, 'diagnosis': 'migraine', 'pin': PIN}
FILE, KEY, TYPE, PART = b'the same report as everybody gets\n' * 40, 'report.txt', 'text/x-report', b'a part of an upload'
RECORD, VALUE = 'appointment of anna', 'tuesday at nine'
ARGUMENT = {'docs': [{'c': 'Person', 'id': 'later', 'items': [{'c': 'Note', 'k': 'n', 'j': 'told in confidence'}]}]}
SERIES, SPOOLED = 'cd' * 16, {'op': 'put', 'param': ARGUMENT, 'info': 'spooled'}
PUT = {'docs': [{'c': 'Person', 'id': ID, 'items': [{'c': 'Main', 'j': MAIN}, {'c': 'Seen', 'j': {'code': CODE}}]}]}


def text(value):
    return json.dumps(value, separators=(',', ':'))


def sha256(value):
    return hashlib.sha256(value if isinstance(value, bytes) else value.encode()).hexdigest()


def fill(stack, ns):
    """Everything that a namespace stores a digest of."""
    rules = {'Person': {'read': ['anybody'], 'list': ['anybody'], 'create': ['anybody'], 'update': ['anybody']}}
    stack.op('z', 'ns', {'set': {'ns': ns, 'access': 'rules', 'rules': rules, 'accounts': {'registration': 'open', 'anonymous': True}}}, admin=True)
    body = f'{{"param":{text(PUT)}}}'
    answer = stack.http.post(f'{stack.url}/{ns}/op/put', headers={'Idempotency-Key': '"k1"', 'Content-Type': 'application/json'}, data=body)
    assert answer.status_code == 200, answer.text
    again = stack.http.post(f'{stack.url}/{ns}/op/put', headers={'Idempotency-Key': '"k1"', 'Content-Type': 'application/json'}, data=body)
    assert again.status_code == 200 and again.json()['out'] == answer.json()['out']
    record = text(SPOOLED)
    for known in (0, 1):
        out = stack.op(ns, 'spool', {'series': SERIES, 'records': [{'n': 1, 'd': sha256(record), 'task': SPOOLED}]}, admin=True)['out']
        assert (out['known'], out['refused']) == (known, [])
    for name, address in ((NAME, ADDRESS), ('carla', SUBJECT)):
        made = stack.op(ns, 'register', {'name': name, 'password': 'correct horse battery staple', 'address': address})['out']
        stack.op(ns, 'accounts', {'set': {'account': made['account'], 'confirmed': name == NAME}}, admin=True)
    assert stack.op(ns, 'reset', {'address': ADDRESS})['out'] == {'sent': True}
    assert stack.op(ns, 'reset', {'name': NAME})['out'] == {'sent': True}
    stack.op(ns, 'task', {'op': 'put', 'param': ARGUMENT, 'start': 991231235959998}, admin=True)
    answer = stack.http.put(f'{stack.url}/{ns}/doc/Person/{ID}/file/{KEY}', data=FILE, headers={'Content-Type': TYPE})
    assert answer.status_code in (200, 201), answer.text
    begin_upload(stack, f'Person/{ID}', 1000, key='part.bin', content=PART, filetype=TYPE, ns=ns)
    named = RECORD if ns == 'vault' else 'a record in the same file'  # of namespaces that are not encrypted, digests of keys are plain
    assert state(stack, 'set', named, ns=ns, value=VALUE, persist=True) == 'OK'
    stack.op(ns, 'subs', {'defs': [f'Person/{ID}', f'Person/team@{TEAM}']}, session='a-session-of-ann')


def texts():
    """What somebody guesses, and the forms of requests that are public (idempotency.c, lane.c)."""
    param, record = text(PUT), text(SPOOLED)
    mail = text({'kind': 'reset', 'address': ADDRESS}), text({'kind': 'reset', 'name': NAME}), text({'kind': 'reset', 'name': NAME, 'address': ADDRESS})
    plain = [ID, TEAM, MAIL, CODE, str(PIN), 'migraine', text(MAIN), text({'code': CODE}), ADDRESS, NAME, SUBJECT, 'carla', FILE, KEY, TYPE, PART, 'part.bin',
             RECORD, VALUE, text(VALUE), text(ARGUMENT), text(SPOOLED), sha256(record), param, f'{{"param":{param}}}', f'3:put,64:{sha256(param)},,,',
             text(ADDRESS), text(TEAM), text(MAIL), text(CODE), text([TEAM]), text([MAIL]), f'{{"team":{text(TEAM)}}}', f'Person/{ID}', f'Person\0{ID}', f'Login/{NAME}',
             f'dPerson/@{ID}', f'Person/team@{TEAM}', *mail]
    address, = struct.unpack('!I', bytes(map(int, CLIENT.split('.'))))
    clients = [CLIENT, f'address {0xffff << 32 | address}', str(0xffff << 32 | address)]
    return [value if isinstance(value, bytes) else value.encode() for value in plain + clients]


def digests(value, secrets):
    """All that an attacker would try: plain, and with whatever the dump has that looks like a key."""
    for name in ('md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'sha3_256', 'blake2b', 'blake2s'):
        yield name, hashlib.new(name, value).digest()
    for secret in secrets:
        yield 'sha256 behind the secret', hashlib.sha256(secret + value).digest()
        yield 'sha256 before the secret', hashlib.sha256(value + secret).digest()
        yield 'hmac', hmac.digest(secret, value, 'sha256')
        for kind in (b'request', b'spool', b'mail', b'upload address', b'upload account'):
            place = b''.join(struct.pack('>I', len(part)) + part for part in (b'digest', kind, value))
            yield 'hmac of a place', hmac.digest(secret, place, 'sha256')


def forms(digest):
    """As a file, a column of bytes, a number or a text may have it, from its beginning."""
    yield digest[:12]
    yield digest.hex()[:24].encode()
    yield digest.hex()[:24].upper().encode()
    yield base64.b64encode(digest)[:15]
    yield base64.urlsafe_b64encode(digest)[:15]
    yield from (str(number).encode() for number in struct.unpack('>q', digest[:8]) + struct.unpack('<q', digest[:8]) if abs(number) > 10 ** 12)


def hits(stored, secrets):
    """Which guess is confirmed by which place."""
    found, starts = set(), {content[i:i + 8] for content in stored.values() for i in range(len(content))}
    for value in [form for guess in texts() for form in (guess, sha256(guess).encode())]:
        for name, digest in digests(value, secrets):
            found |= {(where, value[:60], name) for form in forms(digest) if form[:8] in starts for where, content in stored.items() if form in content}
    return found


def read(stack, ns):
    """What a thief has: the dump, table by table, files of attachments, of unfinished uploads, and records."""
    stored = {}
    dump = subprocess.run(['pg_dump', stack.conninfo(ns)], stdout=subprocess.PIPE, check=True).stdout
    for name, rows in re.findall(rb'\nCOPY (\S+) [^\n]*;\n(.*?)\\\.\n', dump, re.DOTALL):
        stored[name.decode()] = rows
    assert len(stored) > 20
    for path in sorted([*stack.folder.rglob('*'), *(stack.path / 'records').rglob('*')]):
        if path.is_file():
            stored[str(path.relative_to(stack.path))] = str(path).encode() + b'\n' + path.read_bytes()
    return stored


def keys_in(stored):
    """Every text of the dump that could be a key, of the tables with few of them first."""
    found = {}
    for rows in sorted((rows for name, rows in stored.items() if name.startswith('stampd.')), key=len):
        found.update(dict.fromkeys(re.findall(rb'[0-9a-f]{32,64}|[A-Za-z0-9_-]{43,44}', rows)))
    return list(found)[:200]


@pytest.fixture(scope='module')
def stored(stack, tmp_path_factory):
    folder = stack.path / 'attached'
    folder.mkdir()
    stack.folder = give(folder)
    stack.set(blob_directory=folder, site_key_file=new_site_key(stack, 'site.key'))
    create(stack, 'vault', ids='Person,Login')
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    schemas.apply('vault', {'Person': {**PERSON, 'encryptedIds': True}})
    schemas.apply('lab', {'Person': PERSON})
    stored = {}
    for ns in ('lab', 'vault'):
        before = read(stack, ns)
        fill(stack, ns)
        after = read(stack, ns)
        stored[ns] = {name: content for name, content in after.items() if before.get(name) != content}, keys_in(after)
    return stored


def test_a_plain_digest_would_be_found(stored):
    """The same guesses find what a namespace that is not encrypted discloses, so they would find a digest here."""
    found = {(place, name) for place, _, name in hits(*stored['lab'])}
    assert {('stampd.blob', 'sha256'), *((f'stampd.{place}', 'hmac of a place') for place in ('idempotency', 'spool_record', 'taskqueue'))} <= found


def test_no_guess_is_confirmed(stored):
    vault, keys = stored['vault']
    for table in ('idempotency', 'spool_record', 'doc', 'item', 'taskqueue', 'subscription', 'blob', 'unique_value', 'member'):
        assert f'stampd.{table}' in vault, table
    assert any('/part' in name or '.part' in name for name in vault), vault.keys()
    assert hits(vault, keys) == set()
