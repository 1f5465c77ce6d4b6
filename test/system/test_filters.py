"""Filters of modules (modules/filters.c) in namespaces without rules: what they take away is taken away on every path, for everybody but the
administrator, and a copy of a client never keeps it.  The matrix of paths is in test_rules_paths.py."""
import itertools
import json
import shutil

import pytest

from kit import Kit
from listener import Listener
from schema import Schemas
from stack import Problem, refused
from test_accounts import OPEN, Made, bearer

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'pub': 'open', 'look': 'read', 'plain': 'open', 'shut': 'closed', 'team': 'closed'}, 'settings': {}}
MARK = 'SECRET'
ITEMS = {'Main': {'singleton': True, 'fields': {'team': 'string', 'name': 'string'}}, 'Line': {'fields': {'it': {'type': 'string', 'path': ''}}}}
SCHEMA = {name: {'open': True, 'items': {'Main': {'singleton': True, 'fields': {'team': 'string'}}, 'Secret': {'singleton': True, 'fields': {'team': 'string'}}},
                 'collections': {'all': {'key': ['Main.team'], 'mutable': True}, 'secret': {'key': ['Secret.team'], 'mutable': True}}}
          for name in ('Veil', 'Cut', 'Pick', 'Mask')}
FILTERED, UNFILTERED = ('pub', 'look'), ('plain',)


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings']['modules'] = str(kit.build('filters.c'))
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


def main(**more):
    return {'c': 'Main', 'j': {'team': 'red', **more}}


def fill(stack, ns):
    secret = {'c': 'Secret', 'j': {'team': 'red', 'text': MARK}}
    stack.put(ns, {'c': 'Veil', 'id': 'a', 'items': [main()]}, {'c': 'Veil', 'id': 'hidden', 'items': [main(veil=True), secret]},
              {'c': 'Cut', 'id': 'a', 'items': [main(), secret]},
              {'c': 'Pick', 'id': 'a', 'items': [main(), {'c': 'Line', 'k': 'shown', 'j': 'words'}, {'c': 'Line', 'k': 'hidden', 'j': MARK}]},
              {'c': 'Mask', 'id': 'a', 'items': [main(name='Ann', mail=MARK), {'c': 'Raw', 's': MARK}, {'c': 'Line', 'k': '1', 'j': 1}]}, admin=True)


@pytest.fixture(scope='module')
def filtered(stack, tmp_path_factory):
    for ns in (*FILTERED, *UNFILTERED, 'shut'):
        Schemas(stack, tmp_path_factory.mktemp('schemas')).apply(ns, SCHEMA)
        fill(stack, ns)
    return stack


@pytest.fixture
def fresh(filtered):
    """With the documents as they were made."""
    for ns in FILTERED + UNFILTERED:
        filtered.put(ns, *({'c': name, 'id': 'a', 'delete': True} for name in ('Veil', 'Cut', 'Pick', 'Mask')), admin=True)
        fill(filtered, ns)
    return filtered


def held(copy):
    return {member: copy[member] for member in ('c', 'id', 'v', 'ct', 'dt', 'w') if member in copy}


def sync(stack, ns, *copies, **more):
    return stack.op(ns, 'sync', syncs=[held(copy) if 'v' in copy else copy for copy in copies], **more)['syncs']


def names(document):
    return [(item['c'], item.get('k')) for item in document['items']]


def requests(name, ident):
    """Every path that reads documents of the class, or this one."""
    one = {'c': name, 'id': ident}
    yield from [('POST', 'op/get', {'param': {'docs': [one]}}), ('POST', 'op/get', {'param': {'docs': [{**one, 'age': 3600}]}}),
                ('POST', 'op/sync', {'syncs': [one]}), ('POST', 'op/sync', {'syncs': [{**one, 'v': 200101000000001, 'ct': 1, 'dt': 0}]}),
                ('GET', f'doc/{name}/{ident}', None), ('GET', f'doc/{name}/{ident}?age=3600', None), ('POST', 'op/list', {'param': {'c': name}})]
    for item, want in itertools.product(('Main', 'Secret'), ('ids', 'items')):
        yield 'POST', 'op/find', {'param': {'c': name, 'i': item, 'where': [{'f': 'team', 't': 'eq', 'v1': 'red'}], 'want': want}}
    for collection, want, stream in itertools.product(('all', 'secret'), ('ids', 'docs'), (False, True)):
        yield 'POST', 'op/collection', {'param': {'c': name, 'collection': collection, 'value': 'red', 'want': want, 'stream': stream}}


