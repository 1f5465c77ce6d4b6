"""stampctl purge, ns purge --dry-run: what was asked for goes, exactly; nothing else, whatever others write meanwhile."""
import contextlib
import http.server
import json
import signal
import subprocess
import threading

import psycopg2
import pytest

import archives
from schema import Schemas
from stack import PATIENCE_S, Problem, run_program, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', 'busy': 'open', 'held': 'open', 'kept': 'open', 'lost': 'open'}, 'settings': {'keep_interval_s': 0}}
CARD = {'items': {'Main': {'singleton': True, 'fields': {'team': 'string'}}}, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}},
        'unique': {'mail': {'key': ['Main.mail']}}}
LONG_AGO = 200101000000000
LOOKS = 12  # more than workers
LIMIT = 32  # documents of a request


def doc(class_, id_, **content):
    return {'c': class_, 'id': id_, 'items': [{'c': 'Main', 'j': content}]}


@pytest.fixture
def purge(stack):
    return lambda *words, ns='lab', **more: run_program(*stack.copy_words('purge', *words, ns=ns), **more)


def age(stack, ns, where):
    """As if these documents had been written long ago; returns when each worker knows it, by the triggers."""
    stack.psql(ns, f'update item set version = {LONG_AGO}, vop = {LONG_AGO} where {where}')
    stack.psql(ns, f'update doc set version = {LONG_AGO}, ctime = {LONG_AGO}, dtime = {LONG_AGO} where {where}')
    aged = stack.psql(ns, f'select class, id from doc where {where}')
    wait_until(lambda: all(document['v'] == LONG_AGO for document in look(stack, ns, aged)), what='what psql has written')
    return set(aged)


def look(stack, ns, names):
    """These documents, several times each: every worker is asked."""
    for _ in range(LOOKS):
        for start in range(0, len(names), LIMIT):
            yield from stack.get(ns, *names[start:start + LIMIT])


def living(stack, ns):
    return set(stack.psql(ns, 'select class, id from doc where ctime <> 0'))


def check_what_follows(stack, ns):
    """Volumes, collections and unique values are those of the rows."""
    assert stack.psql(ns, 'select v1 from volumes() where class is null') == stack.psql(
        ns, 'select coalesce(sum(octet_length(key) + octet_length(content)), 0)::bigint from item where content is not null')
    assert not stack.psql(ns, 'select 1 from item i where not exists (select from doc d where d.class = i.class and d.id = i.id and d.ctime <> 0)')
    cards = stack.psql(ns, "select id from doc where class = 'Card' and ctime <> 0 order by id")
    assert stack.psql(ns, 'select distinct id from member where not has_left order by id') == cards
    assert stack.psql(ns, 'select distinct id from unique_value order by id') == cards


def fill(stack, ns, path, count=100):
    Schemas(stack, path).apply(ns, {'Card': CARD})
    for start in range(0, count, 20):
        stack.put(ns, *(doc('Card', f'c{n:04}', team='red' if n % 2 else 'blue', mail=f'{ns}{n}') for n in range(start, start + 20)))
    stack.put(ns, *(doc('Note', f'n{n:02}', a=n) for n in range(20)), doc('Note', 'x é"\\', a=1), doc('Other', 'c0001', a=1))


def test_only_what_was_asked_for(stack, purge, tmp_path):
    fill(stack, 'lab', tmp_path)
    old = age(stack, 'lab', "class = 'Card' and id < 'c0040' or class = 'Note' and id > 'n14'")
    before, all_ = archives.rows(stack, 'lab'), living(stack, 'lab')
    assert 'Card: 40 of 100 documents would be deleted' in purge('--dry-run', '--older-than', 300).out
    assert 'lab: 122 of 122 documents would be deleted' in purge('--dry-run').out
    for words in ((), ('--yes', '--class', 'x'), ('--yes', '--older-than', 0)):
        assert purge(*words, status=2).error
    assert 'configuration' in purge('--yes', ns='z', status=2).error
    assert archives.rows(stack, 'lab') == before
    token = stack.op('lab', 'collection', {'c': 'Card', 'collection': 'team', 'value': 'red', 'want': 'ids'})['out']['token']

    assert 'Card: 10 of 10 documents deleted' in purge('--yes', '--class', 'Card', '--older-than', 300, '--prefix', 'c002').out
    gone = {('Card', f'c{n:04}') for n in range(20, 30)}
    assert living(stack, 'lab') == all_ - gone
    assert 'lab: 36 of 112 documents deleted' in purge('--yes', '--older-than', 300).out
    assert living(stack, 'lab') == all_ - old and gone < old
    assert archives.rows(stack, 'lab')[1] == {row for row in before[1] if row[:2] not in old}, 'all others have every item that they had'
    check_what_follows(stack, 'lab')
    left = stack.op('lab', 'collection', {'c': 'Card', 'collection': 'team', 'value': 'red', 'want': 'ids', 'token': token})['out']
    assert {name for name, _ in left['left']} == {f'c{n:04}' for n in range(1, 40, 2)} and not left['complete']
    assert stack.get('lab', ('Card', 'c0001'))['v'] == 0
    stack.put('lab', doc('Card', 'again', team='red', mail='lab1'))  # its unique value is free

    purge('--yes', '--class', 'Note')
    assert {class_ for class_, _ in living(stack, 'lab')} == {'Card', 'Other'}
    assert 'lab: 62 of 62 documents deleted' in purge('--yes').out and not living(stack, 'lab')
    check_what_follows(stack, 'lab')
    assert 'lab: 0 of 0' in purge('--yes').out


