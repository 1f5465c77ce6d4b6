"""Hostile rules: each text is refused with its place by the operation `ns` and by stampctl, and changes nothing."""
import json
import subprocess

import pytest

from stack import BUILD

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'}}
GOOD = {'Note': {'read': ['account']}}
SLOT = '§'  # where the hostile value stands

# Where a value may stand, and the kinds of VALUES that are right there.
PLACES = {
    'the whole': ('§', ['{}']),
    'a class': ('{"Note":§}', ['{}']),
    'owner': ('{"Note":{"owner":§}}', []),
    'members': ('{"Note":{"members":§}}', []),
    'team': ('{"Note":{"team":§}}', []),
    'the class of a team': ('{"Note":{"team":{"class":§,"id":"A.b","members":"M"}}}', []),
    'the id of a team': ('{"Note":{"team":{"class":"T","id":§,"members":"M"}}}', []),
    'the members of a team': ('{"Note":{"team":{"class":"T","id":"A.b","members":§}}}', []),
    'read': ('{"Note":{"read":§}}', ['[]']),
    'update': ('{"Note":{"update":§}}', ['[]']),
    'a grant': ('{"Note":{"read":[§]}}', []),
    'a grant of a change': ('{"Note":{"delete":["account",§]}}', []),
    'to': ('{"Note":{"update":[{"to":§,"if":{"unchanged":"A.b"}}]}}', []),
    'if': ('{"Note":{"update":[{"to":"account","if":§}]}}', []),
    'items': ('{"Note":{"items":§}}', ['{}']),
    'an item': ('{"Note":{"items":{"A":§}}}', ['{}']),
    'see': ('{"Note":{"items":{"A":{"see":§}}}}', ['[]']),
    'write': ('{"Note":{"items":{"A":{"write":§}}}}', ['[]']),
}
PARTS = {
    'all': ('{"all":§}', []), 'a part': ('{"any":[{"unchanged":"A.b"},§]}', []), 'not': ('{"not":§}', []),
    'eq': ('{"eq":§}', []), 'an operand': ('{"lt":[1,§]}', ['null', 'true', '-1e999', '""', '"x"']), 'the list of in': ('{"in":[1,§]}', ['[1]']),
    'exists': ('{"exists":§}', []), 'unchanged': ('{"unchanged":§}', []), 'before': ('{"eq":[1,{"before":§}]}', []), 'caller': ('{"eq":[1,{"caller":§}]}', []),
}
VALUES = ['null', 'true', '-1e999', '""', '"x"', '[]', '[1]', '{}', '{"x":1}']
WORDS = ['everyone', 'Anybody', 'anybody ', ' anybody', 'anybody\\n', 'owner:x', 'anybody:x', 'role', 'role:', 'role:a b', 'role:é', 'role:\\u0001', 'role:*',
         'role:' + 'x' * 65, 'members:', 'team:', 'a' * 10000, "role:' or true --", 'аnybody', '*', 'account,anybody', '{"to":"anybody"}']
NAMES = ['note', '1Note', 'No te', 'Note.', 'Nоte', 'N' * 17, '', '*', 'Account', 'Login', 'Ticket', '__proto__', 'Note/1', 'Note\\u000a', '../z', 'x' * 100000]
ITEMS = ['a', 'A.b', 'A' * 17, '', '*', 'A\\n', '1']
MEMBERS = ['', '.', 'A', 'A.', '.b', 'a.b', 'A.b.c', 'A. b', 'A.b\\n', 'A.é', 'A.1', 'P.b', 'A/k.b', 'A.' + 'b' * 65, 'A.$b', 'A.b[0]']


def condition(text):
    return '{"Note":{"update":[{"to":"anybody","if":' + text + '}]}}'


def texts():
    for name, (text, right) in {**PLACES, **{f'condition: {name}': (condition(text), right) for name, (text, right) in PARTS.items()}}.items():
        for value in VALUES:
            if value not in right:
                yield f'{name}: {value}', text.replace(SLOT, value)
    for word in WORDS:
        yield f'grant {word[:30]}', '{"Note":{"read":["' + word.replace('"', '\\"') + '"]}}'
    for name in NAMES:
        yield f'class {name[:30]}', '{"' + name + '":{}}'
    for name in ITEMS:
        yield f'class of items {name}', '{"Note":{"items":{"' + name + '":{}}}}'
    for name in MEMBERS:
        yield f'member {name[:30]}', '{"Note":{"owner":"' + name + '"}}'
    yield from lists()
    yield from sizes()


def lists():
    for name in ('reed', 'Read', 'read ', 'see', 'write', 'grant', 'if', '$ref', '__proto__', ''):
        yield f'member of a class {name}', '{"Note":{"' + name + '":[]}}'
    for name in ('equal', 'EQ', 'or', 'and', 'regex', 'exec', '$where', ''):
        yield f'condition {name}', condition('{"' + name + '":[1,1]}')
    for right in ('read', 'list'):
        yield f'condition in {right}', '{"Note":{"' + right + '":[{"to":"anybody","if":{"unchanged":"A.b"}}]}}'
    for grant in ('owner', 'members', 'members:x', 'team', 'team:x'):
        yield f'undeclared {grant}', '{"Note":{"read":["' + grant + '"]}}'
    for reserved in ('Account', 'Login', 'Ticket'):
        yield f'the team {reserved}', '{"Note":{"team":{"class":"' + reserved + '","id":"A.b","members":"Sess"}}}'
    yield 'two conditions in one', condition('{"eq":[1,1],"ne":[1,1]}')
    yield 'two references in one', condition('{"eq":[1,{"before":"A.b","after":"A.b"}]}')
    yield 'roles as a value', condition('{"eq":[1,{"caller":"roles"}]}')
    yield 'account as a list', condition('{"in":[1,{"caller":"account"}]}')


