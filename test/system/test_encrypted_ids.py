"""Namespaces with encrypted ids: PostgreSQL logs each statement with its parameters, and after each test neither that log nor a dump nor the
write-ahead log has an id in clear, while all that clients get has the ids that they have."""
import json
import subprocess
import time

import psycopg2
import pytest

import archives
from listener import Listener
from manager import Manager
from schema import Schemas
from stack import Problem, Stack, refused, run_program, wait_until
from test_attachment_http import fetch, store
from test_move import move
from test_sealed_move import furnish
from test_thumbnails import PHOTO, attach, items, run, sweep, tasks
from vault import create

pytestmark = pytest.mark.plain
LOGGED = {'log_statement': 'all', 'log_parameter_max_length': -1}
STACK = {'workers': 3, 'namespaces': {'z': 'closed'}, 'postgres': LOGGED, 'settings': {'subscription_trial_min': 0}}
PLANTED = 'quince-5180'
IDS = 'Person,Plan,Paper,Photo'
PERSON = {'encryptedIds': True, 'items': {'Main': {'singleton': True}, 'Line': {}},
          'collections': {'team': {'key': ['Main.team'], 'mutable': True}, 'skill': {'key': ['Main.skills'], 'list': True, 'mutable': True},
                          'home': {'key': ['Main.home']}},
          'unique': {'mail': {'key': ['Main.mail']}}, 'maxLife': 'Main.until'}
PLAN = {'encryptedIds': True, 'items': {'Info': {'singleton': True, 'clear': True, 'fields': {'day': 'int'}}}}
POINT = 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4'
PUSH = {'endpoint': 'https://push.example/x', 'p256dh': POINT, 'auth': 'AAECAwQFBgcICQoLDA0ODw'}


def name(text):
    return f'{PLANTED}-{text}'


def person(text, **content):
    return {'c': 'Person', 'id': name(text), 'items': [{'c': 'Main', 'j': content}]}


def everything_stored(stack, ns='vault'):
    stack.psql(None, 'checkpoint')
    dump = subprocess.run(['pg_dump', stack.conninfo(ns)], stdout=subprocess.PIPE, check=True).stdout
    return {'dump': dump, 'log of statements': (stack.path / 'log/postgresql.log').read_bytes(),
            'write-ahead log': b''.join(path.read_bytes() for path in sorted((stack.path / 'pg/pg_wal').glob('0*')))}


def nothing_in_clear(stack, ns='vault'):
    for where, text in everything_stored(stack, ns).items():
        place = text.find(PLANTED.encode())
        assert place < 0, (where, text[max(0, place - 300):place + 200])


@pytest.fixture(scope='module')
def made(stack, tmp_path_factory):
    furnish(stack)
    create(stack, ids=IDS)
    stack.schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    stack.schemas.apply('vault', {'Person': PERSON, 'Plan': PLAN})
    return stack


@pytest.fixture
def vault(made):
    yield made
    nothing_in_clear(made)


def op(stack, operation, param=None, **more):
    return stack.op('vault', operation, param, **more)['out']


def members(stack, collection, value, **more):
    return sorted(id_ for id_, _ in op(stack, 'collection', {'c': 'Person', 'collection': collection, 'value': value, 'want': 'ids', **more})['ids'])


# --- documents ---

def test_the_search_itself_finds_what_is_in_clear(made):
    """A class whose ids are not encrypted, so that the other tests prove something."""
    made.put('vault', {'c': 'Open', 'id': 'visible-8846', 'items': [{'c': 'Main', 'j': 1}]})
    for where, text in everything_stored(made).items():
        assert b'visible-8846' in text, where
    assert made.get('vault', ('Open', 'visible-8846'))['items'][0]['j'] == 1


