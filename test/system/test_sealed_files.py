"""Attachments of encrypted namespaces: nothing of them is on the disk or in the database in clear, clients see no difference, and what was
altered, cut off or exchanged is never served."""
import base64
import hashlib
import json
import os
import random
import subprocess
import threading

import pytest
import requests

from stack import BUILD, PATIENCE_S, children, give, name_of, refused, run_program, wait_until
from test_uploads import create as begin_upload, patch
from vault import create, new_site_key

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open'}, 'settings': {'keep_interval_s': 1, 'limit_client_connections': 0}}
PLANTED = b'marzipan-4711-'
CHUNK, HEADER, TAG = 1 << 16, 80, 16
pytestmark = pytest.mark.plain


@pytest.fixture(scope='module')
def vault(stack):
    folder = stack.path / 'attached'
    folder.mkdir()
    give(folder)
    stack.set(blob_directory=folder, site_key_file=new_site_key(stack, 'site.key'))
    create(stack, 'vault')
    for ns in ('vault', 'lab'):
        stack.put(ns, {'c': 'Note', 'id': 'n'})
    stack.folder = folder
    return stack


def url(key, ns='vault'):
    return f'/{ns}/doc/Note/n/file/{key}'


def call(stack, method, path, body=None, **headers):
    return stack.http.request(method, stack.url + path, data=body, headers={name.replace('_', '-'): value for name, value in headers.items()}, timeout=PATIENCE_S)


def store(stack, key, body, ns='vault', type_='text/x-marzipan'):
    answer = call(stack, 'PUT', url(key, ns), body, Content_Type=type_)
    assert answer.status_code in (200, 201), answer.text
    assert answer.json()['sha'] == hashlib.sha256(body).hexdigest() and answer.json()['size'] == len(body)
    return answer.json()['sha']