def sizes():
    yield 'conditions 17 deep', condition('{"not":' * 16 + '{"unchanged":"A.b"}' + '}' * 16)
    yield 'conditions 25 deep', condition('{"all":[' * 25 + '{"unchanged":"A.b"}' + ']}' * 25)
    yield '257 parts', condition('{"any":[' + ','.join(['{"unchanged":"A.b"}'] * 256) + ']}')
    yield '300 operands', condition('{"in":[1,[' + ','.join(['1'] * 300) + ']]}')
    yield '33 grants', '{"Note":{"read":[' + ','.join(['"account"'] * 33) + ']}}'
    yield '257 classes', '{' + ','.join(f'"C{i}":{{}}' for i in range(257)) + '}'
    yield '65 classes of items', '{"Note":{"items":{' + ','.join(f'"C{i}":{{}}' for i in range(65)) + '}}}'
    yield 'a long text', '{"Note":{"read":[]' + ' ' * 262144 + '}}'
    yield 'many values', '{"Note":{"read":[' + ','.join(['0'] * 70000) + ']}}'


CASES = list(texts())


def put(stack, text):
    body = b'{"param":{"set":{"ns":"lab","rules":' + text.encode() + b'}}}'
    return stack.request('POST', '/z/op/ns', form=body, headers={'Content-Type': 'application/json', 'Authorization': f'Bearer {stack.key}'})


@pytest.fixture(scope='module')
def rules(stack):
    return stack.op('z', 'ns', {'set': {'ns': 'lab', 'rules': GOOD}}, admin=True)['out']['v']


def test_there_are_enough():
    assert len(CASES) >= 300 and len({name for name, _ in CASES}) == len(CASES)


@pytest.mark.parametrize('text', [pytest.param(text, id=name) for name, text in CASES if text != 'null'])
def test_a_hostile_text_is_refused_and_changes_nothing(stack, rules, text):
    answer = put(stack, text)
    problem = answer.json()
    assert answer.status_code == 400 and problem['detail'] and len(answer.text) < 20000 + 12 * len(text)
    if problem['code'] == 'ALIMIT':  # of a request, before its rules are read
        assert problem['args'][0] == 'limit_depth'
    else:
        assert problem['code'] == 'AARG' and problem['at'].startswith('/param/set/rules'), problem
    assert stack.op('z', 'ns', {'get': 'lab'}, admin=True)['out']['rules'] == GOOD
    assert stack.op('z', 'ns', {'get': 'lab'}, admin=True)['out']['v'] == rules


# Texts that are no JSON, which the operation does not even see.
BROKEN = [b'', b'{', b'{}}', b'[' * 100000, b'{"Note":{},"Note":{}}', b'{"Note":{"read":[],"r\\u0065ad":[]}}', b'{"Note":{"read":["\\u0000"]}}', b'{"\\ud800":{}}',
          b'{"\xff":{}}', b'\xef\xbb\xbf{}', b'{/**/}', b'{"Note":{},}', b"{'Note':{}}", b'{"Note":undefined}', b'{"Note":NaN}', b'{"Note":{"read":[\x01]}}',
          b'{"Note":' * 5000, b'\0']


@pytest.mark.timeout(180)  # each text is a stampctl of its own
def test_stampctl_refuses_the_same(tmp_path):
    path = tmp_path / 'rules.json'
    for name, text in [*CASES, *((repr(text[:40]), text) for text in BROKEN)]:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        done = subprocess.run([BUILD / 'src/stampctl', 'rules', 'check', path], capture_output=True, check=False)
        assert done.returncode == 1 and not done.stdout and done.stderr.startswith(b'stampctl: '), (name, done.stderr[-2000:])
        assert b'Sanitizer' not in done.stderr and len(done.stderr) < 20000, name


@pytest.mark.parametrize('text', BROKEN, ids=lambda text: repr(text[:30]))
def test_what_is_no_json_is_refused(stack, rules, text):
    body = b'{"param":{"set":{"ns":"lab","rules":' + text + b'}}}'
    answer = stack.request('POST', '/z/op/ns', form=body, headers={'Content-Type': 'application/json', 'Authorization': f'Bearer {stack.key}'})
    assert answer.status_code == 400 and answer.json()['code'] in ('AJSON', 'AUTF8', 'ALIMIT', 'AARG')
    assert stack.op('z', 'ns', {'get': 'lab'}, admin=True)['out']['v'] == rules


def test_the_server_is_as_it_was(stack, rules):
    assert stack.ping('lab').status_code == 200 and rules
    assert not [line for line in stack.log('stampd').splitlines() if 'crash' in line or 'Sanitizer' in line]