@contextlib.contextmanager
def holding(stack, ns, sql):
    """A transaction that has changed something; the purge has met its lock when the block begins."""
    connection = psycopg2.connect(stack.conninfo(ns), options='-c search_path=stampd')
    try:
        connection.cursor().execute(sql)
        program = subprocess.Popen(stack.copy_words('purge', '--yes', '--retry-for', 1000, ns=ns), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: stack.psql(ns, 'select 1 from pg_locks where not granted'), what='the purge at the lock')
            yield connection, program
        finally:
            program.kill()
            program.communicate()
    finally:
        connection.close()


def test_what_changes_between_list_and_deletion_stays(stack, purge):
    """In one batch: a document that is changed, one that is deleted and born again, one that is born, and others."""
    stack.put('held', *(doc('Note', f'n{n:02}', a=n) for n in range(30)))
    with holding(stack, 'held', "select put_item('Note', 'n07', 'Main', '', '{\"a\":\"new\"}'), delete_document('Note', 'n11'), "
                 "put_item('Note', 'n11', 'Main', '', '{\"a\":\"again\"}'), delete_document('Note', 'n12')") as (connection, program):
        connection.commit()
        out, error = program.communicate()
    assert program.returncode == 0 and 'retrying' not in error, error  # a slow machine sees progress there
    assert living(stack, 'held') == {('Note', 'n07'), ('Note', 'n11')}
    assert 'held: 27 of 30 documents deleted' in out and 'held: 3 documents were changed or deleted by others' in out

    wait_until(lambda: all(document['v'] and document['items'][0]['j'] == {'a': word} for document, word in zip(
        look(stack, 'held', [('Note', 'n07'), ('Note', 'n11')]), ['new', 'again'] * LOOKS, strict=True)), what='what psql has written')
    assert 'held: 2 of 2' in purge('--yes', ns='held').out


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_purge_goes_on(stack, purge, number):
    for start in range(0, 100, 20):
        stack.put('held', *(doc('Note', f'n{n:03}', a=n) for n in range(start, start + 20)))
    with holding(stack, 'held', "select 1 from doc where class = 'Note' and id = 'n070' for update") as (connection, program):
        program.send_signal(number)
        if number == signal.SIGKILL:
            program.wait()
        connection.rollback()
        _, error = program.communicate()
    assert program.returncode != 0 and (number == signal.SIGKILL or 'run the same command to continue' in error)
    busy = "select 1 from pg_stat_activity where datname = 'stampd_held' and backend_type = 'client backend' and state <> 'idle' and pid <> pg_backend_pid()"
    wait_until(lambda: not stack.psql('held', busy), what='the end of the request')
    left = len(living(stack, 'held'))
    assert left in (4, 36)  # with the request that was under way, or without
    assert f'held: {left} of {left} documents deleted' in purge('--yes', ns='held').out and not living(stack, 'held')


def test_writers_lose_nothing(stack, purge, tmp_path):
    """Whoever has written a document while old ones are purged finds it; what nobody has written is gone."""
    fill(stack, 'busy', tmp_path, count=1000)
    old = age(stack, 'busy', "class = 'Card'")
    is_over, written = threading.Event(), [{} for _ in range(3)]

    def write(own, first):
        number = 0
        while not is_over.is_set():
            number += 1
            name = f'c{3 * (number * 7 % 200) + first:04}'
            with contextlib.suppress(Problem):
                stack.put('busy', doc('Card', name, team='green', mail=f'{first} {name}', n=number))
                own[name] = number
    # Each writes documents of its own, ids of another remainder; nobody writes those from 600 on.
    threads = [threading.Thread(target=write, args=(written[first], first)) for first in range(3)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: all(len(own) > 3 for own in written), what='writers')
        outcome = purge('--yes', '--older-than', 300, ns='busy')
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    names = {('Card', name) for own in written for name in own}
    assert living(stack, 'busy') == names | {name for name in living(stack, 'busy') if name[0] != 'Card'} and len(living(stack, 'busy')) == len(names) + 22
    assert len(old) == 1000 and 'busy: 0 of' not in outcome.out
    check_what_follows(stack, 'busy')


