"""stampctl ns move of encrypted namespaces, and purges of them: nothing is in clear on the way, and all that is found, hashed and kept stays so."""
import contextlib
import json
import subprocess

import psycopg2
import pytest
import requests

from stack import Stack, give, refused, run_program, wait_until
from test_attachment_http import fetch, store
from test_move import LOCK, line, move, person, stop_before_the_switch, words
from vault import create, new_site_key

pytestmark = pytest.mark.plain
STACK = {'workers': 2, 'namespaces': {'z': 'closed'}, 'settings': {'keep_interval_s': 0}}
SCHEMA = {'classes': {'Person': {
    'items': {'Main': {'singleton': True}}, 'unique': {'name': {'key': ['Main.name']}}, 'maxLife': 'Main.until',
    'collections': {'team': {'key': ['Main.team'], 'mutable': True}}}}}
PLANTED = 'marzipan-4711'


def found(stack, ns):
    out = stack.op(ns, 'collection', {'c': 'Person', 'collection': 'team', 'value': PLANTED, 'want': 'ids'})['out']
    return sorted(id_ for id_, _ in out['ids'])


def furnish(stack):
    folder = stack.path / 'attached'
    folder.mkdir()
    give(folder)
    stack.set(blob_directory=folder, site_key_file=new_site_key(stack))
    return folder


@pytest.fixture(scope='module')
def sites(stack):
    with Stack('there', **STACK) as there:
        for site in (stack, there):
            furnish(site)
        yield stack, there


def everything(folder):
    return b''.join(path.read_bytes() for path in sorted(folder.rglob('*')) if path.is_file())


def test_an_encrypted_namespace_moves(sites, tmp_path):
    stack, there = sites
    create(stack, 'vault')
    (tmp_path / 'schema').write_text(json.dumps(SCHEMA))
    stack.admin('schema', 'set', 'vault', tmp_path / 'schema')
    stack.admin('schema', 'apply', 'vault')
    stack.put('vault', *(person(f'p{n}', age=n, until=29999999, name=f'{PLANTED} {n}', team=PLANTED) for n in range(5)), line('n0', PLANTED, PLANTED))
    store(stack, 'Note/n0/file/f', PLANTED.encode() * 1000, ns='vault')
    stack.admin('ns', 'keys', 'vault', '--new')
    stack.put('vault', line('n1', 'b', PLANTED))
    assert 'encrypted on one of the sites only' in refuse(stack, there, tmp_path)
    create(there, 'vault')
    stop_before_the_switch(stack, there, tmp_path, 'vault')
    assert sorted(path.name for path in (tmp_path / 'move').iterdir()) == ['base.tar.zst', 'key', 'state']
    assert PLANTED.encode() not in everything(tmp_path / 'move') and b'tar' not in everything(tmp_path / 'move')[:600]
    stack.admin('ns', 'keys', 'vault', '--new')
    stack.put('vault', person('p1', age=9, name=f'{PLANTED} 9', team='other'), person('p7', age=7, name=f'{PLANTED} 1', team=PLANTED))
    store(stack, 'Note/n1/file/g', PLANTED.encode(), ns='vault')
    kept = {'json': {'param': {'docs': [line('once', 'a', PLANTED)]}}, 'headers': {'Idempotency-Key': 'key-of-the-move'}}
    first = requests.post(f'{stack.url}/vault/op/put', verify=stack.http.verify, **kept)
    stack.op('vault', 'subs', {'add': ['Note']}, session='s' * 20)
    assert first.status_code == 200
    before = rows(stack), derived_of(stack), found(stack, 'vault')
    move(stack, there, tmp_path, 'vault')
    assert not (tmp_path / 'move').exists()
    refused('OGONE', stack.put, 'vault', line('late', 'a', 1))
    assert rows(there) == before[0]
    assert derived_of(there) == before[1] and found(there, 'vault') == before[2] == ['p0', 'p2', 'p3', 'p4', 'p7']
    assert there.psql('vault', 'select count(*) from data_key') == [(3,)]
    assert there.get('vault', ('Note', 'n0'))['items'][0]['j'] == PLANTED
    assert fetch(there, 'Note/n0/file/f', ns='vault').content == PLANTED.encode() * 1000
    assert fetch(there, 'Note/n1/file/g', ns='vault').content == PLANTED.encode()
    again = requests.post(f'{there.url}/vault/op/put', verify=there.http.verify, **kept)
    assert again.headers.get('Idempotency-Replayed') == 'true' and again.json()['out'] == first.json()['out']
    assert there.op('vault', 'subs', {}, session='s' * 20)['out']
    refused('AUNIQUE', there.put, 'vault', person('other', name=f'{PLANTED} 1'))
    there.admin('verify', '--ns', 'vault')
    there.admin('files', 'verify', 'vault')
    dump = run_program('pg_dump', there.conninfo('vault')).out
    assert PLANTED not in dump and PLANTED.encode() not in everything(there.path / 'attached')
    drop(sites)