@pytest.mark.parametrize('ns', FILTERED + UNFILTERED)
def test_every_path_is_filtered(filtered, ns):
    """Where the filters apply, for everybody but the administrator; elsewhere, and for it, nothing is."""
    found = {False: 0, True: 0}  # answers that show it, to the administrator and to others
    for admin, name, ident in itertools.product((False, True), ('Veil', 'Cut', 'Pick', 'Mask'), ('a', 'hidden')):
        for method, path, body in requests(name, ident):
            headers = {'Authorization': f'Bearer {filtered.key}'} if admin else {}
            answer = filtered.request(method, f'/{ns}/{path}', json=body, headers=headers)
            assert answer.status_code in (200, 404), answer.text
            is_shown = MARK in answer.text or (name == 'Veil' and '"hidden"' in answer.text.replace('"id":"hidden","v":0', '').replace('"args":["Veil","hidden"]', ''))
            assert not is_shown or admin or ns in UNFILTERED, (method, path, body, answer.text)
            found[admin] += is_shown
    assert found[True] > 30 and found[False] == (found[True] if ns in UNFILTERED else 0), found


def test_what_is_shown_stays(filtered):
    for ns in FILTERED:
        assert names(filtered.get(ns, ('Veil', 'a'))) == [('Main', None)] and 'w' not in filtered.get(ns, ('Veil', 'a'))
        assert names(filtered.get(ns, ('Cut', 'a'))) == [('Main', None)]
        assert names(filtered.get(ns, ('Pick', 'a'))) == [('Line', 'shown'), ('Main', None)]
        mask = filtered.get(ns, ('Mask', 'a'))
        assert [item.get('j', item.get('s')) for item in mask['items']] == [1, {'name': 'Ann'}, 'xxx'] and len(mask['w']) == 16
        assert [one['id'] for one in filtered.op(ns, 'list', {'c': 'Veil'})['out']['docs']] == ['a']
        where = [{'f': 'team', 't': 'eq', 'v1': 'red'}]
        assert filtered.op(ns, 'find', {'c': 'Veil', 'i': 'Main', 'where': where, 'want': 'ids'})['out'] == {'ids': ['a']}
        assert filtered.op(ns, 'find', {'c': 'Cut', 'i': 'Main', 'where': where, 'want': 'items'})['out']['items'][0]['id'] == 'a'
        for name, count in (('Veil', 1), ('Cut', 1), ('Pick', 1), ('Mask', 0)):
            page = filtered.op(ns, 'collection', {'c': name, 'collection': 'all', 'value': 'red'})['out']
            assert len(page['docs']) == count and MARK not in json.dumps(page), 'a property that is rewritten puts nothing into a collection'


def test_no_search_is_by_what_is_rewritten(filtered):
    """It would find out the content, value by value."""
    where = [{'f': 'team', 't': 'eq', 'v1': 'red'}]
    for want in ('ids', 'items'):
        assert filtered.op('pub', 'find', {'c': 'Mask', 'i': 'Main', 'where': where, 'want': want})['out'] == {want: []}
        assert filtered.op('plain', 'find', {'c': 'Mask', 'i': 'Main', 'where': where, 'want': want})['out'][want]


def test_classes_are_not_listed(filtered):
    refused('SCLOSED', lambda: filtered.op('pub', 'list', {}))
    assert 'Veil' in filtered.op('plain', 'list', {})['out']['classes']


# --- copies of clients ---

def test_what_is_hidden_moves_nothing(fresh):
    """Neither version nor view nor tag of what a client has."""
    ids = [('Cut', 'a'), ('Pick', 'a')]
    before = [fresh.get('pub', one) for one in ids]
    tags = [fresh.request('GET', f'/pub/doc/{name}/{ident}').headers['ETag'] for name, ident in ids]
    fresh.put('pub', {'c': 'Cut', 'id': 'a', 'items': [{'c': 'Secret', 'j': 2}]},
              {'c': 'Pick', 'id': 'a', 'items': [{'c': 'Line', 'k': 'hidden', 'j': MARK + '2'}, {'c': 'Line', 'k': 'more', 'j': MARK}]}, admin=True)
    fresh.put('pub', {'c': 'Cut', 'id': 'a', 'items': [{'c': 'Secret', 'del': True}]}, {'c': 'Pick', 'id': 'a', 'items': [{'c': 'Line', 'k': 'more', 'del': True}]}, admin=True)
    assert [fresh.get('pub', one) for one in ids] == before
    assert [fresh.request('GET', f'/pub/doc/{name}/{ident}', headers={'If-None-Match': tag}).status_code for (name, ident), tag in zip(ids, tags)] == [304, 304]
    for copy in sync(fresh, 'pub', *before):
        assert (copy['items'], copy['dels'], copy.get('clkeys')) == ([], [], None)
    assert fresh.op('pub', 'list', {'c': 'Cut'})['out']['docs'][0]['v'] == before[0]['v']


