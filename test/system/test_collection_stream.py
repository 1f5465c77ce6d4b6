"""A whole collection in one answer, streamed: it equals the source, its token goes on from there, and what breaks off shows it."""
import json
import struct

import psycopg2
import pytest
import requests

from fastcgi import STDOUT, Connection
from manager import Manager
from schema import Schemas
from stack import Problem, wait_until

STACK = {'workers': 2}

PERSON = {'items': {'Main': {'singleton': True}, 'Note': {}, 'Text': {'raw': True}}, 'maxLife': 'Main.until',
          'collections': {'team': {'key': ['Main.team'], 'mutable': True}}}
LARGE, BYTES = 800, 50_000


@pytest.fixture(scope='module')
def lab(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', {'Person': PERSON})
    fill(stack)
    return stack


def fill(stack):
    """A collection that is larger than what sockets and nginx keep for a client."""
    stack.psql('lab', "insert into doc select 'Person', 'big' || n, 261121103000000 + n, 261121103000000, 261121103000000, 0, 0"
                      f' from generate_series(1, {LARGE}) n')
    stack.psql('lab', "insert into item select 'Person', 'big' || n, 'Main', '', 261121103000000 + n, 261121103000000,"
                      f" json_build_object('team', 'big', 'n', n, 'text', repeat('x', {BYTES}))::text, false"
                      f' from generate_series(1, {LARGE}) n')
    stack.psql('lab', "select member_write('Person', (select array_agg(id) from doc where id ~ '^big'))")
    stack.older_transactions_end()


def put(stack, id_, *items, **main):
    return stack.put('lab', {'c': 'Person', 'id': id_, 'items': [{'c': 'Main', 'j': main}, *items]})


def question(value, **more):
    return {'c': 'Person', 'collection': 'team', 'value': value, **more}


def lines_of(answer):
    assert answer.status_code == 200, answer.content[:500]
    assert answer.headers['Content-Type'] == 'application/x-ndjson' and 'Content-Length' not in answer.headers
    text = answer.content.decode()  # the library would guess for long what it is
    assert text.endswith('\n')
    return [json.loads(line) for line in text[:-1].split('\n')]


def stream(stack, value, **more):
    """The members, and the token of the last line."""
    answer = stack.request('POST', '/lab/op/collection', json={'param': question(value, stream=True, **more)})
    *members, last = lines_of(answer)
    assert set(last) == {'members', 'token'} and last['members'] == len(members)
    return members, last['token']


def since(stack, value, token):
    out = stack.op('lab', 'collection', question(value, token=token, want='ids'))['out']
    assert not out['complete']
    return {id_ for id_, _ in out['ids']}, {id_ for id_, _ in out['left']}


def test_documents_come_as_get_gives_them(lab):
    put(lab, 'plain', team='kinds', n=1)
    put(lab, 'q"\\\u00e9\U0001f600', {'c': 'Text', 'k': 'a"\n', 's': 'raw "text"\n'}, {'c': 'Note', 'k': 'b', 'j': [1, {'x': None}]}, team='kinds')
    put(lab, 'less', {'c': 'Note', 'k': 'gone', 'j': 1}, team='kinds')
    lab.put('lab', {'c': 'Person', 'id': 'less', 'items': [{'c': 'Note', 'k': 'gone', 'del': True}]})
    put(lab, 'ended', team='kinds', until=1)
    put(lab, 'left', team='kinds')
    put(lab, 'left', team='other')
    members, _ = stream(lab, 'kinds')
    assert [member['id'] for member in members] == ['plain', 'q"\\\u00e9\U0001f600', 'less'], 'in the order in which they changed'
    assert members == lab.get('lab', *(('Person', member['id']) for member in members))
    pairs, _ = stream(lab, 'kinds', want='ids')
    assert pairs == [[member['id'], member['v']] for member in members]


def test_an_empty_one_has_a_token(lab):
    members, token = stream(lab, 'nobody')
    assert members == []
    put(lab, 'first', team='nobody')
    assert since(lab, 'nobody', token) == ({'first'}, set())


def test_its_token_misses_no_commit_that_becomes_visible_late(lab):
    put(lab, 'leaves', team='late')
    late = psycopg2.connect(lab.conninfo('lab'), options='-c search_path=stampd')
    with late.cursor() as cursor:
        cursor.execute("select put_item('Person', 'comes', 'Main', '', '{\"team\": \"late\"}')")
        cursor.execute("select put_item('Person', 'leaves', 'Main', '', '{\"team\": \"elsewhere\"}')")
        put(lab, 'early', team='late')
        members, token = stream(lab, 'late')
        assert {member['id'] for member in members} == {'leaves', 'early'}
        late.commit()
    late.close()
    came, left = since(lab, 'late', token)
    assert {'comes'} <= came <= {'comes', 'early'} and left == {'leaves'}


def test_a_large_one_comes_whole(lab):
    members, token = stream(lab, 'big')
    assert [member['items'][0]['j']['n'] for member in members] == sorted(range(1, LARGE + 1), key=str)
    assert all(len(member['items'][0]['j']['text']) == BYTES for member in members)
    assert since(lab, 'big', token) == (set(), set())


def test_compressed(lab):
    answer = lab.request('POST', '/lab/op/collection', json={'param': question('big', stream=True)}, headers={'Accept-Encoding': 'gzip'})
    assert answer.headers['Content-Encoding'] == 'gzip' and len(lines_of(answer)) == LARGE + 1


@pytest.mark.plain
def test_a_worker_keeps_only_a_piece_of_it(lab):
    def peak():
        return max(int(line.split()[1]) for pid in lab.worker_pids() for line in open(f'/proc/{pid}/status') if line.startswith('VmRSS'))
    before = peak()
    for _ in range(lab.workers + 1):
        stream(lab, 'big')
    assert peak() - before < LARGE * BYTES / 1024 / 4, 'KiB more than before'


@pytest.mark.plain
def test_a_document_too_comes_in_pieces(lab):
    def peak():
        return max(int(line.split()[1]) for pid in lab.worker_pids() for line in open(f'/proc/{pid}/status') if line.startswith('VmHWM'))
    put(lab, 'heavy', team='heavy')
    lab.psql('lab', "insert into item select 'Person', 'heavy', 'Note', n::text, version, version,"
                    f" to_json(repeat('x', {BYTES}))::text, false from generate_series(1, {LARGE}) n, doc where id = 'heavy'")
    before = peak()
    for _ in range(lab.workers + 1):
        [member], _ = stream(lab, 'heavy')
        assert len(member['items']) == LARGE + 1
    assert peak() - before < LARGE * BYTES / 1024 / 4, 'KiB more than ever before'


def test_head(lab):
    param = json.dumps(question('big', stream=True))
    answer = lab.request('HEAD', '/lab/op/collection', query={'param': param})
    assert answer.status_code == 200 and answer.headers['Content-Type'] == 'application/x-ndjson' and not answer.content

    def read():
        answer = lab.request('GET', '/lab/op/collection', query={'param': param})
        return answer if answer.status_code != 429 else None  # the worker may still be composing what HEAD leaves out
    assert len(lines_of(wait_until(read, what='a free worker'))) == LARGE + 1


@pytest.mark.parametrize('more, member', [({'token': 'x'}, 'token'), ({'cursor': 'x'}, 'cursor'), ({'limit': 5}, 'limit'), ({'stream': 1}, 'stream')])
def test_what_a_stream_goes_without(lab, more, member):
    with pytest.raises(Problem) as problem:
        lab.op('lab', 'collection', {**question('big', stream=True), **more})
    assert problem.value.code == 'AARG' and problem.value.body['args'] == [member]


def test_a_fault_before_the_first_line_is_a_problem(lab):
    with pytest.raises(Problem) as problem:
        lab.op('lab', 'collection', {**question('big', stream=True), 'collection': 'none'})
    assert problem.value.code == 'NCOLLECTION'
    lab.op('lab', 'task', {'op': 'collection', 'param': question('big', stream=True)}, admin=True)
    (taskid,), = lab.psql('lab', "select taskid from taskqueue where opname = 'collection'")
    assert Manager(lab, 'lab').run(taskid, 500)['result'] == 'failed'
    assert lab.psql('lab', 'select exc from taskqueue where taskid = %s', (taskid,)) == [('AARG',)]


def test_under_an_idempotency_key_it_is_streamed_anew(lab):
    for members in range(2):
        answer = lab.request('POST', '/lab/op/collection', json={'param': question('keyed', stream=True)}, headers={'Idempotency-Key': 'same'})
        assert len(lines_of(answer)) == members + 1
        put(lab, 'keyed', team='keyed')


def test_what_fails_in_the_middle_has_no_last_line(lab):
    """The head has left, then the rows of items cannot be had."""
    lab.set(lock_timeout_ms=300)
    for path in sockets(lab):  # each worker has prepared the statement
        with Connection(path) as client:
            request_directly(client, 'kinds')
            assert client.receive().status == 200
    holder = psycopg2.connect(lab.conninfo('lab'), options='-c search_path=stampd')
    with holder.cursor() as cursor:
        cursor.execute('lock table item in access exclusive mode')
        text = b''
        with pytest.raises(requests.exceptions.RequestException):
            answer = lab.request('POST', '/lab/op/collection', json={'param': question('big', stream=True)}, stream=True)
            assert answer.status_code == 200
            for piece in answer.iter_content(None):
                text += piece
        assert b'"token"' not in text
    holder.close()
    lab.set(lock_timeout_ms=5000)
    assert len(stream(lab, 'kinds')[0]) == 3, 'nothing is left of it'


def request_directly(connection, value):
    body = json.dumps({'param': question(value, stream=True)}).encode()
    connection.send('/lab/op/collection', body, method='POST', CONTENT_TYPE='application/json', STAMPD_NS='lab', STAMPD_DATABASE='stampd_lab')


def sockets(stack):
    return sorted((stack.path / 'run/stampd').glob('worker-*.sock'))


def test_a_backend_that_dies_ends_the_answer(lab):
    path = sockets(lab)[0]
    with Connection(path) as client:
        request_directly(client, 'big')
        assert client.read(8)[1] == STDOUT
        assert lab.psql(None, "select pg_terminate_backend(pid) from pg_stat_activity where query like %s and state = 'active'"
                              " and usename = 'stampd'", ('select m.id, m.version%',)) == [(True,)]
        with pytest.raises(EOFError):
            client.receive()
    with Connection(path) as client:
        request_directly(client, 'kinds')
        assert client.receive().body.count(b'\n') == 4


def test_a_client_that_goes_away_leaves_nothing_behind(lab):
    with Connection(sockets(lab)[0]) as client:
        request_directly(client, 'big')
        assert client.read(8)[1] == STDOUT
    wait_until(lambda: lab.psql(None, "select count(*) from pg_stat_activity where usename = 'stampd' and state <> 'idle'") == [(0,)])


@pytest.mark.parametrize('setting, value, counted', [('limit_stream_ms', 1000, 1), ('limit_operation_s', 1, 0)])
def test_a_client_that_stops_to_read_does_not_keep_the_worker(lab, setting, value, counted):
    lab.set(**{setting: value})
    path = sockets(lab)[0]

    def begun():
        """A stream whose head has come; what takes longer than the limit before it is refused."""
        connection = Connection(path)
        request_directly(connection, 'big')
        _, kind, _, size, padding, _ = struct.unpack('>BBHHBB', connection.read(8))
        if kind == STDOUT and b'Status: 200' in connection.read(size + padding):
            return connection
        connection.close()
        return None

    before = lab.refusals('limit_stream_ms')
    with wait_until(begun, what='a stream') as idle, Connection(path) as other:
        assert other.ask('/ping', STAMPD_NS='').status == 200, 'after the time limit, at the latest'
        with pytest.raises(EOFError):
            idle.receive()
    wait_until(lambda: lab.refusals('limit_stream_ms') >= before + counted)
