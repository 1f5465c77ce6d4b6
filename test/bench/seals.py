"""The figures of encryption at rest: a commit and a cached read in an encrypted namespace beside the same in another."""
import sys

import stack
from figures import Row, started
from generators import rounds, wrk
from servers import to_json

sys.path.insert(0, str(stack.SOURCE / 'test/system'))
from vault import create, new_site_key  # noqa: E402

COUNT = 10000
DOCUMENT = {'c': 'Doc', 'id': 'read', 'items': [{'c': 'Line', 'k': str(number), 'j': 'x' * 200} for number in range(5)]}
CLEAR = 'stampd, not encrypted'


def seal(options):
    with started(namespaces={'lab': 'open'}) as (server,):
        server.set(site_key_file=new_site_key(server))
        create(server)
        for ns in ('lab', 'vault'):
            server.put(ns, DOCUMENT)

        def writes(ns):
            return lambda: wrk(server, f'/{ns}/op/put', options.seconds, clients, 'commit', **{'class': 'Doc', 'count': COUNT})

        def reads(ns):
            body = to_json({'param': {'docs': [{'c': 'Doc', 'id': 'read'}]}})
            return lambda: wrk(server, f'/{ns}/op/get', options.seconds, clients, body=body)
        for clients in (1, 8):
            yield Row(f'commit of 2 items of a document, encrypted, {clients} clients',
                      rounds(options.pairs, {'stampd': writes('vault'), CLEAR: writes('lab')}, options.calm), {CLEAR: 0.95})
        for clients in (1, 8):
            yield Row(f'read of a cached document, encrypted, {clients} clients',
                      rounds(options.pairs, {'stampd': reads('vault'), CLEAR: reads('lab')}, options.calm), {CLEAR: 0.98})
