"""What the database of an encrypted namespace finds documents by: collections, unique values, expiry, subscriptions, accounts and rules work,
and neither a dump nor the write-ahead log has a value, a definition or an address."""
import json
import subprocess
import time

import pytest

from manager import Manager
from schema import Schemas
from stack import refused, wait_until
from vault import create, new_site_key

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open'}, 'settings': {'subscription_trial_min': 0}}
PLANTED = 'marzipan-4402'
PERSON = {'items': {'Main': {'singleton': True}, 'Note': {}},
          'collections': {'team': {'key': ['Main.team'], 'mutable': True}, 'skill': {'key': ['Main.skills'], 'list': True, 'mutable': True},
                          'place': {'key': ['Main.town', 'Main.street'], 'mutable': True}, 'noted': {'keys': 'Note', 'mutable': True}},
          'unique': {'mail': {'key': ['Main.mail']}}, 'maxLife': 'Main.until'}
SESSION = 'a-session-of-the-vault'
POINT = 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4'
PUSH = {'endpoint': f'https://push.example/{PLANTED}', 'p256dh': POINT, 'auth': 'AAECAwQFBgcICQoLDA0ODw'}


def person(id_, **content):
    return {'c': 'Person', 'id': id_, 'items': [{'c': 'Main', 'j': content}]}


def members(stack, collection, value, ns='vault', **more):
    out = stack.op(ns, 'collection', {'c': 'Person', 'collection': collection, 'value': value, 'want': 'ids', **more})['out']
    return sorted(id_ for id_, _ in out['ids'])


def dump(stack, ns='vault'):
    return subprocess.run(['pg_dump', stack.conninfo(ns)], stdout=subprocess.PIPE, check=True).stdout.decode()


def log_of(stack):
    stack.psql(None, 'checkpoint')
    return b''.join(path.read_bytes() for path in sorted((stack.path / 'pg/pg_wal').glob('0*')))


@pytest.fixture(scope='module')
def vault(stack, tmp_path_factory):
    stack.set(site_key_file=new_site_key(stack))
    create(stack)
    stack.put('vault', person('old', team='written before', mail='old@example.org'), {'c': 'Person', 'id': 'old', 'items': [{'c': 'Note', 'k': 'of old', 'j': {}}]})
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('vault', {'Person': PERSON})
    return stack


def test_documents_that_were_there_before_are_found(vault):
    assert members(vault, 'team', 'written before') == ['old']
    refused('AUNIQUE', vault.put, 'vault', person('other', mail='old@example.org'))


@pytest.mark.parametrize('value', ['red', 12, True, 'é' * 200, '~{"team":"x"}', '{', ''])
def test_values_of_every_kind_are_found_and_nothing_else(vault, value):
    vault.put('vault', person('one', team=value), person('two', team='another'))
    assert members(vault, 'team', value) == ['one'] and members(vault, 'team', 'another') == ['two']
    vault.put('vault', person('one', team='another'))
    assert members(vault, 'team', value) == [] and members(vault, 'team', 'another') == ['one', 'two']
    vault.put('vault', {'c': 'Person', 'id': 'two', 'delete': True})
    assert members(vault, 'team', 'another') == ['one']


def test_keys_of_items(vault):
    """Whether their documents were there before or not."""
    note = {'c': 'Note', 'k': f'{PLANTED} key', 'j': {'x': 1}}
    assert members(vault, 'noted', 'of old') == ['old']
    vault.put('vault', {**person('n'), 'items': [note, {**note, 'k': 'other'}]})
    assert members(vault, 'noted', note['k']) == members(vault, 'noted', 'other') == ['n'] and members(vault, 'noted', 'of') == []
    assert PLANTED not in dump(vault)
    vault.put('vault', {**person('n'), 'items': [{'c': 'Note', 'k': note['k'], 'del': True}]})
    assert members(vault, 'noted', note['k']) == [] and members(vault, 'noted', 'other') == ['n']


def test_lists_and_several_properties(vault):
    vault.put('vault', person('l', skills=['a', 'b', 3, {'no': 'value'}, None, 'a']), person('p', town='Ulm', street='1:a'))
    assert members(vault, 'skill', 'a') == members(vault, 'skill', 3) == ['l'] and members(vault, 'skill', 'c') == []
    assert members(vault, 'place', ['Ulm', '1:a']) == ['p'] and members(vault, 'place', ['Ulm1', ':a']) == []
    stored = {value for value, in vault.psql('vault', "select value from member where id in ('l', 'p')")}
    assert all(len(value) in (32, 70) for value in stored), stored


