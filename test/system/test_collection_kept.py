"""Streams of collections that are kept: while nothing changes one query serves all clients, and whatever changes ends that at once."""
import itertools
import json
import random
import re
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest

from schema import Schemas
from stack import Problem, wait_until
from vault import create, new_site_key

WORKERS = 4
STACK = {'workers': WORKERS, 'settings': {'kept_streams_mb': 1}, 'postgres': {'log_statement': 'all'}}
PERSON = {'open': True, 'items': {'Main': {'singleton': True}, 'End': {'singleton': True}}, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}}}
SCHEMA = {'Person': PERSON, 'Brief': {**PERSON, 'maxLife': 'End.minute'}, 'Other': PERSON}
MEMBERS, ROUNDS = 30, 3 * WORKERS
LARGE, NOISE = 'x' * 10_000, 5_000  # bytes of a document that is compressed well, and hexadecimal digits of one that is not
NUMBERS = itertools.count()


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    schemas.apply('lab', SCHEMA)
    return schemas


@pytest.fixture
def lab(stack, schemas):
    return stack


def put(stack, id_, team, class_='Person', ns='lab', text=LARGE, **more):
    return stack.put(ns, {'c': class_, 'id': id_, 'items': [{'c': 'Main', 'j': {'team': team, 'number': next(NUMBERS), 'text': text}}]}, **more)


def fill(stack, team, members=MEMBERS, text=lambda: LARGE, **more):
    """A collection that is large enough to be kept; returns the ids."""
    ids = [f'{team}{number}' for number in range(members)]
    for id_ in ids:
        put(stack, id_, team, text=text(), **more)
    return ids


def noise():
    return f'{random.getrandbits(4 * NOISE):0{NOISE}x}'


def ask(stack, team, class_='Person', ns='lab', admin=None, **more):
    param = {'c': class_, 'collection': 'team', 'value': team, 'stream': True}
    answer = stack.request('POST', f'/{ns}/op/collection', json={'param': param}, admin=admin, **more)
    if answer.status_code != 200:
        raise Problem(answer)
    return answer


def stream(stack, team, **more):
    """The documents by their ids, and the token."""
    *lines, last = ask(stack, team, **more).content.decode().splitlines()
    last = json.loads(last)
    assert last['members'] == len(lines)
    return {document['id']: document for document in map(json.loads, lines)}, last['token']


def queries(stack):
    """How many streams were queried so far; PostgreSQL logs a statement before it executes it."""
    return len(re.findall(r'LOG:  execute .*: select m\.id, m\.version, d\.version', stack.log('postgres')))


def keep(stack, team, **more):
    """Until it is kept: the relay, which may just connect, ends what is.  Returns the queries so far."""
    def is_kept():
        stream(stack, team, **more)
        before = queries(stack)
        stream(stack, team, **more)
        return queries(stack) == before
    wait_until(is_kept, what='a stream without a query')
    return queries(stack)


def folder(stack):
    return stack.path / 'run/stampd/segment.kept'


def kept_files(stack):
    return sorted(path for path in folder(stack).iterdir() if path.suffix != '.new')


def test_one_query_serves_all(lab):
    ids = fill(lab, 'still')
    before = keep(lab, 'still')
    answers = [ask(lab, 'still').content for _ in range(ROUNDS)]
    assert queries(lab) == before and len(set(answers)) == 1
    members, token = stream(lab, 'still')
    assert members == {document['id']: document for document in lab.get('lab', *(('Person', id_) for id_ in ids))}
    version = put(lab, 'still0', 'elsewhere')
    out = lab.op('lab', 'collection', {'c': 'Person', 'collection': 'team', 'value': 'still', 'token': token, 'want': 'ids'})['out']
    assert not out['complete'] and ['still0', version] in out['left'], 'the token of a kept stream is as good as another'


def test_ids_are_another_stream(lab):
    fill(lab, 'two')
    keep(lab, 'two')
    param = {'c': 'Person', 'collection': 'team', 'value': 'two', 'stream': True, 'want': 'ids'}
    pairs = [json.loads(line) for line in lab.request('POST', '/lab/op/collection', json={'param': param}).content.splitlines()[:-1]]
    assert sorted(pairs) == sorted([id_, document['v']] for id_, document in stream(lab, 'two')[0].items())


def test_who_does_not_unpack_gets_it_unpacked(lab):
    fill(lab, 'plain')
    keep(lab, 'plain')
    packed, plain = (ask(lab, 'plain', headers={'Accept-Encoding': coding}) for coding in ('gzip', 'identity'))
    assert packed.headers['Content-Encoding'] == 'gzip' and 'Content-Encoding' not in plain.headers and packed.content == plain.content
    for answer in packed, plain:
        assert 'Accept-Encoding' in answer.headers['Vary'] and answer.headers['Content-Type'] == 'application/x-ndjson'
        assert answer.headers['Cache-Control'] == 'private, no-cache, no-transform'


