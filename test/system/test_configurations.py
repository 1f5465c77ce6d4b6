"""The configurations of namespaces over HTTP: the operation `ns` of z, beside stampctl and clients that change them at the same time."""
import json
import subprocess
import threading

import pytest

from stack import BUILD, Problem, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'demo': 'read', 'lab': 'open'}}


def ns(stack, param, admin=True, at='z', **more):
    return stack.op(at, 'ns', param, admin=admin, **more)['out']


def get(stack, code='demo'):
    return ns(stack, {'get': code})


def refused(stack, param, **more):
    with pytest.raises(Problem) as caught:
        ns(stack, param, **more)
    return caught.value


@pytest.fixture(autouse=True)
def as_it_was(stack):
    before = stack.psql('z', "select id, content from item where class = 'Namespace' and iclass = 'Conf' order by id")
    yield
    # By the server too: what psql does reaches copies in caches a moment later, and the next test may set the same rules.
    stack.put('z', {'c': 'Namespace', 'id': 'demo', 'items': [{'c': 'Rules', 'del': True}]}, admin=True)
    stack.psql('z', "select put_item('Namespace', 'demo', 'Rules', '', null)")
    for code, content in before:
        stack.psql('z', "select put_item('Namespace', %s, 'Conf', '', %s)", (code, content))
    def read(code):
        return [item['j'] for item in stack.get('z', ('Namespace', code), admin=True)['items'] if item['c'] == 'Conf']
    wait_until(lambda: [read(code) for code, _ in before] == [[json.loads(content)] for _, content in before] and 'rules' not in get(stack)
               and stack.ping('demo').json()['state'] == 0, what='the former configurations')


def test_a_namespace_is_read_and_changed_and_obeys_at_once(stack):
    present = get(stack)
    assert present == {'ns': 'demo', 'v': present['v'], 'database': 'stampd_demo', 'access': 'read', 'state': 0}
    whole = {'access': 'open', 'message': 'Hello “you”', 'label': 'Démo', 'theme': 'dark', 'origins': ['https://a.example', '*'],
             'options': {'a': [1, {'b': None}]}, 'state': 0}
    version = ns(stack, {'set': {'ns': 'demo', 'if': present['v'], **whole}})['v']
    assert version > present['v']
    assert get(stack) == {'ns': 'demo', 'v': version, 'database': 'stampd_demo', **whole}
    assert stack.put('demo', {'c': 'Note', 'id': 'a'}) and stack.ping('demo').json()['label'] == 'Démo'
    answer = stack.request('GET', '/demo/ping', headers={'Origin': 'https://a.example'})
    assert answer.headers['Access-Control-Allow-Origin'] == 'https://a.example'
    for state, code in ((1, 'OREADONLY'), (2, 'OOFF'), (3, 'OGONE'), (0, None)):
        ns(stack, {'set': {'ns': 'demo', 'state': state}})
        for _ in range(6):  # by each worker
            answer = stack.request('POST', '/demo/op/put', json={'param': {'docs': []}})
            assert (answer.json()['code'] if answer.status_code >= 400 else None) == code
    ns(stack, {'set': {'ns': 'demo', **{name: None for name in whole}}})
    assert get(stack) == {'ns': 'demo', 'v': get(stack)['v'], 'database': 'stampd_demo', 'access': 'closed', 'state': 0}
    unchanged = get(stack)['v']
    assert ns(stack, {'set': {'ns': 'demo', 'theme': None}})['v'] == unchanged, 'nothing to change'


def test_a_change_of_origins_says_what_nginx_does_not_know(stack):
    """Only stampctl may write nginx's map, where they are too."""
    def words(code='demo', **members):
        warnings = ns(stack, {'set': {'ns': code, **members}}).get('warnings', [])
        assert len(warnings) <= 1 and all('`stampctl ns map`' in warning for warning in warnings)
        return bool(warnings)
    assert words(origins=['https://a.example']) and not words(origins=['https://a.example'], label='same') and not words(label='other')
    assert words(origins=['https://b.example', '*']) and not words(access='closed')
    assert words(accounts={'registration': 'closed'}), 'cookies come from these origins'
    assert not words(accounts={'registration': 'closed', 'session_days': 9}) and words(origins=None)
    assert not words('lab', access='closed', accounts={'registration': 'closed'}), 'there are no origins'