@pytest.mark.parametrize('id_', ['a', 'é' * 60, 'x' * (255 - len(PLANTED) - 1), '~AAAA', 'with.dot/and@signs', '"'])
def test_documents_have_the_ids_that_clients_gave(vault, id_):
    version = vault.put('vault', person(id_, n=1))
    vault.restart_stampd()
    found = vault.get('vault', ('Person', name(id_)))
    assert (found['id'], found['v'], found['items'][0]['j']) == (name(id_), version, {'n': 1})
    again = vault.put('vault', person(id_, n=2), person(id_ + '2' if len(id_) < 200 else 'other', n=2))
    assert again > version and vault.get('vault', ('Person', name(id_)))['items'][0]['j'] == {'n': 2}
    vault.put('vault', {'c': 'Person', 'id': name(id_), 'delete': True})
    assert 'items' not in vault.get('vault', ('Person', name(id_))) or not vault.get('vault', ('Person', name(id_)))['items']
    vault.put('vault', person(id_, n=3))  # born again, with a lock on its absence or its zombie
    assert vault.get('vault', ('Person', name(id_)))['items'][0]['j'] == {'n': 3}
    stored = [id_ for id_, in vault.psql('vault', "select id from doc where class = 'Person'")]
    assert stored and all(one.startswith('~') and len(one) >= 24 for one in stored)


def test_items_come_and_go(vault):
    vault.put('vault', {'c': 'Person', 'id': name('i'), 'items': [{'c': 'Line', 'k': key, 'j': key} for key in 'abc']})
    vault.put('vault', {'c': 'Person', 'id': name('i'), 'items': [{'c': 'Line', 'k': 'a', 'del': True}, {'c': 'Line', 'k': 'b', 'j': 'B'}]},
              person('i2', n=1))
    vault.restart_stampd()
    found = vault.get('vault', ('Person', name('i')))
    assert {item['k']: item.get('j') for item in found['items']} == {'b': 'B', 'c': 'c'}


def test_a_stale_version_is_refused_with_the_document(vault):
    first = vault.put('vault', person('s', n=1), person('s2', n=1))
    vault.put('vault', person('s', n=2))
    problem = refused('AVERSION', vault.put, 'vault', {**person('s', n=3), 'if': first}, {**person('s2', n=3), 'if': first})
    assert name('s') in problem.response.text


def test_lists_go_through_all_pages(vault):
    made = {name(f'l{n}') for n in range(25)}
    vault.put('vault', *(person(f'l{n}') for n in range(25)))
    seen, cursor = [], None
    while True:
        page = op(vault, 'list', {'c': 'Person', 'limit': 7, **({'cursor': cursor} if cursor else {})})
        seen += [doc['id'] for doc in page['docs']]
        cursor = page.get('cursor')
        if not cursor:
            break
    assert len(seen) == len(set(seen)) and made <= set(seen)
    stored = [id_ for id_, in vault.psql('vault', "select id from doc where class = 'Person' and ctime <> 0 order by id")]
    assert len(stored) == len(seen)
    refused('OENCRYPTED', vault.op, 'vault', 'list', {'c': 'Person', 'prefix': 'a'})
    assert op(vault, 'list', {'c': 'Open', 'prefix': 'never'})['docs'] == []


