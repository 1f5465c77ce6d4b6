"""stampctl ns move of namespaces with thumbnails and hashed fields, encrypted or not: what arrives works there as it did here."""
import json

import pytest

from images import WEBP, png, webp_size
from manager import Manager
from stack import Stack, refused
from test_attachment_http import fetch, sha
from test_move import move, stop_before_the_switch
from test_sealed_move import everything, furnish
from test_thumbnails import IMAGE, PHOTO, attach, items, run, sweep, tasks
from vault import create

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'},
         'settings': {'keep_interval_s': 0, 'limit_client_connections': 0, 'limit_thumbnail_s': 10, 'task_retries': '0 0 0'}}
TICKET = {'items': {'Info': {'singleton': True, 'fields': {'code': 'hash', 'codes': 'hash[]'}}}}
PLANTED = 'marzipan-4711'
OTHER, THIRD = png(333, 222), png(150, 300)


@pytest.fixture(scope='module')
def sites(stack):
    with Stack('there', **STACK) as there:
        for site in (stack, there):
            furnish(site)
            create(site, 'vault')
        yield stack, there


def ticket(id_, code, *codes):
    return {'c': 'Ticket', 'id': id_, 'items': [{'c': 'Info', 'j': {'code': code, 'codes': codes}}]}


def find(stack, ns, field, value):
    return stack.op(ns, 'find', {'c': 'Ticket', 'i': 'Info', 'where': [{'f': field, 't': 'eq', 'v1': value}]})['out']['ids']


def photo(id_):
    return {'c': 'Photo', 'id': id_, 'items': [{'c': 'Main', 'j': {}}]}


def served(stack, ns, *ids):
    """The attachments of documents, as they are served."""
    return {(id_, key): fetch(stack, f'Photo/{id_}/file/{key}', ns=ns).content for id_ in ids for key in items(stack, id_, ns)}


@pytest.mark.parametrize('ns', ['lab', 'vault'])
def test_thumbnails_and_hashed_fields_move(sites, ns, tmp_path):
    stack, there = sites
    (tmp_path / 'schema').write_text(json.dumps({'classes': {'Photo': PHOTO, 'Ticket': TICKET}}))
    stack.admin('schema', 'set', ns, tmp_path / 'schema')
    stack.admin('schema', 'apply', ns)
    stack.put(ns, photo('made'), photo('replaced'), photo('waiting'), photo('late'), *(ticket(f't{n}', PLANTED, 'a', PLANTED, n) for n in range(3)))
    for id_ in ('made', 'replaced'):
        attach(stack, id_, 'one', ns=ns)
    attach(stack, 'made', 'bad', b'no image', ns=ns)
    assert set(run(stack, ns)) == {'done'}

    stop_before_the_switch(stack, there, tmp_path, ns)
    attach(stack, 'replaced', 'one', OTHER, ns=ns)
    attach(stack, 'late', 'one', OTHER, ns=ns)
    assert set(run(stack, ns)) == {'done'}
    attach(stack, 'waiting', 'one', THIRD, ns=ns)  # its task goes along
    stack.put(ns, ticket('t1', 'another', 'b'), ticket('t3', PLANTED))
    stack.put(ns, {'c': 'Ticket', 'id': 't2', 'delete': True})
    before = served(stack, ns, 'made', 'replaced', 'late', 'waiting')
    assert len(before) == 1 + 3 * 3 + 1
    rows = sorted(stack.psql(ns, 'select id, code, codes from "x_Ticket_Info"'))
    move(stack, there, tmp_path, ns)

    refused('OGONE', stack.put, ns, ticket('t9', 'x'))
    assert find(there, ns, 'code', PLANTED) == ['t0', 't3'] and find(there, ns, 'code', 'another') == ['t1']
    assert find(there, ns, 'codes', PLANTED) == find(there, ns, 'codes', 0) == ['t0'] and find(there, ns, 'codes', 'b') == ['t1']
    assert find(there, ns, 'codes', 1) == find(there, ns, 'code', 'x') == []
    assert sorted(there.psql(ns, 'select id, code, codes from "x_Ticket_Info"')) == rows
    there.put(ns, ticket('t4', PLANTED), ticket('t0', 'new'))
    assert find(there, ns, 'code', PLANTED) == ['t3', 't4'] and find(there, ns, 'code', 'new') == ['t0']

    assert served(there, ns, 'made', 'replaced', 'late', 'waiting') == before
    assert webp_size(before['made', 'one~small']) == (64, 43) and before['late', 'one~small'] == before['replaced', 'one~small']
    Manager(there, ns).hurry()
    assert run(there, ns) == ['done'] and set(items(there, 'waiting', ns)) == {'one', 'one~small', 'one~large'}
    assert webp_size(fetch(there, 'Photo/waiting/file/one~small', ns=ns).content) == (32, 64)
    before = served(there, ns, 'made', 'replaced', 'late', 'waiting')
    versions = there.psql(ns, "select id, version from doc where class = 'Photo' order by id")
    assert sweep(there, ns) is not None, 'what came by a move is looked at once'
    assert set(run(there, ns)) <= {'done'} and not tasks(there, ns)
    assert there.psql(ns, "select id, version from doc where class = 'Photo' order by id") == versions, 'nothing was missing'
    assert there.psql(ns, "select thumbnail from blob where thumbnail is not null") == [('unsupported format',)], 'what cannot be decoded is tried once more'
    assert served(there, ns, 'made', 'replaced', 'late', 'waiting') == before

    attach(there, 'made', 'one', THIRD, ns=ns)
    attach(there, 'late', 'two', IMAGE, ns=ns)
    assert set(run(there, ns)) == {'done'}
    assert webp_size(fetch(there, 'Photo/made/file/one~small', ns=ns).content) == (32, 64)
    assert set(items(there, 'late', ns)) == {f'{key}{end}' for key in ('one', 'two') for end in ('', '~small', '~large')}
    assert items(there, 'late', ns)['two~small']['mime'].endswith(f'of={sha(IMAGE)}')
    there.admin('verify', '--ns', ns)
    there.admin('files', 'verify', ns)
    if ns == 'vault':
        assert all(len(text) == 32 for _, code, codes in rows for text in [code, *(codes or [])])
        stored = everything(there.path / 'attached/stampd_vault')
        assert stored and PLANTED.encode() not in stored and WEBP not in stored
