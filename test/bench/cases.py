"""The figures.  Each function of CASES measures some, and yields a Row for each."""
import subprocess
import time

import stack
from accesses import access
from collects import collect
from copies import copies
from finds import find
from figures import Row, sized, started
from generators import MOMENT, POSTGRES_BIN, BenchError, pgbench, private_bytes, role_settings, rounds, statement, timed, wrk
from growths import documents, namespaces
from reads import READS
from seals import seal
from servers import VERSION, ask
from shares import share
from validates import validate

# --- what PostgreSQL is asked ---

def miss(options):
    """Documents of 5 items; the cache holds one in twenty at most."""
    count = sized(options, 20000, 1000)
    with started(cache_mb=1, shared_cache_mb=0, namespaces={'lab': 'open', 'anchor': 'closed'}) as (server,):
        for ns in ('lab', 'anchor'):
            server.fill_lines(ns, count)
        load = statement('LOAD').replace('$1', ':class').replace('$2', ':id')
        script = f"\\set id random(1, {count})\n{load};\n".replace(':class', "'Doc'").replace('= :id', '= :id::text')
        yield Row('read of a document that is not cached, 8 clients', rounds(options.pairs, {
            'stampd': lambda: wrk(server, '/lab/op/get', options.seconds, 8, 'read', **{'class': 'Doc', 'count': count}),
            'pgbench, the same statement': lambda: pgbench(server, 'anchor', script, options.seconds, 8, 'prepared')}, options.calm))


# The version stays the one of the row, so that the verification holds without a read.  EXECUTE by the simple protocol,
# because only there pgbench makes arrays of its variables.
ITEM_CONTENTS = [f"\\set r{item}{i} random(100000000000000000, 999999999999999999)" for item in 'ab' for i in range(11)]


def content(item):
    return '"\\"' + ''.join(f':r{item}{i}' for i in range(11)) + '\\""'


def number_of_schema(server):
    return server.psql('anchor', 'select number from schema')[0][0]


def prepared(name, execute):
    return ['\\if :is_new', f"prepare {name.lower()} as {statement(name)};", '\\set is_new 0', '\\endif', execute]


def array(*values):
    return "'{" + ','.join(str(value) for value in values) + "}'"


def commit_one_script(count, schema):
    """Two of the five items of one document."""
    lines = [f'\\set id random(1, {count})', '\\set first random(1, 5)', '\\set second 1 + (:first - 1 + random(1, 4)) % 5',
             *ITEM_CONTENTS]
    lines += prepared('CORE_ONE', f"execute core_one({VERSION}, 'Doc', (:id)::text, {VERSION}, {VERSION}, {VERSION}, 1005, 0,"
                      f" '{{Line,Line}}', '{{:first,:second}}', {array(VERSION, VERSION)},"
                      f" '{{{content('a')},{content('b')}}}', '{{f,f}}', {schema});")
    return '\n'.join(lines) + '\n'


def commit_many_script(count, documents, schema):
    """The same of several, which are as far from each other as they can be."""
    step = count // documents
    lines = [f'\\set id0 random(1, {step})', *(f'\\set id{i} :id0 + {i * step}' for i in range(1, documents)),
             '\\set first random(1, 5)', '\\set second 1 + (:first - 1 + random(1, 4)) % 5', *ITEM_CONTENTS]
    one, two = range(documents), range(2 * documents)

    def same(value, over=one):
        return array(*(value for _ in over))

    lines += prepared('CORE', ' '.join((
        f"execute core({VERSION}, {same('Doc')}, {array(*(f':id{i}' for i in one))}, {same(VERSION)}, {same(1)},",
        f"{same(VERSION)}, {same(VERSION)}, {same(1005)}, {same(0)}, {array(*(1 + i // 2 for i in two))}, {same('Line', two)},",
        f"{array(*((':first', ':second')[i % 2] for i in two))}, {same(VERSION, two)},",
        f"{array(*(content('ab'[i % 2]) for i in two))}, {same('f', two)}, {schema});")))
    return '\n'.join(lines) + '\n'


def updates(server, ns):
    server.psql(ns, 'select pg_stat_force_next_flush()')
    return dict(server.psql(ns, 'select relname, n_tup_upd from pg_stat_user_tables where schemaname = \'stampd\''))


