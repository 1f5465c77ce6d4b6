"""Records from modules (stampd_record.h): the same ones as those of the operation `record`, the limits, and a worker that dies inside
of a change."""
import concurrent.futures
import re
import shutil
import time

import pytest

import journal_world
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


def test_stamps_and_what_is_in_the_way(stack):
    assert state(stack, 'put', 'swap', integer=1, there=True) == 'NOT_FOUND'
    first = run(stack, 'put', 'swap', integer=1)
    assert first['state'] == 'OK' and first['stamp'] == run(stack, 'get', 'swap')['stamp'] == int(beside(stack, 'get', 'swap')['stamp'], 16)
    second = run(stack, 'put', 'swap', integer=2, there=True)
    assert second['state'] == 'OK' and second['stamp'] != first['stamp']
    refused_put = run(stack, 'put', 'swap', integer=3, stamp=first['stamp'])
    assert (refused_put['state'], refused_put['integer'], refused_put['stamp']) == ('OTHER_STAMP', 2, second['stamp'])
    refused_put = run(stack, 'put', 'swap', integer=3, absent=True)
    assert (refused_put['state'], refused_put['integer'], refused_put['stamp']) == ('NOT_FREE', 2, second['stamp'])
    assert state(stack, 'add', 'swap', integer=1, stamp=first['stamp']) == 'OTHER_STAMP'
    assert state(stack, 'set', 'swap', integer=4, stamp=second['stamp']) == 'OK'
    refused('BMODULE', run, stack, 'put', 'swap', integer=3, stamp=1, absent=True)


def test_a_module_stores_as_its_caller(stack):
    rules = [{'prefix': 'for.', 'write': 'anyone', 'records': 2, 'ttl_ms': 60000, 'ttl_most_ms': 600000}]
    stack.op('z', 'ns', {'set': {'ns': 'lab', 'records': rules}}, admin=True)
    try:
        for number, wanted in enumerate(('OK', 'OK', 'OUT_OF_SHARE')):
            assert state(stack, 'set', f'for.{number}', integer=1, for_caller=True) == wanted
        ends = [run(stack, 'get', f'for.{number}')['expires_ms'] for number in range(2)]
        assert all(0 < end < time.time() * 1000 + 300000 for end in ends)
        assert state(stack, 'set', 'for.2', integer=1) == 'OK' and run(stack, 'get', 'for.2')['expires_ms'] == 0
        assert run(stack, 'put', 'for.1', integer=1, for_caller=True, ttl_ms=3600000)['expires_ms'] < time.time() * 1000 + 900000
        assert run(stack, 'put', 'for.1', integer=1, for_caller=True, touch_s=3600)['touch_s'] == 600
        refused('SCLOSED', run, stack, 'set', 'other', integer=1, for_caller=True)
        for number in range(3, 6):  # the administrator has no share
            assert stack.op('lab', 'Record', {'do': 'set', 'key': f'for.{number}', 'integer': 1, 'for_caller': True}, admin=True)['out']['state'] == 'OK'
    finally:
        stack.op('z', 'ns', {'set': {'ns': 'lab', 'records': None}}, admin=True)


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


