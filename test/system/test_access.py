"""What a stranger gets from namespaces that he may not read: every operation that the server has, as `stampctl operations` lists
them, with every argument that returns data.  A new operation falls under this by itself."""
import itertools
import json
import os
import shutil
import signal

import pytest

from kit import Kit
from schema import Schemas
from stack import PATIENCE_S, Problem, comparable, wait_until
from test_live import live_pid

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'shut': 'closed', 'demo': 'read', 'lab': 'open', 'rest': 'open'}, 'settings': {}}
MODES = {'z': 'key', 'shut': 'closed', 'demo': 'read', 'lab': 'open', 'rest': 'off'}
SECRET = 'the-word-that-nobody-else-may-know'
SESSION = 'a-session-of-the-administrator'
SCHEMA = {'Secret': {'open': True, 'items': {'Main': {'singleton': True, 'fields': {'word': 'string'}}},
                     'collections': {'all': {'key': ['Main.team'], 'mutable': True}}}}
SEARCHES = {'words': {'class': 'Secret', 'params': [['id', 'string']], 'result': [['word', 'json']], 'sql': "select value -> 'word' as word from items where class = 'Secret' and id = $1"}}
THERE, NOT_THERE = 'this-id', 'that-id'  # no operation's name has them
SILENT = {'done', 'fail', 'keep', 'owntask', 'schema', 'take', 'warnings', 'pushkey', 'record', 'volumes', 'metrics', 'openapi', 'explain', 'Text', 'GroupReport'}  # no task, declarations and lines of the log, no push key, numbers for administrators alone, no content, no synchronisations, no such group


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': '\n  ' + '\n  '.join(map(str, [kit.build_example(), kit.build('guarded.c')])), 'cache_mb': 16}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def secrets(stack, tmp_path_factory):
    """A document in each namespace, a session that is told of it, and a tenth version of it."""
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    for ns, mode in MODES.items():
        if mode != 'key':
            schemas.apply(ns, SCHEMA, searches=SEARCHES)
        stack.put(ns, {'c': 'Secret', 'id': THERE, 'items': [{'c': 'Main', 'j': {'word': SECRET, 'team': 'all'}}]}, admin=True)
        stack.op(ns, 'subs', {'defs': [f'Secret/{THERE}', 'Secret']}, session=SESSION, admin=True)
    stack.admin('ns', 'off', 'rest', 'at rest')
    wait_until(lambda: stack.request('POST', '/rest/op/get', json={}).json()['code'] == 'OOFF', what='the rest')
    return stack


def listed(stack):
    lines = stack.stampctl('operations').out.splitlines()
    return [dict(zip(('name', 'kind', 'right', 'does', 'grants', 'rules', 'module'), line.split())) for line in lines]


def params(operation, id_):
    """What makes it return data; an operation that is not known here gets everything at once."""
    name = {'c': 'Secret', 'id': id_}
    known = {
        'get': [{'docs': [name]}, {'docs': [{**name, 'age': 60}]}],
        'put': [{'docs': [{**name, 'if': 5}]}, {'docs': [name]}],
        'list': [{'c': 'Secret', 'prefix': id_}, {}],
        'find': [{'c': 'Secret', 'i': 'Main', 'want': want, 'id': {'t': 'eq', 'v1': id_}} for want in ('ids', 'items')],
        'changemany': [{'c': 'Secret', 'i': 'Main', 'id': {'t': 'eq', 'v1': id_}, **act} for act in ({'delete': True}, {'merge': {}})],
        'collection': [{'c': 'Secret', 'collection': 'all', 'value': 'all', 'want': want} for want in ('ids', 'docs')]
        + [{'c': 'Secret', 'collection': 'all', 'value': 'all', 'stream': True}],
        'search': [{'name': 'words', 'args': {'id': id_}}], 'sync': [{}], 'pushkey': [{}], 'record': [{'commands': []}, {'commands': [{'do': 'get'}]}],
        'subs': [{}, {'defs': [f'Secret/{id_}']}],
        'task': [{'op': 'put', 'param': {'docs': [name]}}, {'op': 'Rule'}, {'op': 'NoSuchOperation'}],
        'spool': [{'series': 'ab' * 16, 'records': [{'n': 1, 'd': '0' * 64, 'task': {'op': 'put', 'param': {'docs': [name]}}}]}],
        'tasks': [{'list': {}}, {'backlog': True}], 'volumes': [{}], 'metrics': [{}], 'explain': [name],
        'GroupReport': [{'group': id_}], 'JoinGroup': [{'group': id_, 'asso': id_, 'member': '1', 'title': 'x'}],
    }
    return known.get(operation, [{'docs': [name], 'c': 'Secret', 'class': 'Secret', 'id': id_, 'group': id_, 'asso': id_, 'member': '1'}])


