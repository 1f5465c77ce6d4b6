"""Access rules: `stampctl rules`, and the examples of the pages: every text is read, every table of cases is run."""
import json
import re
import subprocess

import pytest

from stack import BUILD, SOURCE, Problem, stampctl, wait_until

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'}}
BLOCK = re.compile(r'^```json (rules|cases)\n(.*?)^```$', re.M | re.S)
PAGES = sorted(str(path.relative_to(SOURCE)) for path in (SOURCE / 'doc').rglob('*.md') if BLOCK.search(path.read_text()))


def run(*words):
    return subprocess.run([BUILD / 'src/stampctl', 'rules', *map(str, words)], capture_output=True, text=True, check=False)


def write(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


# --- pages ---

def blocks(page):
    """Rules, and tables with the rules above them."""
    rules = None
    for match in BLOCK.finditer((SOURCE / page).read_text()):
        rules = match[2] if match[1] == 'rules' else rules
        yield match[1], match[2], rules


def test_there_are_pages():
    assert 'doc/reference/rules.md' in PAGES


@pytest.mark.parametrize('page', PAGES)
def test_the_examples_of_a_page(page, tmp_path):
    kinds = []
    for kind, text, rules in blocks(page):
        kinds.append(kind)
        done = run('check', write(tmp_path / 'rules', rules)) if kind == 'rules' else run('test', write(tmp_path / 'cases', text), '--rules', tmp_path / 'rules')
        assert done.returncode == 0, f'{page}: {text[:200]}\n{done.stdout}{done.stderr}'
    assert kinds.count('rules') == kinds.count('cases')


@pytest.mark.parametrize('page', PAGES)
def test_each_case_of_a_page_can_fail(page, tmp_path):
    """With the other expectation each case fails, and no other."""
    for kind, text, rules in blocks(page):
        if kind != 'cases':
            continue
        table, path = json.loads(text), write(tmp_path / 'rules', rules)
        for number, case in enumerate(table['cases']):
            case['expected'] = not case['expected']
            done = run('test', '--json', write(tmp_path / 'cases', table), '--rules', path)
            assert done.returncode == 1 and [json.loads(line)['case'] for line in done.stdout.splitlines()] == [number], done.stderr
            case['expected'] = not case['expected']


# --- the command, without a server ---

RULES = {'Note': {'owner': 'Info.owner', 'members': 'Share', 'read': ['owner', 'members'], 'update': ['owner', 'members:writer'],
                  'items': {'Secret': {'see': ['owner']}}}}
NOTE = {'c': 'Note', 'id': '1', 'items': [{'c': 'Info', 'j': {'owner': 'ann'}}, {'c': 'Share', 'k': 'bob', 'j': {}}, {'c': 'Secret', 's': 'x'}]}
CASE = {'caller': {'account': 'bob'}, 'may': 'read', 'document': 'Note/1', 'expected': True}


def table(*cases, **more):
    return {'rules': RULES, 'documents': [NOTE], 'cases': [{**CASE, **case} for case in cases], **more}


def test_a_case_that_fails_is_printed_with_the_rule(tmp_path):
    path = write(tmp_path / 't.json', table({}, {'expected': False, 'name': 'of a member'}, {'may': 'update'}, {'may': 'see', 'item': 'Secret'},
                                            {'may': 'list', 'caller': {}}))
    done = run('test', path)
    assert done.returncode == 1 and done.stdout.splitlines() == [
        f'{path}: cases[1] (of a member): bob may read Note/1: allowed by Note.read[1], expected refused',
        f'{path}: cases[2]: bob may update Note/1: refused by Note.update, expected allowed',
        f'{path}: cases[3]: bob may see Note/1 Secret: refused by Note.items.Secret.see, expected allowed',
        f'{path}: cases[4]: nobody may list Note/1: refused by Note.list, expected allowed',
        f'{path}: 5 cases, 4 failed']
    done = run('test', path, '--all', '--json')
    assert [json.loads(line)['rule'] for line in done.stdout.splitlines()] == ['Note.read[1]', 'Note.read[1]', 'Note.update', 'Note.items.Secret.see', 'Note.list']
    done = run('test', write(path, table({})))
    assert (done.returncode, done.stdout) == (0, f'{path}: 1 cases, 0 failed\n')


@pytest.mark.parametrize('changed, at', [
    ({'rules': {'Note': {'reed': []}}}, 'rules: Note.reed'), ({'rules': None}, 'rules'), ({'case': []}, 'did you mean "cases"'), ({'cases': {}}, 'cases: A list'),
    ({'documents': {}}, 'documents: A list'), ({'documents': [{'c': 'note', 'id': '1'}]}, 'documents[0]: The member c'),
    ({'documents': [{'c': 'Note'}]}, 'documents[0]: The member id'), ({'documents': [{**NOTE, 'items': [{'c': 'A'}]}]}, 'documents[0].items[0]: One of j'),
    ({'documents': [{**NOTE, 'items': [{'c': 'A', 'j': 1, 's': ''}]}]}, 'documents[0].items[0]: One of j'),
    ({'documents': [{**NOTE, 'items': [{'c': 'A', 'j': 1}, {'c': 'A', 'j': 2}]}]}, 'documents[0]: The item A'),
    ({'documents': [{**NOTE, 'items': [{'c': 'A', 'k': '', 'j': 1}]}]}, 'documents[0].items[0]: The member k'),
    ({'documents': [{**NOTE, 'item': []}]}, 'documents[0]: Unknown member'), ({'documents': [1]}, 'documents[0]: An object'),
    ({'cases': [1]}, 'cases[0]: An object'), ({'cases': [{**CASE, 'may': 'look'}]}, 'cases[0].may'), ({'cases': [{**CASE, 'expected': 1}]}, 'cases[0].expected'),
    ({'cases': [{**CASE, 'item': 'Secret'}]}, 'cases[0].item'), ({'cases': [{**CASE, 'may': 'see'}]}, 'cases[0].item'),
    ({'cases': [{**CASE, 'document': 'Note/2'}]}, 'cases[0].document'), ({'cases': [{**CASE, 'document': 'Note'}]}, 'cases[0].document'),
    ({'cases': [{**CASE, 'document': None}]}, 'cases[0].document'), ({'cases': [{**CASE, 'after': NOTE}]}, 'cases[0].after'),
    ({'cases': [{**CASE, 'may': 'update', 'after': {'c': 'Note', 'id': '2'}}]}, 'cases[0].after'), ({'cases': [{**CASE, 'caller': 'bob'}]}, 'cases[0].caller'),
    ({'cases': [{**CASE, 'caller': {'account': ''}}]}, 'cases[0].caller.account'), ({'cases': [{**CASE, 'caller': {'roles': 'a'}}]}, 'cases[0].caller.roles'),
    ({'cases': [{**CASE, 'caller': {'roles': ['a b']}}]}, 'cases[0].caller.roles'), ({'cases': [{**CASE, 'caller': {'role': 'a'}}]}, 'did you mean "roles"'),
    ({'cases': [{**CASE, 'name': 1}]}, 'cases[0].name'), ({'cases': [{key: CASE[key] for key in CASE if key != 'document'}]}, 'cases[0].document')])
def test_a_wrong_table_is_refused_with_the_place(tmp_path, changed, at):
    path = write(tmp_path / 't.json', {key: value for key, value in table({}, **changed).items() if value is not None})
    done = run('test', path)
    assert done.returncode == 1 and not done.stdout and done.stderr.startswith(f'stampctl: {path}') and at in done.stderr and done.stderr.count('\n') == 1


@pytest.mark.parametrize('text', ['', '{', '[]', 'null', '{"rules":{},"rules":{}}', '[' * 100000, '{"cases":' + '[' * 1000])
def test_a_file_that_is_no_table(tmp_path, text):
    done = run('test', write(tmp_path / 't.json', text))
    assert done.returncode == 1 and done.stderr.count('\n') == 1


def test_a_file_is_checked(tmp_path):
    done = run('check', write(tmp_path / 'r.json', RULES))
    assert (done.returncode, done.stdout) == (0, f'{tmp_path}/r.json: 1 classes\n')
    done = run('check', write(tmp_path / 'r.json', {'Note': {'update': [{'to': 'owner', 'if': {'eq': [1]}}], 'owner': 'A.b'}}))
    assert (done.returncode, done.stderr) == (1, f'stampctl: {tmp_path}/r.json: Note.update[0].if.eq: A list of two operands is expected.\n')
    assert run('check', tmp_path / 'none.json').returncode == 1
    ending = {'Z': {'owner': 'A.b', 'on_owner_deleted': 'delete'}, 'B': {'owner': 'A.b', 'on_owner_deleted': 'delete'}, 'K': {'owner': 'A.b', 'members': 'M'}}
    done = run('check', write(tmp_path / 'r.json', ending))
    assert done.returncode == 0 and done.stdout.splitlines()[1:] == [
        f'{tmp_path}/r.json: {name}: documents are deleted with the account of their owner' for name in 'BZ']


# --- with the schema ---

OTHERWISE = {
    'Note': {'owner': 'Info.owner', 'members': 'Member', 'team': {'class': 'Team', 'id': 'Info.team', 'members': 'Main'}, 'read': ['owner'],
             'update': [{'to': 'owner', 'if': {'not': {'in': [{'before': 'Line.a'}, ['x', {'after': 'None.a'}]]}}}],
             'items': {'Gone': {'see': ['owner']}, 'Raw': {'write': [{'to': 'owner', 'if': {'exists': {'after': 'Raw.a'}}}]}}},
    'Free': {'owner': 'Any.owner', 'members': 'Main'}, 'Absent': {'owner': 'Info.owner', 'members': 'Member', 'read': ['owner']},
    'Far': {'team': {'class': 'Nowhere', 'id': 'Main.team', 'members': 'Member'}},
}
DECLARED = {'classes': {
    'Note': {'items': {'Info': {}, 'Member': {'singleton': True}, 'Line': {}, 'Raw': {'singleton': True, 'raw': True}}},
    'Team': {'items': {'Main': {'singleton': True}}}, 'Free': {'open': True, 'items': {'Main': {'singleton': True}}}, 'Far': {'items': {'Main': {'singleton': True}}}}}
WARNINGS = [
    'Absent: The schema does not declare documents Absent.',
    'Far.team.class: The schema does not declare documents Nowhere.',
    'Free.members: The schema declares items Main of documents Free as a singleton; a list is expected.',
    'Note.owner: The schema declares items Info of documents Note as a list; a singleton is expected.',
    'Note.members: The schema declares items Member of documents Note as a singleton; a list is expected.',
    'Note.team.id: The schema declares items Info of documents Note as a list; a singleton is expected.',
    'Note.team.members: The schema declares items Main of documents Team as a singleton; a list is expected.',
    'Note.update[0]: The schema declares items Line of documents Note as a list; a singleton is expected.',
    'Note.update[0]: The schema does not declare items None of documents Note.',
    'Note.items.Gone: The schema does not declare items Gone of documents Note.',
    'Note.items.Raw.write[0]: The schema declares items Raw of documents Note as raw; JSON is expected.',
]


def test_rules_are_compared_with_a_schema(tmp_path):
    rules, schema = write(tmp_path / 'r.json', OTHERWISE), write(tmp_path / 's.json', DECLARED)
    done = run('check', rules, '--schema', schema)
    assert (done.returncode, done.stdout.splitlines()) == (1, [f'{rules}: 4 classes', *(f'{rules}: {one}' for one in WARNINGS)])
    done = stampctl('schema', 'check', schema, '--rules', rules, status=1)
    assert done.out.splitlines() == [f'{schema}: 4 classes', *(f'{rules}: {one}' for one in WARNINGS)]


def test_rules_that_agree_with_a_schema(tmp_path):
    rules = write(tmp_path / 'r.json', {'Note': {'owner': 'Info.owner', 'members': 'Member', 'read': ['owner'], 'items': {'Info': {'see': ['owner']}}}})
    schema = write(tmp_path / 's.json', {'classes': {'Note': {'items': {'Info': {'singleton': True}, 'Member': {}}}}})
    assert run('check', rules, '--schema', schema).returncode == 0 and stampctl('schema', 'check', schema, '--rules', rules)
    assert run('check', rules, '--schema', tmp_path / 'none.json').returncode == run('check', rules, '--schema', rules).returncode == 1


def test_a_namespace_with_both_is_warned_about(stack, tmp_path):
    """Whichever comes first; both are set."""
    rules, schema = write(tmp_path / 'r.json', OTHERWISE), write(tmp_path / 's.json', DECLARED)
    where = ['--config', stack.path / 'etc/stampd.conf', '--admin-conninfo', stack.conninfo_of_server()]
    try:
        assert of(stack, 'set', 'lab', rules).out == ''
        assert stampctl('schema', 'set', 'lab', schema, *where).out.splitlines()[1:] == [f'warning: rules of lab: {one}' for one in WARNINGS]
        assert of(stack, 'set', 'lab', rules).out.splitlines() == [f'warning: lab: {one}' for one in WARNINGS]
        assert json.loads(of(stack, 'show', 'lab').out) == OTHERWISE
        changed = {'param': {'set': {'ns': 'lab', 'rules': {**OTHERWISE, 'Free': {}}}}}
        answers = [stack.http.post(f'{stack.url}/z/op/ns', json=changed, headers={'Authorization': f'Bearer {stack.key}', 'Idempotency-Key': 'warned'}, timeout=60).json()['out']
                   for _ in range(2)]
        assert answers[0]['warnings'] == [one for one in WARNINGS if not one.startswith('Free.')] and answers[1] == answers[0]
        assert answers[0]['v'] == stack.op('z', 'ns', {'get': 'lab'}, admin=True)['out']['v']
        assert set(stack.op('z', 'ns', {'set': {'ns': 'lab', 'label': 'Laboratory'}}, admin=True)['out']) == {'v'}
        assert set(stack.op('z', 'ns', {'set': {'ns': 'lab', 'rules': {}}}, admin=True)['out']) == {'v'}
    finally:
        of(stack, 'set', 'lab', '--none')
        stampctl('schema', 'set', 'lab', write(tmp_path / 'e.json', {'classes': {}}), *where)


# --- the command, in a namespace ---

def of(stack, *words, status=0):
    where = ['--config', stack.path / 'etc/stampd.conf', '--admin-conninfo', stack.conninfo_of_server()]
    return stampctl('rules', *words, *where, status=status)


def test_rules_are_set_shown_and_removed(stack, tmp_path):
    path = write(tmp_path / 'r.json', json.dumps(RULES, indent=1) + '\n')
    assert of(stack, 'show', 'lab', status=1).error == 'stampctl: lab: the namespace has no rules\n'
    of(stack, 'set', 'lab', path)
    assert of(stack, 'show', 'lab').out == path.read_text(), 'as they were set'
    assert stack.op('z', 'ns', {'get': 'lab'}, admin=True)['out']['rules'] == RULES
    wrong = of(stack, 'set', 'lab', write(tmp_path / 'w.json', {'Note': {'reed': []}}), status=1)
    assert 'Note.reed: Unknown member "reed"; did you mean "read"?' in wrong.error and json.loads(of(stack, 'show', 'lab').out) == RULES
    for words, status in ((['set', 'nowhere', path], 1), (['show', 'nowhere'], 1), (['set', 'lab'], 2), (['set', 'lab', path, '--none'], 2)):
        assert of(stack, *words, status=status).error.count('\n') == 1
    of(stack, 'set', 'lab', '--none')
    of(stack, 'show', 'lab', status=1)


def test_what_is_set_applies_at_once(stack, tmp_path):
    """To every worker, and also when only the rules change."""
    stack.put('lab', {**NOTE, 'id': 'at once'}, admin=True)
    stack.admin('ns', 'access', 'lab', 'rules')

    def answers():
        found = set()
        for _ in range(8):
            try:
                found.add(stack.op('lab', 'get', {'docs': [{'c': 'Note', 'id': 'at once'}]})['out']['docs'][0]['v'] > 0)
            except Problem as problem:
                found.add(problem.code)
        return found
    try:
        closed = answers()
        assert len(closed) == 1 and True not in closed
        for readers, expected in ((['anybody'], {True}), (['account'], closed), (['role:x', 'anybody'], {True}), ([], closed)):
            of(stack, 'set', 'lab', write(tmp_path / 'r.json', {'Note': {'read': readers}}))
            wait_until(lambda expected=expected: answers() == expected, what=f'the readers {readers}')
    finally:
        stack.admin('ns', 'access', 'lab', 'open')
        of(stack, 'set', 'lab', '--none')


def test_a_request_is_explained(stack, tmp_path):
    rules = {**RULES, 'Own': {'owner': 'Info.owner', 'on_owner_deleted': 'delete'}, 'Plan': {'team': {'class': 'Team', 'id': 'Info.team', 'members': 'Member'}, 'read': ['team:chief'], 'update': ['team'],
                               'create': [{'to': 'role:planner', 'if': {'eq': [{'after': 'Info.team'}, 'red']}}]}}
    of(stack, 'set', 'lab', write(tmp_path / 'r.json', rules))
    plan = {'c': 'Plan', 'id': 'p', 'items': [{'c': 'Info', 'j': {'team': 'red'}}]}
    stack.put('lab', NOTE, plan, {'c': 'Team', 'id': 'red', 'items': [{'c': 'Member', 'k': 'ann', 'j': {'role': 'chief'}}, {'c': 'Member', 'k': 'bob', 'j': {}}]},
              {'c': 'Note', 'id': 'gone', 'delete': True})

    def explain(*words, **more):
        return json.loads(of(stack, 'explain', 'lab', *words, '--json', **more).out)
    assert explain('Note/1', 'read', '--account', 'ann') == {'allowed': True, 'rule': 'Note.read[0]', 'exists': True, 'hidden': []}
    assert explain('Note/1', 'read', '--account', 'bob') == {'allowed': True, 'rule': 'Note.read[1]', 'exists': True, 'hidden': ['Secret']}
    assert explain('Note/1', 'read') == {'allowed': False, 'rule': 'Note.read', 'exists': True, 'hidden': []}
    assert explain('Note/gone', 'read', '--account', 'ann')['exists'] is False
    assert explain('Other/1', 'read', '--account', 'ann')['rule'] == ''
    assert explain('Plan/p', 'read', '--account', 'ann')['allowed'] and not explain('Plan/p', 'read', '--account', 'bob')['allowed']
    assert explain('Plan/p', 'update', '--account', 'ann')['rule'] == 'Plan.update[0]'
    assert explain('Note/1', 'see', '--item', 'Secret', '--account', 'bob')['rule'] == 'Note.items.Secret.see'
    after = write(tmp_path / 'after.json', {**plan, 'id': 'new'})
    assert explain('Plan/new', 'create', '--account', 'x', '--role', 'planner', '--after', after)['allowed']
    assert explain('Plan/new', 'create', '--account', 'x', '--role', 'other', '--after', after)['rule'] == 'Plan.create'
    assert of(stack, 'explain', 'lab', 'Note/1', 'read', '--account', 'bob').out == 'allowed by Note.read[1]\nhidden: Secret\n'
    assert explain('Own/1', 'read')['on_owner_deleted'] == 'delete'
    assert of(stack, 'explain', 'lab', 'Own/1', 'read').out.splitlines()[1:] == ['deleted with the account of its owner']
    assert of(stack, 'explain', 'lab', 'Note/gone', 'list').out == 'refused by no rule of the class (the document does not exist)\n'
    for words in (['Note', 'read'], ['Note/1', 'look'], ['Note/1', 'see'], ['Note/1', 'read', '--item', 'A'], ['Plan/new', 'create'],
                  ['Note/1', 'read', '--role', 'a']):
        assert of(stack, 'explain', 'lab', *words, status=2).error.count('\n') == 1
    of(stack, 'set', 'lab', '--none')
