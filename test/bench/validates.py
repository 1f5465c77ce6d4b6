"""The figures of contents that are checked: a commit with a JSON Schema of ten properties beside the same without."""
import sys
import tempfile

import stack
from figures import Row, started
from generators import rounds, wrk

sys.path.insert(0, str(stack.SOURCE / 'test/system'))
from schema import Schemas  # noqa: E402

COUNT = 10000
TEXT = {'type': 'string', 'minLength': 1, 'maxLength': 100}
CONTENT = {'type': 'object', 'required': ['title', 'price'], 'additionalProperties': False, 'properties': {
    'title': TEXT, 'text': TEXT, 'code': {'type': 'string', 'pattern': '^[A-Z]{2}-[0-9]{6}$'}, 'price': {'type': 'number', 'minimum': 0, 'multipleOf': 0.01},
    'count': {'type': 'integer', 'minimum': 0, 'maximum': 1000000}, 'state': {'enum': ['new', 'open', 'done']}, 'day': {'format': 'date'},
    'tags': {'type': 'array', 'items': TEXT, 'maxItems': 10, 'uniqueItems': True}, 'owner': {'type': ['string', 'null']}, 'is_open': {'type': 'boolean'}}}


def validate(options):
    with started(namespaces={'lab': 'open', 'free': 'open'}) as (server,):
        with tempfile.TemporaryDirectory() as folder:
            Schemas(server, folder).apply('lab', {'Doc': {'items': {'Main': {'singleton': True, 'content': CONTENT}}}})

        def side(ns):
            return lambda: wrk(server, f'/{ns}/op/put', options.seconds, clients, 'entry', **{'class': 'Doc', 'count': COUNT})
        for clients in (1, 8):
            yield Row(f'put of a content of 10 properties, checked, {clients} clients',
                      rounds(options.pairs, {'stampd': side('lab'), 'stampd without a schema': side('free')}, options.calm),
                      {'stampd without a schema': 0.95})