def beside(id_):
    """Arguments that return data whatever the operation."""
    name = {'c': 'Secret', 'id': id_}
    held = {**name, 'v': 261121103000123, 'ct': 261121103000123, 'dt': 261121103000123}
    return [{}, {'syncs': [name]}, {'syncs': [held]}, {'syncs': [name, held]}, {'session': SESSION}, {'syncs': [name], 'session': SESSION}]


def requests_for(ns, operation, id_):
    """(method, path, what `requests` takes) of all ways to ask."""
    if operation['kind'] == 'resource':
        method, path = operation['name'], f'/{ns}/doc/Secret/{id_}'
        body = None if method in ('GET', 'DELETE') else {'items': [{'c': 'Main', 'j': 1}]}
        for headers in ({}, {'If-None-Match': '*'}, {'If-Match': '*'}, {'If-None-Match': '"261121103000123"'}, {'If-Match': '"5"'}):
            yield method, path, {'json': body, 'headers': headers}
        yield 'HEAD', path, {}
        return
    path = f'/{ns}/op/{operation["name"]}'
    for number, (param, more) in enumerate(itertools.product(params(operation['name'], id_), beside(id_))):
        body = {'param': param, **more}
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in body.items()}
        yield 'POST', path, {'json': body}
        yield 'POST', path, {'json': body, 'headers': {'Idempotency-Key': f'{operation["name"]}-{number}-{id_}'}}
        yield 'GET', path, {'params': texts}
        yield 'HEAD', path, {'params': texts}
        yield 'POST', path, {'data': texts}
        yield 'POST', path, {'files': {name: (None, value) for name, value in texts.items()}}


def ask(stack, method, path, how):
    return stack.http.request(method, stack.url + path, timeout=PATIENCE_S, **how)


def masked(answer, id_):
    """What may differ between two answers that disclose nothing."""
    headers = comparable(answer.headers, 'Server-Timing', 'Content-Length')
    return answer.status_code, headers, answer.text.replace(id_, '…')


def may_read(ns):
    return MODES[ns] in ('read', 'open')


def test_the_list_is_of_all_operations(secrets):
    names = {operation['name'] for operation in listed(secrets)}
    assert {'get', 'put', 'ns', 'sync', 'list', 'find', 'search', 'changemany', 'collection', 'subs', 'task', 'tasks', 'push', 'pushkey', 'record', 'copy', 'volumes', 'metrics', 'Hello', 'Look', 'Rule',
            'GroupReport', 'GET', 'PUT', 'PATCH', 'DELETE'} <= names
    for name in names - {'GET', 'PUT', 'PATCH', 'DELETE'}:
        assert secrets.request('POST', f'/lab/op/{name}', json={'param': {}}, admin=True).text.count('NOPERATION') == 0