def test_a_selection_that_changes_replaces_the_copy(fresh):
    """An item that is excluded from now on goes without a word about it; one that is shown from now on comes."""
    line = {'c': 'Line', 'k': 'shown'}
    def change(name, *items):
        fresh.put('pub', {'c': name, 'id': 'a', 'items': list(items)}, admin=True)
    first = fresh.get('pub', ('Pick', 'a'))
    change('Pick', {**line, 'j': 'other words'})
    second, = sync(fresh, 'pub', first)
    assert names(second) == [('Line', 'shown')] and 'clkeys' not in second and second['w'] == first['w'], 'a difference is enough'
    change('Pick', {**line, 'j': MARK + ' now'})
    third, = sync(fresh, 'pub', second)
    assert names(third) == [('Main', None)] and third['clkeys'] == [] and third['w'] != second['w'] and not third['dels']
    refused('AVERSION', lambda: fresh.put('pub', {'c': 'Pick', 'id': 'a', 'if': second['v'], 'items': []}))
    change('Pick', {**line, 'j': 'words again'})
    fourth, = sync(fresh, 'pub', third)
    assert names(fourth) == [('Line', 'shown'), ('Main', None)] and fourth['w'] == first['w']
    change('Pick', {**line, 'del': True})
    fifth, = sync(fresh, 'pub', fourth)
    assert names(fifth) == [('Main', None)] and fifth['clkeys'] == [] and not fifth['dels']


def test_rewritten_items_are_synchronised_by_differences(fresh):
    first = fresh.get('pub', ('Mask', 'a'))
    fresh.put('pub', {'c': 'Mask', 'id': 'a', 'items': [main(name='Eve', mail=MARK + '2'), {'c': 'Raw', 's': None}]}, admin=True)
    second, = sync(fresh, 'pub', first)
    assert [item['j'] for item in second['items']] == [{'name': 'Eve'}] and [one['c'] for one in second['dels']] == ['Raw'] and second['w'] == first['w']


def test_another_view_replaces_the_copy(filtered):
    def put(act):
        filtered.put('pub', {'c': 'Wrong', 'id': 'view', 'items': [{'c': 'Main', 'j': {'act': act}}, {'c': 'Line', 'k': '1', 'j': 1}]}, admin=True)
        return filtered.get('pub', ('Wrong', 'view'))
    first, second = put('one'), put('two')
    copy, = sync(filtered, 'pub', first)
    assert names(copy) == [('Line', '1'), ('Main', None)] and copy['clkeys'] == [] and copy['w'] == second['w'] != first['w']
    filtered.put('pub', {'c': 'Wrong', 'id': 'view', 'delete': True}, admin=True)


