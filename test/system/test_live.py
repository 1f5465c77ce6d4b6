"""Live events: who listens is told what has changed, misses nothing by whatever dies, and may listen only while it may."""
import json
import os
import random
import re
import select
import signal
import socket
import subprocess
import threading
import time

import psycopg2
import pytest

from listener import Listener
from push_service import decode
from schema import Schemas
from signed_texts import read_signed, sign
from stack import PATIENCE_S, Problem, children, name_of, refused, wait_until

KEEPALIVE, STALL, CONNECTIONS, DEFINITIONS = 1, 1, 60, 100
STACK = {'workers': 3, 'settings': {
    'lock_timeout_ms': 500, 'live_keepalive_s': KEEPALIVE, 'live_stall_s': STALL, 'live_connections': CONNECTIONS, 'limit_client_live': 1000, 'limit_client_connections': 0, 'live_definitions': DEFINITIONS}}
PERSON = {'items': {'Main': {'singleton': True}},
          'collections': {'team': {'key': ['Main.team'], 'mutable': True},
                          'tag': {'key': ['Main.tags'], 'list': True, 'mutable': True},
                          'place': {'key': ['Main.town', 'Main.street'], 'mutable': True}}}


@pytest.fixture(scope='module')
def lab(stack, tmp_path_factory):
    stack.schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    stack.schemas.apply('lab', {'Person': PERSON})
    return stack


def put(stack, id_, content, class_='Person'):
    return stack.put('lab', {'c': class_, 'id': id_, 'items': [{'c': 'Main', 'j': content}]})


def live_pid(stack):
    def find():
        return next((pid for pid in children(stack.pid()) if name_of(pid) == 'stampd-live'), None)
    return wait_until(find, what='the process for live events')


# --- what is told ---


def test_changes_of_classes_documents_and_collections(lab):
    put(lab, 'ann', {'team': 'red'})
    listener = Listener(lab, 'Person', 'Person/ann', 'Person/none', 'Person/team@red', 'Person/team@blue',
                        'Person/place@Paris@rue%20%40', 'Other')
    assert listener.opened() is False
    version = put(lab, 'ann', {'team': 'blue'})
    for definition in ('Person', 'Person/ann', 'Person/team@red', 'Person/team@blue'):  # it has left one, come into another
        listener.wait_for(definition, version)
    assert set(listener.told()) == {'Person', 'Person/ann', 'Person/team@red', 'Person/team@blue'}
    version = put(lab, 'bob', {'town': 'Paris', 'street': 'rue @'})
    listener.wait_for('Person/place@Paris@rue%20%40', version)
    assert listener.told()['Person'] == version and listener.told()['Person/ann'] < version
    version = lab.put('lab', {'c': 'Person', 'id': 'bob', 'delete': True})
    listener.wait_for('Person/place@Paris@rue%20%40', version)
    put(lab, 'x', 1, class_='Other')
    wait_until(lambda: 'Other' in listener.told())
    wait_until(lambda: listener.comments or listener.last, what='a sign of life')
    assert 500 <= listener.retry <= 2500
    listener.close()


def put_by_psql(stack, id_, content):
    """Returns the version."""
    stack.psql('lab', "select put_item('Person', %s, 'Main', '', %s)", (id_, json.dumps(content)))
    return stack.psql('lab', "select version from doc where class = 'Person' and id = %s", (id_,))[0][0]


def test_who_is_told_of_a_change_by_psql_reads_it(lab):
    """Also when the relay, which looks after copies in caches, has not heard of it yet."""
    put(lab, 'sql', {'team': 'red'})
    listener = Listener(lab, 'Person/sql', 'Person/team@green', 'Person')
    listener.opened()
    for _ in range(6):
        lab.get('lab', ('Person', 'sql'))  # each worker has a copy
    with lab.relay_stopped():
        version = put_by_psql(lab, 'sql', {'team': 'green'})
        for definition in listener.definitions:
            listener.wait_for(definition, version)
        for _ in range(6):
            assert lab.get('lab', ('Person', 'sql'))['v'] == version
    listener.close()