def test_the_state_of_z_is_set_like_any_other(stack):
    ns(stack, {'set': {'ns': 'z', 'state': 2, 'message': 'all of it'}})
    for code in ('demo', 'lab'):
        problem = stack.request('POST', f'/{code}/op/get', json={'param': {'docs': []}})
        assert (problem.status_code, problem.json()['code'], problem.json()['detail']) == (503, 'OOFF', 'all of it')
        assert get(stack, code)['state'] == 0 and stack.ping(code).json()['state'] == 2
    conf = stack.get('z', ('Namespace', 'z'), admin=True)['items'][0]['j']
    stack.put('z', {'c': 'Namespace', 'id': 'z', 'delete': True}, admin=True)
    assert refused(stack, {'get': 'z'}).code == 'NNAMESPACE'
    ns(stack, {'set': {'ns': 'z', 'state': 1}})
    assert get(stack, 'z')['database'] == conf['database'] and stack.ping('lab').json()['state'] == 1
    ns(stack, {'set': {'ns': 'z', 'state': 0}})


def test_all_are_listed_by_pages(stack):
    codes = ['demo', *(f'n{number:02}' for number in range(1, 60)), 'lab', 'z']
    stack.put('z', *({'c': 'Namespace', 'id': code, 'items': [{'c': 'Conf', 'j': {'database': f'stampd_{code}'}}]} for code in codes[1:33]), admin=True)
    stack.put('z', *({'c': 'Namespace', 'id': code, 'items': [{'c': 'Conf', 'j': {'database': f'stampd_{code}'}}]} for code in codes[33:60]), admin=True)
    try:
        for limit in (1, 20, 32, None):
            found, cursor = [], None
            while True:
                page = ns(stack, {'list': {key: value for key, value in (('limit', limit), ('cursor', cursor)) if value}})
                assert len(page['namespaces']) <= (limit or 20)
                found += page['namespaces']
                cursor = page.get('cursor')
                if not cursor:
                    break
            assert [one['ns'] for one in found] == sorted(codes) and all(one['database'] == f'stampd_{one["ns"]}' for one in found)
    finally:
        for code in codes[1:60]:
            stack.psql('z', "select delete_document('Namespace', %s)", (code,))


WRONG = [('access', 'all'), ('access', 1), ('state', 7), ('state', -1), ('state', '1'), ('state', 1.0), ('state', True), ('message', 1),
         ('message', 'x' * 1001), ('label', []), ('label', 'é' * 101), ('theme', 't' * 65), ('options', []), ('options', '{}'),
         ('options', {'o': 'x' * 4096}), ('origins', '*'), ('origins', ['https://a/']), ('origins', ['*'] * 33), ('origins', [1]), ('origins', {})]


@pytest.mark.parametrize('member, value', WRONG)
def test_wrong_values_are_refused_with_a_pointer_and_change_nothing(stack, member, value):
    before = get(stack)
    problem = refused(stack, {'set': {'ns': 'demo', 'label': 'new', member: value}})
    assert (problem.status, problem.code, problem.body['at']) == (400, 'AARG', f'/param/set/{member}') and 'expected' in problem.body['detail']
    assert get(stack) == before


@pytest.mark.parametrize('param, at', [
    ({}, '/param'), ({'list': {}, 'get': 'demo'}, '/param'), ({'drop': 'demo'}, '/param/drop'), ({'get': 'Demo'}, '/param/get'), ({'get': 1}, '/param/get'),
    ({'list': []}, '/param/list'), ({'list': {'limit': 0}}, '/param/list/limit'), ({'list': {'limit': 33}}, '/param/list/limit'),
    ({'list': {'cursor': '!'}}, '/param/list/cursor'), ({'list': {'from': 'a'}}, '/param/list/from'), ({'set': []}, '/param/set'),
    ({'set': {'state': 1}}, '/param/set/ns'), ({'set': {'ns': 'demo', 'database': 'other'}}, '/param/set/database'),
    ({'set': {'ns': 'demo', 'off': 'x'}}, '/param/set/off'), ({'set': {'ns': 'demo', 'if': 'x'}}, '/param/set/if')])