@pytest.mark.parametrize('ns', [ns for ns in MODES if not may_read(ns)])
def test_nobody_reads_what_is_closed(secrets, ns):
    """No answer holds the content, a version or the time of the document; and none depends on whether it exists."""
    version = str(secrets.get(ns, ('Secret', THERE), admin=True)['v'])
    asked = 0
    for operation in listed(secrets):
        for there, gone in zip(requests_for(ns, operation, THERE), requests_for(ns, operation, NOT_THERE)):
            answers = [ask(secrets, *one) for one in (there, gone)]
            asked += 1
            for answer in answers:
                assert SECRET not in answer.text and version not in answer.text, (there, answer.text)
                assert version not in str(answer.headers), (there, answer.headers)
                assert '"subs":' not in answer.text, (there, answer.text)
            assert masked(answers[0], THERE) == masked(answers[1], NOT_THERE), (there, answers[0].text, answers[1].text)
            if operation['right'] != 'public' and there[0] != 'HEAD':
                assert answers[0].status_code >= 400, (there, answers[0].text)
    assert asked > 300
    assert str(secrets.get(ns, ('Secret', THERE), admin=True)['v']) == version
    assert secrets.get(ns, ('Secret', NOT_THERE), admin=True)['v'] == 0


@pytest.mark.parametrize('ns, bearer', [('demo', {}), ('lab', {}), ('shut', {'admin': True}), ('rest', {'admin': True}), ('z', {'admin': True})])
def test_the_same_requests_return_it_to_those_who_may(secrets, ns, bearer):
    """Else the test above would prove nothing: each operation that reads returns the document by one of its requests."""
    if bearer:
        bearer = {'admin': secrets.key}
    for operation in listed(secrets):
        if operation['kind'] == 'resource' or operation['does'] != 'reads' or operation['name'] in SILENT:
            continue
        if ns == 'z' and operation['name'] in ('find', 'search', 'changemany', 'collection'):
            continue  # no schema there
        texts = []
        for method, path, how in requests_for(ns, operation, THERE):
            if method == 'POST' and 'json' in how and 'headers' not in how:
                texts.append(ask(secrets, method, path, {'json': {**how['json'], **bearer}}).text)
        assert any(SECRET in text for text in texts), (ns, operation)


def test_granted_documents_are_synchronised_and_no_others(secrets):
    names = [{'c': 'Secret', 'id': THERE}, {'c': 'Secret', 'id': NOT_THERE}, {'c': 'Other', 'id': 'x'}]
    closed = [{**name, 'closed': True} for name in names]
    for operation in ('Look', 'Join'):
        answer = secrets.op('shut', operation, {'class': 'Secret', 'id': THERE, 'who': 'ann'}, syncs=names)
        assert answer['out'] == {'hello': 'shut'}
        assert answer['syncs'][0]['items'][0]['j']['word'] == SECRET and answer['syncs'][1:] == closed[1:]
        assert secrets.op('shut', operation, {'class': 'Secret', 'id': THERE}, syncs=names)['syncs'] == closed
        absent = secrets.op('shut', operation, {'class': 'Secret', 'id': NOT_THERE, 'who': 'ann'}, syncs=names)['syncs']
        assert absent == [closed[0], {**names[1], 'v': 0, 'ct': 0, 'dt': 0}, closed[2]]
        for ns in ('demo', 'lab'):
            assert SECRET in json.dumps(secrets.op(ns, operation, syncs=names)['syncs'])
    for ns in ('z', 'rest'):
        with pytest.raises(Problem) as caught:
            secrets.op(ns, 'Look', {'class': 'Secret', 'id': THERE, 'who': 'ann'}, syncs=names)
        assert caught.value.code == ('SCLOSED' if ns == 'z' else 'OOFF')


def test_an_answer_that_is_replayed_grants_nothing(secrets):
    body = {'param': {'class': 'Secret', 'id': THERE, 'who': 'ann'}, 'syncs': [{'c': 'Secret', 'id': THERE}]}
    answers = [secrets.request('POST', '/shut/op/Join', json=body, headers={'Idempotency-Key': 'once'}) for _ in range(2)]
    assert SECRET in answers[0].text and answers[1].headers['Idempotency-Replayed'] == 'true'
    assert answers[1].json() == {'out': {'hello': 'shut'}, 'syncs': [{'c': 'Secret', 'id': THERE, 'closed': True}]}


