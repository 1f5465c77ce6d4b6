"""stampctl ns workers and ns records: queues of external workers and rules of records, from a shell."""
import json
import stat

import pytest

from stack import BUILD

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'tools': BUILD}


def configured(stack, member):
    return stack.op('z', 'ns', {'get': 'lab'}, admin=True)['out'].get(member)


def take(stack, key, queue):
    return stack.request('POST', '/lab/op/take', json={'param': {'qn': queue}}, headers={'Authorization': f'Bearer {key}'}).json()


def test_a_queue_is_declared_changed_and_removed(stack):
    file = stack.path / 'images.key'
    stack.admin('ns', 'workers', 'lab', '17', '--ops', 'mail')
    stack.admin('ns', 'workers', 'lab', '16', '--ops', 'resize, crop', '--new-key', file, '--request', 'anybody', '--claim', '90')
    key = file.read_text().strip()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    id_ = stack.op('lab', 'task', {'op': 'resize', 'param': {}})['out']['id']
    assert [task['id'] for task in take(stack, key, 16)['out']['tasks']] == [id_]
    assert 'code' in take(stack, key, 17) and 'code' in take(stack, key[:-1] + 'g', 16)
    listed = [json.loads(line) for line in stack.admin('ns', 'workers', 'lab', '--json').out.splitlines()]
    assert [(one['qn'], one['ops'], one['key'], one['request'], one['claim_s']) for one in listed] == [(17, ['mail'], False, 'nobody', 60), (16, ['resize', 'crop'], True, 'anybody', 90)]
    text = stack.admin('ns', 'workers', 'lab').out
    assert 'resize crop' in text and key not in text and text.count('\n') == 2
    stack.admin('ns', 'workers', 'lab', '16', '--ops', 'resize', '--roles', 'painter', '--retries', '10s..1hx20 ~20')
    other, changed = configured(stack, 'workers')
    assert other == {'qn': 17, 'ops': ['mail']}
    assert (changed['ops'], changed['roles'], changed['request'], changed['claim_s'], changed['retries']) == (['resize'], ['painter'], 'anybody', 90, '10s..1hx20 ~20')
    assert 'out' in take(stack, key, 16), 'the key has stayed'
    stack.admin('ns', 'workers', 'lab', '16', '--new-key', stack.path / 'second.key')
    assert 'code' in take(stack, key, 16) and 'out' in take(stack, (stack.path / 'second.key').read_text().strip(), 16)
    for queue in ('16', '17', '31'):
        stack.admin('ns', 'workers', 'lab', queue, '--none')
    assert configured(stack, 'workers') is None and stack.admin('ns', 'workers', 'lab').out == ''


def test_what_is_wrong_is_said_and_leaves_no_key(stack):
    file = stack.path / 'unused.key'
    for words in (['15', '--ops', 'x'], ['32', '--none'], ['first', '--none'], ['16'], ['16', '--none', '--ops', 'x'], ['--ops', 'x'], ['16', '--ops', 'x', '--json']):
        stack.admin('ns', 'workers', 'lab', *words, status=2)
    for words in (['--request', 'somebody'], ['--ops', 'not!a!name'], ['--retries', 'now and then']):
        error = stack.admin('ns', 'workers', 'lab', '16', *words, '--new-key', file, status=1).error
        assert 'workers: ' in error and not file.exists()
    assert 'there is no such namespace' in stack.admin('ns', 'workers', 'nowhere', '16', '--new-key', file, status=1).error and not file.exists()
    file.write_text('in use')
    assert 'File exists' in stack.admin('ns', 'workers', 'lab', '16', '--new-key', file, status=1).error
    assert file.read_text() == 'in use' and configured(stack, 'workers') is None


def test_rules_of_records_are_set_and_printed(stack):
    rules = [{'prefix': 'here.', 'read': 'anyone', 'write': 'anyone', 'ttl_ms': 30000}]
    stack.admin('ns', 'records', 'lab', json.dumps(rules))
    assert json.loads(stack.admin('ns', 'records', 'lab').out) == configured(stack, 'records') == rules
    set_ = lambda key: stack.request('POST', '/lab/op/record', json={'param': {'commands': [{'do': 'set', 'key': key, 'value': 1}]}}).json()  # noqa: E731
    assert set_('here.a')['out']['results'][0]['state'] == 'OK' and set_('there.a')['code'] == 'SCLOSED'
    assert 'ttl_most_ms' in stack.admin('ns', 'records', 'lab', '[{"prefix": 1}]', status=1).error
    assert 'not both' in stack.admin('ns', 'records', 'lab', '[]', '--none', status=2).error
    stack.admin('ns', 'records', 'lab', '--none')
    assert stack.admin('ns', 'records', 'lab').out == '' and configured(stack, 'records') is None