def test_searches_by_fields_that_are_in_clear(vault):
    vault.put('vault', *({'c': 'Plan', 'id': name(f'f{n}'), 'items': [{'c': 'Info', 'j': {'day': 40 + n % 3}}]} for n in range(9)))

    def find(where, **more):
        return op(vault, 'find', {'c': 'Plan', 'i': 'Info', 'where': where, **more})

    first = find([{'f': 'day', 't': 'eq', 'v1': 41}], limit=2)
    rest = find([{'f': 'day', 't': 'eq', 'v1': 41}], limit=2, cursor=first['cursor'])
    assert sorted(first['ids'] + rest['ids']) == sorted(name(f'f{n}') for n in (1, 4, 7))
    assert find([], id={'t': 'eq', 'v1': name('f5')})['ids'] == [name('f5')]
    found, = find([], id={'t': 'eq', 'v1': name('f5')}, want='items')['items']
    assert (found['id'], found['j']) == (name('f5'), {'day': 42})
    for test in ('sw', 'ge', 'lt'):
        refused('OENCRYPTED', find, [], id={'t': test, 'v1': 'a'})
    assert set(find([], id={'t': 'in', 'v1': [name('f5'), name('none'), name('f6')]})['ids']) == {name('f5'), name('f6')}
    assert find([], id={'t': 'nin', 'v1': [name('f5')]}, want='count')['count'] == find([], want='count')['count'] - 1
    ordered, page = [], find([{'f': 'day', 't': 'ge', 'v1': 40}], order='-day', limit=2, want='items')
    while True:
        ordered += [(item['j']['day'], item['id']) for item in page['items']]
        if 'cursor' not in page:
            break
        page = find([{'f': 'day', 't': 'ge', 'v1': 40}], order='-day', limit=2, want='items', cursor=page['cursor'])
    assert [day for day, _ in ordered] == sorted((day for day, _ in ordered), reverse=True)
    assert {(40 + n % 3, name(f'f{n}')) for n in range(9)} <= set(ordered) and len(set(ordered)) == len(ordered)
    vault.put('vault', {'c': 'Plan', 'id': name('f4'), 'items': [{'c': 'Info', 'j': {'day': 0}}]})
    vault.put('vault', {'c': 'Plan', 'id': name('f7'), 'delete': True})
    assert find([{'f': 'day', 't': 'eq', 'v1': 41}])['ids'] == [name('f1')]


# --- collections, unique values, expiry ---

def test_collections_pages_synchronisation_and_streams(vault):
    vault.put('vault', *(person(f'c{n}', team='page', skills=['x', n]) for n in range(12)))
    vault.older_transactions_end()
    assert members(vault, 'team', 'page') == members(vault, 'skill', 'x') == sorted(name(f'c{n}') for n in range(12))
    page = op(vault, 'collection', {'c': 'Person', 'collection': 'team', 'value': 'page', 'limit': 5})
    seen = [doc['id'] for doc in page['docs']]
    while 'cursor' in page:
        page = op(vault, 'collection', {'c': 'Person', 'collection': 'team', 'value': 'page', 'limit': 5, 'cursor': page['cursor']})
        seen += [doc['id'] for doc in page['docs']]
    token = page['token']
    assert sorted(seen) == sorted(name(f'c{n}') for n in range(12))
    vault.put('vault', person('c3', team='other', skills=['x']))
    left = op(vault, 'collection', {'c': 'Person', 'collection': 'team', 'value': 'page', 'token': token})
    assert [one[0] for one in left['left']] == [name('c3')] and not left['docs']
    answer = vault.request('POST', '/vault/op/collection', json={'param': {'c': 'Person', 'collection': 'team', 'value': 'page', 'stream': True}})
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert sorted(line['id'] for line in lines if 'id' in line) == sorted(name(f'c{n}') for n in range(12) if n != 3), answer.text
    assert all(line['items'] for line in lines if 'id' in line)


def test_unique_values_and_collections_that_are_fixed(vault):
    vault.put('vault', person('u', mail='one@example.org', home='Ulm'))
    problem = refused('AUNIQUE', vault.put, 'vault', person('u2', mail='one@example.org'))
    assert name('u2') in problem.response.text and '~' not in problem.response.text
    problem = refused('AFIXED', vault.put, 'vault', person('u', mail='one@example.org', home='Rom'))
    assert name('u') in problem.response.text
    vault.put('vault', {'c': 'Person', 'id': name('u'), 'delete': True})
    vault.put('vault', person('u2', mail='one@example.org'))


