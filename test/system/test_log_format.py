"""log_format = json: every line of every program is an object of the schema in log-messages.md, whatever occurs and whoever writes."""
import json
import os
import re
import signal

import pytest

from hostile.entry import Entry
from manager import Manager
from stack import BUILD, SOURCE, run_program, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'}, 'settings': {'log_format': 'json', 'log_level': 'debug'}}
TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
STATE = 'a=x"y\\z,b=1'
SECRET = 'marzipan'
NGINX = {'client', 'method', 'place', 'status', 'bytes', 'seconds', 'upstream_status'}
TEXTS = {'time', 'level', 'program', 'message'}
MEMBERS = TEXTS | {'pid', 'request', 'trace', 'tracestate'}


def schema():
    """The members that the page describes."""
    page = (SOURCE / 'doc/reference/log-messages.md').read_text()
    table = re.search(r'\| member \| type .*?\n\n', page, re.DOTALL).group()
    return {name for row in table.strip().splitlines()[2:] for name in re.findall('`([a-z_]+)`', row.split('|')[1])}


def events(stack, part='stampd'):
    """Each line of a log; one that is not of the schema is a failure."""
    found = []
    for line in (stack.path / f'log/{part}.log').read_bytes().split(b'\n')[:-1]:
        event = json.loads(line)
        members = MEMBERS | (NGINX if part == 'access' else set())
        assert TEXTS | {'pid'} <= event.keys() <= members and len(line) < 4096, line
        assert all(isinstance(value, int if name in ('pid', 'bytes') else (int, float) if name == 'seconds' else str) for name, value in event.items()), line
        assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}Z|[+-]\d\d:\d\d)', event['time']) and event['level'] in ('error', 'warning', 'info', 'debug'), line
        found.append(event)
    return found


def wait_for(stack, words, part='stampd', **members):
    """Returns the first event whose message has the words."""
    def look():
        return next((event for event in events(stack, part) if words in event['message'] and members.items() <= event.items()), None)
    wait_until(look, what=words)
    return look()


@pytest.fixture(scope='module')
def logged(stack):
    """nginx with an access log, and a queue manager."""
    path = stack.path / 'etc/nginx.conf'
    text, count = re.subn(r'(\n    log_format stampd escape=json .*\n)', rf'\1    access_log {stack.path}/log/access.log stampd;\n', path.read_text())
    assert count == 1
    path.write_text(text)
    stack.step('nginx', 'stop')
    stack.step('nginx', 'start')
    return stack


def test_the_page_describes_each_member():
    assert schema() == MEMBERS | NGINX


def test_start_requests_and_death(logged):
    assert wait_for(logged, 'ready version=')['program'] == 'stampd'
    logged.put('lab', {'c': 'Note', 'id': SECRET, 'items': []})
    killed = logged.kill_worker()
    assert wait_for(logged, f'killed by signal 9 (Killed) pid={killed}')['level'] == 'error'


def test_a_task_that_fails_has_its_trace(logged):
    failing = {'docs': [{'c': 'Note', 'id': 'a', 'if': 1, 'items': []}]}
    answer = logged.request('POST', '/lab/op/task', json={'param': {'op': 'put', 'param': failing}}, headers={'traceparent': TRACE, 'tracestate': STATE})
    task = answer.json()['out']['id']
    Manager(logged, 'lab').run_many([task])
    event = wait_for(logged, f'task failed id={task}')
    assert (event['trace'], event['tracestate']) == (TRACE, STATE) and 'trace=' not in event['message'] and event['request']


def test_bytes_of_all_kinds_are_escaped(logged):
    """A settings file brings them into a line: the value that is refused is a part of it."""
    path = logged.path / 'etc/stampd.conf'
    text = path.read_bytes()
    path.write_bytes(text + b'\nlimit_body_bytes = \x01"\\\t\x7f\xc3\xa9\xff\xe2\x82 end\n')
    os.kill(logged.pid(), signal.SIGHUP)
    event = wait_for(logged, 'settings not reloaded')
    path.write_bytes(text)
    assert '= \x01"\\\t\x7fé\ufffd\ufffd\ufffd end' in event['message']


def test_what_nginx_reports(logged):
    """It sends a line once, to the relay, which may have been killed just before."""
    entry, words = Entry(logged), 'nginx: client intended to send too large body: 99999999999 bytes'

    def reported():
        with entry.connect() as client:
            client.sendall(b'POST /lab/op/get HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n')
            assert entry.receive(client, False).status == 413
        return [event for event in events(logged) if words in event['message']]
    assert wait_until(reported, what=words)[0]['level'] == 'error'


def test_a_database_that_goes_away(logged):
    logged.stop_postgres()
    try:
        assert logged.request('POST', '/lab/op/get', json={'param': {'docs': [{'c': 'Note', 'id': 'b'}]}}).status_code == 503
        wait_for(logged, 'postgresql ')
    finally:
        logged.step('postgres', 'start')
    wait_until(lambda: logged.request('POST', '/lab/op/get', json={'param': {'docs': [{'c': 'Note', 'id': 'b'}]}}).status_code == 200, what='the database')


def test_the_access_log(logged):
    quotes = {'X-Request-Id': 'a-name'}
    assert logged.request('GET', f'/lab/doc/Note/{SECRET}?key=st_{SECRET}', headers=quotes).status_code in (200, 403)
    logged.request('GET', f'/lab/"\\\u00e9/{SECRET}')
    logged.request('POST', f'/lab/od/nothing/{SECRET}', json={})
    wait_until(lambda: any(event['place'] == '/lab/od/nothing/*' for event in events(logged, 'access')), what='the last line')
    event = next(event for event in events(logged, 'access') if event['place'] == '/lab/doc/Note/*')
    assert event['method'] == 'GET' and event['program'] == 'nginx' and event['message'] == 'request' and event['bytes'] > 0 and event['client'] == '127.0.0.1'
    named = {event['request'] for event in events(logged, 'access')}
    assert event['request'] in named - {''}


def test_the_other_programs(logged):
    logged.step('queue', 'start')
    try:
        assert wait_for(logged, 'ready', 'queue')['program'] == 'stamp-queue'
    finally:
        logged.step('queue', 'stop')


def test_stamp_forward_has_a_setting_of_its_own(logged):
    path = logged.path / 'etc/forward.conf'
    for word, program in (('json', 'stamp-forward'), ('xml', None)):
        path.write_text(f'url = {logged.url}\nkey_file = {logged.key_file}\nspool = {logged.path}/nothing\nlog_format = {word}\n')
        error = run_program(BUILD / 'src/stamp-forward', '--config', path, '--test', status=1).error
        assert json.loads(error)['program'] == program if program else 'log_format = xml: expected text or json' in error


def test_no_line_has_a_secret_and_all_are_of_the_schema(logged):
    """After all that came before, and the end of the server."""
    logged.restart_stampd()
    wait_for(logged, 'stopped')
    for part in ('stampd', 'queue', 'access'):
        assert events(logged, part)
    keys = (SECRET, logged.key, logged.queue_key)
    assert not [key for part in ('stampd', 'queue', 'access') for key in keys if key in (logged.path / f'log/{part}.log').read_text()]
