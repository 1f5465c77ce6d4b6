"""Records from modules (stampd_record.h): the same ones as those of the operation `record`, the limits, and a worker that dies inside
of a change."""
import re
import shutil
import time

import pytest

from kit import Kit
from stack import BUILD, SOURCE, refused, wait_until

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', 'demo': 'open'}, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': str(kit.build('record.c')), 'restart_young_ms': 0, 'records_mb': 4, 'limit_namespace_records_mb': 1,
                         'limit_content_bytes': 100000, 'limit_client_requests': 0, 'limit_client_connections': 0}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


def run(stack, do, key=None, name='Record', ns='lab', **more):
    return stack.op(ns, name, {'do': do, **({} if key is None else {'key': key}), **more})['out']


def state(*words, **more):
    return run(*words, **more)['state']


def beside(stack, do, key, **more):
    """By the operation `record`."""
    return stack.op('lab', 'record', {'commands': [{'do': do, 'key': key, **more}]}, admin=True)['out']['results'][0]


def test_each_type_is_that_of_the_operation_too(stack):
    for asked, value in (({'text': 'h\u00e9'}, 'h\u00e9'), ({'integer': -2**63}, -2**63), ({'text': 'hey', 'buffer': True}, {'buffer': 'aGV5'}),
                         ({'other': 1}, None), ({'other': 2}, 0.5), ({'other': 3}, True), ({'text': ''}, '')):
        assert state(stack, 'set', 'typed', **asked) == 'OK'
        assert beside(stack, 'get', 'typed')['value'] == value
        found = run(stack, 'get', 'typed')
        assert (found['text'], found['integer']) == (asked.get('text', ''), asked.get('integer', 0))
        assert (found['half'], found['boolean']) == (value == 0.5 and value is not True, value is True)
    beside(stack, 'set', 'theirs', value='from outside')
    assert run(stack, 'get', 'theirs')['text'] == 'from outside'
    assert state(stack, 'get', 'theirs', ns='demo') == 'NOT_FOUND'
    assert state(stack, 'delete', 'theirs') == 'OK'
    assert beside(stack, 'get', 'theirs')['state'] == 'NOT_FOUND'


def test_conditions_ends_and_sums(stack):
    assert state(stack, 'set', 'one', integer=1, absent=True, ttl_ms=3600000) == 'OK'
    assert state(stack, 'set', 'one', integer=2, absent=True) == 'NOT_FREE'
    assert time.time() * 1000 + 3000000 < run(stack, 'get', 'one')['expires_ms'] < time.time() * 1000 + 3700000
    assert run(stack, 'add', 'one', integer=41)['integer'] == 42
    assert state(stack, 'add', 'one', integer=2**63 - 1) == 'OUT_OF_RANGE'
    assert state(stack, 'add', 'none', integer=1, there=True) == 'NOT_FOUND'
    assert run(stack, 'add', 'none', integer=7)['integer'] == 7
    state(stack, 'set', 'text', text='x')
    assert state(stack, 'add', 'text', integer=1) == 'WRONG_TYPE'
    assert state(stack, 'set', 'brief', integer=1, ttl_ms=1) == 'OK'
    wait_until(lambda: state(stack, 'get', 'brief') == 'NOT_FOUND', what='the end of a record')


def test_locks(stack):
    assert state(stack, 'lock', 'door', owner='me') == 'OK'
    assert run(stack, 'get', 'door')['locked_until_ms'] > time.time() * 1000
    assert state(stack, 'lock', 'door', owner='you') == 'LOCKED'
    assert state(stack, 'set', 'door', integer=1) == 'LOCKED'
    assert state(stack, 'delete', 'door', owner='you') == 'LOCKED'
    assert beside(stack, 'delete', 'door')['state'] == 'LOCKED'
    assert state(stack, 'set', 'door', integer=1, owner='me') == 'OK'
    assert state(stack, 'unlock', 'door', owner='me') == 'OK'
    assert state(stack, 'unlock', 'door', owner='me') == 'NOT_LOCKED'
    assert run(stack, 'get', 'door')['integer'] == 1


def test_the_limits_of_the_namespace(stack):
    refused('ALIMIT', run, stack, 'set', 'large', text='x' * 100001)
    states = [state(stack, 'set', f'full.{i}', text='x' * 100000, ns='demo') for i in range(12)]
    assert states.count('OK') == 10 and states[-1] == 'OUT_OF_MEMORY'
    assert state(stack, 'add', 'more', integer=1) == 'OK'  # of another namespace
    for i in range(12):
        state(stack, 'delete', f'full.{i}', ns='demo')
    assert state(stack, 'set', 'again', text='x', ns='demo') == 'OK'


def test_mistakes_fail_the_operation(stack):
    for do, more in (('get', {'key': ''}), ('get', {'key': 'x' * 1025}), ('set', {'key': 'a', 'ttl_ms': -1}), ('set', {'key': 'a', 'other': 4}),
                     ('set', {'key': 'a', 'ttl_ms': 2**62}), ('set', {'key': 'a', 'owner': ''}), ('lock', {'key': 'a'}),
                     ('lock', {'key': 'a', 'owner': 'x' * 65}), ('lock', {'key': 'a', 'owner': 'x', 'lock_ms': 0}),
                     ('lock', {'key': 'a', 'owner': 'x', 'lock_ms': 604800001}), ('unlock', {'key': 'a'}), ('odd', {'key': 'a'})):
        refused('BMODULE', run, stack, do, **more)
    assert state(stack, 'get', 'a') == 'NOT_FOUND'


def test_what_only_reads_changes_no_record(stack):
    state(stack, 'set', 'seen', integer=5)
    assert run(stack, 'get', 'seen', name='LookAtRecord')['integer'] == 5
    for do in ('set', 'add', 'delete', 'lock', 'unlock'):
        refused('BREADONLY', run, stack, do, 'seen', name='LookAtRecord', owner='x')
    assert run(stack, 'get', 'seen')['integer'] == 5


def test_a_change_outlives_the_failure_of_its_operation_and_none_follows(stack):
    refused('AFAILED', stack.op, 'lab', 'ChangeAndFail')
    assert run(stack, 'get', 'failed')['integer'] == 1


@pytest.mark.skipif(b'__asan_init' in (BUILD / 'src/stampd').read_bytes(), reason='the sanitizer watches memory itself')
def test_a_death_within_a_change_harms_nobody(stack):
    state(stack, 'set', 'within', text='whole')
    size = len(stack.log())
    for _ in range(3):
        assert stack.request('POST', '/lab/op/DieWithin', json={}).status_code >= 500
        assert run(stack, 'get', 'within')['text'] == 'whole'
        assert beside(stack, 'set', 'after', value=1, overwrite=True)['state'] == 'OK'
    assert len(re.findall('took back a change of the records', stack.log()[size:])) == 3


def test_the_page_shows_a_module_that_is_one(kit):
    page = (SOURCE / 'doc/reference/modules.md').read_text().split('\n## Records\n')[1]
    source = page.split('```c\n')[1].split('```')[0]
    (kit.path / 'page.c').write_text(source + '''
static const struct stampd_operation operations[] = {{.name = "Visit", .work = visit}, {.name = NULL}};
const struct stampd_module stampd_module = {.abi = STAMPD_ABI, .name = "visits", .operations = operations};
''')
    kit.build(str(kit.path / 'page.c'), 'page')