def check_updates(before, after, expected):
    """pgbench counts what it ran; the tables must say the same: so many documents and two items each."""
    documents, items = (after[table] - before[table] for table in ('doc', 'item'))
    if documents < 0.9 * expected or not 1.99 < items / documents < 2.01:
        raise BenchError(f'pgbench ran {expected:.0f} changes of documents, but updated {documents} documents and {items} items')


def read_all(server, count):
    """So that whoever asks next finds each of the documents in its cache or in the shared cache."""
    for start in range(1, count + 1, 32):
        server.get('lab', *(('Doc', str(number)) for number in range(start, min(start + 32, count + 1))))


def commit(options):
    count = sized(options, 10000, 1000)
    with started(namespaces={'lab': 'open', 'anchor': 'closed'}) as (server,):
        for ns in ('lab', 'anchor'):
            server.fill_lines(ns, count)

        def beside_pgbench(what, anchor, target, kind, script, clients, amount):
            before = updates(server, 'anchor')
            found = rounds(options.pairs, {
                'stampd': lambda: wrk(server, '/lab/op/put', options.seconds, clients, kind, **{'class': 'Doc', 'count': count}),
                anchor: lambda: pgbench(server, 'anchor', script, options.seconds, clients, 'simple')}, options.calm)
            check_updates(before, updates(server, 'anchor'), sum(run.rate for run in found[anchor]) * options.seconds * amount)
            return Row(f'{what}, {clients} clients', found, {anchor: target})

        for what, anchor, kind, script, amount in (
                ('commit of a document, 2 of its 5 items changed, durable', 'pgbench, core_one', 'commit',
                 commit_one_script(count, number_of_schema(server)), 1),
                ('commit of 8 documents, the same of each', 'pgbench, core', 'commit8',
                 commit_many_script(count, 8, number_of_schema(server)), 8)):
            for clients in (1, 4, 8):
                yield beside_pgbench(what, anchor, 0.95, kind, script, clients, amount)

        what_one = 'commit of a document, 2 of its 5 items changed, durable'
        one = 'pgbench, core_one', None, 'commit', commit_one_script(count, number_of_schema(server))
        read_all(server, count)
        for clients in (1, 8):
            yield beside_pgbench(f'{what_one}, all of them read before', *one, clients, 1)
        server.set(cache_mb=1, shared_cache_mb=0)
        for clients in (1, 8):
            yield beside_pgbench(f'{what_one}, none of them cached', *one, clients, 1)


CONTENDERS = (1, 2, 4, 8, 16, 32)
NO_COLLAPSE = 0.75  # of what one client alone commits


def contend(options):
    """All clients change one document; what is refused is C, contention."""
    with started() as (server,):
        server.fill_lines('lab', 1)

        def side(clients):
            return lambda: wrk(server, '/lab/op/put', options.seconds, clients, 'commit', may_refuse=True, **{'class': 'Doc', 'count': 1})

        sides = {f'{clients} clients' if clients > 1 else '1 client': side(clients) for clients in CONTENDERS}
        found = rounds(options.pairs, sides, options.calm)
        yield Row('contention: commits of one document by', found, {name: NO_COLLAPSE for name in list(sides)[3:]}, base='1 client')
        refused = sum(run.refused for name in list(sides)[:3] for run in found[name])
        yield Row('contention: refused below 8 clients', value=f'{100 * refused:.2f} %', target='none', met=not refused)


# --- loading ---

CATALOGUE = 20000


def write_catalogue(path, limit):
    known = subprocess.run(['apt-cache', 'dumpavail'], stdout=subprocess.PIPE, check=True).stdout
    converter = ['/usr/bin/python3', str(stack.SOURCE / 'scripts/lib/catalogue.py'), '--limit', str(limit)]
    with open(path, 'wb') as file:
        subprocess.run(converter, input=known, stdout=file, check=True)
    with open(path, 'rb') as file:
        return sum(1 for _ in file)