def test_the_dry_run_of_ns_purge_counts_what_it_purges(stack, tmp_path):
    Schemas(stack, tmp_path).apply('kept', {'Card': {**CARD, 'maxLife': 'Main.until'}, 'Note': {'items': {'Main': {'singleton': True}}, 'zombieDays': 8}})
    stack.put('kept', *(doc('Card', f'c{n}', team='red', mail=f'kept{n}') for n in range(6)), *(doc('Note', f'n{n}', a=n) for n in range(5)))
    stack.put('kept', *({'c': 'Card', 'id': f'c{n}', 'delete': True} for n in range(3)), *({'c': 'Note', 'id': f'n{n}', 'delete': True} for n in range(4)))
    with stack.keeper_stopped():  # which deletes what has expired when a minute begins
        stack.psql('kept', "select put_item('Card', 'c5', 'Main', '', '{\"until\":1}')")
        stack.psql('kept', f"update doc set version = {LONG_AGO} where ctime = 0 and id in ('c0', 'c1', 'n0', 'n1', 'n2')")
        stack.psql('kept', f"update member set version = {LONG_AGO} where has_left and id = 'c2'")
        ended = stack.psql('kept', "select count(*) from doc d join expiry e using (class, id) where d.ctime <> 0")[0][0]
        before = archives.rows(stack, 'kept')
        out = stack.admin('ns', 'purge', 'kept', '--dry-run').out
        assert f'kept: Card: {ended} expired, 2 deleted, 1 departures' in out and 'kept: Note: 0 expired, 3 deleted, 0 departures' in out
        assert f'kept: {ended} expired, 5 deleted, 1 departures, 0 subscriptions would be purged' in out
        assert archives.rows(stack, 'kept') == before
        assert '5 deleted ones and 1 departures are forgotten' in stack.admin('ns', 'purge', 'kept').out
        assert 'kept: 0 expired, 0 deleted, 0 departures' in stack.admin('ns', 'purge', 'kept', '--dry-run').out


class Proxy(http.server.BaseHTTPRequestHandler):
    """Passes requests on to the stack; what `answer` returns for a path and the true answer is sent, and nothing if that is None."""
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        headers = {name: value for name, value in self.headers.items() if name in ('Content-Type', 'Idempotency-Key')}
        answer = self.server.stack.http.request(self.command, self.server.stack.url + self.path, data=body, headers=headers, timeout=PATIENCE_S)
        status, text = self.server.answer(self.path, body.decode(), answer.status_code, answer.text)
        if status is None:
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def proxy(stack, answer):
    """The URL of a proxy."""
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Proxy) as server:
        server.stack, server.answer = stack, answer
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f'http://127.0.0.1:{server.server_port}'
        finally:
            server.shutdown()
            thread.join()


def purge_through(stack, url, *words, **more):
    return run_program(stack.build / 'src/stampctl', 'purge', url, '--ns', 'lost', '--yes', *words, **more)


def test_an_answer_that_was_lost_is_not_a_change_by_others(stack):
    for start in (0, 25):
        stack.put('lost', *(doc('Note', f'n{n:02}', a=n) for n in range(start, start + 25)))
    lost = []

    def answer(path, body, status, text):
        if path.endswith('/put') and body not in lost:
            lost.append(body)
            return None, None
        return status, text
    with proxy(stack, answer) as url:
        done = purge_through(stack, url)
    assert 'lost: 50 of 50 documents deleted' in done.text and 'by others' not in done.text and len(lost) == 2
    assert living(stack, 'lost') == set()


def test_age_is_by_the_clock_of_the_server(stack):
    """A server whose clock is 40 days ahead of the client's."""
    stack.put('lost', doc('Note', 'of-today', a=1))
    ahead = stack.psql('lost', "select stamp_of(now() + interval '40 days')")[0][0]

    def answer(path, _body, status, text):
        return status, json.dumps({**json.loads(text), 't': ahead}) if path.endswith('/ping') else text
    with proxy(stack, answer) as url:
        assert '0 of 1 documents' in purge_through(stack, url, '--older-than', 50).text
        assert '1 of 1 documents deleted' in purge_through(stack, url, '--older-than', 30).text


def test_a_refused_document_is_named_without_control_characters(stack):
    stack.put('lost', doc('Note', 'a\x1b[2J\u009b', a=1))

    def answer(path, _body, status, text):
        return (422, '{"code":"AARG","message":"No."}') if path.endswith('/put') else (status, text)
    with proxy(stack, answer) as url:
        error = purge_through(stack, url, status=1).error
    assert '"Note" "a\\u001b[2J\\u009b":' in error and 'AARG No.' in error and '\x1b' not in error


def test_a_second_signal_does_not_wait_for_the_answer(stack):
    """The server never answers: the first signal alone would wait for it."""
    stack.put('lost', doc('Note', 'held', a=1))
    is_asked, goes_on = threading.Event(), threading.Event()

    def answer(path, _body, status, text):
        if path.endswith('/put'):
            is_asked.set()
            goes_on.wait()
        return status, text
    with proxy(stack, answer) as url:
        try:
            words = [str(stack.build / 'src/stampctl'), 'purge', url, '--ns', 'lost', '--yes']
            with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
                assert is_asked.wait(PATIENCE_S)

                def is_ended():
                    program.send_signal(signal.SIGINT)
                    return program.poll() is not None
                wait_until(is_ended, what='the end of the command')
                assert 'interrupted' in program.stderr.read() and program.returncode == 1
        finally:
            goes_on.set()
