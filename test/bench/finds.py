"""The figures of searches, over a million documents, a tenth of that with --quick; STAMPD_BENCH_DOCUMENTS says another number."""
import json
import os
import re
import sys
import tempfile

import stack
from figures import Row, sized, started
from generators import pgbench, rounds, wrk
from servers import VERSION

sys.path.insert(0, str(stack.SOURCE / 'test/system'))
from schema import Schemas  # noqa: E402

SHARE, MANY = 10, 1000  # documents that have the same number; that are of the same group
CLASSES = {'Doc': {'items': {'Main': {'singleton': True, 'fields': {'number': 'int', 'part': 'int', 'tenth': 'int', 'at': 'int', 'tags': 'string[]',
                                                                   'words': {'text': ['says']}},
                                     'indexes': [['part', '-at']]}}}}
LOOKED = 100_000  # limit_find_items
PAGE, PAGES = 20, 1000  # of an order: the first page, and the one behind so many
APPLY_MOST_S = 3600  # to export the fields of a million documents
# What is sought, as stampd is asked (@: a number), as PostgreSQL is, and by its JSON operators; how many have it.
FORMS = {
    'equal number': ('{"f":"number","t":"eq","v1":@}', ':n', "jsonb_build_object('number', :n::int)", SHARE),
    'element of a list': ('{"f":"tags","t":"eq","v1":"t@"}', "'t' || :n", "jsonb_build_object('tags', jsonb_build_array('t' || :n))", SHARE),
    'equal number of many': ('{"f":"part","t":"eq","v1":@}', ':n', "jsonb_build_object('part', :n::int)", MANY),
}
# The same with an order, or a count: what is asked for more, how many values there are; a page has 20.
MORE = {
    'the latest 20 of many': ('{"f":"part","t":"eq","v1":@}', {'order': '-at', 'limit': 20}, lambda documents: documents // MANY),
    'words': ('{"f":"words","t":"match","v1":"w@"}', {'limit': 20}, lambda documents: documents // MANY),
    'a count of a tenth': ('{"f":"tenth","t":"eq","v1":@}', {'want': 'count', 'limit': 100_000}, lambda documents: 10),
}


def documents_of(options):
    return int(os.environ.get('STAMPD_BENCH_DOCUMENTS', sized(options, 100_000 if options.quick else 1_000_000, 3000)))


def fill(server, documents):
    server.fill('lab', f"""
        insert into doc (class, id, version, ctime, dtime, v1, v2)
          select 'Doc', n, {VERSION}, {VERSION}, {VERSION}, 0, 0 from generate_series(1, {documents}) n;
        insert into item (class, id, iclass, key, version, vop, content)
          select 'Doc', n, 'Main', '', {VERSION}, {VERSION}, json_build_object('number', n / {SHARE}, 'part', n / {MANY}, 'tenth', n % 10, 'at', n,
            'tags', json_build_array('t' || n / {SHARE}, 'u' || n % 10), 'says', 'of the word w' || n / {MANY} || ' and ' || n,
            'text', repeat(md5(n::text), 4))
          from generate_series(1, {documents}) n""")
    with tempfile.TemporaryDirectory() as folder:
        Schemas(server, folder).apply('lab', CLASSES, '--batch', 2000, timeout=APPLY_MOST_S)
    for rest in ("create table lookup as select id, content::jsonb from item where class = 'Doc'", 'create index on lookup using gin (content jsonb_path_ops)',
                 'grant select on lookup to stampd', 'vacuum analyze'):
        server.psql('lab', rest)


def statement_of(server, param):
    """The text of the statement that a worker runs for this search."""
    server.op('lab', 'find', param)
    rows = server.psql('lab', "select query from pg_stat_activity where usename = 'stampd' and query like 'select%%x_Doc_Main%%'"
                              " order by query_start desc limit 1")
    return rows[0][0]


def filled(statement, number, value, rows):
    """The statement with the number of the schema, limits of so many rows, and the value that is sought in the places of its parameters."""
    statement = re.sub(r'(?<=s\.number = )\$\d+', str(number), statement)
    statement = re.sub(r'(?<=looked > )\$\d+|(?<= limit )\$\d+(?=::bigint \+ 1)', str(LOOKED), statement)
    statement = re.sub(r'(?<= limit )\$\d+', str(rows), statement)
    return re.sub(r'\$\d+', value, statement)


def pages(server, options, documents):
    """A page that is far behind the first one of an order costs the same."""
    param, passed = {'c': 'Doc', 'i': 'Main', 'order': '-at'}, 0
    most = min(PAGE * PAGES, documents // 2)
    cursor = {}
    while passed < most:
        page = server.op('lab', 'find', {**param, 'limit': min(1000, most - passed), **cursor})['out']
        passed, cursor = passed + len(page['ids']), {'cursor': page['cursor']}
    bodies = [json.dumps({'param': {**param, 'limit': PAGE, **more}}).encode() for more in (cursor, {})]
    sides = {name: lambda body=body: wrk(server, '/lab/op/find', options.seconds, 8, body=body) for name, body in zip(('stampd', 'the first page'), bodies)}
    yield Row(f'find of {documents:,} documents, {PAGE} in an order behind {most:,}, 8 clients', rounds(options.pairs, sides, options.calm), {'the first page': 0.9})


def find(options):
    documents = documents_of(options)
    with started() as (server,):
        fill(server, documents)
        number = server.psql('lab', 'select number from schema')[0][0]
        for name, (condition, value, contains, share) in FORMS.items():
            param = {'c': 'Doc', 'i': 'Main', 'where': [json.loads(condition.replace('@', '7'))], 'limit': share}
            most = documents // share - 1
            template = json.dumps({'param': {**param, 'where': []}}).replace('[]', f'[{condition}]')
            scripts = {
                'pgbench, the same statement': filled(statement_of(server, param), number, value, share + 1),
                'pgbench, jsonb and GIN': f'select id from stampd.lookup where content @> {contains} order by id collate "C" limit {share + 1}'}
            sides = {'stampd': lambda template=template, most=most: wrk(
                server, '/lab/op/find', options.seconds, 8, 'find', template=template, count=most)}
            for anchor, script in scripts.items():
                script = f'\\set n random(1, {most})\n{script};\n'
                sides[anchor] = lambda script=script: pgbench(server, 'lab', script, options.seconds, 8, 'prepared')
            yield Row(f'find of {share} ids of {documents:,} documents, {name}, 8 clients',
                      rounds(options.pairs, sides, options.calm), {'pgbench, the same statement': 0.8})
        for name, (condition, more, values) in MORE.items():
            param = {'c': 'Doc', 'i': 'Main', 'where': [json.loads(condition.replace('@', '7'))], **more}
            template = json.dumps({'param': {**param, 'where': []}}).replace('[]', f'[{condition}]')
            most = values(documents) - 1
            statement = filled(statement_of(server, param), number, "'w' || :n" if name == 'words' else ':n', more['limit'] + 1)
            script = f'\\set n random(1, {most})\n{statement};\n'
            yield Row(f'find of {documents:,} documents, {name}, 8 clients',
                      rounds(options.pairs, {'stampd': lambda: wrk(server, '/lab/op/find', options.seconds, 8, 'find', template=template, count=most),
                                             'pgbench, the same statement': lambda: pgbench(server, 'lab', script, options.seconds, 8, 'prepared')},
                             options.calm), {'pgbench, the same statement': 0.45 if 'order' in more else 0.8})
        yield from pages(server, options, documents)
