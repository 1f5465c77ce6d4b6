"""Live events for pages: what a page of another origin may read, what the first example of follow-changes-in-a-browser.md does at a reconnection."""
import re

import pytest

from listener import Listener
from stack import SOURCE
from test_live import put

pytestmark = pytest.mark.plain

ORIGIN = 'https://app.example'
STACK = {'workers': 2, 'settings': {'live_keepalive_s': 1, 'live_definitions': 100}}


@pytest.fixture(scope='module')
def lab(stack):
    for code, access in (('lab', 'open'), ('demo', 'closed')):
        conf = {'access': access, 'database': f'stampd_{code}', 'origins': [ORIGIN]}
        stack.request('POST', '/z/op/put', admin=True, json={'param': {'docs': [
            {'c': 'Namespace', 'id': code, 'items': [{'c': 'Conf', 'j': conf}]}]}}).raise_for_status()
    return stack


def ask(stack, method, path, origin=ORIGIN, **more):
    headers = {**({'Origin': origin} if origin else {}), **more.pop('headers', {})}
    return stack.http.request(method, stack.url + path, headers=headers, timeout=60, **more)


@pytest.mark.parametrize('ns', ['lab', 'demo'])
def test_a_preflight_names_the_origin(lab, ns):
    """A browser asks before a page of another origin may POST."""
    for _ in range(2):  # rules that are not known yet, and rules that are
        answer = ask(lab, 'OPTIONS', f'/{ns}/live', headers={
            'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'content-type,last-event-id'})
        assert answer.status_code == 204
        assert answer.headers['Access-Control-Allow-Origin'] == ORIGIN and answer.headers['Vary'] == 'Origin'
        assert answer.headers['Access-Control-Allow-Methods'] == 'GET, POST, OPTIONS'
        assert {'Content-Type', 'Last-Event-ID'} <= set(answer.headers['Access-Control-Allow-Headers'].split(', '))
        other = ask(lab, 'OPTIONS', f'/{ns}/live', origin='https://other.example')
        assert other.status_code == 204 and 'Access-Control-Allow-Origin' not in other.headers
        assert 'Access-Control-Allow-Origin' not in ask(lab, 'OPTIONS', f'/{ns}/live', origin=None).headers


def test_a_page_can_read_why_it_was_refused(lab):
    def refused(code, method, path, **more):
        answer = ask(lab, method, path, **more)
        assert answer.json()['code'] == code
        assert answer.headers.get('Access-Control-Allow-Origin') == ORIGIN, answer.headers
        assert 'Access-Control-Allow-Origin' not in ask(lab, method, path, origin='https://other.example', **more).headers
        return answer.json()
    refused('AARG', 'GET', '/lab/live?def=bad//')
    refused('AARG', 'GET', '/lab/live')
    refused('AARG', 'POST', '/lab/live', json={'defs': ['A'], 'last': 'x'})
    refused('AJSON', 'POST', '/lab/live', data='{"defs"', headers={'Content-Type': 'application/json'})
    refused('AMETHOD', 'PUT', '/lab/live')
    refused('ALIMIT', 'POST', '/lab/live', json={'defs': [f'A/{number}' for number in range(101)]})
    refused('SKEY', 'POST', '/lab/live', json={'defs': ['A'], 'admin': 'wrong'})
    refused('NCOLLECTION', 'GET', '/lab/live?def=A/b@c')
    refused('SCLOSED', 'GET', '/demo/live?def=A')
    # What was only answered holds no place and needs no connection to the database of its namespace.
    assert not lab.psql(None, "select 1 from pg_stat_activity where application_name = 'stampd live' and datname = 'stampd_demo'")


def test_a_wrong_definition_is_named_by_its_number(lab):
    defs = ['A', 'A/b', 'bad//', 'A/c']
    by_post = ask(lab, 'POST', '/lab/live', json={'defs': defs}).json()
    by_get = ask(lab, 'GET', '/lab/live', params=[('def', one) for one in defs]).json()
    assert by_post['code'] == by_get['code'] == 'AARG'
    assert 'element 3' in by_post['detail'] and 'element 3' in by_get['detail']
    assert 'element 2' in ask(lab, 'POST', '/lab/live', json={'defs': ['A', 7, 'bad//']}).json()['detail']


def first_example():
    """Events that the first example of the page handles, each with what it does then."""
    page = (SOURCE / 'doc/how-to/follow-changes-in-a-browser.md').read_text()
    code = re.search(r'```js\n(.*?)```', page, re.S).group(1)
    return dict(re.findall(r"addEventListener\('(\w+)', (.*)\)", code))


def test_the_first_example_fetches_everything_at_the_beginning_only(lab):
    """An EventSource fires an event `open` without data by itself at each connection: none of the server's may have that name."""
    handlers = first_example()
    assert set(handlers) == {'ready', 'reset', 'change'} and 'resumed' in handlers['ready']

    def fetches(listener):
        """How often the page fetches everything, by what the example says."""
        return sum(name == 'reset' or name == 'ready' and not data['resumed'] for name, data in list(listener.events))
    put(lab, 'ann', {'n': 0})
    first = Listener(lab, 'Person', 'Person/ann')
    first.opened()
    first.wait_for('Person/ann', put(lab, 'ann', {'n': 1}))
    last = first.wait_for_id()
    assert fetches(first) == 1 and {name for name, _ in first.events} <= set(handlers)
    first.close()
    version = put(lab, 'ann', {'n': 2})
    again = Listener(lab, 'Person', 'Person/ann', last=last)
    again.wait_for('Person/ann', version)
    assert fetches(again) == 0 and 'open' not in {name for name, _ in again.events}
    again.close()