def load(options):
    """Each side begins with an empty database each time."""
    fresh = {f'{side}{i}': 'open' for side in 'ab' for i in range(options.pairs + 1)}
    with started(namespaces=fresh) as (server,):
        file = server.path / 'catalogue.json'
        count = write_catalogue(file, sized(options, CATALOGUE, 200))
        if not count:
            raise BenchError('apt knows no packages here: apt-get update')
        turn = {'a': 0, 'b': 0}

        def ours():
            ns = f"a{turn['a']}"
            turn['a'] += 1
            server.psql(None, 'checkpoint')
            run = timed(server, count, [stack.BUILD / 'src/stampctl', 'load', server.url, '--ns', ns, '--insecure', file])
            if turn['a'] == 1:
                for table in ('doc', 'item'):
                    psql(server, ns, f"\\copy {table} to '{server.path}/{table}.copy'")
            return run

        def anchor():
            ns = f"b{turn['b']}"
            turn['b'] += 1
            server.psql(None, 'checkpoint')
            return psql(server, ns, *(f"\\copy {table} from '{server.path}/{table}.copy'" for table in ('doc', 'item')),
                        amount=count)

        found = rounds(options.pairs, {'stampd': ours, 'COPY of the same rows': anchor}, options.calm)
        items = server.psql('a0', 'select count(*) from item')[0][0]
        yield Row(f'loading of {count:,} documents with {items:,} items, `stampctl load`', found, {'COPY of the same rows': 0.25})


def psql(server, ns, *commands, amount=1):
    words = [word for command in commands for word in ('-c', command)]
    return timed(server, amount, ['env', f'PGOPTIONS={role_settings()}', POSTGRES_BIN / 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1',
                          '-d', server.conninfo(ns), *words])


# --- memory ---

MEMORY_DOCUMENTS = 16000


def megabytes(size):
    return f'{size / 2**20:.1f} MB'


def memory(options):
    for budget in (64, 16):
        with started(workers=1, cache_mb=budget) as (server,):
            ask(server, '/lab/ping', None)
            fresh = {pid: private_bytes(pid) for pid in stack.children(server.pid())}
            documents = sized(options, MEMORY_DOCUMENTS, 100)
            volume = fill_mixed(server, documents)
            for _ in range(3):
                wrk(server, '/lab/op/get', sized(options, 4 if options.quick else max(10, 3 * options.seconds), MOMENT), 4, 'read',
                    **{'class': 'Doc', 'count': documents})
            full = {pid: private_bytes(pid) for pid in fresh}
            worker = max(full, key=full.get)
            over = full[worker] - (budget << 20)
            yield Row(f'private memory of a worker over its `cache_mb = {budget}`, after reading at random in {megabytes(volume)}'
                      f' of documents of 200 B to 100 KB', target='10 MB', value=megabytes(over), met=over <= 10 << 20)
            if budget == 64:
                yield Row('private memory of a fresh worker', value=megabytes(fresh[worker]))


def fill_mixed(server, documents):
    server.fill('lab', f"""
        insert into doc (class, id, version, ctime, dtime, v1, v2)
          select 'Doc', n, {VERSION}, {VERSION}, {VERSION}, exp(ln(200) + random() * ln(500))::bigint, 0
          from generate_series(1, {documents}) n;
        insert into item (class, id, iclass, key, version, vop, content)
          select 'Doc', id, 'Line', k, {VERSION}, {VERSION},
                 '"' || left(repeat(md5(id || '.' || k), (v1 / 320)::int + 1), (v1 / 10)::int) || '"'
          from doc, generate_series(1, 10) k""")
    return server.psql('lab', 'select sum(octet_length(content)) from item')[0][0]


def idle(options):
    with started() as (server,):
        ask(server, '/lab/ping', None)

        def look():
            processes = [server.pid(), *stack.children(server.pid())]
            return len(server.backends()), sum(private_bytes(pid) for pid in processes)

        rest_s = sized(options, 3, 0.1)
        time.sleep(rest_s)  # the relay connects after the worker that has opened the namespace
        before = look()
        for i in range(sized(options, 10, 1)):
            subprocess.run([stack.BUILD / 'src/stampctl', 'ns', 'create', f'idle{i}', '--config', server.path / 'etc/stampd.conf',
                            '--admin-conninfo', server.conninfo()], check=True, stdout=subprocess.DEVNULL,
                           env={'STAMPD_SQL': str(stack.SOURCE / 'sql')})
        time.sleep(rest_s)
        after = look()
        yield Row('ten namespaces that nobody uses: connections more', target='0', value=str(after[0] - before[0]),
                  met=after[0] <= before[0])
        yield Row('the same: private memory of all processes more', value=f'{(after[1] - before[1]) / 1024:.0f} KB')


CASES = {case.__name__: case for case in (*READS, access, miss, find, collect, commit, seal, validate, copies, contend, documents, namespaces, load, memory, idle, share)}