def test_the_example_grants_its_groups(secrets):
    def call(name, param, **more):
        return secrets.op('shut', name, param, **more)
    call('FoundAsso', {'asso': 'chess', 'title': 'Chess'}, admin=True)
    call('Enrol', {'asso': 'chess', 'member': '7', 'name': 'Ann', 'since': 1999})
    syncs = [{'c': 'GT', 'id': 'fete'}, {'c': 'Asso', 'id': 'chess'}]
    joined = call('JoinGroup', {'group': 'fete', 'title': 'Fête', 'asso': 'chess', 'member': '7'}, syncs=syncs)['syncs']
    assert joined[0]['v'] and joined[1] == {**syncs[1], 'closed': True}
    wait_until(lambda: call('GroupReport', {'group': 'fete', 'age': 1}, syncs=syncs)['syncs'] == joined, what='the same group')
    with pytest.raises(Problem) as caught:
        call('LeaveGroup', {'group': 'fete', 'asso': 'chess', 'member': '7'}, syncs=syncs)
    assert caught.value.code == 'SCLOSED' and caught.value.body['args'] == ['syncs']


def test_live_events_of_what_is_closed(secrets):
    """By GET and POST, with the name of a session and without: refused alike, whatever is named."""
    for ns in (ns for ns in MODES if not may_read(ns)):
        for id_ in (THERE, NOT_THERE):
            for how in ({'method': 'GET', 'params': {'def': f'Secret/{id_}'}}, {'method': 'POST', 'json': {'defs': [f'Secret/{id_}', 'Secret']}},
                        {'method': 'GET', 'params': {'def': 'Secret', 'session': SESSION}}):
                answer = secrets.http.request(url=f'{secrets.url}/{ns}/live', timeout=PATIENCE_S, **how)
                assert answer.json()['code'] == ('OOFF' if ns == 'rest' else 'SCLOSED'), (ns, how)
    with secrets.http.get(f'{secrets.url}/demo/live', params={'def': 'Secret'}, stream=True, timeout=PATIENCE_S) as answer:
        assert answer.status_code == 200 and answer.headers['Content-Type'].startswith('text/event-stream')


def test_names_of_operations_that_are_closed(secrets):
    """The administrator's operations and those that do not exist are refused alike, also as tasks."""
    for ns in ('shut', 'z'):
        for path, param in (('/op/{}', {}), ('/op/task', {'op': '{}'})):
            answers = []
            for name in ('Rule', 'NoSuchOperation'):
                body = {'param': {key: value.format(name) for key, value in param.items()}}
                answers.append(secrets.request('POST', f'/{ns}{path.format(name)}', json=body).text.replace(name, '…'))
            assert answers[0] == answers[1] and 'SCLOSED' in answers[0], answers


def test_searches_of_modules_are_for_those_who_may_run_the_operation(secrets):
    """They read the tables themselves, beneath all rights: the right to run the operation is the whole of it."""
    for ns in MODES:
        (row,) = secrets.op(ns, 'Rows', {'id': THERE}, admin=True)['out']
        assert row['id'] == THERE and SECRET in row['content']
        for id_ in (THERE, NOT_THERE):
            body = {'param': {'id': id_}}
            for how in ({'json': body}, {'json': {**body, 'admin': secrets.queue_key}}, {'json': {**body, 'key': secrets.queue_key}}):
                answer = secrets.http.post(f'{secrets.url}/{ns}/op/Rows', timeout=PATIENCE_S, **how)
                assert answer.status_code in (401, 403, 503) and SECRET not in answer.text, (ns, answer.text)
        for task in ('Rows', 'RowsUnseen'):
            answer = secrets.request('POST', f'/{ns}/op/task', json={'param': {'op': task, 'param': {'id': THERE}}})
            assert SECRET not in answer.text and (answer.status_code >= 400 or (ns, task) == ('lab', 'RowsUnseen')), (ns, task, answer.text)


