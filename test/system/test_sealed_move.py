"""stampctl ns move of encrypted namespaces, and purges of them: nothing is in clear on the way, and all that is found, hashed and kept stays so."""
import json

import pytest
import requests

from stack import Stack, give, refused, run_program, wait_until
from test_attachment_http import fetch, store
from test_move import line, move, person, stop_before_the_switch
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
