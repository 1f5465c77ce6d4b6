"""Behind a second nginx that knows nothing of stampd (`proxy_pass` and no more): events and streamed answers come at once, files in ranges."""
import subprocess

import pytest

from listener import Listener
from schema import Schemas
from stack import free_port, wait_until

pytestmark = pytest.mark.plain

# No keep-alive fills a buffer of the proxy within the time of a test.
STACK = {'workers': 2, 'settings': {'live_keepalive_s': 3600}}
NOTE = {'items': {'Main': {'singleton': True}}, 'collections': {'list': {'key': ['Main.list'], 'mutable': True}}}
CONFIGURATION = '''daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass {url};
        }}
    }}
}}
'''


class Behind:
    """The stack, by the address of the proxy."""

    def __init__(self, stack, url):
        self.url, self.http, self.key = url, stack.http, stack.key


@pytest.fixture(scope='module')
def behind(stack, tmp_path_factory):
    folder, port = tmp_path_factory.mktemp('proxy'), free_port()
    (folder / 'nginx.conf').write_text(CONFIGURATION.format(folder=folder, port=port, url=stack.url))
    Schemas(stack, folder).apply('lab', {'Note': NOTE})
    proxy = subprocess.Popen(['nginx', '-e', folder / 'error.log', '-p', folder, '-c', folder / 'nginx.conf'], stdin=subprocess.DEVNULL)
    try:
        url = f'http://127.0.0.1:{port}'

        def is_up():
            try:
                return stack.http.get(f'{url}/ping').status_code == 200
            except OSError:
                return False
        wait_until(is_up, what='the proxy')
        yield Behind(stack, url)
    finally:
        proxy.terminate()
        proxy.wait()


def put(stack, id_, value='a'):
    return stack.put('lab', {'c': 'Note', 'id': id_, 'items': [{'c': 'Main', 'j': {'list': value}}]})


def test_events_come_at_once(stack, behind):
    listener = Listener(behind, 'Note')
    assert listener.opened() is False
    for number in range(3):  # each alone is much smaller than any buffer
        put(stack, f'n{number}')
        wait_until(lambda: sum(name == 'change' for name, _ in listener.events) > number, what='the event')


@pytest.mark.parametrize('method', ['get', 'post'])
def test_what_is_said_to_proxies(stack, method):
    """nginx consumes X-Accel-Buffering of what it passes on, so it must be seen at the public address."""
    more = {'params': {'def': 'Note'}} if method == 'get' else {'json': {'defs': ['Note']}}
    with getattr(stack.http, method)(f'{stack.url}/lab/live', stream=True, **more) as answer:
        assert answer.status_code == 200 and answer.headers['X-Accel-Buffering'] == 'no'
        assert 'no-transform' in answer.headers['Cache-Control'] and 'no-cache' in answer.headers['Cache-Control']


def test_streamed_answers_are_not_held_either(stack):
    put(stack, 's1', 'streamed')
    ask = {'param': {'c': 'Note', 'collection': 'list', 'value': 'streamed'}}
    page = stack.http.post(f'{stack.url}/lab/op/collection', json=ask)
    assert 'X-Accel-Buffering' not in page.headers and 'no-transform' not in page.headers['Cache-Control']
    ask['param']['stream'] = True
    answer = stack.http.post(f'{stack.url}/lab/op/collection', json=ask)
    assert answer.headers['Content-Type'] == 'application/x-ndjson' and len(answer.text.splitlines()) == 2
    assert answer.headers['X-Accel-Buffering'] == 'no' and 'no-transform' in answer.headers['Cache-Control']


def test_an_event_source_that_must_wait_is_answered_at_once(stack):
    """Of a namespace that is off it gets a stream which says when to come again."""
    stack.op('z', 'ns', {'set': {'ns': 'lab', 'state': 2}}, admin=True)
    try:
        answer = stack.http.get(f'{stack.url}/lab/live', params={'def': 'Note'}, headers={'Accept': 'text/event-stream'})
        assert answer.status_code == 200 and answer.headers['X-Accel-Buffering'] == 'no' and 'event: closed' in answer.text
    finally:
        stack.op('z', 'ns', {'set': {'ns': 'lab', 'state': None}}, admin=True)