def test_a_judged_search_returns_what_the_access_shows(secrets):
    for ns, mode in MODES.items():
        body = {'param': {'id': THERE}}
        answer = secrets.http.post(f'{secrets.url}/{ns}/op/RowsJudged', json=body, timeout=PATIENCE_S)
        if may_read(ns):
            assert SECRET in answer.json()['out'][0]['content'], (ns, answer.text)
        elif mode in ('key', 'off'):
            assert answer.status_code in (401, 403, 503), answer.text
        else:
            assert answer.json()['out'] == [], (ns, answer.text)
        assert SECRET in secrets.op(ns, 'RowsJudged', body['param'], admin=True)['out'][0]['content']


def test_the_key_of_the_queue_runs_tasks_and_reads_nothing(secrets):
    """A queue manager, or whoever has its key, gets names of tasks and outcomes: no document, with whatever beside."""
    names = [{'c': 'Secret', 'id': THERE}]
    for ns in MODES:
        version = str(secrets.get(ns, ('Secret', THERE), admin=True)['v'])
        task = None
        if ns != 'z':
            task = secrets.op(ns, 'task', {'op': 'Rows', 'param': {'id': THERE}}, admin=True)['out']['id']
        for path, param in (('od', {'scan': {}}), ('od', {'run': [task or '0000000000000']}), ('od', {'reported': []}), (f'od/{task or "0000000000000"}', None)):
            for more in ({}, {'syncs': names}, {'session': SESSION}, {'admin': secrets.queue_key}):
                for body, headers in (({'key': secrets.queue_key, **more}, {}), (more, {'Authorization': f'Bearer {secrets.queue_key}'})):
                    body = {**body, 'param': param} if param else body
                    answer = secrets.http.post(f'{secrets.url}/{ns}/{path}', json=body, headers=headers, timeout=PATIENCE_S)
                    assert SECRET not in answer.text and version not in answer.text and '"syncs":' not in answer.text, (ns, path, answer.text)
        for how in ({'json': {'admin': secrets.queue_key}}, {'json': {}, 'headers': {'Authorization': f'Bearer {secrets.queue_key}'}}):
            for operation in ('get', 'list', 'tasks', 'Rows'):
                answer = secrets.http.post(f'{secrets.url}/{ns}/op/{operation}', timeout=PATIENCE_S, **how)
                assert answer.json()['code'] == 'SKEY', (ns, operation, answer.text)


def test_who_listened_before_it_was_closed_is_told_no_more(secrets):
    """The connection is ended, and no event of a commit behind the change of rights is written to it, though both are heard of at once."""
    conf = {'database': 'stampd_demo', 'access': 'read'}
    streams = [secrets.http.get(f'{secrets.url}/demo/live', params={'def': ['Secret', f'Secret/{THERE}']}, stream=True, timeout=60) for _ in range(3)]
    lines = [stream.iter_lines(chunk_size=1, decode_unicode=True) for stream in streams]
    for one in lines:
        assert next(line for line in one if line.startswith('event: ')) == 'event: ready'
    live = live_pid(secrets)
    os.kill(live, signal.SIGSTOP)
    try:
        secrets.put('z', {'c': 'Namespace', 'id': 'demo', 'items': [{'c': 'Conf', 'j': {**conf, 'access': 'closed'}}]}, admin=True)
        version = secrets.put('demo', {'c': 'Secret', 'id': THERE, 'items': [{'c': 'Other', 'k': 'x', 'j': SECRET}]}, admin=True)
    finally:
        os.kill(live, signal.SIGCONT)
    try:
        for one in lines:
            rest = list(one)  # until the server ends it
            assert any('SCLOSED' in line for line in rest) and str(version) not in '\n'.join(rest), rest
    finally:
        secrets.put('z', {'c': 'Namespace', 'id': 'demo', 'items': [{'c': 'Conf', 'j': conf}]}, admin=True)
        for stream in streams:
            stream.close()