def test_a_thousand_at_once_cost_one_query(lab):
    """As many as there are workers: the others wait in nginx.  The first is held, so that all have come before it ends, or find it at its end."""
    lab.set(lock_timeout_ms=600_000)
    fill(lab, 'herd')
    keep(lab, 'herd')  # each session has its schema
    put(lab, 'herd0', 'herd')
    holder = psycopg2.connect(lab.conninfo('lab'), options='-c search_path=stampd')
    before = queries(lab)
    with ThreadPoolExecutor(20) as pool, holder.cursor() as cursor:
        cursor.execute('lock table item in access exclusive mode')
        first = pool.submit(stream, lab, 'herd')
        wait_until(lambda: lab.psql(None, "select 1 from pg_stat_activity where usename = 'stampd' and wait_event_type = 'Lock'"), what='the query')
        others = [pool.submit(stream, lab, 'herd') for _ in range(19)]
        holder.commit()
        answers = [one.result() for one in (first, *others)]
    holder.close()
    lab.set(lock_timeout_ms=5000)
    assert all(answer == answers[0] for answer in answers) and len(answers[0][0]) == MEMBERS
    assert queries(lab) == before + 1


def change(stack, act, id_):
    if act == 'delete':
        stack.put('lab', {'c': 'Person', 'id': id_, 'delete': True})
    else:
        put(stack, id_, act)


def test_every_change_is_seen_at_once(lab):
    """By whatever worker."""
    ids = fill(lab, 'busy', 20)
    for _ in range(60):
        kept_or_not = stream(lab, 'busy')[0]
        id_ = random.choice(ids)
        change(lab, random.choice(['busy', 'busy', 'calm', 'delete']), id_)
        wanted = dict(kept_or_not)
        found = lab.get('lab', ('Person', id_))
        wanted.pop(id_, None)
        if any(item.get('j', {}).get('team') == 'busy' for item in found.get('items', [])):
            wanted[id_] = found
        for _ in range(4):
            assert stream(lab, 'busy')[0] == wanted


def test_a_change_while_it_is_made_is_in_the_next(lab):
    lab.set(lock_timeout_ms=600_000)
    fill(lab, 'late')
    holder = psycopg2.connect(lab.conninfo('lab'), options='-c search_path=stampd')
    with ThreadPoolExecutor(1) as pool, holder.cursor() as cursor:
        cursor.execute('lock table item in access exclusive mode')
        first = pool.submit(stream, lab, 'late')
        wait_until(lambda: lab.psql(None, "select 1 from pg_stat_activity where usename = 'stampd' and wait_event_type = 'Lock'"), what='the query')
        cursor.execute("select put_item('Person', 'late0', 'Main', '', '{\"team\":\"elsewhere\"}')")
        holder.commit()
        assert len(first.result()[0]) == MEMBERS, 'its snapshot is older'
    holder.close()
    lab.set(lock_timeout_ms=5000)
    wait_until(lambda: 'late0' not in stream(lab, 'late')[0], what='the change of another program')


def test_a_maker_that_dies_leaves_nothing(lab):
    lab.set(lock_timeout_ms=600_000)
    fill(lab, 'dies')
    holder = psycopg2.connect(lab.conninfo('lab'), options='-c search_path=stampd')
    with ThreadPoolExecutor(1) as pool, holder.cursor() as cursor:
        cursor.execute('lock table item in access exclusive mode')
        first = pool.submit(ask, lab, 'dies')
        wait_until(lambda: list(folder(lab).glob('*.new')), what='a draft')
        wait_until(lambda: lab.psql(None, "select 1 from pg_stat_activity where usename = 'stampd' and wait_event_type = 'Lock'"), what='the query')
        for pid in lab.worker_pids():
            lab.kill_worker(pid)
        holder.commit()
        assert first.exception() is not None
    holder.close()
    lab.set(lock_timeout_ms=5000)
    keep(lab, 'dies')
    assert len(stream(lab, 'dies')[0]) == MEMBERS and not list(folder(lab).glob('*.new'))


def test_a_small_one_is_not_kept(lab):
    put(lab, 'few', 'few', text='')
    before = kept_files(lab)
    for _ in range(ROUNDS):
        queried = queries(lab)
        assert len(stream(lab, 'few')[0]) == 1
        assert queries(lab) == queried + 1
    assert kept_files(lab) == before
    assert not list(folder(lab).glob('*.new'))


def test_where_documents_expire_it_is_not_kept(lab):
    fill(lab, 'short', class_='Brief')
    before = kept_files(lab)
    for _ in range(ROUNDS):
        queried = queries(lab)
        assert len(stream(lab, 'short', class_='Brief')[0]) == MEMBERS
        assert queries(lab) == queried + 1
    assert kept_files(lab) == before


def test_all_files_have_a_limit(lab):
    """Of 1 MiB a file has a quarter at most."""
    for number in range(10):
        fill(lab, f'noise{number}', text=noise)
        keep(lab, f'noise{number}')
        sizes = [path.stat().st_size for path in kept_files(lab)]
        assert max(sizes) <= 2**18 and sum(sizes) <= 2**20
    fill(lab, 'vast', 200, text=noise)
    before = {path.stat().st_ino for path in kept_files(lab)}
    for _ in range(ROUNDS):
        queried = queries(lab)
        assert len(stream(lab, 'vast')[0]) == 200
        assert queries(lab) == queried + 1
    assert {path.stat().st_ino for path in kept_files(lab)} <= before and not list(folder(lab).glob('*.new'))