def test_wrong_arguments_are_refused_with_a_pointer(stack, param, at):
    problem = refused(stack, param)
    assert (problem.status, problem.code, problem.body.get('at')) == (400, 'AARG', at), problem.body


def test_only_the_administrator_and_only_in_z(stack):
    for param in ({'list': {}}, {'get': 'demo'}, {'set': {'ns': 'demo', 'state': 0}}):
        for at in ('z', 'demo', 'lab'):
            assert refused(stack, param, admin=None, at=at).code == 'SCLOSED'
            assert refused(stack, param, admin='wrong', at=at).code == 'SKEY'
            assert refused(stack, param, admin=stack.queue_key, at=at).code == 'SKEY'
        for at in ('demo', 'lab'):
            problem = refused(stack, param, at=at)
            assert (problem.code, problem.body['args']) == ('AARG', ['path'])
    for code in ('nowhere', 'zz'):
        assert refused(stack, {'get': code}).status == 404 and refused(stack, {'set': {'ns': code, 'state': 0}}).code == 'NNAMESPACE'
    answer = stack.request('GET', '/z/op/ns', query={'param': json.dumps({'set': {'ns': 'demo', 'state': 0}})},
                           headers={'Authorization': f'Bearer {stack.key}'})
    assert answer.json()['code'] == 'AMETHOD'