def test_a_synchronisation_gets_what_has_left(vault):
    vault.put('vault', person('s', team='sync'))
    first = vault.op('vault', 'collection', {'c': 'Person', 'collection': 'team', 'value': 'sync'})['out']
    assert first['docs'][0]['items'][0]['j'] == {'team': 'sync'}
    vault.put('vault', person('s', team='gone'))
    again = vault.op('vault', 'collection', {'c': 'Person', 'collection': 'team', 'value': 'sync', 'token': first['token']})['out']
    assert [left[0] for left in again['left']] == ['s'] and not again['docs']


def test_a_collection_is_streamed(vault):
    vault.put('vault', *(person(f'st{n}', team='stream', word=PLANTED) for n in range(5)))
    answer = vault.request('POST', '/vault/op/collection', json={'param': {'c': 'Person', 'collection': 'team', 'value': 'stream', 'stream': True}})
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert sorted(line['id'] for line in lines if 'id' in line) == [f'st{n}' for n in range(5)], answer.text
    assert all(line['items'][0]['j']['word'] == PLANTED for line in lines if 'id' in line)


def test_a_document_expires(vault):
    vault.put('vault', person('e', team='expires', until=int(time.time()) // 60 - 1), person('f', team='expires', until=99999999))
    assert members(vault, 'team', 'expires') == ['f']
    assert vault.psql('vault', "select until from expiry where id = 'f'") == [(99999999,)]


@pytest.mark.parametrize('change', ["content || '{\"~team\":\"x\"}'", "overlay(content placing 'z' from strpos(content, '~team') + 9)",
                                    "split_part(content, '{', 1)", "split_part(content, '{', 1) || '{}'"])
def test_what_is_shown_is_bound_to_its_content(vault, change):
    vault.put('vault', person('bound', team='bound'))
    vault.psql('vault', f"update item set content = {change} where id = 'bound'")
    vault.restart_stampd()
    refused('BCONTENT', vault.get, 'vault', ('Person', 'bound'))
    vault.psql('vault', "delete from item where id = 'bound'; delete from doc where id = 'bound'; delete from member where id = 'bound'")
    vault.restart_stampd()


def test_neither_a_dump_nor_the_log_has_a_value(vault):
    content = {'team': PLANTED + '-t', 'skills': [PLANTED + '-s'], 'town': PLANTED + '-u', 'street': PLANTED + '-v', 'mail': PLANTED + '-m'}
    definition = f'Person/team@{PLANTED}-t'
    stored = vault.op('vault', 'subs', {'defs': [definition, 'Person/x'], 'push': PUSH, 'context': PLANTED + '-c'}, session=SESSION)['out']
    assert sorted(stored['defs']) == sorted([definition, 'Person/x']) and stored['context'] == PLANTED + '-c' and stored['push']
    vault.put('vault', person('planted', **content))
    assert members(vault, 'team', PLANTED + '-t') == members(vault, 'skill', PLANTED + '-s') == ['planted']
    assert members(vault, 'place', [PLANTED + '-u', PLANTED + '-v']) == ['planted']
    assert PLANTED not in dump(vault)
    assert PLANTED.encode() not in log_of(vault)


def test_a_session_learns_what_matches(vault):
    session = 'another-session-of-the-vault'
    for defs in (['Person/team@t1', 'Person/m2', 'Person/place@Ulm@2'], ['Person/team@t1']):
        assert vault.op('vault', 'subs', {'defs': defs}, session=session)['out']['defs'] == sorted(defs)
        answer = vault.op('vault', 'put', {'docs': [person('m1', team='t1', n=len(defs)), person('m2', town='Ulm', street='2', n=len(defs))]}, session=session)
        assert sorted(one[0] for one in answer['subs']) == sorted(defs), answer
    vault.op('vault', 'subs', {'add': ['Person/team@t2'], 'drop': ['Person/team@t1']}, session=session)
    assert vault.op('vault', 'subs', None, session=session)['out']['defs'] == ['Person/team@t2']


def test_a_session_is_woken_by_a_task(vault):
    vault.psql('vault', 'delete from taskqueue; select wake_sessions(true)')
    vault.op('vault', 'subs', {'defs': ['Person/team@woken'], 'push': PUSH}, session=SESSION)
    vault.put('vault', person('w', team='woken'))
    (task, param), = vault.psql('vault', "select taskid, param from taskqueue where opname = 'push'")
    assert json.loads(param) == {'session': SESSION}
    assert vault.psql('vault', 'select count(*) from subscription_matched') == [(1,)]
    manager = Manager(vault, 'vault')
    manager.hurry()
    assert manager.run(task, 500)['code'] == 'OPUSH'  # the subscription was read; this server has no key for push
    vault.psql('vault', 'select wake_sessions(false); delete from taskqueue; delete from subscription')


@pytest.mark.parametrize('change', ["update subscription set endpoint = '~AAAA'", "update subscription set context = endpoint",
                                    "update subscription_definition set def = (select context from subscription)"])
def test_a_subscription_that_was_altered_is_a_fault(vault, change):
    vault.psql('vault', 'delete from subscription; delete from subscription_definition')
    vault.op('vault', 'subs', {'defs': ['Person/x'], 'push': PUSH, 'context': 'c'}, session=SESSION)
    vault.psql('vault', change)
    refused('BCONTENT', vault.op, 'vault', 'subs', None, session=SESSION)
    vault.psql('vault', 'delete from subscription; delete from subscription_definition')


def test_live_events_of_a_collection_are_refused(vault):
    answer = vault.http.get(f'{vault.url}/vault/live', params={'def': 'Person/team@red'}, timeout=60)
    assert answer.status_code == 503 and answer.json()['code'] == 'OENCRYPTED', answer.text


def test_it_is_encrypted_again_while_it_serves(vault):
    vault.put('vault', person('again', team='again'), {'c': 'Free', 'id': 'f', 'items': [{'c': 'Line', 'k': 'k', 's': 'raw {'}]})
    before = vault.get('vault', ('Person', 'again'))
    vault.admin('ns', 'keys', 'vault', '--new')
    done = vault.admin('ns', 'keys', 'vault', '--reseal').out
    assert 'items encrypted again: ' in done and 'items encrypted again: 0' not in done
    assert 'items encrypted again: 0,' in vault.admin('ns', 'keys', 'vault', '--reseal').out
    assert {text.split('.')[0] for text, in vault.psql('vault', 'select content from item where content is not null')} == {'~2'}
    vault.restart_stampd()
    found = vault.get('vault', ('Person', 'again'))
    assert (found['v'], found['items']) == (before['v'], before['items']) and members(vault, 'team', 'again') == ['again']
    assert vault.get('vault', ('Free', 'f'))['items'][0]['s'] == 'raw {'
    vault.put('vault', person('again2', team='again'))
    assert members(vault, 'team', 'again') == ['again', 'again2']


def test_fields_are_in_clear_where_they_are_declared_so(vault, tmp_path):
    vault.put('vault', {'c': 'Plan', 'id': 'before', 'items': [{'c': 'Info', 'j': {'day': 3, 'tags': ['a'], 'text': PLANTED}}]})
    schemas, info = Schemas(vault, tmp_path), {'singleton': True, 'fields': {'day': 'int', 'tags': 'string[]', 'name': 'folded'}}
    schemas.set('vault', {'Person': PERSON, 'Plan': {'items': {'Info': info}}})
    assert 'encrypted' in schemas.run('apply', 'vault', status=1)
    schemas.set('vault', {'Person': PERSON, 'Plan': {'items': {'Row': {'fields': {'day': 'int'}, 'clear': True}}}})
    assert 'encrypted' in schemas.run('apply', 'vault', status=1)
    words = {'singleton': True, 'fields': {'words': {'text': ['text']}}, 'clear': True}  # the words of a text would be in clear
    schemas.set('vault', {'Person': PERSON, 'Plan': {'items': {'Info': words}}})
    assert 'encrypted' in schemas.run('apply', 'vault', status=1)
    schemas.apply('vault', {'Person': PERSON, 'Plan': {'items': {'Info': {**info, 'clear': True}}}})
    vault.put('vault', {'c': 'Plan', 'id': 'after', 'items': [{'c': 'Info', 'j': {'day': 5, 'tags': ['a', 'b'], 'name': 'Émile', 'text': PLANTED}}]})

    def find(*where):
        return vault.op('vault', 'find', {'c': 'Plan', 'i': 'Info', 'where': list(where)})['out']['ids']

    assert set(find({'f': 'day', 't': 'gt', 'v1': 2})) == {'before', 'after'}
    assert find({'f': 'day', 't': 'gt', 'v1': 4}) == find({'f': 'name', 't': 'sw', 'v1': 'EM'}) == ['after']
    vault.put('vault', {'c': 'Plan', 'id': 'after', 'items': [{'c': 'Info', 'j': {'day': 1, 'text': PLANTED}}]})
    assert find({'f': 'day', 't': 'gt', 'v1': 4}) == [] and PLANTED not in dump(vault)


# --- hashed fields ---

TICKET = {'items': {'Info': {'singleton': True, 'fields': {'code': 'hash', 'other': 'hash', 'codes': 'hash[]'}}}}
HIDDEN = PLANTED + '-field'


def ticket(id_, **content):
    return {'c': 'Ticket', 'id': id_, 'items': [{'c': 'Info', 'j': {'text': PLANTED, **content}}]}


def tickets(stack, field, value, want='ids', ns='vault', **more):
    param = {'c': 'Ticket', 'i': 'Info', 'where': [{'f': field, 't': 'eq', 'v1': value}], 'want': want, **more}
    return stack.op(ns, 'find', param)['out'][want]


@pytest.fixture(scope='module')
def hashed(vault, tmp_path_factory):
    schemas = Schemas(vault, tmp_path_factory.mktemp('tickets'))
    schemas.set('vault', {'Person': PERSON, 'Ticket': {'items': {'Info': {**TICKET['items']['Info'], 'singleton': False}}}})
    assert 'encrypted' in schemas.run('apply', 'vault', status=1)
    schemas.set('vault', {'Person': PERSON, 'Ticket': {'items': {'Info': {'singleton': True, 'fields': {'code': 'hash', 'other': 'string'}}}}})
    assert 'encrypted' in schemas.run('apply', 'vault', status=1)
    vault.put('vault', ticket('before', code=HIDDEN, other=HIDDEN, codes=[HIDDEN, 7]))
    schemas.apply('vault', {'Person': PERSON, 'Ticket': TICKET})
    return vault


def test_hashed_fields_find_what_was_there_before_and_what_comes(hashed):
    hashed.put('vault', ticket('after', code=HIDDEN, codes=['x', HIDDEN, True, None, {}]), ticket('else', code='else'))
    assert tickets(hashed, 'code', HIDDEN) == ['after', 'before'] and tickets(hashed, 'codes', HIDDEN) == ['after', 'before']
    assert tickets(hashed, 'code', HIDDEN + '-') == tickets(hashed, 'codes', 'else') == []
    assert tickets(hashed, 'codes', 7) == tickets(hashed, 'codes', '7') == ['before'] and tickets(hashed, 'codes', True) == ['after']
    found, = tickets(hashed, 'other', HIDDEN, 'items')
    assert found['id'] == 'before' and found['j'] == {'text': PLANTED, 'code': HIDDEN, 'other': HIDDEN, 'codes': [HIDDEN, 7]}
    hashed.put('vault', ticket('after', code='new'))
    assert tickets(hashed, 'code', HIDDEN) == tickets(hashed, 'codes', HIDDEN) == ['before'] and tickets(hashed, 'code', 'new') == ['after']
    hashed.put('vault', {'c': 'Ticket', 'id': 'after', 'delete': True})
    assert tickets(hashed, 'code', 'new') == []


@pytest.mark.parametrize('value', ['', 'é' * 200, 'y' * 5000, -0.5, 10**30, False, '{"~', "'"])
def test_hashed_fields_have_values_of_every_kind(hashed, value):
    hashed.put('vault', ticket('kind', code=value, codes=[value, 'z']))
    assert tickets(hashed, 'code', value) == tickets(hashed, 'codes', value) == ['kind']
    stored, = hashed.psql('vault', 'select code, codes from "x_Ticket_Info" where id = %s', ('kind',))
    assert all(len(text) == 32 and set(text) <= set('0123456789abcdef') for text in [stored[0], *stored[1]]), stored


def test_sets_of_hashed_values(hashed):
    hashed.put('vault', ticket('set1', code='one', codes=['s', 1]), ticket('set2', code='two', codes=['s']), ticket('set3', codes=[]))

    def find(field, test, v1, **more):
        param = {'c': 'Ticket', 'i': 'Info', 'where': [{'f': field, 't': test, 'v1': v1}], 'id': {'t': 'sw', 'v1': 'set'}, **more}
        return hashed.op('vault', 'find', param)['out']

    assert find('code', 'in', ['one', 'none', 'two'])['ids'] == ['set1', 'set2'] and find('code', 'nin', ['two', 'x'])['ids'] == find('code', 'ne', 'two')['ids'] == ['set1']
    assert find('codes', 'in', [1, 's'])['ids'] == ['set1', 'set2'] and find('codes', 'nin', [1])['ids'] == find('codes', 'ne', '1')['ids'] == ['set2', 'set3']
    assert find('code', 'exists', False)['ids'] == ['set3'] and find('codes', 'exists', True, want='count') == {'count': 3}


def test_pages_of_hashed_fields(hashed):
    hashed.put('vault', *(ticket(f'page{n}', code='page') for n in range(5)))
    first = hashed.op('vault', 'find', {'c': 'Ticket', 'i': 'Info', 'where': [{'f': 'code', 't': 'eq', 'v1': 'page'}], 'limit': 3})['out']
    assert first['ids'] == ['page0', 'page1', 'page2'] and tickets(hashed, 'code', 'page', limit=3, cursor=first['cursor']) == ['page3', 'page4']


@pytest.mark.parametrize('condition', [{'t': 'sw', 'v1': 'a'}, {'t': 'gt', 'v1': 'a'}, {'t': 'gele', 'v1': 'a', 'v2': 'b'}])
def test_hashed_fields_have_no_order(hashed, condition):
    problem = refused('AARG', hashed.op, 'vault', 'find', {'c': 'Ticket', 'i': 'Info', 'where': [{'f': 'code', **condition}]})
    assert (problem.body['at'], problem.body['detail']) == ('/param/where/0/t', 'One of eq, ne, in, nin, exists is expected: a hash has no order.')


def test_a_hash_is_bound_to_its_class_and_field(hashed):
    hashed.put('vault', ticket('bound', code='same', other='same', codes=['same']), person('bound2', team='same'))
    row, = hashed.psql('vault', 'select code, other, codes[1] from "x_Ticket_Info" where id = %s', ('bound',))
    member, = hashed.psql('vault', "select value from member where id = 'bound2'")
    assert len({*row, *member}) == 4


def test_neither_a_dump_nor_the_log_has_a_hashed_field(hashed):
    hashed.put('vault', ticket('planted', code=HIDDEN, other=HIDDEN, codes=[HIDDEN]))
    assert tickets(hashed, 'other', HIDDEN) == ['before', 'planted']
    assert PLANTED not in dump(hashed) and PLANTED.encode() not in log_of(hashed)


def test_hashes_stay_when_the_data_key_changes(hashed):
    hashed.put('vault', ticket('rotated', other='rotated'))
    hashed.admin('ns', 'keys', 'vault', '--new')
    hashed.admin('ns', 'keys', 'vault', '--reseal')
    hashed.put('vault', ticket('rotated2', other='rotated'))
    assert tickets(hashed, 'other', 'rotated') == ['rotated', 'rotated2']


def test_a_field_in_clear_becomes_a_hashed_one(hashed, tmp_path):
    schemas = Schemas(hashed, tmp_path)
    clear, secret = {'singleton': True, 'fields': {'word': 'string', 'day': 'int'}, 'clear': True}, PLANTED + '-was-clear'
    schemas.apply('vault', {'Person': PERSON, 'Ticket': TICKET, 'Turn': {'items': {'Info': clear}}})
    hashed.put('vault', {'c': 'Turn', 'id': 't', 'items': [{'c': 'Info', 'j': {'word': secret, 'day': 4}}]})
    assert secret in dump(hashed)
    schemas.apply('vault', {'Person': PERSON, 'Ticket': TICKET, 'Turn': {'items': {'Info': {**clear, 'fields': {'word': 'hash', 'day': 'int'}}}}})
    for condition in ({'f': 'word', 't': 'eq', 'v1': secret}, {'f': 'day', 't': 'gt', 'v1': 3}):
        assert hashed.op('vault', 'find', {'c': 'Turn', 'i': 'Info', 'where': [condition]})['out']['ids'] == ['t']
    assert secret not in dump(hashed)


def test_hashed_fields_in_archives(hashed, tmp_path):
    create(hashed, 'vault2')
    hashed.admin('ns', 'create', 'plain2', '--access', 'open', '--nginx-pid', hashed.path / 'nginx.pid')
    hashed.put('vault', ticket('archived', other='archived'))
    archive = tmp_path / 'vault.tar.zst'
    hashed.admin('export', 'vault', archive)
    for ns in ('vault2', 'plain2'):
        hashed.admin('import', ns, archive)
        wait_until(lambda: hashed.ping(ns).status_code == 200, what='the namespace')
        assert tickets(hashed, 'other', 'archived', ns=ns) == ['archived']
    (one,), (other,), (plain,) = (hashed.psql(ns, 'select other from "x_Ticket_Info" where id = %s', ('archived',))[0] for ns in ('vault', 'vault2', 'plain2'))
    assert len(one) == len(other) == 32 and one != other and plain == 'archived'


# --- accounts and rules ---

RULES = {'Paper': {'owner': 'Info.owner', 'read': ['owner', 'members'], 'list': ['owner', 'members'], 'members': 'Member', 'create': ['owner'],
                   'update': ['owner'], 'delete': ['owner']}}
PASSWORD = 'correct horse battery staple'


@pytest.fixture(scope='module')
def ruled(vault, tmp_path_factory):
    create(vault, 'ruled', 'rules')
    vault.op('z', 'ns', {'set': {'ns': 'ruled', 'rules': RULES, 'accounts': {'registration': 'open', 'anonymous': True}}}, admin=True)
    Schemas(vault, tmp_path_factory.mktemp('ruled')).apply('ruled', {'Paper': {
        'items': {'Info': {'singleton': True}, 'Member': {}}, 'collections': {'topic': {'key': ['Info.topic'], 'mutable': True}}}})
    return vault


def call(stack, operation, key=None, **param):
    headers = {'Authorization': f'Bearer {key}'} if key else {}
    answer = stack.http.post(f'{stack.url}/ruled/op/{operation}', json={'param': param}, headers=headers, timeout=60)
    return answer.json()['out'] if answer.status_code == 200 else answer.json()['code']


def register(stack, name):
    made = call(stack, 'register', name=name, password=PASSWORD)
    return made['account'], call(stack, 'login', name=name, password=PASSWORD)['token']


def test_accounts_and_rules(ruled):
    (ann, ann_key), (bob, bob_key) = register(ruled, 'ann@example.org'), register(ruled, 'bob@example.org')
    paper = {'c': 'Paper', 'id': 'p', 'items': [{'c': 'Info', 'j': {'owner': ann, 'topic': 'seals'}}]}
    assert call(ruled, 'put', bob_key, docs=[paper]) == 'SRULE'
    assert 'v' in call(ruled, 'put', ann_key, docs=[paper])

    def topic(key, **more):
        return call(ruled, 'collection', key, c='Paper', collection='topic', value='seals', **more)

    assert [doc['id'] for doc in topic(ann_key)['docs']] == ['p'] and topic(bob_key)['docs'] == []
    assert call(ruled, 'get', bob_key, docs=[{'c': 'Paper', 'id': 'p'}])['docs'][0].get('items', []) == []
    call(ruled, 'put', ann_key, docs=[{'c': 'Paper', 'id': 'p', 'items': [{'c': 'Member', 'k': bob, 'j': {}}]}])
    seen = topic(bob_key)
    assert [doc['id'] for doc in seen['docs']] == ['p']
    call(ruled, 'put', ann_key, docs=[{'c': 'Paper', 'id': 'p', 'items': [{'c': 'Member', 'k': bob, 'del': True}]}])
    # What the caller has lost is not recorded, so the next answer is complete.
    lost = topic(bob_key, token=seen['token'])
    assert lost['docs'] == [] and lost['complete']
    assert call(ruled, 'get', bob_key, docs=[{'c': 'Paper', 'id': 'p'}])['docs'][0].get('items', []) == []


def test_what_was_written_goes_through_an_archive(vault, tmp_path):
    vault.put('vault', person('arch', team='archive', mail='arch@example.org'))
    assert vault.admin('verify', '--ns', 'vault')
    vault.admin('export', 'vault', tmp_path / 'archive')
    create(vault, 'second')
    vault.admin('import', 'second', tmp_path / 'archive')
    assert members(vault, 'team', 'archive', 'second') == ['arch'] and vault.admin('verify', '--ns', 'second')
    refused('AUNIQUE', vault.put, 'second', person('other', mail='arch@example.org'))
    # The keys are others, so the hashes are.
    values = [vault.psql(ns, "select value from member where id = 'arch'") for ns in ('vault', 'second')]
    assert len(values[0]) == len(values[1]) == 1 and values[0] != values[1]