def text(size):
    """Bytes that cannot be compressed, in which the planted words are at many places."""
    filler = random.Random(size).randbytes(4096 - len(PLANTED))
    return ((PLANTED + filler) * (size // 4096 + 1))[:size]


def digest_of(stack, path):
    answer = call(stack, 'GET', path)
    assert answer.status_code == 200, answer.text
    return hashlib.sha256(answer.content).hexdigest()


def files(stack, database='stampd_vault'):
    return sorted(path for path in (stack.folder / database).glob('??/*'))


def newest(stack, before):
    path, = set(files(stack)) - set(before)
    return path


def write(path, content):
    os.chmod(path, 0o640)
    with open(path, 'r+b') as file:
        file.write(content)
        file.truncate(len(content))


def key_of(path):
    """The id of the data key of a file."""
    with open(path, 'rb') as file:
        return int.from_bytes(file.read(16)[8:], 'big')


def everything(folder):
    return b''.join(path.read_bytes() for path in sorted(folder.rglob('*')) if path.is_file())


def test_clients_see_no_difference(vault):
    for size in (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5):
        body = text(size)
        answers = []
        for ns in ('vault', 'lab'):
            sha = store(vault, 'same', body, ns)
            whole = call(vault, 'GET', url('same', ns))
            assert whole.status_code == 200 and whole.content == body
            head = call(vault, 'HEAD', url('same', ns))
            assert head.status_code == 200 and not head.content
            held = call(vault, 'GET', url('same', ns), If_None_Match=f'"{sha}"')
            assert held.status_code == 304
            by_digest = call(vault, 'GET', f'/{ns}/doc/Note/n/file/sha/{sha}')
            assert by_digest.content == body
            names = ('Content-Length', 'Content-Type', 'ETag', 'Repr-Digest', 'Content-Digest', 'Content-Disposition', 'Accept-Ranges', 'Cache-Control',
                     'X-Content-Type-Options', 'Content-Security-Policy', 'Last-Modified')
            answers.append([[answer.headers.get(name) for name in names] for answer in (whole, head, by_digest)])
            assert not any(name.lower().startswith('x-stampd-object') for answer in (whole, head) for name in answer.headers)
        if size:
            assert answers[0] == answers[1]
        else:  # nginx names no ranges of an empty file of its own
            assert answers[0][0][:8] == answers[1][0][:8] or answers[0][0][2] == answers[1][0][2]
    assert vault.psql('vault', "select v2 from doc where id = 'n'") == [(3 * CHUNK + 5,)]


@pytest.mark.parametrize('range_', ['bytes=0-0', 'bytes=10-19', f'bytes={CHUNK - 1}-{CHUNK}', f'bytes={2 * CHUNK}-', 'bytes=-7', 'bytes=-99999999',
                                    f'bytes=5-{10 * CHUNK}'])
def test_ranges(vault, range_):
    body = text(3 * CHUNK + 5)
    store(vault, 'range', body)
    store(vault, 'range', body, 'lab')
    first, second = (call(vault, 'GET', url('range', ns), Range=range_) for ns in ('vault', 'lab'))
    assert first.status_code == second.status_code == 206 and first.content == second.content
    assert first.headers['Content-Range'] == second.headers['Content-Range'] and first.headers['Content-Length'] == second.headers['Content-Length']


def test_ranges_that_are_none(vault):
    body = text(CHUNK)
    sha = store(vault, 'none', body)
    beyond = call(vault, 'GET', url('none'), Range=f'bytes={CHUNK}-')
    assert beyond.status_code == 416 and beyond.headers['Content-Range'] == f'bytes */{CHUNK}'
    assert beyond.headers['Content-Type'] == 'application/problem+json' and (beyond.json()['code'], beyond.json()['args']) == ('AARG', ['Range'])
    assert call(vault, 'GET', url('none'), Range='bytes=0-1', If_Range='"other"').content == body
    assert call(vault, 'GET', url('none'), Range='bytes=0-1', If_Range=f'"{sha}"').content == body[:2]
    assert call(vault, 'GET', url('none'), Range='bytes=0-1,5-6').content == body


def test_disk_and_database_disclose_nothing(vault):
    body = text(200000)
    sha = store(vault, 'planted', body)
    path = begin_upload(vault, 'Note/n', 1000, key='marzipan-key', filetype='text/x-marzipan', content=body[:500], ns='vault').headers['Location']
    store(vault, 'planted', body, 'lab')
    clear, sealed = everything(vault.folder / 'stampd_lab'), everything(vault.folder / 'stampd_vault')
    assert PLANTED in clear and len(sealed) > 200000
    names = ' '.join(str(path) for path in (vault.folder / 'stampd_vault').rglob('*'))
    assert sha in ' '.join(str(path) for path in (vault.folder / 'stampd_lab').rglob('*')) and sha not in names
    dumps = {ns: subprocess.run(['pg_dump', vault.conninfo(ns)], stdout=subprocess.PIPE, check=True).stdout for ns in ('vault', 'lab')}
    for secret in (PLANTED, sha.encode(), b'x-marzipan', b'marzipan-key', base64.b64encode(b'marzipan-key'), base64.b64encode(b'text/x-marzipan')):
        assert secret not in sealed and secret not in dumps['vault'], secret
    assert sha.encode() in dumps['lab'] and b'x-marzipan' in dumps['lab']
    assert patch(vault, path, 500, body[500:1000]).status_code == 204
    assert call(vault, 'GET', url('marzipan-key')).content == body[:1000]


def test_uploads_in_parts(vault):
    body = text(2 * CHUNK + 100)
    path = begin_upload(vault, 'Note/n', len(body), key='parts', ns='vault').headers['Location']
    at = 0
    for size in (1, 70000, len(body)):
        piece = body[at:at + size]
        answer = patch(vault, path, at, piece)
        assert answer.status_code == 204, answer.text
        at += len(piece)
        vault.restart_stampd() if size == 1 else None
    whole = call(vault, 'GET', url('parts'))
    assert whole.content == body and whole.headers['ETag'] == f'"{hashlib.sha256(body).hexdigest()}"'


def test_by_digest_and_in_a_form(vault):
    sha = store(vault, 'one', b'attached again')
    vault.put('vault', {'c': 'Note', 'id': 'm', 'items': [{'c': 'P', 'k': 'a', 'sha': sha, 'mime': 'a/b'},
                                                         {'c': 'P', 'k': 'b', 'from': {'c': 'Note', 'id': 'n', 'k': 'one'}}]})
    assert call(vault, 'GET', '/vault/doc/Note/m/file/a').content == call(vault, 'GET', '/vault/doc/Note/m/file/b').content == b'attached again'
    assert vault.psql('vault', "select count(distinct digest), count(*) from blob_ref where id = 'm'") == [(1, 2)]
    param = {'docs': [{'c': 'Note', 'id': 'm', 'items': [{'c': 'P', 'k': 'c', 'file': 'picked'}]}]}
    answer = vault.http.post(f'{vault.url}/vault/op/put', files={'param': (None, json.dumps(param)), 'picked': ('x.txt', b'of a form', 'text/plain')},
                             timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    assert call(vault, 'GET', '/vault/doc/Note/m/file/c').content == b'of a form'
    # what was replaced stays readable by its digest, with its name and type
    store(vault, 'one', b'another')
    kept = call(vault, 'GET', f'/vault/doc/Note/n/file/sha/{sha}')
    assert kept.content == b'attached again' and kept.headers['Content-Type'] == 'text/x-marzipan' and 'one' in kept.headers['Content-Disposition']
    refused('NATTACHMENT', vault.put, 'vault', {'c': 'Note', 'id': 'm', 'items': [{'c': 'P', 'k': 'd', 'sha': '0' * 64}]})


def broken(stack, key, body):
    """Nothing is returned but what was stored, and not all of it: the connection is closed within the file."""
    answer = stack.http.get(stack.url + url(key), stream=True, timeout=PATIENCE_S)
    if answer.status_code != 200:
        return PLANTED not in answer.content
    got = b''
    try:
        for piece in answer.iter_content(10000):
            got += piece
    except Exception:
        pass
    return len(got) < int(answer.headers['Content-Length']) and body.startswith(got)


def cut_chunk(content, number):
    return HEADER + number * (CHUNK + TAG)


@pytest.mark.parametrize('change', ['first bit', 'bit within', 'last bit', 'header', 'truncated', 'without its last chunk', 'longer', 'chunks exchanged'])
def test_an_altered_file_is_not_served(vault, change):
    body = text(3 * CHUNK)
    before = files(vault)
    store(vault, 'altered', body + change.encode())
    path = newest(vault, before)
    content = bytearray(path.read_bytes())
    first, second, last = (cut_chunk(content, number) for number in range(3))
    if change == 'truncated':
        altered = content[:-1]
    elif change == 'without its last chunk':
        altered = content[:last]
    elif change == 'longer':
        altered = content + b'x'
    elif change == 'chunks exchanged':
        altered = content[:first] + content[second:last] + content[first:second] + content[last:]
    else:
        altered = bytearray(content)
        altered[{'first bit': first, 'bit within': second + 5, 'last bit': len(content) - 1, 'header': 20}[change]] ^= 1
    write(path, altered)
    assert broken(vault, 'altered', body + change.encode())
    if change in ('bit within', 'truncated'):
        assert '1 are missing or damaged' in vault.admin('files', 'verify', 'vault', status=1).out
        assert 'is damaged' in vault.admin('verify', '--ns', 'vault', status=1).error
    write(path, content)
    assert call(vault, 'GET', url('altered')).content == body + change.encode()


def test_exchanged_files_are_not_served(vault):
    bodies = text(5000), text(5000)[::-1]
    before = files(vault)
    for key, body in zip(('x', 'y'), bodies):
        store(vault, key, body)
    first, second = set(files(vault)) - set(before)
    contents = first.read_bytes(), second.read_bytes()
    write(first, contents[1])
    write(second, contents[0])
    for key in 'xy':
        assert call(vault, 'GET', url(key)).status_code == 500
    write(first, contents[0])
    write(second, contents[1])
    assert [call(vault, 'GET', url(key)).content for key in 'xy'] == list(bodies)


def test_nobody_but_the_worker_opens_a_file(vault):
    """Clients reach no internal address, and the socket of the decrypter gives nothing without a ticket."""
    store(vault, 'closed', PLANTED)
    for path in ('/.stampd/sealed/', '/.stampd/files/stampd_vault/'):
        answer = call(vault, 'GET', path, X_Stampd_File='~1.AAAA', X_Stampd_Object_Authorization='~1.AAAA')
        assert answer.status_code in (404, 503) and PLANTED not in answer.content
    socket = vault.path / 'run' / 'stampd' / 'files.sock'
    assert socket.exists()
    for header in ('', 'X-Stampd-File: ~1.' + 'A' * 300):
        done = subprocess.run(['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '--unix-socket', socket, *(['-H', header] if header else []),
                               'http://stampd/'], stdout=subprocess.PIPE, check=True)
        assert done.stdout == b'403'


def test_the_cleaner_removes_what_nothing_refers_to(vault):
    before = files(vault)
    sha = store(vault, 'gone', b'to be removed')
    path = newest(vault, before)
    (name,), = vault.psql('vault', "select encode(digest, 'hex') from blob where encode(digest, 'hex') = %s", (path.name,))
    assert name != sha
    vault.put('vault', {'c': 'Note', 'id': 'n', 'items': [{'c': 'P', 'k': 'gone', 'del': True}]})
    vault.psql('vault', 'update blob_ref set ended = 250101000000000 where ended is not null; update blob set touched = 250101000000000 where digest = decode(%s, \'hex\')',
               (name,))
    wait_until(lambda: not path.exists(), what='the cleaner')
    assert all(path.exists() for path in before if vault.psql('vault', "select count(*) from blob_ref where encode(digest, 'hex') = %s", (path.name,))[0][0])


def test_archives(vault, tmp_path):
    with open(tmp_path / 'key', 'w') as file:
        file.write('0123456789abcdef' * 4 + '\n')
    os.chmod(tmp_path / 'key', 0o600)
    sha = store(vault, 'exported', text(100000))
    vault.admin('export', 'vault', tmp_path / 'clear')
    vault.admin('export', 'vault', tmp_path / 'sealed', '--key-file', tmp_path / 'key')
    create(vault, 'safe')
    vault.admin('import', 'safe', tmp_path / 'clear', '--no-configuration')
    vault.admin('ns', 'create', 'plain', '--access', 'open', '--nginx-pid', vault.path / 'nginx.pid')
    wait_until(lambda: vault.ping('plain').status_code == 200, what='the namespace')
    vault.admin('import', 'plain', tmp_path / 'sealed', '--no-configuration', '--key-file', tmp_path / 'key')
    assert PLANTED not in everything(vault.folder / 'stampd_safe') and PLANTED in everything(vault.folder / 'stampd_plain')
    for ns in ('safe', 'plain'):
        assert digest_of(vault, url('exported', ns)) == sha
        vault.admin('verify', '--ns', ns)
        vault.admin('verify', tmp_path / 'clear', '--ns', ns)
    assert {path.name for path in files(vault, 'stampd_safe')}.isdisjoint(path.name for path in files(vault))


def test_keys_change(vault):
    old = store(vault, 'old', text(70000))
    vault.admin('ns', 'keys', 'vault', '--new')
    new = store(vault, 'new', text(70001))
    vault.admin('ns', 'keys', 'vault', '--reseal')
    for key, sha in (('old', old), ('new', new)):
        assert digest_of(vault, url(key)) == sha
    assert {key_of(path) for path in files(vault)} == {2}
    vault.admin('verify', '--ns', 'vault')
    vault.admin('files', 'verify', 'vault')
    # the same bytes again are the same file
    before = files(vault)
    store(vault, 'again', text(70000))
    assert files(vault) == before


def reseal(stack, point='', status=0):
    """`ns keys --reseal`, which dies at this step."""
    config = stack.path / 'etc' / 'dying.conf'
    config.write_text(f'{stack.config.read_text()}\ndebug_die_at = {point}\n')
    words = ('ns', 'keys', 'vault', '--reseal', '--config', config, '--admin-conninfo', stack.conninfo_of_server())
    return run_program(BUILD / 'src/stampctl', *words, status=status)


def test_files_are_encrypted_again_while_they_are_served(vault):
    """Killed between any two steps it is completed by the next run, and no download notices.  A damaged file stays, and is named."""
    before = files(vault)
    sha = store(vault, 'served', text(3 * CHUNK + 9))
    path = newest(vault, before)
    wrong, ending = [], threading.Event()

    def read():
        session = requests.Session()
        session.verify, session.trust_env = vault.http.verify, False
        while not ending.is_set():
            answer = session.get(vault.url + url('served'), timeout=PATIENCE_S)
            if answer.status_code != 200 or hashlib.sha256(answer.content).hexdigest() != sha:
                wrong.append(answer)

    readers = [threading.Thread(target=read) for _ in range(1)]
    for reader in readers:
        reader.start()
    try:
        for point in ('blob-sealed', 'blob-former', 'blob-replaced'):
            vault.admin('ns', 'keys', 'vault', '--new')
            reseal(vault, point, status=-9)
            wanted = max(row[0] for row in vault.psql('vault', 'select id from data_key'))
            assert 'files encrypted again: ' in reseal(vault).out
            assert {key_of(each) for each in files(vault)} == {wanted}
    finally:
        ending.set()
        for reader in readers:
            reader.join()
    assert not wrong
    # the former files and what the killed commands left go, in time
    for each in (*(vault.folder / 'stampd_vault' / 'former').iterdir(), *(vault.folder / 'stampd_vault' / 'new').iterdir()):
        os.utime(each, (1, 1))
    wait_until(lambda: not any(any((vault.folder / 'stampd_vault' / name).iterdir()) for name in ('former', 'new')), what='the cleaner')
    content = bytearray(path.read_bytes())
    vault.admin('ns', 'keys', 'vault', '--new')
    write(path, content[:-1] + bytes([content[-1] ^ 1]))
    done = reseal(vault, status=1)
    assert path.name in done.error and 'it stays' in done.error
    assert {key_of(each) for each in files(vault)} == {wanted, wanted + 1}
    write(path, content)
    assert 'files encrypted again: 1,' in reseal(vault).out and digest_of(vault, url('served')) == sha
    assert 'files encrypted again: 0,' in reseal(vault).out
    vault.admin('files', 'verify', 'vault')


def test_downloads_survive_a_death_of_the_decrypter(vault):
    sha = store(vault, 'alive', text(300000))
    pid, = (pid for pid in children(vault.pid()) if name_of(pid) == 'stampd-decrypt')
    os.kill(pid, 9)
    wait_until(lambda: call(vault, 'GET', url('alive')).status_code == 200, what='a successor')
    assert digest_of(vault, url('alive')) == sha