def test_a_collection_that_becomes_another(lab):
    def declare(*key):
        lab.schemas.apply('lab', {'Person': {**PERSON, 'collections': {**PERSON['collections'], 'kind': {'key': list(key), 'mutable': True}}}})
    declare('Main.a')
    put(lab, 'k', {'a': 'x', 'b': 'x'})
    listener, other = Listener(lab, 'Person/kind@x'), Listener(lab, 'Person/kind@x', 'Person/k')
    last = other.wait_for_id()
    other.close()
    listener.opened()
    declare('Main.b')
    listener.wait_for('Person/kind@x', 0)
    again = Listener(lab, 'Person/kind@x', 'Person/k', last=last)
    assert again.opened() is True
    again.wait_for('Person/kind@x', 0)
    assert 'Person/k' not in again.told()
    version = put(lab, 'k', {'a': 'y', 'b': 'x'})
    for one in (listener, again):
        one.wait_for('Person/kind@x', version)
        one.close()
    lab.schemas.apply('lab', {'Person': PERSON})


def test_by_http_2_and_an_idle_connection_lives(lab):
    put(lab, 'h2', {})
    client = subprocess.Popen(
        ['curl', '-sN', '--http2', '--cacert', lab.path / 'etc/certificate.pem', '-w', '%{http_version}',
         f'{lab.url}/lab/live?def=Person%2Fh2'], stdout=subprocess.PIPE, text=True)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(iter(client.stdout.readline, '')), daemon=True)
    reader.start()
    wait_until(lambda: 'event: ready\n' in lines)
    wait_until(lambda: ':\n' in lines or sum(line.startswith('id: ') for line in lines) > 1, what='a sign of life')
    version = put(lab, 'h2', {'team': 'x'})
    wait_until(lambda: f'data: {{"changed":[["Person/h2",{version}]]}}\n' in lines)
    client.kill()
    client.wait()


# --- nothing is missed ---


def test_who_comes_again_is_told_what_was_missed(lab):
    put(lab, 'a', {'team': 'resumed'})
    put(lab, 'b', {'team': 'other'})
    definitions = ('Person/a', 'Person/b', 'Person/gone', 'Person/team@resumed', 'Person/team@other')
    first = Listener(lab, *definitions)
    first.opened()
    first.wait_for('Person/a', put(lab, 'a', {'team': 'resumed', 'n': 1}))
    last = first.wait_for_id()
    first.close()
    again = Listener(lab, *definitions, last=last)
    assert again.opened() is True
    version = put(lab, 'b', {'team': 'other', 'n': 2})
    again.wait_for('Person/b', version)
    again.wait_for('Person/team@other', version)
    assert set(again.told()) == {'Person/b', 'Person/team@other'}  # what the id says was told is not told again
    last = again.wait_for_id()
    again.close()
    version = put(lab, 'a', {'team': 'moved'})
    lab.put('lab', {'c': 'Person', 'id': 'b', 'delete': True})
    third = Listener(lab, *definitions, last=last)
    assert third.opened() is True
    for definition in ('Person/a', 'Person/b', 'Person/team@resumed', 'Person/team@other'):
        third.wait_for(definition, version)
    third.close()


def test_the_process_dies(lab):
    put(lab, 'a', {'team': 'red'})
    secret = 'a-session_that_is_a_secret'
    listener = Listener(lab, 'Person/a', 'Person', session=secret)
    listener.opened()
    listener.wait_for('Person/a', put(lab, 'a', {'team': 'red', 'n': 1}))
    last = listener.wait_for_id()
    pid = live_pid(lab)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not listener.is_open, what='the end of the connection')
    version = put(lab, 'a', {'team': 'red', 'n': 2})
    again = come_again(lab, 'Person/a', 'Person', last=last)
    assert again.opened() is True
    again.wait_for('Person/a', version)
    again.wait_for('Person', 0)  # of whole classes nothing is remembered: it may have changed
    again.wait_for('Person', put(lab, 'a', {'team': 'red', 'n': 3}))
    again.close()
    assert secret not in lab.log('nginx') + lab.log('access') + lab.log()


def come_again(stack, *definitions, **more):
    def attempt():
        try:
            return Listener(stack, *definitions, **more)
        except Problem as problem:
            assert problem.status in (502, 503)
            return None
        except OSError:
            return None
    return wait_until(attempt, what='an answer')