@pytest.mark.parametrize('harm', ['cut', 'longer', 'another', 'empty', 'head'])
def test_a_file_that_is_not_whole_is_not_used(lab, harm):
    fill(lab, 'harm')
    before = {path.stat().st_ino for path in kept_files(lab)}
    put(lab, 'harm0', 'harm')
    keep(lab, 'harm')
    path, = (path for path in kept_files(lab) if path.stat().st_ino not in before)
    text = path.read_bytes()
    other = next(iter(one.read_bytes() for one in kept_files(lab) if one != path), b'')
    path.write_bytes({'cut': text[:-1], 'longer': text + b'x', 'another': other, 'empty': b'', 'head': text[:20] + bytes(20) + text[40:]}[harm])
    assert len(stream(lab, 'harm')[0]) == MEMBERS


def test_a_collection_that_is_gone_is_unknown(lab, schemas):
    fill(lab, 'gone')
    keep(lab, 'gone')
    schemas.apply('lab', {**SCHEMA, 'Person': {**PERSON, 'collections': {}}})

    def is_unknown():
        try:
            stream(lab, 'gone')
        except Problem as problem:
            return problem.code == 'NCOLLECTION'
        return False
    try:
        wait_until(is_unknown, what='the refusal')
    finally:
        schemas.apply('lab', SCHEMA)


def test_ends_that_are_declared_later_come(lab, schemas):
    ids = fill(lab, 'ended', class_='Other')
    for id_ in ids:
        lab.put('lab', {'c': 'Other', 'id': id_, 'items': [{'c': 'End', 'j': {'minute': 1}}]})
    keep(lab, 'ended', class_='Other')
    assert len(stream(lab, 'ended', class_='Other')[0]) == MEMBERS
    schemas.apply('lab', {**SCHEMA, 'Other': {**PERSON, 'maxLife': 'End.minute'}})
    try:
        wait_until(lambda: not any(stream(lab, 'ended', class_='Other')[0] for _ in range(ROUNDS)), what='the end of all')
    finally:
        schemas.apply('lab', SCHEMA)


def test_rules_decide_all_the_same(lab):
    """Whom rules judge gets what it may list, whatever is kept for others."""
    fill(lab, 'ruled')
    keep(lab, 'ruled', admin=True)
    lab.op('z', 'ns', {'set': {'ns': 'lab', 'access': 'rules', 'rules': {'Person': {'read': ['anybody'], 'list': []}}}}, admin=True)
    try:
        for _ in range(ROUNDS):
            assert len(stream(lab, 'ruled', admin=True)[0]) == MEMBERS
            assert stream(lab, 'ruled')[0] == {}
        lab.op('z', 'ns', {'set': {'ns': 'lab', 'access': 'closed', 'rules': None}}, admin=True)
        for _ in range(ROUNDS):
            with pytest.raises(Problem) as problem:
                stream(lab, 'ruled')
            assert problem.value.status == 401
    finally:
        lab.op('z', 'ns', {'set': {'ns': 'lab', 'access': 'open', 'rules': None}}, admin=True)


def test_quotas_of_streams_hold(lab):
    fill(lab, 'quota')
    keep(lab, 'quota')
    lab.op('z', 'ns', {'set': {'ns': 'lab', 'quotas': {'namespace': {'streams': '3/h'}}}}, admin=True)
    try:
        for _ in range(3):
            stream(lab, 'quota')
        with pytest.raises(Problem) as problem:
            stream(lab, 'quota')
        assert problem.value.code == 'XBUSY'
    finally:
        lab.op('z', 'ns', {'set': {'ns': 'lab', 'quotas': None}}, admin=True)


def test_nothing_of_an_encrypted_namespace_is_kept(lab, tmp_path):
    lab.set(site_key_file=new_site_key(lab))
    create(lab, 'vault')
    Schemas(lab, tmp_path).apply('vault', SCHEMA)
    fill(lab, 'sealed', ns='vault')
    before = kept_files(lab)
    for _ in range(ROUNDS):
        queried = queries(lab)
        assert len(stream(lab, 'sealed', ns='vault')[0]) == MEMBERS
        assert queries(lab) == queried + 1
    assert kept_files(lab) == before


def test_none_survives_the_server(lab):
    fill(lab, 'ends')
    keep(lab, 'ends')
    lab.step('stampd', 'stop', 'now')
    assert not list(folder(lab).iterdir())
    (folder(lab) / '0123456789abcdef').write_bytes(b'of a server that was killed')
    lab.step('stampd', 'start')
    assert not kept_files(lab)
    assert len(stream(lab, 'ends')[0]) == MEMBERS


def test_off(lab):
    lab.set(kept_streams_mb=0)
    for _ in range(ROUNDS):
        queried = queries(lab)
        assert len(stream(lab, 'ends')[0]) == MEMBERS
        assert queries(lab) == queried + 1
    assert not list(folder(lab).iterdir())
