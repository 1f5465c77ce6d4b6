"""The figures of collections: what a synchronisation costs that has little to tell, and how fast the first one streams."""
import itertools
import json
import subprocess
import sys
import tempfile

import stack
from figures import Row, sized, started
from generators import POSTGRES_BIN, BenchError, role_settings, rounds, statement, timed, wrk
from servers import VERSION, to_json

sys.path.insert(0, str(stack.SOURCE / 'test/system'))
from schema import Schemas  # noqa: E402

SIZES = {'a collection of 1,000': 1000, 'a collection of 100,000': 100_000}
FEW = {'a collection of 100': 100, 'a collection of 1,000': 1000}  # for a moment
CHANGED = 10
NUMBERS = itertools.count(1)
PAGES_MOST = 30  # that the statement touches for them
CLASSES = {'Doc': {'items': {'Main': {'singleton': True}}, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}}}}
# What a stream tells, as PostgreSQL sends it with whatever plan it likes best.
COPY = """copy (select d.id, d.version, d.ctime, d.dtime, i.iclass, i.key, i.version, i.content, i.raw from stampd.member m
  join stampd.doc d on d.class = 'Doc' and d.id = m.id join stampd.item i on i.class = 'Doc' and i.id = m.id and i.content is not null
  where m.collection = (select number from stampd.collection) and m.value = '{team}' and not m.has_left) to stdout"""


def fill(server, ns, team, count):
    server.fill(ns, f"""
        insert into doc (class, id, version, ctime, dtime, v1, v2)
          select 'Doc', '{team}' || n, {VERSION}, {VERSION}, {VERSION}, 450, 0 from generate_series(1, {count}) n;
        insert into item (class, id, iclass, key, version, vop, content)
          select 'Doc', '{team}' || n, 'Main', '', {VERSION}, {VERSION},
            json_build_object('team', '{team}', 'n', n, 'text', repeat(md5(n::text), 13)) from generate_series(1, {count}) n;
        insert into member (collection, id, value, version, xid, has_left)
          select number, '{team}' || n, '{team}', {VERSION}, pg_current_xact_id(), false from generate_series(1, {count}) n cross join collection""")


def question(team, **more):
    return to_json({'param': {'c': 'Doc', 'collection': 'team', 'value': team, **more}})


def hold(server, team):
    """The question of who knows all but the last changes."""
    param = {'c': 'Doc', 'collection': 'team', 'value': team, 'want': 'ids', 'stream': True}
    token = json.loads(server.request('POST', '/lab/op/collection', json={'param': param}).content.splitlines()[-1])['token']
    for number in range(1, CHANGED + 1):
        server.put('lab', {'c': 'Doc', 'id': f'{team}{number}', 'items': [{'c': 'Main', 'j': {'team': team, 'n': -number}}]})
    told = server.op('lab', 'collection', {'c': 'Doc', 'collection': 'team', 'value': team, 'token': token})['out']
    if told['complete'] or len(told['docs']) < CHANGED:
        raise BenchError(f'{len(told["docs"])} changes are told, not {CHANGED}')
    return question(team, token=token), len(told['docs'])


def pages(server, team, told):
    """Of memory or disk, that the statement touches."""
    xid = server.psql('lab', 'select min(xid::text::bigint) from (select xid from member where value = %s order by xid desc limit %s) m',
                      (team, told))[0][0]
    execute = f"execute page('Doc', 'team', '{team}', '{xid}', '', 'true', 101, 0, 1, 1001)"
    done = subprocess.run(['env', f'PGOPTIONS={role_settings()} -c search_path=stampd', POSTGRES_BIN / 'psql', '-XAtq', '-d', server.conninfo('lab'),
                           '-c', f'prepare page as {statement("COLLECTION")}', '-c', execute,
                           '-c', f'explain (analyze, buffers, timing off, format json) {execute}'], stdout=subprocess.PIPE, text=True, check=True)
    plan = json.loads(done.stdout[done.stdout.index('[\n'):])[0]['Plan']
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']


def stream(server, team, count):
    answer = server.path / 'stream.ndjson'
    run = timed(server, count, ['curl', '-sS', '--fail', '--cacert', server.path / 'etc/certificate.pem', '-H', 'Content-Type: application/json',
                                '-d', question(team, stream=True), '-o', answer, f'{server.url}/lab/op/collection'])
    last = subprocess.run(['tail', '-n', '1', answer], stdout=subprocess.PIPE, text=True, check=True).stdout
    if json.loads(last)['members'] != count:
        raise BenchError(f'of {count} members the stream had {last[:200]}')
    return run


def first(server, team, count):
    """Of a collection in which something has changed: the server keeps what nothing has changed in."""
    server.put('lab', {'c': 'Doc', 'id': f'{team}1', 'items': [{'c': 'Main', 'j': {'team': team, 'n': -next(NUMBERS), 'text': 'x' * 400}}]})
    return stream(server, team, count)


def copy(server, team, count, settings):
    return timed(server, count, ['env', f'PGOPTIONS={settings}', POSTGRES_BIN / 'psql', '-Xq', '-d', server.conninfo('lab'), '-c',
                                 COPY.format(team=team), '-o', server.path / 'copy.txt'])


def collect(options):
    sizes = sized(options, SIZES, FEW)
    with started() as (server,), tempfile.TemporaryDirectory() as folder:
        Schemas(server, folder).apply('lab', CLASSES)
        bodies, told = {}, 0
        for number, (side, count) in enumerate(sizes.items()):
            fill(server, 'lab', f't{number}x', count)
        server.psql('lab', 'vacuum analyze')
        for number, side in enumerate(sizes):
            bodies[side], told = hold(server, f't{number}x')
        sides = {side: lambda body=body: wrk(server, '/lab/op/collection', options.seconds, 8, body=body) for side, body in bodies.items()}
        large = list(sizes)[-1]
        yield Row(f'synchronisation of {CHANGED} changes, 8 clients, of', rounds(options.pairs, sides, options.calm), {large: 0.9},
                  base=next(iter(sizes)))
        touched = pages(server, f't{len(sizes) - 1}x', told)
        yield Row(f'the same: pages that the statement touches, of {large}', value=str(touched), target=str(PAGES_MOST), met=touched <= PAGES_MOST)
        team, count = f't{len(sizes) - 1}x', sizes[large]
        anchor = 'COPY … TO of the same rows'
        yield Row(f'first load of {count:,} documents of 450 bytes, streamed', rounds(options.pairs, {
            'stampd': lambda: first(server, team, count),
            anchor: lambda: copy(server, team, count, ''),
            'the same, by the plan of the stream': lambda: copy(server, team, count, role_settings())}, options.calm), {anchor: 0.5})
        yield Row('the same load by the next client, while nothing changes', rounds(options.pairs, {
            'stampd': lambda: stream(server, team, count), 'by the first client': lambda: first(server, team, count)}, options.calm),
                  {'by the first client': 3})