def test_what_the_operation_does_modules_do_too(stack):
    assert run(stack, 'add_number', 'half', halves=3)['halves'] == 3 and run(stack, 'add_number', 'half', halves=2)['halves'] == 5
    assert beside(stack, 'get', 'half')['value'] == 2.5
    assert state(stack, 'add', 'half', integer=1) == 'WRONG_TYPE' and state(stack, 'add_number', 'absent', halves=1, there=True) == 'NOT_FOUND'
    refused('BMODULE', run, stack, 'add_number', 'half', halves=2**63 - 1)  # an infinity
    state(stack, 'set', 'flag', other=3)
    assert run(stack, 'not', 'flag')['boolean'] is False and run(stack, 'not', 'flag')['boolean'] is True
    assert beside(stack, 'get', 'flag')['value'] is True and state(stack, 'not', 'half') == 'WRONG_TYPE'
    state(stack, 'set', 'cut', text='h\u00e9y')
    assert [state(stack, 'truncate', 'cut', integer=size) for size in (3, 2, 9)] == ['OK', 'OUT_OF_RANGE', 'OUT_OF_RANGE']
    assert run(stack, 'get', 'cut')['text'] == 'h\u00e9'
    state(stack, 'set', 'grown', text='a', buffer=True)
    assert state(stack, 'truncate', 'grown', integer=3) == 'OK' and beside(stack, 'get', 'grown')['value'] == {'buffer': 'YQAA'}
    refused('ALIMIT', run, stack, 'truncate', 'grown', integer=100001)
    refused('ALIMIT', run, stack, 'truncate', 'grown', integer=-1)
    assert state(stack, 'rename', 'cut', to='grown') == 'NOT_FREE' and state(stack, 'rename', 'cut', to='moved') == 'OK'
    assert state(stack, 'get', 'cut') == 'NOT_FOUND' and state(stack, 'rename', 'moved', to='grown', overwrite=True) == 'OK'
    assert beside(stack, 'get', 'grown')['value'] == 'h\u00e9'
    refused('BMODULE', run, stack, 'rename', 'grown', to='')
    state(stack, 'lock', 'flag', owner='me')
    for do, more in (('not', {}), ('truncate', {'integer': 0}), ('rename', {'to': 'other'}), ('add_number', {'halves': 1})):
        assert state(stack, do, 'flag', **more) == 'LOCKED' and state(stack, do, 'flag', owner='you', **more) == 'LOCKED'
    assert state(stack, 'not', 'flag', owner='me') == 'OK' and state(stack, 'rename', 'flag', owner='me', to='other') == 'OK'


def test_marks_of_what_is_worked_on(stack):
    state(stack, 'set', 'job', integer=7)
    assert run(stack, 'work', 'job')['integer'] == 7 and state(stack, 'work', 'job') == 'WORKED_ON'
    assert beside(stack, 'get', 'job', idle=True)['state'] == 'WORKED_ON' and run(stack, 'get', 'job')['integer'] == 7
    assert state(stack, 'work', 'no.job') == 'NOT_FOUND'
    assert beside(stack, 'set', 'brief.job', value=1)['state'] == 'OK' and state(stack, 'work', 'brief.job', work_ms=1) == 'OK'
    wait_until(lambda: state(stack, 'work', 'brief.job') == 'OK', what='the end of a mark')
    for work_ms in (0, -1, 604800001):
        refused('BMODULE', run, stack, 'work', 'job', work_ms=work_ms)
    refused('BREADONLY', run, stack, 'work', 'brief.job', name='LookAtRecord')


def test_the_next_key(stack):
    def keys(**param):
        return stack.op('demo', 'ListRecords', param)['out']
    for i in (3, 1, 2):
        state(stack, 'set', f'list.{i}', integer=i, ns='demo')
    state(stack, 'set', 'lisp', integer=40, ns='demo')
    state(stack, 'set', 'list/', integer=50, ns='demo')
    assert keys(prefix='list.') == {'keys': ['list.1', 'list.2', 'list.3'], 'state': 'NOT_FOUND', 'sum': 6}
    assert keys(prefix='list.', after='list.1')['sum'] == 5 and keys(prefix='list.', after='a')['sum'] == 6
    assert keys(prefix='list.', after='list/')['keys'] == [] and keys(prefix='none')['keys'] == []
    everything = keys()['keys']
    assert everything == sorted(everything) and set(everything) >= {'lisp', 'list.1', 'list/'}
    for i in range(600):  # deletions that are remembered are passed, in steps
        state(stack, 'set', f'list.2{i:03}', integer=1, ns='demo')
        state(stack, 'delete', f'list.2{i:03}', ns='demo')
    assert keys(prefix='list.')['keys'] == ['list.1', 'list.2', 'list.3'] and keys(prefix='list.2', after='list.2')['keys'] == []
    refused('BMODULE', keys, prefix='x' * 1025)
    refused('BMODULE', keys, after='')


def changes(stack, ns='lab', **param):
    return stack.op(ns, 'ListChanges', param)['out']