def test_roles_of_an_account_decide_at_its_next_request(filtered):
    """In a namespace with rules, after them: a filter never shows what they do not."""
    everything = {right: ['account'] for right in ('read', 'list', 'update', 'delete')}
    filtered.op('z', 'ns', {'set': {'ns': 'team', 'access': 'rules', 'accounts': OPEN}}, admin=True)
    filtered.put('z', {'c': 'Namespace', 'id': 'team', 'items': [{'c': 'Rules', 'j': {'Veil': everything, 'Cut': everything, 'Wrong': everything}}]}, admin=True)
    ann, bob = Made(filtered), Made(filtered)
    secret = {'c': 'Secret', 'j': MARK}
    filtered.put('team', {'c': 'Veil', 'id': 'of-ann', 'items': [main(veil=True, owner=ann.id)]}, {'c': 'Cut', 'id': 'a', 'items': [main(), secret]},
                 {'c': 'Pick', 'id': 'a', 'items': [main()]}, admin=True)
    def ask(who, copy):
        return filtered.request('POST', '/team/op/sync', json={'syncs': [copy]}, headers=bearer(who.token) if who else {}).json()['syncs'][0]
    veil, cut = {'c': 'Veil', 'id': 'of-ann'}, {'c': 'Cut', 'id': 'a'}
    assert ask(ann, veil)['items'] and not ask(bob, veil)['v'] and not ask(None, veil)['v'] and not ask(ann, {'c': 'Pick', 'id': 'a'})['v']
    first = ask(bob, cut)
    bob.set({'c': 'Roles', 'j': {'roles': ['editor']}})
    second = ask(bob, held(first))
    assert ask(bob, veil)['items'] and 'w' not in second and names(second) == [('Main', None), ('Secret', None)] and second['clkeys'] == []
    bob.set({'c': 'Roles', 'j': {'roles': []}})
    third = ask(bob, held(second))
    assert not ask(bob, veil)['v'] and names(third) == [('Main', None)] and third['clkeys'] == [] and third['w'] == first['w']
    stranger = {'c': 'Wrong', 'id': 'x'}
    filtered.put('team', {**stranger, 'items': [{'c': 'Main', 'j': {'act': 'caller'}}]}, admin=True)
    assert names(ask(bob, stranger)) == [('Main', None)], '`see` does not know the caller'


def test_a_document_that_is_hidden_from_now_on_is_gone_for_whoever_holds_it(fresh):
    """A synchronisation names what the client holds: the answer says that it is gone, and returns it when it is shown again."""
    name = {'c': 'Veil', 'id': 'a'}
    before = sync(fresh, 'pub', name)[0]
    assert before['v'] and names(before) == [('Main', None)]
    fresh.put('pub', {**name, 'items': [main(veil=True)]}, admin=True)
    gone, never = sync(fresh, 'pub', before, {'c': 'Veil', 'id': 'nothing', 'v': before['v'], 'ct': before['ct'], 'dt': 0})
    assert gone == {**never, 'id': 'a'} and not gone['v'] and not gone.get('items')
    assert not sync(fresh, 'pub', gone)[0].get('items')
    fresh.put('pub', {**name, 'items': [main(veil=False)]}, admin=True)
    assert names(sync(fresh, 'pub', gone)[0]) == [('Main', None)]


# --- writing ---

def tried(act):
    try:
        act()
    except Problem as problem:
        return problem.code
    return 'done'


def test_a_hidden_document_is_not_written(fresh):
    hidden, before = {'c': 'Veil', 'id': 'hidden'}, fresh.get('pub', ('Veil', 'hidden'), admin=True)
    items = [{'c': 'Line', 'k': '1', 'j': 1}]
    for one in ({**hidden, 'items': items}, {**hidden, 'items': [main(veil=True)]}, {**hidden, 'delete': True, 'items': items}):
        assert tried(lambda one=one: fresh.put('pub', one)) == 'SRULE', one
    assert tried(lambda: fresh.put('pub', {**hidden, 'if': before['v'], 'items': items})) == 'AVERSION'
    assert tried(lambda: fresh.put('pub', {**hidden, 'delete': True})) == 'done', 'as of a document that does not exist'
    for method in ('PATCH', 'DELETE'):
        assert fresh.request(method, '/pub/doc/Veil/hidden', json={'items': items}).status_code == 404
    assert fresh.request('PUT', '/pub/doc/Veil/hidden', json={'items': items}).json()['code'] == 'SRULE'
    assert fresh.get('pub', ('Veil', 'hidden'), admin=True) == before


def test_hidden_items_are_not_named(fresh):
    """Whether they are there, and whether the content is the right one."""
    for name, item in itertools.product(('Cut', 'Pick', 'Mask'), ({'j': {'team': 'red', 'text': MARK}}, {'j': 1}, {'del': True}, {'j': MARK})):
        which = {'Cut': {'c': 'Secret'}, 'Pick': {'c': 'Line', 'k': 'hidden'}, 'Mask': {'c': 'Main'}}[name]
        refused('SRULE', lambda name=name, which=which, item=item: fresh.put('pub', {'c': name, 'id': 'a', 'items': [{**which, **item}]}))
        answer = fresh.request('PATCH', f'/pub/doc/{name}/a', json={'items': [{**which, **item}]})
        assert answer.json()['code'] == 'SRULE', answer.text
    fresh.put('pub', {'c': 'Cut', 'id': 'a', 'items': [{'c': 'Secret', 'del': True}]}, admin=True)
    refused('SRULE', lambda: fresh.put('pub', {'c': 'Cut', 'id': 'a', 'items': [{'c': 'Secret', 'j': 1}]}))
    fresh.put('pub', {'c': 'Pick', 'id': 'a', 'items': [{'c': 'Line', 'k': 'new', 'j': 'mine'}, {'c': 'Line', 'k': 'shown', 'del': True}]})
    assert [item['k'] for item in fresh.get('pub', ('Pick', 'a'), admin=True)['items'] if item['c'] == 'Line'] == ['hidden', 'new']


