"""How the central figures change when a namespace, or the number of namespaces, grows.  The same requests go to all
sizes in turn; what they name is as much everywhere, and lies scattered over all there is."""
from figures import Row, sized, started
from generators import MOMENT, rounds, wrk
from servers import VERSION, to_json

HOT = 1000        # documents that the requests name, of 5 items of 200 bytes
CLIENTS = 32      # of cheap requests
COMMITTERS = 8
FLAT = 0.9        # of the smallest
SIZES = {'10^3 documents': 1000, '10^5 documents': 100_000, '10^6 documents': 1_000_000}
NAMESPACES = {'1 namespace': 1, '10 namespaces': 10, '30 namespaces': 30}
SPREAD = 0.8      # of one namespace, when commits go to many
WARMING_S = 4     # until the sessions of 30 namespaces are open


def fill(server, ns, count, hot=HOT):
    """Doc 1 to `count`, each `count / hot`-th of 5 items, the others of one; and a document of 2 KB."""
    step = count // hot
    server.fill(ns, f"""
        insert into doc (class, id, version, ctime, dtime, v1, v2)
          select 'Doc', n, {VERSION}, {VERSION}, {VERSION}, case n % {step} when 0 then 1005 else 201 end, 0
          from generate_series(1, {count}) n;
        insert into item (class, id, iclass, key, version, vop, content)
          select 'Doc', n, 'Line', k, {VERSION}, {VERSION}, '"' || left(repeat(md5(n || '.' || k), 7), 198) || '"'
          from generate_series(1, {count}) n, generate_series(1, case n % {step} when 0 then 5 else 1 end) k;
        insert into doc (class, id, version, ctime, dtime, v1, v2) values ('Bench', 'two', {VERSION}, {VERSION}, {VERSION}, 2040, 0);
        insert into item (class, id, iclass, key, version, vop, content)
          select 'Bench', 'two', 'Line', '000' || k, {VERSION}, {VERSION}, '"' || left(repeat(md5(k::text), 7), 198) || '"'
          from generate_series(0, 9) k""")


def names(count, step):
    """So many of the hot documents, scattered."""
    return [{'c': 'Doc', 'id': str((1 + i * (HOT // count)) * step)} for i in range(count)]


def cheap_bodies(step):
    """What is asked, path and body, by figure."""
    held = {'v': VERSION, 'ct': VERSION, 'dt': VERSION}
    return {
        'cached read of 2 KB': ('op/get', to_json({'param': {'docs': [{'c': 'Bench', 'id': 'two'}]}})),
        'read of 32 documents': ('op/get', to_json({'param': {'docs': names(32, step)}})),
        'synchronisation of 100 unchanged': ('op/sync', to_json({'syncs': [{**name, **held} for name in names(100, step)]})),
    }


def documents(options):
    sizes = sized(options, SIZES, dict(list(SIZES.items())[:1]))
    spaces = {side: f'grow{i}' for i, side in enumerate(sizes)}
    steps = {side: count // HOT for side, count in sizes.items()}
    base = next(iter(sizes))
    target = {list(sizes)[-1]: FLAT}

    def grown(figure, make, targets=target):
        sides = {side: make(f'/{spaces[side]}/', side) for side in sizes}
        return Row(f'{figure}, in a namespace of', rounds(options.pairs, sides, options.calm), targets, base=base)

    def chosen(server, kind, operation, clients, count=HOT, step=None):
        return lambda path, side: lambda: wrk(server, path + operation, options.seconds, clients, kind, **{
            'class': 'Doc', 'count': count or sizes[side], 'step': step or steps[side]})

    with started(namespaces={name: 'open' for name in spaces.values()}) as (server,):
        for side, count in sizes.items():
            fill(server, spaces[side], count)
        for figure in cheap_bodies(1):
            yield grown(figure, lambda path, side, figure=figure: lambda: ask_same(server, options.seconds, path, cheap_bodies(steps[side])[figure]))
        yield grown('read of one chosen at random of all documents', chosen(server, 'read', 'op/get', CLIENTS, count=None, step=1), {})
        yield grown('commit of one of 1,000 documents, 8 clients', chosen(server, 'commit', 'op/put', COMMITTERS))
        server.set(cache_mb=1, shared_cache_mb=0)
        yield grown('read of one of 1,000 documents through a cache of 1 MB, 8 clients', chosen(server, 'read', 'op/get', COMMITTERS))


def ask_same(server, seconds, path, question, **more):
    operation, body = question
    return wrk(server, path + operation, seconds, CLIENTS, body=body, **more)


def namespaces(options):
    """Each request goes to one of them, chosen at random."""
    numbers = sized(options, NAMESPACES, {'1 namespace': 1, '2 namespaces': 2})
    count = max(numbers.values())
    base = next(iter(numbers))
    target = {list(numbers)[-1]: FLAT}

    def spread(figure, make, targets=target):
        sides = {side: make(number) for side, number in numbers.items()}
        make(count, sized(options, WARMING_S, MOMENT))()
        return Row(f'{figure}, spread over', rounds(options.pairs, sides, options.calm), targets, base=base)

    # The benchmark itself has a session in each database.
    with started(namespaces={f'many{i + 1}': 'open' for i in range(count)}, postgres={'max_connections': 150 + count}) as (server,):
        for i in range(count):
            fill(server, f'many{i + 1}', HOT)

        def commits(number, seconds=options.seconds):
            return lambda: wrk(server, '/many~/op/put', seconds, COMMITTERS, 'commit', namespaces=number,
                               **{'class': 'Doc', 'count': HOT})

        for figure, question in cheap_bodies(1).items():
            yield spread(figure, lambda number, seconds=options.seconds, question=question: lambda: ask_same(
                server, seconds, '/many~/', question, namespaces=number))
        yield spread('commit, 8 clients', commits, {list(numbers)[-1]: SPREAD})
        held = server.psql(None, "select count(*) from pg_stat_activity where usename = 'stampd'")[0][0]
        yield Row(f'sessions of PostgreSQL held by stampd, {count} namespaces written at once', target='100', value=str(held), met=held <= 100)