def test_what_has_changed(stack):
    begun = changes(stack, prefix='ch.')
    assert (begun['keys'], begun['state']) == ([], 'NOT_FOUND')
    state(stack, 'set', 'ch.1', integer=1)
    beside(stack, 'set', 'ch.2', value=1)
    state(stack, 'set', 'unlike', integer=1)
    state(stack, 'set', 'ch.3', integer=1, ns='demo')
    state(stack, 'delete', 'ch.1')
    found = changes(stack, prefix='ch.', since=begun['position'])
    assert (found['keys'], found['state']) == (['ch.1', 'ch.2', 'ch.1'], 'NOT_FOUND')
    assert changes(stack, since=found['position'])['keys'] == []
    assert changes(stack, since=begun['position'])['keys'] == ['ch.1', 'ch.2', 'unlike', 'ch.1']
    command = {'do': 'listen', 'since': begun['position']}  # a position is one of the operation too
    assert stack.op('lab', 'record', {'commands': [command]}, admin=True)['out']['results'][0]['keys'] == ['ch.1', 'ch.2', 'unlike']
    for since in ('', 'x', changes(stack, ns='demo')['position']):
        lost = changes(stack, since=since)
        assert (lost['keys'], lost['state']) == ([], 'LOST') and changes(stack, since=lost['position'])['state'] == 'NOT_FOUND'
    for key in range(300):
        state(stack, 'set', f'{key % 100}'.ljust(1000, '.'), integer=1)
    assert changes(stack, since=found['position'])['state'] == 'LOST'
    refused('BMODULE', changes, stack, prefix='x' * 1025)


def test_a_module_waits_for_a_change(stack):
    position, found = changes(stack, prefix='wait.')['position'], []
    with concurrent.futures.ThreadPoolExecutor() as pool:
        while not found:  # a wait gives way to other requests: then the client comes again
            waiting = pool.submit(changes, stack, prefix='wait.', since=position, wait_ms=60000)
            beside(stack, 'set', 'wait.1', value=1, overwrite=True)
            found = waiting.result()['keys']
    assert set(found) == {'wait.1'}
    stack.set(record_wait_s=1)
    position = changes(stack, prefix='wait.')['position']
    assert changes(stack, prefix='wait.', since=position, wait_ms=10**9)['state'] == 'NOT_FOUND'
    assert changes(stack, prefix='wait.', since=position, wait_ms=-1)['state'] == 'NOT_FOUND'


def test_changes_through_stamp_journal(stack):
    position = changes(stack)['position']
    listening = {'commands': [{'do': 'listen', 'since': position}]}
    with journal_world.beside(stack) as journal:
        client = journal_world.Client(journal.socket)
        for do, more in ((journal_world.SET, [journal_world.text('x')]), (journal_world.DELETE, [])):
            assert client.error(do, 'far', *more) == ''
            assert stack.op('lab', 'record', listening, admin=True)['out']['results'][0]['keys'] == ['far']
            found = changes(stack, since=position)
            assert (found['keys'], found['state']) == (['far'], 'NOT_FOUND')
            listening['commands'][0]['since'] = position = found['position']
        client.socket.close()


def test_a_get_moves_the_end_by_touch_s(stack):
    assert state(stack, 'set', 'touched', integer=1, ttl_ms=60000, touch_s=3600) == 'OK'
    assert beside(stack, 'get', 'touched', probe=True)['expires_ms'] < time.time() * 1000 + 100000
    found = run(stack, 'get', 'touched')
    assert found['touch_s'] == 3600 and found['expires_ms'] > time.time() * 1000 + 3000000
    for touch_s in (-1, 315360001):
        refused('BMODULE', run, stack, 'set', 'touched', touch_s=touch_s)


def test_a_filter_has_no_records(stack):
    state(stack, 'set', 'seen', integer=5)
    stack.put('lab', {'c': 'Looked', 'id': 'a', 'items': [{'c': 'Main', 'j': 1}]}, admin=True)
    size = len(stack.log())
    assert not stack.get('lab', ('Looked', 'a')).get('items')
    assert stack.get('lab', ('Looked', 'a'), admin=True)['items']
    wait_until(lambda: 'A filter has no records.' in stack.log()[size:], what='the reason in the log')


def test_a_host_without_records(stack):
    stack.set(records_mb=0)
    try:
        for do in ('get', 'set', 'work'):
            refused('ORECORDS', run, stack, do, 'any')
        refused('ORECORDS', stack.op, 'lab', 'ListRecords', {})
    finally:
        stack.set(records_mb=4)
    assert state(stack, 'set', 'any', integer=1) == 'OK'