def test_a_replaced_document_keeps_what_is_hidden(fresh):
    """PUT replaces what the caller sees; what is rewritten it cannot replace."""
    for name, item in (('Cut', 'Secret'), ('Pick', 'Line')):
        answer = fresh.request('PUT', f'/pub/doc/{name}/a', json={'items': [main(n=1)]})
        assert answer.status_code == 200 and answer.headers['ETag'].startswith(f'"{answer.json()["v"]}-'), answer.text
        kept = fresh.get('pub', (name, 'a'), admin=True)['items']
        assert len(kept) == 2 and MARK in json.dumps([one for one in kept if one['c'] == item]), kept
    for items in ([main(name='Ann')], []):
        assert fresh.request('PUT', '/pub/doc/Mask/a', json={'items': items}).json()['code'] == 'SRULE'
    assert fresh.request('DELETE', '/pub/doc/Mask/a').status_code == 200, 'with the whole document goes what is hidden of it'


def test_a_task_of_a_client_is_filtered(fresh):
    """It runs with the rights of the client that requested it."""
    param = {'docs': [{'c': 'Veil', 'id': 'hidden', 'items': [{'c': 'Line', 'k': '1', 'j': 1}]}]}
    before = fresh.get('pub', ('Veil', 'hidden'), admin=True)
    answer = fresh.request('POST', '/pub/op/task', json={'param': {'op': 'put', 'param': param}})
    assert answer.status_code in (200, 401, 403), answer.text
    assert fresh.get('pub', ('Veil', 'hidden'), admin=True) == before


# --- beside the paths of clients ---

def test_modules_are_trusted_and_learn_what_the_caller_may(fresh):
    for name, ident, may in (('Veil', 'hidden', (False, False, False, False)), ('Veil', 'a', (True,) * 4), ('Cut', 'a', (True, True, True, False))):
        out = fresh.op('pub', 'Look', {'c': name, 'id': ident})['out']
        assert out['exists'] and (out['read'], out['list'], out['main'], out['secret']) == may, (name, ident, out)
        assert all(fresh.op('pub', 'Look', {'c': name, 'id': ident}, admin=True)['out'].values())
    granted = fresh.op('pub', 'Look', {'c': 'Veil', 'id': 'hidden'}, syncs=[{'c': 'Veil', 'id': 'hidden'}])['syncs'][0]
    assert MARK in json.dumps(granted), 'a grant of a module is its own decision'
    granted = fresh.op('shut', 'Look', {'c': 'Veil', 'id': 'hidden'}, syncs=[{'c': 'Veil', 'id': 'hidden'}, {'c': 'Cut', 'id': 'a'}])['syncs']
    assert MARK in json.dumps(granted[0]) and granted[1] == {'c': 'Cut', 'id': 'a', 'closed': True}


def test_another_namespace_is_not_read_around_a_filter(filtered):
    filtered.op('z', 'ns', {'set': {'ns': 'plain', 'reads': ['pub']}}, admin=True)
    filtered.op('z', 'ns', {'set': {'ns': 'pub', 'readers': ['plain']}}, admin=True)
    def other(name, **more):
        return filtered.op('plain', 'get', {'docs': [{'c': name, 'id': 'a', 'ns': 'pub', 'age': 60}]}, **more)['out']['docs'][0]
    assert other('Free')['v'] == 0 and MARK in json.dumps(other('Cut', admin=True))
    for name in ('Veil', 'Cut', 'Pick', 'Mask'):
        refused('NNAMESPACE', lambda name=name: other(name))


WRONG = ['fetch', 'set', 'raise', 'limit', 'schedule', 'grant', 'search', 'checkpoint', 'result', 'long', 'bytes', 'sight', 'verdict', 'exclude', 'json', None]


