"""What the cache answers: reads and synchronisations, beside responders that answer the same bytes and do nothing."""
import urllib.parse
from dataclasses import dataclass, field

import stack
from figures import Row, started
from generators import rounds, wrk
from servers import ask, imitate, to_json

CONNECTIONS = 32  # of a load of cheap requests
BEST = 'empty, lean nginx'
PREFORK = 'libfcgi prefork'
FILE = 'nginx, a file'
WORKER = 'by a worker'
MODULE = stack.BUILD / 'nginx/module/ngx_http_stampd_module.so'


@dataclass
class Question:
    """A request; `targets` are the least ratios, by the name of the anchor."""
    figure: str
    path: str
    body: bytes = None
    etag: str = None
    targets: dict = field(default_factory=dict)


def measure(options, questions, more=()):
    """All sides in turn, round by round: the best responder, libfcgi's loop, and `more` when there is time; for a moment, the first
    question only goes to the anchors, which are started again for each."""
    anchors = (BEST, PREFORK, *(() if options.quick else more))
    with started(*anchors) as (server, *others):
        for number, question in enumerate(questions(server)):
            beside = dict(zip(anchors, others)) if not (options.moment and number) else {}
            answer = imitate(server, beside.values(), question)
            sides = {'stampd': side(options, server, question)}
            sides.update((name, side(options, other, question)) for name, other in beside.items())
            if BEST in beside and not question.body:
                sides[FILE] = file_side(options, beside[BEST])
            asked = f'{len(question.body):,} B asked, ' if len(question.body or b'') > 500 else ''
            yield Row(f'{question.figure} ({asked}{len(answer):,} B answered)', rounds(options.pairs, sides, options.calm),
                      {name: least for name, least in question.targets.items() if name in sides})


def file_side(options, lean):
    return lambda: wrk(lean, '/file', options.seconds, CONNECTIONS, own='nginx')


def side(options, server, question):
    more = {'etag': question.etag} if question.etag else {}
    return lambda: wrk(server, question.path, options.seconds, CONNECTIONS, body=question.body, **more)


def get_path(*names):
    param = to_json({'docs': [{'c': 'Bench', 'id': name} for name in names]}).decode()
    return '/lab/op/get?param=' + urllib.parse.quote(param, safe='')


def put_documents(server, names, items, size, ns='lab'):
    """Documents with so many items of `size` bytes."""
    names = list(names)
    for start in range(0, len(names), 32):
        server.put(ns, *({'c': 'Bench', 'id': name, 'items': [
            {'c': 'Line', 'k': f'{i:04}', 'j': (f'{i:04} ' + 'some words of a line ' * (size // 20 + 1))[:size - 2]}
            for i in range(items)]} for name in names[start:start + 32]), admin=True)


def held(document):
    return {name: document[name] for name in ('c', 'id', 'v', 'ct', 'dt')}


# --- reads ---

def read_questions(server):
    for name, items, size, targets in (('2 KB', 10, 200, {BEST: 0.9, PREFORK: 1}), ('100 B', 1, 100, {}), ('16 KB', 20, 800, {})):
        put_documents(server, [name], items, size)
        yield Question(f'cached read of {name}', get_path(name), targets=targets)
    body = {'param': {'docs': [{'c': 'Bench', 'id': '2 KB'}]}}
    yield Question('cached read of 2 KB by POST', '/lab/op/get', to_json(body))
    body['param']['docs'][0]['age'] = 10
    yield Question('read of 2 KB at tolerance 10 s', '/lab/op/get', to_json(body))


def read(options):
    """All anchors, so that it is seen what each of them leaves out."""
    yield from measure(options, read_questions, ('empty', 'constant', 'constant, but parsed'))


def resource_questions(server):
    put_documents(server, ['r'], 10, 200)
    path = '/lab/doc/Bench/r'
    etag = ask(server, path, None).headers['ETag']
    yield Question('resource of 2 KB', path)
    yield Question('the same, not modified: 304', path, etag=etag)


def resource(options):
    yield from measure(options, resource_questions, ('empty',))


def public(options):
    """What the module of nginx answers, beside the same server without it and a file of nginx."""
    if not MODULE.exists():
        return
    with started(BEST, public_answers_mb=16) as (server, lean), started() as (without,):
        for question, of_worker in zip(resource_questions(server), resource_questions(without)):
            answer = imitate(server, [lean], question)
            yield Row(f'{question.figure} ({len(answer):,} B answered)', rounds(options.pairs, {
                'stampd, in nginx': side(options, server, question), WORKER: side(options, without, of_worker), FILE: file_side(options, lean)},
                options.calm), {FILE: 0.9} if question.etag else {WORKER: 2.4, FILE: 0.85})


def read32_questions(server):
    names = [f'n{i}' for i in range(32)]
    put_documents(server, names, 5, 100)
    body = to_json({'param': {'docs': [{'c': 'Bench', 'id': name} for name in names]}})
    yield Question('cached read of 32 documents in one operation', '/lab/op/get', body, targets={BEST: 0.5})


def read32(options):
    yield from measure(options, read32_questions, ('empty',))


# --- synchronisation ---

def sync_questions(server):
    names = [f'n{i}' for i in range(1000)]
    put_documents(server, names, 10, 200)
    copies = []
    for start in range(0, len(names), 100):
        found = server.get('lab', *(('Bench', name, 60) for name in names[start:start + 100]))
        copies += [held(document) for document in found]
    for count, targets in ((100, {BEST: 0.75}), (1, {}), (1000, {})):
        body = to_json({'syncs': copies[:count]})
        yield Question(f'synchronisation of {count:,} unchanged', '/lab/op/sync', body, targets=targets)


def sync(options):
    yield from measure(options, sync_questions, ('empty', 'constant'))


def delta_questions(server):
    put_documents(server, ['large'], 1000, 200)
    copy = held(server.get('lab', ('Bench', 'large')))
    server.put('lab', {'c': 'Bench', 'id': 'large', 'items': [
        {'c': 'Line', 'k': f'{i:04}', 'j': f'changed {i}'} for i in range(5, 1000, 100)]})
    yield Question('synchronisation of 10 changed items of 1,000', '/lab/op/sync', to_json({'syncs': [copy]}))


def delta(options):
    yield from measure(options, delta_questions, ('empty',))


READS = (read, resource, public, read32, sync, delta)
