#!/usr/bin/env python3
"""Somebody has a dump of the database of an encrypted namespace, and every file of the server's folder, without any key, and guesses a number in
a document.  Refused: no digest in the dump confirms a guess, and no file has what the document says.  `vault` is an encrypted, open namespace;
pg_dump runs here."""
import hashlib
import json
import random
import subprocess
from pathlib import Path

from kit import hold, Impossible, REFUSED, run

GUESSES = range(4700, 4722)


def forms(param):
    """What an honest digest of the request would be made of."""
    text = json.dumps(param, separators=(',', ':'))
    inner = hashlib.sha256(text.encode()).hexdigest()
    body = json.dumps({'param': param})
    main = param['docs'][0]['items'][0]['j']
    return [text, body, json.dumps({'param': param}, separators=(',', ':')), f'3:put,64:{inner},,,', json.dumps(main), json.dumps(main, separators=(',', ':')), str(main['pin'])]


def attack(target):
    options = target.options
    if not options.state:
        raise Impossible('the folder of the server is needed: --state')
    mark, pin, id_ = f'mark{random.getrandbits(60):015x}', random.choice(GUESSES), f'p{random.getrandbits(40):x}'

    def param(guess):
        return {'docs': [{'c': 'Patient', 'id': id_, 'items': [{'c': 'Main', 'j': {'diagnosis': mark, 'pin': guess}}]}]}
    with target.client() as client:
        answer = client.ask('POST', f'/{options.encrypted}/op/put', {'param': param(pin)}, {'Idempotency-Key': f'"{mark[:12]}"'})
        if answer.status != 200:
            raise Impossible(f'{options.encrypted} must be encrypted, and open: {answer}')
    conninfo = options.conninfo or f'host={Path(options.state).absolute()}/run/postgres user=postgres dbname=stampd_{options.encrypted}'
    dump = subprocess.run(['pg_dump', '--dbname', conninfo], capture_output=True, check=False)
    if dump.returncode:
        raise Impossible(f'pg_dump: {dump.stderr.decode()}')
    hold(mark.encode() not in dump.stdout, 'the dump has the diagnosis')
    tried = 0
    for guess in GUESSES:
        for form in forms(param(guess)):
            for name in ('md5', 'sha1', 'sha256', 'sha512', 'sha3_256', 'blake2b'):
                digest = hashlib.new(name, form.encode()).hexdigest()
                tried += 1
                hold(digest[:32].encode() not in dump.stdout, f'{name} of a form of {guess} is in the dump')
    read, held = 0, Path(options.state)
    for path in held.rglob('*'):
        if path.is_file() and path.relative_to(held).parts[0] != 'run':  # that is memory, not a disk: test_encryption.py
            try:
                text = path.read_bytes()
            except OSError:
                continue
            read += len(text)
            hold(mark.encode() not in text, f'{path} has the diagnosis')
    return REFUSED, {'bytes of the dump': len(dump.stdout), 'digests compared': tried, 'bytes of files': read, 'guesses confirmed': 0}


run(attack, ('--encrypted', 'vault', 'the namespace'), ('--conninfo', '', 'of its database, as the owner'))