def test_a_reload_sends_listeners_to_the_successor(lab):
    listener = Listener(lab, 'Person/a', session='a-session_of_20_text')
    listener.wait_for_id()
    pid = live_pid(lab)
    lab.reload()
    wait_until(lambda: not listener.is_open, what='the end of the connection')
    wait_until(lambda: live_pid(lab) != pid, what='the successor')
    version = put(lab, 'a', {'n': 'reloaded'})
    again = come_again(lab, 'Person/a', last=listener.last)
    again.wait_for('Person/a', version)
    again.close()


def test_a_session_lost_in_the_database(lab):
    put(lab, 'a', {'team': 'red'})
    listener = Listener(lab, 'Person/a', 'Person/team@red')
    listener.opened()
    lab.psql('lab', "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'stampd live'")
    version = put_by_psql(lab, 'a', {'team': 'none'})
    for definition in listener.definitions:
        listener.wait_for(definition, version)
    listener.close()


def test_ids_do_not_outlive_a_crash_of_postgresql(lab):
    """It may give numbers of transactions again."""
    listener = Listener(lab, 'Person/a')
    last = listener.wait_for_id()
    lab.restart_postgres('kill')
    wait_until(lambda: lab.ping('lab').json()['db'] == 'ok')
    wait_until(lambda: ('reset', {}) in listener.events, what='that everything is to be looked at')
    again = come_again(lab, 'Person/a', last=last)
    assert again.opened() is False
    version = put(lab, 'a', {'team': 'crash'})
    for one in (listener, again):
        one.wait_for('Person/a', version)
        one.close()


def test_a_question_that_fails_is_refused_alone(lab):
    listener = Listener(lab, 'Person/a')
    listener.opened()
    look = "select pid from pg_stat_activity where application_name = 'stampd live' and datname = 'stampd_lab'"
    session = lab.psql('lab', look)
    with psycopg2.connect(lab.conninfo('lab'), options='-c search_path=stampd') as connection, connection.cursor() as cursor:
        cursor.execute('lock table member')
        refused('XTIME', Listener, lab, 'Person/a', 'Person/team@x', status=503)
    connection.close()
    assert listener.is_open and lab.psql('lab', look) == session
    listener.wait_for('Person/a', put(lab, 'a', {'team': 'none', 'n': 1}))
    listener.close()


class Holder(Listener):
    """Holds copies of documents, each looked at only when told to; `source` remembers over connections."""

    def __init__(self, stack, ids, source, **more):
        self.ids, self.source, self.work = ids, source, threading.Event()
        super().__init__(stack, *(f'Person/{id_}' for id_ in ids), 'Person/team@t', **more)

    def hear(self, name, data):
        if name == 'ready' and not data['resumed'] or name == 'reset':
            self.source['stale'].update(self.ids, ['@'])
        elif name == 'change':
            for definition, _ in data['changed']:
                self.source['stale'].add('@' if '@' in definition else definition.partition('/')[2])
        super().hear(name, data)
        self.work.set()


def read(stack, id_):
    """None: no worker answers."""
    try:
        return stack.get('lab', ('Person', id_))
    except Problem as problem:
        assert problem.status in (502, 503), problem
        return None


def catch_up(stack, source):
    """Looks at what is stale, as a client does: later, while no worker answers."""
    while source['stale']:
        one = source['stale'].pop()
        try:
            if one == '@':
                found = stack.op('lab', 'collection', {'c': 'Person', 'collection': 'team', 'value': 't', 'want': 'ids',
                                                       'limit': 1000})['out']['ids']
                source['team'] = {id_: version for id_, version in found}
            else:
                source['copies'][one] = stack.get('lab', ('Person', one))['v']
        except Problem as problem:
            assert problem.status in (502, 503), problem
            source['stale'].add(one)
            return


def slow_writer(stack, ids, chance, until):
    """psql sessions that change a document and commit later, out of the order of versions."""
    while not until.is_set():
        connection = psycopg2.connect(stack.conninfo('lab'), options='-c search_path=stampd -c lock_timeout=2000')
        try:
            with connection, connection.cursor() as cursor:
                content = json.dumps({'team': chance.choice('tu'), 'n': chance.random()})
                cursor.execute("select put_item('Person', %s, 'Main', '', %s)", (chance.choice(ids), content))
                until.wait(chance.random() * 0.4)
        except psycopg2.Error:
            pass  # two at once: one is refused
        finally:
            connection.close()


def quick_writer(stack, ids, chance, until):
    while not until.is_set():
        try:
            put(stack, chance.choice(ids), {'team': chance.choice('tu'), 'n': chance.random()})
        except Problem:
            pass  # contention, or a worker that was killed
        until.wait(chance.random() * 0.02)


