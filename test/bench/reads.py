"""What the cache answers: reads and synchronisations, beside responders that answer the same bytes and do nothing."""
import urllib.parse
from dataclasses import dataclass

from figures import Row, started
from generators import rounds, wrk
from servers import ask, imitate, to_json

CONNECTIONS = 32  # of a load of cheap requests
BEST = 'empty, lean nginx'


@dataclass
class Question:
    """A request; `target` is the least ratio to the best anchor."""
    figure: str
    path: str
    body: bytes = None
    etag: str = None
    target: float = None


def measure(options, anchors, questions):
    """All sides in turn, round by round; a row for each anchor."""
    with started(*anchors) as (server, *others):
        for question in questions(server):
            answer = imitate(server, others, question)
            sides = {'stampd': side(options, server, question)}
            sides.update((name, side(options, other, question)) for name, other in zip(anchors, others))
            if BEST in anchors and not question.body:
                lean = others[anchors.index(BEST)]
                sides['nginx, a file'] = lambda lean=lean: wrk(lean, '/file', options.seconds, CONNECTIONS)
            found = rounds(options.pairs, sides, options.calm)
            asked = f'{len(question.body):,} B asked, ' if len(question.body or b'') > 500 else ''
            figure = f'{question.figure} ({asked}{len(answer):,} B answered)'
            for name, pairs in found.items():
                yield Row(figure, name, question.target if name == BEST else None, pairs)
                figure = 'the same'


def side(options, server, question):
    more = {'etag': question.etag} if question.etag else {}
    return lambda: wrk(server, question.path, options.seconds, CONNECTIONS, body=question.body, **more)


def get_path(*names):
    param = to_json({'docs': [{'c': 'Bench', 'id': name} for name in names]}).decode()
    return '/lab/op/get?param=' + urllib.parse.quote(param, safe='')


def put_document(server, name, items, size):
    """A document with so many items of `size` bytes."""
    server.put('lab', {'c': 'Bench', 'id': name, 'items': [
        {'c': 'Line', 'k': f'{i:04}', 'j': (f'{i:04} ' + 'some words of a line ' * (size // 20 + 1))[:size - 2]}
        for i in range(items)]})


def held(document):
    return {name: document[name] for name in ('c', 'id', 'v', 'ct', 'dt')}


# --- reads ---

def read_questions(server):
    for name, items, size, target in (('2 KB', 10, 200, 0.9), ('100 B', 1, 100, None), ('16 KB', 20, 800, None)):
        put_document(server, name, items, size)
        yield Question(f'cached read of {name}', get_path(name), target=target)
    body = {'param': {'docs': [{'c': 'Bench', 'id': '2 KB'}]}}
    yield Question('cached read of 2 KB by POST', '/lab/op/get', to_json(body))
    body['param']['docs'][0]['age'] = 10
    yield Question('read of 2 KB at tolerance 10 s', '/lab/op/get', to_json(body))


def read(options):
    """All anchors, so that it is seen what each of them leaves out."""
    yield from measure(options, (BEST, 'empty', 'constant', 'constant, but parsed', 'libfcgi prefork'), read_questions)


def resource_questions(server):
    put_document(server, 'r', 10, 200)
    path = '/lab/doc/Bench/r'
    etag = ask(server, path, None).headers['ETag']
    yield Question('resource of 2 KB', path)
    yield Question('the same, not modified: 304', path, etag=etag)


def resource(options):
    yield from measure(options, (BEST, 'empty'), resource_questions)


def read32_questions(server):
    names = [f'n{i}' for i in range(32)]
    for name in names:
        put_document(server, name, 5, 100)
    body = to_json({'param': {'docs': [{'c': 'Bench', 'id': name} for name in names]}})
    yield Question('cached read of 32 documents in one operation', '/lab/op/get', body, target=0.5)


def read32(options):
    yield from measure(options, (BEST, 'empty'), read32_questions)


# --- synchronisation ---

def sync_questions(server):
    names = [f'n{i}' for i in range(100)]
    for name in names:
        put_document(server, name, 10, 200)
    copies = [held(document) for document in server.get('lab', *(('Bench', name, 60) for name in names))]
    for count, target in ((100, 0.75), (1, None), (1000, None)):
        body = to_json({'syncs': (copies * 10)[:count]})
        yield Question(f'synchronisation of {count:,} unchanged', '/lab/op/sync', body, target=target)


def sync(options):
    yield from measure(options, (BEST, 'empty', 'constant'), sync_questions)


def delta_questions(server):
    put_document(server, 'large', 1000, 200)
    copy = held(server.get('lab', ('Bench', 'large')))
    server.put('lab', {'c': 'Bench', 'id': 'large', 'items': [
        {'c': 'Line', 'k': f'{i:04}', 'j': f'changed {i}'} for i in range(5, 1000, 100)]})
    yield Question('synchronisation of 10 changed items of 1,000', '/lab/op/sync', to_json({'syncs': [copy]}))


def delta(options):
    yield from measure(options, (BEST, 'empty'), delta_questions)


READS = (read, resource, read32, sync, delta)