def test_a_document_expires_and_is_purged(vault):
    vault.put('vault', person('e1', team='ends', until=int(time.time()) // 60 - 1), person('e2', team='ends', until=99999999))
    assert members(vault, 'team', 'ends') == [name('e2')]
    assert [doc['id'] for doc in op(vault, 'list', {'c': 'Person', 'limit': 1000})['docs'] if doc['id'] == name('e1')] == []
    vault.admin('ns', 'purge', 'vault')
    assert vault.psql('vault', 'select count(*) from expiry where until < 90000000') == [(0,)]


def test_two_documents_with_a_value_that_is_to_be_unique(vault):
    vault.put('vault', person('v1', nick='both'), person('v2', nick='both'))
    vault.schemas.set('vault', {'Person': {**PERSON, 'unique': {**PERSON['unique'], 'nick': {'key': ['Main.nick']}}}, 'Plan': PLAN})
    told = vault.schemas.run('apply', 'vault', status=1)
    assert name('v1') in told and name('v2') in told, told
    vault.put('vault', person('v2', nick='other'))
    vault.schemas.apply('vault', {'Person': PERSON, 'Plan': PLAN})


def test_the_schema_fills_a_new_collection(vault):
    vault.put('vault', *(person(f'n{n}', fresh='yes') for n in range(5)))
    again = {**PERSON, 'collections': {**PERSON['collections'], 'fresh': {'key': ['Main.fresh'], 'mutable': True}}}
    vault.schemas.apply('vault', {'Person': again, 'Plan': PLAN})
    assert members(vault, 'fresh', 'yes') == sorted(name(f'n{n}') for n in range(5))
    vault.schemas.apply('vault', {'Person': PERSON, 'Plan': PLAN})


# --- sessions, live events, tasks, answers ---

def test_a_session_is_told_what_matches(vault):
    session = 'session-of-encrypted-ids'
    defs = [f'Person/{name("m1")}', 'Person/team@told']
    assert sorted(op(vault, 'subs', {'defs': defs}, session=session)['defs']) == sorted(defs)
    answer = vault.op('vault', 'put', {'docs': [person('m1', n=1), person('m2', team='told')]}, session=session)
    assert sorted(one[0] for one in answer['subs']) == sorted(defs), answer
    key, = (key for key, in vault.psql('vault', "select key from subscription_definition where key like 'd%'"))
    assert key.startswith('dPerson/@~')
    op(vault, 'subs', {'drop': defs[:1]}, session=session)
    assert op(vault, 'subs', None, session=session)['defs'] == defs[1:]
    vault.psql('vault', 'delete from subscription; delete from subscription_definition')


def test_a_session_is_woken(vault):
    vault.psql('vault', 'delete from taskqueue; select wake_sessions(true)')
    op(vault, 'subs', {'defs': [f'Person/{name("w")}'], 'push': PUSH}, session='session-of-encrypted-ids')
    vault.put('vault', person('w', n=1))
    (task,), = vault.psql('vault', "select taskid from taskqueue where opname = 'push'")
    manager = Manager(vault, 'vault')
    manager.hurry()
    assert manager.run(task, 500)['code'] == 'OPUSH'  # the subscription was read; this server has no key for push
    vault.psql('vault', 'select wake_sessions(false); delete from taskqueue; delete from subscription; delete from subscription_definition')


def test_live_events_of_workers_and_of_other_writers(vault):
    vault.put('vault', person('live', n=1))
    (stored,), = vault.psql('vault', "select id from doc where class = 'Person' order by version desc limit 1")
    listener = Listener(vault, 'Person', f'Person/{name("live")}', f'Person/{name("none")}', ns='vault')
    listener.opened()
    version = vault.put('vault', person('live', n=2))
    listener.wait_for(f'Person/{name("live")}', version)
    # a change of the database's own, which the relay and the process for live events receive
    vault.get('vault', ('Person', name('live')))
    (version,), = vault.psql('vault', f"select delete_document('Person', '{stored}')")
    listener.wait_for(f'Person/{name("live")}', version)
    wait_until(lambda: not vault.get('vault', ('Person', name('live'))).get('items'), what='the change of the database')
    last = listener.last
    listener.close()
    version = vault.put('vault', person('live', n=3))
    again = Listener(vault, 'Person', f'Person/{name("live")}', ns='vault', last=last)
    again.wait_for(f'Person/{name("live")}', version)
    again.close()


def test_tasks_and_answers_that_are_kept(vault):
    id_ = op(vault, 'task', {'op': 'put', 'param': {'docs': [person('t', n=1)]}}, admin=True)['id']
    manager = Manager(vault, 'vault')
    assert manager.run(id_)['result'] == 'done'
    assert vault.get('vault', ('Person', name('t')))['items'][0]['j'] == {'n': 1}
    body, headers = {'param': {'docs': [person('k', n=1), person('k2', n=2)]}}, {'Idempotency-Key': '"of-the-ids"'}
    first, second = (vault.request('POST', '/vault/op/put', json=body, headers=headers) for _ in range(2))
    assert first.status_code == 200 and second.headers.get('Idempotency-Replayed') == 'true' and first.json()['out'] == second.json()['out']
    assert all(text.startswith('~') for text, in vault.psql('vault', 'select versions_after from idempotency'))


def test_attachments(vault):
    vault.put('vault', person('att', n=1))
    store(vault, f'Person/{name("att")}/file/f', b'bytes', ns='vault')
    assert fetch(vault, f'Person/{name("att")}/file/f', ns='vault').content == b'bytes'
    vault.put('vault', {'c': 'Person', 'id': name('att'), 'items': [{'c': 'P', 'k': 'f', 'del': True}]})
    assert vault.psql('vault', 'select count(*) from blob_ref where ended is not null')[0][0] >= 1


def test_thumbnails_and_their_sweep(vault):
    whole = {'one', 'one~small', 'one~large'}
    vault.schemas.apply('vault', {'Person': PERSON, 'Plan': PLAN, 'Photo': {'encryptedIds': True, **PHOTO}})
    for text in ('at once', 'found later'):
        vault.put('vault', {'c': 'Photo', 'id': name(text), 'items': [{'c': 'Main', 'j': {}}]})
        attach(vault, name(text), 'one', ns='vault')
        assert len(tasks(vault, 'vault')) == 1
        if text == 'at once':
            assert run(vault, 'vault') == ['done'] and set(items(vault, name(text), ns='vault')) == whole
        else:
            vault.psql('vault', "delete from taskqueue where opname = 'thumbnail'")
    vault.psql('vault', 'update thumbnail_sweep set began = 0')
    assert sweep(vault, 'vault') == 1, 'the other one is done'
    assert run(vault, 'vault') == ['done'] and set(items(vault, name('found later'), ns='vault')) == whole
    assert {id_[0] for id_, in vault.psql('vault', 'select id from thumbnail_done')} == {'~'}


# --- commands ---

def test_archives_have_the_documents_in_their_order(vault, tmp_path):
    vault.put('vault', *(person(f'a{n}', n=n, team='archive', mail=f'{n}@archive') for n in range(8)), {'c': 'Open', 'id': 'archived', 'items': [{'c': 'Main', 'j': 1}]})
    vault.put('vault', {'c': 'Person', 'id': name('a7'), 'delete': True})
    store(vault, f'Person/{name("a1")}/file/f', b'of the archive', ns='vault')
    vault.admin('export', 'vault', tmp_path / 'first')
    vault.admin('verify', tmp_path / 'first')
    documents = archives.documents(tmp_path / 'first')
    assert documents['Person', name('a3')]['items'][0]['j'] == {'n': 3, 'team': 'archive', 'mail': '3@archive'}
    assert vault.admin('verify', tmp_path / 'first', '--ns', 'vault')
    assert vault.admin('verify', '--ns', 'vault')
    create(vault, 'other', ids=IDS)
    vault.admin('import', 'other', tmp_path / 'first')
    assert vault.get('other', ('Person', name('a3')))['items'][0]['j']['n'] == 3
    assert fetch(vault, f'Person/{name("a1")}/file/f', ns='other').content == b'of the archive'
    vault.admin('export', 'other', tmp_path / 'second')
    assert archives.documents(tmp_path / 'second') == documents
    nothing_in_clear(vault, 'other')
    vault.admin('export', 'vault', tmp_path / 'part', '--class', 'Person', '--id', name('a2'), '--id', name('a3'))
    assert sorted(id_ for _, id_ in archives.documents(tmp_path / 'part')) == [name('a2'), name('a3')]
    assert '--class' in vault.admin('export', 'vault', tmp_path / 'none', '--id', name('a2'), status=1).error
    vault.put('vault', person('a2', n=22))
    vault.admin('export', 'vault', tmp_path / 'more', '--since', tmp_path / 'first')
    assert name('a2') in [id_ for _, id_ in archives.documents(tmp_path / 'more')]
    vault.admin('ns', 'drop', 'other', '--yes')


def test_a_dump_of_the_server_and_a_purge(vault):
    vault.put('vault', *(person(f'd{n}', n=n) for n in range(3)))
    assert name('d1') in run_program(*vault.copy_words('dump', ns='vault')).out
    create(vault, 'gone', ids=IDS)
    vault.put('gone', *(person(f'g{n}') for n in range(4)))
    assert '4 of 4 documents deleted' in run_program(*vault.copy_words('purge', '--class', 'Person', '--yes', ns='gone')).out
    vault.admin('ns', 'drop', 'gone', '--yes')


def test_it_is_encrypted_again(vault):
    vault.put('vault', person('again', n=1))
    vault.admin('ns', 'keys', 'vault', '--new')
    vault.put('vault', person('again2', n=2))
    assert 'items encrypted again: 0' not in vault.admin('ns', 'keys', 'vault', '--reseal').out
    vault.restart_stampd()
    assert vault.get('vault', ('Person', name('again')))['items'][0]['j'] == {'n': 1}
    assert vault.get('vault', ('Person', name('again2')))['items'][0]['j'] == {'n': 2}
    assert 'Paper Person Photo Plan' in vault.admin('ns', 'keys', 'vault').out


def test_a_namespace_moves(vault, tmp_path):
    with Stack('there', **STACK) as there:
        furnish(there)
        create(vault, 'moves', ids=IDS)
        vault.put('moves', *(person(f'v{n}', n=n) for n in range(5)))
        vault.op('moves', 'subs', {'defs': [f'Person/{name("v1")}']}, session='session-that-is-moved')
        store(vault, f'Person/{name("v1")}/file/f', b'moved', ns='moves')
        create(there, 'moves', ids='Person')
        assert 'ids of other classes' in move(vault, there, tmp_path, 'moves', status=1).error
        there.admin('ns', 'drop', 'moves', '--yes')
        create(there, 'moves', ids=IDS)
        before = vault.psql('moves', 'select class, id, version from doc order by 1, 2')
        move(vault, there, tmp_path, 'moves')
        assert there.psql('moves', 'select class, id, version from doc order by 1, 2') == before
        assert there.get('moves', ('Person', name('v2')))['items'][0]['j'] == {'n': 2}
        assert fetch(there, f'Person/{name("v1")}/file/f', ns='moves').content == b'moved'
        assert there.op('moves', 'subs', None, session='session-that-is-moved')['out']['defs'] == [f'Person/{name("v1")}']
        nothing_in_clear(there, 'moves')


# --- accounts and rules ---

RULES = {'Paper': {'owner': 'Info.owner', 'read': ['owner', 'members'], 'list': ['owner', 'members'], 'members': 'Member', 'create': ['owner'],
                   'update': ['owner'], 'delete': ['owner']}}


def test_accounts_and_rules(vault):
    create(vault, 'ruled', 'rules', ids='Paper,Login')
    vault.op('z', 'ns', {'set': {'ns': 'ruled', 'rules': RULES, 'accounts': {'registration': 'open'}}}, admin=True)
    vault.schemas.apply('ruled', {'Paper': {'encryptedIds': True, 'items': {'Info': {'singleton': True}, 'Member': {}},
                                            'collections': {'topic': {'key': ['Info.topic'], 'mutable': True}}}})

    def call(operation, key=None, **param):
        answer = vault.http.post(f'{vault.url}/ruled/op/{operation}', json={'param': param}, timeout=60,
                                 headers={'Authorization': f'Bearer {key}'} if key else {})
        return answer.json()['out'] if answer.status_code == 200 else answer.json()['code']

    def register(login):
        account = call('register', name=login, password='correct horse battery staple')['account']
        return account, call('login', name=login, password='correct horse battery staple')['token']

    (ann, ann_key), (bob, bob_key) = register(name('ann@example.org')), register(name('bob@example.org'))
    papers = [name(f'p{n}') for n in range(5)]
    assert call('put', bob_key, docs=[{'c': 'Paper', 'id': papers[0], 'items': [{'c': 'Info', 'j': {'owner': ann}}]}]) == 'SRULE'
    assert 'v' in call('put', ann_key, docs=[{'c': 'Paper', 'id': id_, 'items': [{'c': 'Info', 'j': {'owner': ann, 'topic': 't'}}]} for id_ in papers])

    def listed(key):
        seen, page = [], {'cursor': None}
        while 'cursor' in page:
            page = call('list', key, c='Paper', limit=2, **({'cursor': page['cursor']} if page['cursor'] else {}))
            seen += [doc['id'] for doc in page['docs']]
        return sorted(seen)
    assert listed(ann_key) == papers and listed(bob_key) == []
    call('put', ann_key, docs=[{'c': 'Paper', 'id': papers[3], 'items': [{'c': 'Member', 'k': bob, 'j': {}}]}])
    assert listed(bob_key) == [papers[3]]
    assert [doc['id'] for doc in call('collection', bob_key, c='Paper', collection='topic', value='t')['docs']] == [papers[3]]
    explained = vault.admin('rules', 'explain', 'ruled', f'Paper/{papers[3]}', 'read', '--account', bob).out
    assert explained.startswith('allowed') and vault.admin('rules', 'explain', 'ruled', f'Paper/{papers[2]}', 'read', '--account', bob).out.startswith('refused')
    nothing_in_clear(vault, 'ruled')
    vault.admin('ns', 'drop', 'ruled', '--yes')


def test_rules_explain_knows_the_roles_of_an_account(made):
    create(made, 'roles', 'rules')
    made.op('z', 'ns', {'set': {'ns': 'roles', 'rules': {'Paper': {'read': ['role:clerk']}}, 'accounts': {'registration': 'open'}}}, admin=True)
    answer = made.http.post(f'{made.url}/roles/op/register', json={'param': {'name': 'clerk@example.org', 'password': 'correct horse battery staple'}}, timeout=60)
    account = answer.json()['out']['account']
    made.put('roles', {'c': 'Account', 'id': account, 'items': [{'c': 'Roles', 'j': {'roles': ['clerk']}}]}, admin=True)
    made.put('roles', {'c': 'Paper', 'id': 'p', 'items': [{'c': 'Info', 'j': 1}]}, admin=True)
    assert made.admin('rules', 'explain', 'roles', 'Paper/p', 'read', '--account', account).out.startswith('allowed')
    made.admin('ns', 'drop', 'roles', '--yes')


# --- what is refused ---

@pytest.mark.parametrize('sql', [
    "select put_item('Person', 'clear', 'Main', '', '1')", "insert into doc values ('Person', 'clear', 1, 1, 1, 0, 0)",
    "insert into item (class, id, iclass, key, version, vop, content) values ('Person', '~short', 'Main', '', 1, 1, '~x')",
    "insert into expiry values ('Person', 'clear', 1)",
    "insert into blob_ref (class, id, key, digest, mime) values ('Person', 'clear', 'k', '\\x', '~')",
    "insert into thumbnail_done values ('Person', 'clear', '', 1)", "update thumbnail_sweep set class = 'Person', id = 'clear'",
    "insert into subscription_definition (session, key, def) values ('a-session-of-nobody', 'dPerson/@clear', '~')",
    "insert into idempotency (account, key, digest, mime, answer, version, versions_after, at) values ('', 'k', 'd', 'm', '~', 1, '[]', 1)"])
def test_the_database_stores_no_id_in_clear(made, sql):
    with pytest.raises(psycopg2.Error, match='encrypted_'):
        made.psql('vault', sql)


def test_rows_that_were_altered_are_faults(made):
    made.put('vault', person('alt', n=1), person('alt2', n=2))
    made.restart_stampd()
    first, second = (id_ for id_, in made.psql('vault', "select id from doc where class = 'Person' order by version desc limit 2"))
    made.psql('vault', f"delete from item where id = '{second}'; update item set id = '{second}' where id = '{first}'")
    made.restart_stampd()
    codes = []
    for id_ in ('alt', 'alt2'):
        try:
            made.get('vault', ('Person', name(id_)))
        except Problem as problem:
            codes.append(problem.code)
    assert codes == ['BCONTENT'], codes
    made.psql('vault', f"delete from item where id in ('{first}', '{second}'); delete from doc where id in ('{first}', '{second}')")
    # an id that no key has made, and that of another class
    other = made.put('vault', {'c': 'Plan', 'id': name('alt'), 'items': [{'c': 'Info', 'j': {'day': 1}}]})
    (stored,), = made.psql('vault', f'select id from doc where version = {other}')
    for forged in ('~' + 'A' * 40, stored):
        made.psql('vault', f"insert into doc values ('Paper', '{forged}', 1, 1, 1, 0, 0)")
        made.restart_stampd()
        refused('BCONTENT', made.op, 'vault', 'list', {'c': 'Paper'})
        assert 'an id cannot be decrypted' in made.admin('verify', '--ns', 'vault', status=1).error
        made.psql('vault', "delete from doc where class = 'Paper'")


def test_the_list_of_classes_belongs_to_the_creation(made, tmp_path):
    def create_words(*words, status):
        return made.admin('ns', 'create', *words, status=status).error
    assert '--encrypted' in create_words('plain', '--encrypted-ids', 'Person', status=2)
    assert 'names of classes' in create_words('plain', '--encrypted', '--encrypted-ids', 'person', status=2)
    assert 'Account' in create_words('plain', '--encrypted', '--encrypted-ids', 'Person,Account', status=2)
    assert 'cannot be changed' in create_words('vault', '--encrypted', '--encrypted-ids', 'Person', status=1)
    create(made, ids='Plan,Person,Photo,Paper')  # again, the same
    create(made, 'without')
    assert 'cannot be changed' in create_words('without', '--encrypted', '--encrypted-ids', 'Person', status=1)
    made.schemas.set('without', {'Person': PERSON})
    assert '--encrypted-ids' in made.schemas.run('apply', 'without', status=1)
    made.schemas.set('vault', {'Person': {**PERSON, 'encryptedIds': False}, 'Plan': PLAN})
    assert '"encryptedIds": true' in made.schemas.run('apply', 'vault', status=1)
    made.schemas.set('vault', {'Person': PERSON, 'Plan': PLAN, 'Open': {'encryptedIds': True, 'items': {'Main': {'singleton': True}}}})
    assert '--encrypted-ids' in made.schemas.run('apply', 'vault', status=1)
    made.schemas.apply('vault', {'Person': PERSON, 'Plan': PLAN})
    made.admin('ns', 'drop', 'without', '--yes')