def test_a_random_history_misses_nothing(lab):
    """Writers, some of whom hold their commits open; connections, workers and the process end at random times.  What is held
    is looked at only when an event says so: at rest it must equal the source."""
    seed = random.randrange(1 << 30)
    print('seed', seed)
    chance = random.Random(seed)
    ids = [f'r{number}' for number in range(12)]
    for id_ in ids:
        put(lab, id_, {'team': 't'})
    source = {'stale': set(), 'copies': {}, 'team': {}}
    until = threading.Event()
    writers = [threading.Thread(target=writer, args=(lab, ids, random.Random(chance.random()), until))
               for writer in (slow_writer, slow_writer, quick_writer, quick_writer)]
    holder = Holder(lab, ids, source)
    for writer in writers:
        writer.start()
    try:
        for number in range(14):
            holder.work.wait(0.2)
            holder.work.clear()
            catch_up(lab, source)
            act = chance.randrange(4)
            if act == 0 and number % 5 == 4:
                os.kill(live_pid(lab), signal.SIGKILL)
            elif act == 1:
                lab.kill_worker(chance.choice(wait_until(lab.worker_pids, what='a worker')))
            if act != 3:
                holder.close()
                holder = come_again_as(Holder, lab, ids, source, last=holder.last)
    finally:
        until.set()
        for writer in writers:
            writer.join(PATIENCE_S)

    def is_equal():
        catch_up(lab, source)
        if source['stale']:
            return False
        documents = {id_: wait_until(lambda id_=id_: read(lab, id_), what='an answer') for id_ in ids}
        wanted = {id_: document['v'] for id_, document in documents.items()}
        team = {id_ for id_, document in documents.items() if document['items'][0]['j']['team'] == 't'}
        return source['copies'] == wanted and {id_ for id_ in source['team'] if id_ in ids} == team
    if not holder.is_open:
        holder = come_again_as(Holder, lab, ids, source, last=holder.last)
    try:
        wait_until(is_equal, what='what is held, equal to the source')
    except AssertionError:
        print('held', source, holder.events, holder.last, holder.is_open)
        raise
    holder.close()


def come_again_as(kind, stack, *arguments, **more):
    def attempt():
        try:
            return kind(stack, *arguments, **more)
        except (Problem, OSError):
            return None
    return wait_until(attempt, what='an answer')


# --- who may listen ---


def rules_with(stack, **conf):
    # The whole configuration is rewritten: what is not named stays as it was made.
    present, = (item['j'] for item in stack.get('z', ('Namespace', 'demo'), admin=True)['items'] if item['c'] == 'Conf')
    return {'c': 'Namespace', 'id': 'demo', 'items': [{'c': 'Conf', 'j': {**present, **conf}}]}


def stream_of(stack, ns, definition):
    """The code with which a stream of an EventSource ends at once."""
    answer = stack.http.get(f'{stack.url}/{ns}/live', params={'def': definition}, headers={'Accept': 'text/event-stream'}, timeout=60)
    assert answer.status_code == 200 and answer.headers['Content-Type'] == 'text/event-stream'
    retry, *event = answer.text.split('\n', 1)
    assert retry.startswith('retry: ') and 500 <= int(retry[7:]) <= 10000
    return json.loads(event[0].partition('data: ')[2])['code'] if event[0].strip() else None


def test_rules_are_asked_and_asked_again(lab):
    def rule(**conf):
        lab.put('z', rules_with(lab, **conf), admin=True)
    refused('SCLOSED', Listener, lab, 'A', ns='z')
    listener = Listener(lab, 'A', ns='demo')
    listener.opened()
    keeper = Listener(lab, 'A', ns='demo', admin=True)
    keeper.opened()
    rule(access='closed')
    wait_until(lambda: ('closed', {'code': 'SCLOSED'}) in listener.events, what='the farewell')
    wait_until(lambda: not listener.is_open)
    assert keeper.is_open
    refused('SCLOSED', Listener, lab, 'A', ns='demo', status=401)
    rule(access='read', state=2, message='a pause')
    refused('OOFF', Listener, lab, 'A', ns='demo', status=503)
    rule(access='read', state=0, origins=['https://page.example'])
    again = Listener(lab, 'A', ns='demo')
    assert again.opened() is False and keeper.is_open
    answer = lab.http.get(f'{lab.url}/demo/live', params={'def': 'A'}, headers={'Origin': 'https://page.example'}, stream=True,
                          timeout=60)
    assert answer.headers['Access-Control-Allow-Origin'] == 'https://page.example'
    answer.close()
    for one in (again, keeper):
        one.close()
    rule(access='read', state=2, message='a pause')
    assert stream_of(lab, 'demo', 'A') == 'OOFF'  # a browser would never come again after a 503
    rule(access='read', state=0)
    answer = lab.http.post(f'{lab.url}/demo/live', json={'defs': ['A'], 'admin': 'wrong'}, timeout=60)
    assert (answer.status_code, answer.json()['code']) == (403, 'SKEY')