def drop(sites):
    for site in sites:
        site.admin('ns', 'drop', 'vault', '--yes')
        site.close()


# --- a move that is killed at each of its steps ---

# Where it is stopped: a statement of the administrator that holds a lock, at which site, in which database (None: that of the server).  Each is taken while the program
# waits for the one before in its row, so that earlier steps do not wait for it.
STAMPCTL = (None, LOCK)
STEPS = {
    'keys': (('there', 'vault', 'lock stampd.data_key'),),
    'copy': (('there', 'vault', 'lock stampd.doc'),),
    'switch': (('here', *STAMPCTL),),
    'freezing': (('here', *STAMPCTL), ('here', None, "alter database stampd_vault set work_mem = '5MB'")),
    'last changes': (('here', *STAMPCTL), ('here', 'vault', 'lock stampd.doc')),
    'last keys': (('here', *STAMPCTL), ('there', 'vault', 'lock stampd.data_key')),
    'carrying over': (('here', *STAMPCTL), ('there', 'vault', 'lock stampd.taskqueue')),
    'handing over': (('here', *STAMPCTL), ('there', 'vault', 'lock stampd.taskqueue'), ('here', *STAMPCTL)),
    'opening': (('here', *STAMPCTL), ('there', 'vault', 'lock stampd.taskqueue'), ('there', *STAMPCTL)),
}


def waits(site):
    """A session of the program waits for a lock."""
    return site.psql(None, "select 1 from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.usename <> 'stampd'")


@contextlib.contextmanager
def holding(site, ns, statement):
    session = psycopg2.connect(site.conninfo(ns) if ns else site.conninfo())
    try:
        with session.cursor() as cursor:
            cursor.execute('set default_transaction_read_only = off')
            cursor.execute(statement)
        yield
    finally:
        session.rollback()
        session.close()


