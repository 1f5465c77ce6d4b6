"""A process that can connect to a worker's socket, as nginx's group can: names and databases that do not belong together are refused
on every path, and nothing that is not a namespace enters a shared table."""
import itertools
import json
import socket

import pytest

from fastcgi import Connection
from stack import wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'shut': 'closed', 'lab': 'open'}, 'settings': {}}
SECRET = 'the-word-that-nobody-else-may-know'
DATABASES = {code: f'stampd_{code}' for code in STACK['namespaces']}
STRANGE = ['stampd_none', 'postgres', 'template1', 'dbname=stampd_shut host=127.0.0.1', 'x' * 63, 'x' * 64, 'x' * 2000, 'STAMPD_LAB', ' ', '"']


@pytest.fixture(scope='module')
def entry(stack):
    for ns in STACK['namespaces']:
        stack.put(ns, {'c': 'Secret', 'id': 'one', 'items': [{'c': 'Main', 'j': SECRET}]}, admin=True)
    return stack


def connect(stack, number=0):
    return Connection(stack.path / f'run/stampd/worker-{number}.sock')


def ask(stack, uri, ns, database, body=None, method='POST'):
    text = b'' if body is None else json.dumps(body).encode()
    with connect(stack) as worker:
        return worker.ask(uri, method=method, body=text, CONTENT_TYPE='application/json', STAMPD_NS=ns, STAMPD_DATABASE=database)


def paths(ns):
    named = {'docs': [{'c': 'Secret', 'id': 'one'}]}
    for body in ({}, {'param': named}, {'syncs': named['docs']}, {'param': {'c': 'Secret'}}):
        for operation in ('get', 'put', 'sync', 'list', 'subs', 'task', 'pushkey'):
            yield 'POST', f'/{ns}/op/{operation}', body
    yield 'GET', f'/{ns}/doc/Secret/one', None
    yield 'PUT', f'/{ns}/doc/Secret/one', {'items': []}
    yield 'GET', f'/{ns}/ping', None
    yield 'GET', f'/{ns}/res/Secret/one', None
    yield 'POST', f'/{ns}/od', {'param': {'scan': {}}}
    yield 'POST', f'/{ns}/od/0000000000000', {}


def test_pairs_that_do_not_belong_together(entry):
    """The rights of one namespace never meet the data of another; with the administrator's key neither."""
    pairs = [(ns, database) for ns, database in itertools.product(DATABASES, DATABASES.values()) if database != DATABASES[ns]]
    for ns, database in pairs:
        for method, uri, body in paths(ns):
            for key in (None, entry.key):
                is_task = '/od' in uri
                if key and (body is None or is_task):
                    continue
                answer = ask(entry, uri, ns, database, body if key is None else {**body, 'admin': key}, method)
                assert SECRET.encode() not in answer.body
                code = json.loads(answer.body)['code']
                assert code == 'NNAMESPACE' or (is_task and code == 'SKEY'), (ns, database, uri, answer.body)
    for ns in DATABASES:
        assert entry.get(ns, ('Secret', 'one'), admin=True)['items'][0]['j'] == SECRET


def test_z_is_the_administrators_by_every_name(entry):
    for ns in ('z', 'lab', 'shut', 'other'):
        for method, uri, body in paths(ns):
            answer = ask(entry, uri, ns, 'stampd_z', body, method)
            assert SECRET.encode() not in answer.body
            if '/res/' in uri:  # files are public, and this one is not there
                assert json.loads(answer.body)['code'] in ('NFILE', 'NNAMESPACE'), (uri, answer.body)
            elif not uri.endswith('/ping'):
                assert json.loads(answer.body)['code'] in ('SCLOSED', 'NNAMESPACE', 'SKEY'), (uri, answer.body)
    assert ask(entry, '/z/op/get', 'z', 'stampd_z', {'param': {'docs': []}, 'admin': entry.key}).status == 200


def test_names_that_are_no_namespaces_leave_nothing_behind(entry):
    """300 of them, more than the shared table holds: the relay looks for none, and the others are served as before."""
    before = len(entry.log())
    with connect(entry) as worker:
        for number in range(300):
            name = STRANGE[number % len(STRANGE)] + (str(number) if number >= len(STRANGE) else '')
            for ns in ('lab', 'none'):
                for method, path in (('POST', 'op/get'), ('GET', 'ping'), ('GET', 'doc/Secret/one')):
                    answer = worker.ask(f'/{ns}/{path}', method=method, STAMPD_NS=ns, STAMPD_DATABASE=name)
                    assert json.loads(answer.body)['code'] == 'NNAMESPACE', (name, answer.body)
    for name in STRANGE:
        assert listen(entry, 'lab', name).startswith(b'HTTP/1.1 404')
    entry.op('lab', 'get', {'docs': [{'c': 'Secret', 'id': 'one'}]})
    lines = entry.log()[before:]
    assert 'relay cannot' not in lines and not any(name in lines for name in ('stampd_none', 'dbname=', 'template1')), lines


def listen(stack, ns, database):
    """The head of the answer of the process for live events, asked at its own socket."""
    with socket.socket(socket.AF_UNIX) as live:
        live.settimeout(30)
        live.connect(str(stack.path / 'run/stampd/live.sock'))
        live.sendall(f'GET /{ns}/live?def=Secret HTTP/1.1\r\nHost: x\r\nX-Stampd-Ns: {ns}\r\nX-Stampd-Database: {database}\r\n\r\n'.encode())
        return live.recv(4096)


def test_live_events_of_pairs_that_do_not_belong_together(entry):
    for ns, database in itertools.product([*DATABASES, 'none'], DATABASES.values()):
        head = listen(entry, ns, database)
        if DATABASES.get(ns) != database:
            assert head.startswith(b'HTTP/1.1 404') and b'NNAMESPACE' in head, (ns, database, head)
        elif ns == 'lab':
            assert head.startswith(b'HTTP/1.1 200'), head
        else:
            assert b'SCLOSED' in head, head


def test_a_namespace_that_is_dropped_is_none(entry):
    """Its configuration has gone; what nginx still passes does not matter."""
    assert ask(entry, '/lab/op/get', 'lab', 'stampd_lab', {'param': {'docs': []}}).status == 200
    entry.psql('z', "select stampd.delete_document('Namespace', 'lab')")
    wait_until(lambda: json.loads(ask(entry, '/lab/op/get', 'lab', 'stampd_lab', {'param': {'docs': []}}).body).get('code') == 'NNAMESPACE',
               what='the end of the namespace')
    wait_until(lambda: b'NNAMESPACE' in listen(entry, 'lab', 'stampd_lab'), what='the same for those who listen')