def test_the_state_is_told(lab):
    """What ping returns of the configuration: at once, with each connection, and when that of z changes."""
    def set_conf(ns='demo', **members):
        lab.op('z', 'ns', {'set': {'ns': ns, **members}}, admin=True)
        return {name: value for name, value in lab.http.get(f'{lab.url}/demo/ping', timeout=PATIENCE_S).json().items() if name in ('state', *members)}

    def states(listener):
        return [data for name, data in listener.events if name == 'state']

    nothing = dict.fromkeys(('state', 'message', 'label', 'theme', 'options', 'quotas'))
    lab.op('z', 'ns', {'set': {'ns': 'demo', 'access': 'read', **nothing}}, admin=True)
    listener = Listener(lab, 'A', ns='demo')
    listener.opened()
    id_ = listener.wait_for_id()
    lab.op('z', 'ns', {'set': {'ns': 'demo', 'quotas': {'account': {'writes': '1/s'}}}}, admin=True)  # which no caller is told
    shown = set_conf(state=1, message='Moving.', label='Demo', options={'a': [1, 2]})
    assert shown == {'state': 1, 'message': 'Moving.', 'label': 'Demo', 'options': {'a': [1, 2]}}
    wait_until(lambda: states(listener) == [shown], what='the state')
    again = Listener(lab, 'A', ns='demo', last=id_)
    assert again.opened() is True
    wait_until(lambda: states(again) == [shown], what='the state of a connection that is resumed')
    lab.op('z', 'ns', {'set': {'ns': 'demo', **nothing}}, admin=True)
    wait_until(lambda: states(listener) == states(again) == [shown, {'state': 0}], what='the end of the state')
    try:
        set_conf('z', state=1, message='All.')
        wait_until(lambda: states(listener)[-1] == {'state': 1, 'message': 'All.'}, what='the state of z')
    finally:
        lab.op('z', 'ns', {'set': {'ns': 'z', 'state': None, 'message': None}}, admin=True)
    wait_until(lambda: states(listener)[-1] == {'state': 0}, what='that all is on')
    last = Listener(lab, 'A', ns='demo')
    last.opened()
    last.wait_for_id()
    assert not states(last), 'nothing is set'
    assert listener.is_open and again.is_open
    lab.admin('ns', 'access', 'demo', 'open')


def test_a_change_of_access_holds_for_the_next_listener(lab):
    """However soon it comes after the acknowledgement."""
    keeper = Listener(lab, 'A', ns='demo', admin=True)
    keeper.opened()
    for _ in range(8):
        lab.put('z', rules_with(lab, access='closed'), admin=True)
        refused('SCLOSED', Listener, lab, 'A', ns='demo')
        lab.put('z', rules_with(lab, access='read'), admin=True)
        Listener(lab, 'A', ns='demo').close()
    keeper.close()


# --- bad input ---


@pytest.mark.parametrize('definition', [
    '', 'person', '/', 'Person/', 'Person/team@a%', 'Person/team@a@b@c@d@e', 'Person/9@x', 'Per-son/1', 'Person/%00',
    'Person/' + 'x' * 256, 'Person/%ff', 'Abcdefghijklmnopq', 'Person/@x'])
def test_what_is_no_definition(lab, definition):
    refused('AARG', Listener, lab, definition, status=400)