@pytest.mark.parametrize('act', WRONG)
def test_a_filter_that_fails_hides(filtered, act):
    """And breaks nothing else: the next document is shown."""
    filtered.put('pub', {'c': 'Wrong', 'id': 'w', 'items': [{'c': 'Main', 'j': {'act': act}}]},
                 {'c': 'Wrong', 'id': 'x', 'items': [{'c': 'Main', 'j': {'act': 'fine'}}]},
                 {'c': 'Wrong', 'id': 'y', 'items': [{'c': 'Main', 'j': {'act': 'caller'}}]}, admin=True)
    copies = sync(filtered, 'pub', {'c': 'Wrong', 'id': 'w'}, {'c': 'Wrong', 'id': 'x'}, {'c': 'Wrong', 'id': 'y'})
    assert copies[0]['v'] == 0 and copies[1]['items'] and copies[2]['items'] and 'w' not in copies[1] and 'w' in copies[2]
    assert [one['id'] for one in filtered.op('pub', 'list', {'c': 'Wrong'})['out']['docs']] == ['x', 'y']
    assert refused('SRULE', lambda: filtered.put('pub', {'c': 'Wrong', 'id': 'w', 'items': [{'c': 'Line', 'k': '1', 'j': 1}]}))
    assert 'filter of Wrong' in filtered.log(), 'and the administrator can find out why'


# --- live events ---

PUTS = itertools.count()

def heard(stack, *changes, definitions, last, admin=False):
    """The definitions of which an anonymous listener is sent events: the last of the changes is one that it sees."""
    listener = Listener(stack, *definitions, ns='pub', admin=admin)
    try:
        listener.wait_for_id()
        for change in changes:
            for item in change.get('items', ()):
                if item['c'] == 'Main':
                    item['j']['put'] = next(PUTS)  # else nothing may have changed
            version = stack.put('pub', change, admin=True)
        listener.wait_for(last, version)
        return [tuple(one) for name, data in listener.events if name == 'change' for one in data['changed']]
    finally:
        listener.close()


def test_live_events_are_filtered(fresh):
    """Of hidden documents, of hidden items and excluded contents, and of what is deleted nothing is sent."""
    definitions = ('Veil', 'Veil/hidden', 'Cut', 'Cut/a', 'Pick/a', 'Free', 'Free/x')
    free = {'c': 'Free', 'id': 'x', 'items': [main()]}
    changes = [{'c': 'Veil', 'id': 'hidden', 'items': [{'c': 'Line', 'k': '1', 'j': 1}]}, {'c': 'Cut', 'id': 'a', 'items': [{'c': 'Secret', 'j': 1}]},
               {'c': 'Pick', 'id': 'a', 'items': [{'c': 'Line', 'k': 'hidden', 'j': MARK + '1'}]}, {'c': 'Veil', 'id': 'hidden', 'delete': True}, free]
    assert {definition for definition, _ in heard(fresh, *changes, definitions=definitions, last='Free/x')} == {'Free', 'Free/x'}
    fill(fresh, 'pub')
    assert {definition for definition, _ in heard(fresh, *changes, definitions=definitions, last='Free/x', admin=True)} == set(definitions)
    fill(fresh, 'pub')


def test_live_events_of_what_is_shown_are_sent(fresh):
    """With the version that the caller sees; also of what is deleted in a class without a filter."""
    changes = [{'c': 'Cut', 'id': 'a', 'items': [main(n=2)]}, {'c': 'Cut', 'id': 'a', 'items': [{'c': 'Secret', 'j': 2}]},
               {'c': 'Free', 'id': 'x', 'items': [main()]}, {'c': 'Free', 'id': 'x', 'delete': True}]
    found = heard(fresh, *changes, definitions=('Cut/a', 'Free/x', 'Free'), last='Free/x')
    assert ('Cut/a', fresh.get('pub', ('Cut', 'a'))['v']) in found
    assert ('Cut/a', fresh.get('pub', ('Cut', 'a'), admin=True)['v']) not in found


def test_a_listener_to_a_collection_is_refused_where_filters_apply(filtered):
    for ns, code in (('pub', 400), ('plain', 200)):
        answer = filtered.http.get(f'{filtered.url}/{ns}/live?def=Veil/all@red', stream=True, timeout=60)
        assert answer.status_code == code
        answer.close()