def test_changes_at_once_lose_nothing(stack):
    """With `if` exactly one of many wins each round; without, each changes its own member."""
    for _ in range(5):
        version, outcomes = get(stack)['v'], []

        def change(number, version=version, outcomes=outcomes):
            try:
                outcomes.append(ns(stack, {'set': {'ns': 'demo', 'if': version, 'label': f'of {number} at {version}'}})['v'])
            except Problem as problem:
                assert (problem.status, problem.code) == (409, 'AVERSION') and problem.body['at'] == '/param/set/if'
        threads = [threading.Thread(target=change, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes == [get(stack)['v']]
    members = {'label': 'a', 'theme': 'b', 'message': 'c', 'options': {'d': 1}, 'origins': ['*'], 'access': 'open'}

    def set_one(member):
        wait_until(lambda: stack.request('POST', '/z/op/ns', json={'param': {'set': {'ns': 'demo', member: members[member]}}}, admin=True).status_code == 200)
    threads = [threading.Thread(target=set_one, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: value for name, value in get(stack).items() if name in members} == members


RULES = {'Note': {'owner': 'Info.owner', 'read': ['owner', 'role:staff'], 'update': [{'to': 'owner', 'if': {'unchanged': 'Info.owner'}}]}}


def test_rules_are_set_read_and_removed(stack):
    version = ns(stack, {'set': {'ns': 'demo', 'rules': RULES, 'access': 'rules'}})['v']
    present = get(stack)
    assert (present['v'], present['access'], present['rules']) == (version, 'rules', RULES)
    assert all('rules' not in one for one in ns(stack, {'list': {}})['namespaces']), 'they may be long'
    assert ns(stack, {'set': {'ns': 'demo', 'rules': RULES}})['v'] == version, 'nothing to change'
    ns(stack, {'set': {'ns': 'demo', 'label': 'other'}})
    assert get(stack)['rules'] == RULES
    for _ in range(6):  # by each worker: no operation obeys them that is not declared so, and nobody is the administrator
        assert stack.request('POST', '/demo/op/tasks', json={'param': {'backlog': True}}).json()['code'] == 'SCLOSED'
    ns(stack, {'set': {'ns': 'demo', 'rules': None}})
    assert 'rules' not in get(stack) and get(stack)['access'] == 'rules'


@pytest.mark.parametrize('rules, at, words', [
    ([], '', 'An object of classes'), ('{}', '', 'An object of classes'), ({'note': {}}, '/note', 'class of documents'),
    ({'Account': {}}, '/Account', 'belong to the server'), ({'Note': {'reed': []}}, '/Note/reed', 'did you mean "read"?'),
    ({'Note': {'read': ['anybody', 'anybdy']}}, '/Note/read/1', 'did you mean'), ({'Note': {'read': ['owner']}}, '/Note/read/0', 'member owner'),
    ({'Note': {'update': [{'to': 'account', 'if': {'all': [{'eq': [1, {'after': 'a'}]}]}}]}}, '/Note/update/0/if/all/0/eq/1/after', 'Item.member'),
    ({'Note': {'a/b~c': 1}}, '/Note/a~1b~0c', 'Unknown member')])
def test_wrong_rules_are_refused_with_a_pointer_into_them(stack, rules, at, words):
    ns(stack, {'set': {'ns': 'demo', 'rules': RULES}})
    problem = refused(stack, {'set': {'ns': 'demo', 'label': 'new', 'rules': rules}})
    assert (problem.status, problem.code, problem.body['at']) == (400, 'AARG', '/param/set/rules' + at) and words in problem.body['detail']
    assert get(stack)['rules'] == RULES and 'label' not in get(stack)


def test_rules_do_not_open_the_namespace_z(stack):
    conf = stack.get('z', ('Namespace', 'z'), admin=True)['items'][0]['j']
    ns(stack, {'set': {'ns': 'z', 'access': 'rules', 'rules': {'Namespace': {'read': ['anybody'], 'list': ['anybody'], 'update': ['anybody']}}}})
    try:
        for operation in ('get', 'list', 'put', 'find', 'sync', 'ns'):
            for _ in range(4):
                assert stack.request('POST', f'/z/op/{operation}', json={'param': {}}).json()['code'] == 'SCLOSED'
    finally:
        stack.put('z', {'c': 'Namespace', 'id': 'z', 'items': [{'c': 'Conf', 'j': conf}, {'c': 'Rules', 'del': True}]}, admin=True)


def test_an_answer_is_replayed(stack):
    body, headers = {'param': {'set': {'ns': 'demo', 'label': 'once'}}}, {'Idempotency-Key': 'a-key', 'Authorization': f'Bearer {stack.key}'}
    answers = [stack.request('POST', '/z/op/ns', json=body, headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json() and answers[1].headers['Idempotency-Replayed'] == 'true'


def test_what_is_malformed_is_named_and_repaired(stack):
    conf = stack.get('z', ('Namespace', 'demo'), admin=True)['items'][0]['j']
    stack.write_configuration('demo', 'Conf', json.dumps({**conf, 'state': 'off', 'theme': 1, 'mine': [1.5, 'é']}, ensure_ascii=False))
    present = get(stack)
    assert present['malformed'] == 'state' and present['state'] == 2 and 'theme' not in present
    ns(stack, {'set': {'ns': 'demo', 'state': 0}})
    assert get(stack)['malformed'] == 'theme'
    ns(stack, {'set': {'ns': 'demo', 'theme': None}})
    assert 'malformed' not in get(stack)
    assert '"mine":[1.5, ' in stack.psql('z', "select content from item where class = 'Namespace' and id = 'demo' and iclass = 'Conf'")[0][0], 'others stay as written'
    stack.write_configuration('demo', 'Conf', '"text"')
    assert get(stack)['malformed'] == 'all' and refused(stack, {'set': {'ns': 'demo', 'state': 0}}).body['at'] == '/param/set/ns'


def test_stampctl_sees_the_same(stack):
    ns(stack, {'set': {'ns': 'demo', 'state': 1, 'message': 'over HTTP', 'access': 'open'}})
    done = subprocess.run([BUILD / 'src/stampctl', 'ns', 'list', '--json', '--config', stack.path / 'etc/stampd.conf', '--admin-conninfo',
                           stack.conninfo_of_server()], capture_output=True, text=True, check=True)
    row = next(row for row in map(json.loads, done.stdout.splitlines()) if row['code'] == 'demo')
    assert (row['state'], row['message'], row['access']) == ('readonly', 'over HTTP', 'open')