def test_what_is_no_question(lab):
    def ask(status, code, path='/lab/live?def=A', **more):
        answer = lab.http.request(more.pop('method', 'GET'), lab.url + path, timeout=60, **more)
        assert (answer.status_code, answer.json()['code']) == (status, code), answer.text
    ask(400, 'AARG', '/lab/live')
    ask(400, 'AARG', '/lab/live?def=A&unknown=1')
    ask(400, 'AARG', '/lab/live?def=A&session=short')
    ask(400, 'AARG', f'/lab/live?def=A&session={"s" * 20}&session={"t" * 20}')
    ask(400, 'AARG', '/lab/live?def=A&admin=x')  # a key is no part of an address
    ask(404, 'NPATH', '/lab/live/x?def=A')
    ask(404, 'NNAMESPACE', '/nobody/live?def=A')
    ask(405, 'AMETHOD', method='PUT')
    for body in ([], {'defs': 'A'}, {'defs': [1]}, {'defs': [['A']]}, {'defs': ['A'], 'more': 1}, {'defs': []},
                 {'defs': ['A'], 'last': 7}, {'defs': ['A'], 'admin': None}):
        ask(400, 'AARG', '/lab/live', method='POST', json=body)
    ask(400, 'AJSON', '/lab/live', method='POST', data='{"defs":["A"]', headers={'Content-Type': 'application/json'})
    ask(415, 'ATYPE', '/lab/live', method='POST', data='defs=A', headers={'Content-Type': 'text/plain'})
    for path, body, args, at in (('?deff=A', None, ['deff', 'def'], '/deff'), ('?def=A&zzzzzz=1', None, ['zzzzzz'], '/zzzzzz'),
                                 ('', {'defs': ['A'], 'sesion': 'x'}, ['sesion', 'session'], '/sesion'), ('', {'defs': ['A', 1]}, ['defs'], '/defs/1'),
                                 ('', {'defs': ['A', 'a-b']}, ['def'], '/defs/1'), ('?def=A&session=short', None, ['session'], '/session')):
        answer = lab.http.request('POST' if body else 'GET', f'{lab.url}/lab/live{path}', json=body, timeout=60)
        assert (answer.status_code, answer.json()['args'], answer.json().get('at')) == (400, args, at), answer.text
    many = [f'A/{number}' for number in range(10000)]
    answer = lab.http.post(f'{lab.url}/lab/live', json={'defs': many}, timeout=60)
    assert (answer.status_code, answer.json()['args']) == (400, ['live_definitions', str(DEFINITIONS), '10000'])
    listener = Listener(lab, *many[:DEFINITIONS])
    listener.opened()
    listener.close()
    refused('NCOLLECTION', Listener, lab, 'Nobody/team@x')
    refused('AARG', Listener, lab, 'Person/place@x')  # it has two properties


def test_ids_of_others(lab):
    listener = Listener(lab, 'A')
    last = listener.wait_for_id()
    listener.close()
    life, horizon, floor, sight = read_signed(lab, 'lab', last, 'live', 'lab').split('.')
    altered = last[:20] + ('A' if last[20] != 'A' else 'B') + last[21:]
    for wrong in ('x', last[:-1], last + 'A', altered, last[::-1], f'{life}.{horizon}.{floor}.{sight}', f'{life}.{horizon}.{floor}'):
        refused('AARG', Listener, lab, 'A', last=wrong)
    refused('AARG', Listener, lab, 'A', ns='demo', last=last)
    # With the secret, which nobody has: of transactions that are still to come, and of another life.
    def made(life, horizon):
        return sign(lab, 'lab', f'{life}.{horizon}.{floor}.{sight}', 'live', 'lab')
    Listener(lab, 'A', last=made(life, horizon)).close()
    refused('AARG', Listener, lab, 'A', last=made(life, int(horizon) + 10**9))
    other = Listener(lab, 'A', last=made(int(life) + 1, horizon))
    assert other.opened() is False  # nothing is known of that life: look at everything
    other.close()


def test_ids_show_nothing_of_what_others_do(lab):
    """Numbers of transactions are common to all databases of a cluster: whoever reads them counts the commits of all tenants."""
    listeners = [Listener(lab, 'A') for _ in range(2)]
    ids = [listener.wait_for_id() for listener in listeners]
    for listener in listeners:
        listener.close()
    lab.psql('demo', 'select pg_current_xact_id()')
    horizons = {f".{read_signed(lab, 'lab', id_, 'live', 'lab').split('.')[1]}." for id_ in ids}
    for id_ in ids:
        assert re.fullmatch('[A-Za-z0-9_-]{60,200}', id_), 'no numbers with points between them'
        assert not any(horizon.encode() in decode(id_) for horizon in horizons)
    # The same horizon looks different each time, so that not even standing still can be seen.
    assert ids[0] != ids[1] and ids[0][:16] != ids[1][:16] and ids[0][-16:] != ids[1][-16:]