def kill_at(step, sites, folder):
    """Kills it where it waits for the last lock; PostgreSQL may still do what it was about to do."""
    by_name = dict(zip(('here', 'there'), sites, strict=True))
    held = contextlib.ExitStack()
    first, *more = [(by_name[name], ns, statement) for name, ns, statement in STEPS[step]]
    held.enter_context(holding(*first))
    with subprocess.Popen(words(*sites, folder, 'vault'), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as program:
        site = first[0]
        for lock in [*more, None]:
            wait_until(lambda site=site: program.poll() is not None or waits(site), what=step)
            assert program.poll() is None, (step, program.stderr.read())
            if lock:
                following = contextlib.ExitStack()
                following.enter_context(holding(*lock))
                held.close()
                held, site = following, lock[0]
        program.kill()
    held.close()


def try_to_put(stack, name, value):
    """True: it was acknowledged.  Two writes, so that the namespace may become read-only between them."""
    answer = stack.request('POST', '/vault/op/put', json={'param': {'docs': [line(name, 'k', value)]}})
    if answer.status_code != 200:
        assert answer.json()['code'] in ('OREADONLY', 'OGONE', 'XAWAY', 'XUNKNOWN'), answer.text
    return answer.status_code == 200


def test_a_move_that_is_killed_at_each_step_goes_on(sites, tmp_path):
    """Nothing is lost, and nothing is in clear on the way."""
    stack, there = sites
    for site in sites:
        create(site, 'vault')
    stack.put('vault', *(line(f'n{n}', 'a', f'{PLANTED} {n}') for n in range(8)))
    stack.op('vault', 'task', {'op': 'put', 'param': {'docs': []}, 'delay': 86400})
    acknowledged = {}
    for number, step in enumerate(STEPS):
        kill_at(step, sites, tmp_path)
        assert PLANTED.encode() not in everything(tmp_path / 'move'), step
        if try_to_put(stack, f'n{number % 8}', f'{PLANTED} {step}'):
            acknowledged[f'n{number % 8}'] = f'{PLANTED} {step}'
    assert set(acknowledged) >= {'n0', 'n1'}, 'it was open before the switch'
    move(stack, there, tmp_path, 'vault')
    assert not (tmp_path / 'move').exists() and rows(there) == rows(stack)
    for id_, value in acknowledged.items():
        assert value in [item['j'] for item in there.get('vault', ('Note', id_))['items']]
    assert there.psql('vault', 'select opname from taskqueue') == [('put',)]
    there.put('vault', line('open', 'a', PLANTED))
    refused('OGONE', stack.put, 'vault', line('late', 'a', 1))
    drop(sites)


def test_a_move_that_goes_on_ends_sessions_that_have_the_former_keys(sites, tmp_path):
    """The run that replaced the keys was killed, perhaps before it ended the sessions of servers there: the next one ends them."""
    stack, there = sites
    for site in sites:
        create(site, 'vault')
    stack.put('vault', line('n', 'a', PLANTED))
    former = keys_of(there)
    stop_before_the_switch(stack, there, tmp_path, 'vault')
    session = psycopg2.connect(there.conninfo('vault', 'stampd'))
    try:
        assert keys_of(there) != former
        before = there.backends('vault')
        assert session.info.backend_pid in before
        move(stack, there, tmp_path, 'vault')
        assert not set(before) & set(there.backends('vault'))
    finally:
        session.close()
    assert there.get('vault', ('Note', 'n'))['items'][0]['j'] == PLANTED
    drop(sites)


def test_purges(sites, tmp_path):
    """By class, by age, and of what has ended by itself; never a live document."""
    stack, _ = sites
    create(stack, 'dust')
    (tmp_path / 'schema').write_text(json.dumps(SCHEMA))
    stack.admin('schema', 'set', 'dust', tmp_path / 'schema')
    stack.admin('schema', 'apply', 'dust')
    stack.put('dust', *(person(f'p{n}', name=f'name {n}', team=PLANTED, until=29999999) for n in range(6)), *(line(f'n{n}', 'a', n) for n in range(20)))
    store(stack, 'Note/n0/file/f', b'file', ns='dust')
    stack.put('dust', {'c': 'Person', 'id': 'p0', 'delete': True})
    with stack.keeper_stopped():  # which deletes what has expired when a minute begins
        stack.psql('dust', "update expiry set until = 1 where id = 'p1'")
        stack.psql('dust', "update doc set version = 200101000000000, dtime = 200101000000000 where id = 'p0'")
        assert 'dust: 1 expired, 1 deleted' in stack.admin('ns', 'purge', 'dust', '--dry-run', '--days', '8').out
        assert '1 documents had ended, 1 deleted ones' in stack.admin('ns', 'purge', 'dust', '--days', '8').out
    assert found(stack, 'dust') == ['p2', 'p3', 'p4', 'p5']

    def purge(*words):
        return run_program(*stack.copy_words('purge', *words, ns='dust')).out
    assert '0 of 24 documents would be deleted' in purge('--older-than', '1', '--dry-run')
    assert '20 of 20 documents deleted' in purge('--class', 'Note', '--yes')
    assert stack.psql('dust', "select count(*) from doc where class = 'Person' and ctime <> 0") == [(4,)]
    assert found(stack, 'dust') == ['p2', 'p3', 'p4', 'p5']
    assert stack.psql('dust', 'select ended is null from blob_ref') == [(False,)]
    assert '4 of 4 documents deleted' in purge('--prefix', 'p', '--yes') and found(stack, 'dust') == []
    assert not stack.psql('dust', 'select 1 from unique_value')
    stack.admin('verify', '--ns', 'dust')


def refuse(stack, there, folder):
    """The namespace there is not encrypted."""
    there.admin('ns', 'create', 'vault', '--access', 'open', '--nginx-pid', nginx_pid(there))
    told = move(stack, there, folder, 'vault', status=1).error
    there.admin('ns', 'drop', 'vault', '--yes')
    return told


def keys_of(stack):
    return stack.psql('vault', 'select id, wrapped from data_key order by id')


def nginx_pid(stack):
    path = stack.path / 'nginx.pid'
    path.write_text(f'{stack.pid("nginx")}\n')
    return path


def rows(stack):
    """Contents have other nonces; keys are the same."""
    return (set(stack.psql('vault', 'select class, id, version, ctime, dtime, v1, v2 from doc')),
            set(stack.psql('vault', 'select class, id, iclass, key, version, vop, raw from item')))


def derived_of(stack):
    return (sorted(stack.psql('vault', 'select u.name, v.value, v.id from unique_value v join unique_property u on u.number = v.property')),
            sorted(stack.psql('vault', 'select c.name, m.id, m.value from member m join collection c on c.number = m.collection where not m.has_left')),
            sorted(stack.psql('vault', 'select class, id from expiry')))