def test_a_connection_that_reads_nothing_is_closed(lab):
    """On the socket itself, where nginx does not take it; others are told meanwhile."""
    put(lab, 'loud', {})
    listener = Listener(lab, 'Person/loud')
    listener.opened()
    tags = [f'{number:02}' + 'x' * 60 for number in range(DEFINITIONS - 2)]
    question = '&'.join(f'def=Person%2Ftag%40{tag}' for tag in tags)  # so each event is large
    deaf = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    deaf.connect(str(lab.path / 'run/stampd/live.sock'))
    deaf.sendall(f'GET /lab/live?def=Person&{question} HTTP/1.1\r\nHost: x\r\nX-Stampd-Ns: lab\r\n'
                 'X-Stampd-Database: stampd_lab\r\n\r\n'.encode())
    assert deaf.recv(15) == b'HTTP/1.1 200 OK'
    poll = select.poll()
    poll.register(deaf, 0)  # nothing is read: only whether the other end is closed

    def is_closed():
        listener.wait_for('Person/loud', put(lab, 'loud', {'n': random.random(), 'tags': tags}))
        return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
    wait_until(is_closed, what='the end of the connection')
    deaf.close()
    assert listener.is_open
    listener.close()


def test_no_more_connections_than_may_be(lab):
    listeners = []
    problem = None
    wait_until(lambda: lab.metrics()['stampd_live_listeners'] == 0, what='the end of all former connections')
    try:
        for _ in range(CONNECTIONS + 2):
            listeners.append(Listener(lab, 'A'))
    except Problem as caught:
        problem = caught
    assert problem and (problem.status, problem.code, problem.body['args']) == (503, 'XCROWDED', ['live_connections', str(CONNECTIONS)])
    assert stream_of(lab, 'lab', 'A') == 'XCROWDED'
    for listener in listeners:
        listener.close()
    come_again(lab, 'A').close()


# --- while the database is away ---


def test_ids_that_come_while_the_database_is_away_are_good(lab):
    """Listeners without news get an id with a sign of life."""
    busy = Listener(lab, 'Person/busy')
    idle = []
    for _ in range(8):  # their signs of life come at different times
        idle.append(Listener(lab, 'Other/none'))
        time.sleep(0.13)
    for number in range(30):
        put(lab, 'busy', {'n': number})
        time.sleep(0.1)
    lab.stop_postgres()
    before = [listener.comments for listener in idle]
    wait_until(lambda: all(listener.comments > count + 1 for listener, count in zip(idle, before)), what='two signs of life each')
    assert not any(listener.ends_of_nothing for listener in idle)
    lab.step('postgres', 'start')
    for listener in (busy, *idle):
        listener.close()
        come_again(lab, *listener.definitions, last=listener.last).close()


# --- a commit that its worker could not tell ---


def test_a_worker_dies_between_commit_and_telling(lab):
    bar = rules_with(lab, access='closed')
    lab.step('stampd', 'stop', 'now')
    assert stream_of(lab, 'lab', 'A') is None  # nginx says it
    refused('OSTOPPING', Listener, lab, 'A', status=503)  # no process was reached: nothing was done
    lab.set(debug_die_at='commit-published')  # each worker dies once it has committed something
    barred = come_again(lab, 'A', ns='demo')
    lab.request('POST', '/z/op/put', json={'param': {'docs': [bar]}}, admin=True)
    wait_until(lambda: ('closed', {'code': 'SCLOSED'}) in barred.events, what='the farewell')
    listener = come_again(lab, 'Person/doomed', 'Person/team@doomed')
    listener.opened()
    for number in range(6):  # some die, at their first commit
        lab.request('POST', '/lab/op/put', json={'param': {'docs': [
            {'c': 'Person', 'id': 'doomed', 'items': [{'c': 'Main', 'j': {'team': 'doomed', 'n': number}}]}]}})
    version = wait_until(lambda: lab.psql('lab', "select version from doc where class = 'Person' and id = 'doomed'"))[0][0]
    for definition in listener.definitions:
        listener.wait_for(definition, version)
    listener.close()
