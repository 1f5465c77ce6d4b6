"""What accounts, rules and quotas cost: the same requests in a namespace that is open, and where the caller is known and judged."""
import hashlib
import json
import sys
import tempfile
import time
import urllib.parse

import stack
from figures import Row, sized, started
from generators import rounds, wrk
from reads import CONNECTIONS, held, put_documents
from servers import to_json

sys.path.insert(0, str(stack.SOURCE / 'test/system'))
from fastcgi import Connection  # noqa: E402
from provider import Key, encode  # noqa: E402
from schema import Schemas  # noqa: E402

COUNTERS = 10000
DOCUMENTS, SHARE = 10000, 20  # that are searched; that have the same number
OPEN, BASE = 'lab', 'open to anybody'
FAST = '8000/s, burst 1000000000'
QUOTAS = {'address': {'requests': FAST, 'writes': '1/d'}, 'account': {'requests': FAST}, 'namespace': {'requests': FAST}}
# Bench: anybody may read.  Team: members.  Doc: the owner, who has every other one.
RULES = {'Bench': {'read': ['anybody']}, 'Team': {'members': 'Member', 'read': ['members']},
         'Doc': {'owner': 'Main.owner', 'read': ['owner'], 'list': ['owner']}}
CLASSES = {'Doc': {'items': {'Main': {'singleton': True, 'fields': {'number': 'int', 'owner': 'string'}}}}}
ACCOUNT, SECRET = 'QUFBQUFBQUFBQUFBQUFBQQ', 'A' * 43
TOKEN = f'st_{ACCOUNT}.{SECRET}'
ISSUER = 'https://id.example.org'


def configure(server, ns, **members):
    server.op('z', 'ns', {'set': {'ns': ns, **members}}, admin=True)


def fill(server):
    for ns in (OPEN, 'rated', 'team'):
        put_documents(server, ['2 KB', *(f'n{i}' for i in range(100))], 10, 200, ns=ns)
        server.put(ns, {'c': 'Team', 'id': 't', 'items': [
            {'c': 'Member', 'k': ACCOUNT, 'j': {}}, *({'c': 'Line', 'k': str(i), 'j': 'x' * 190} for i in range(10))]}, admin=True)
    configure(server, 'rated', quotas=QUOTAS)
    configure(server, 'team', access='rules', accounts={'registration': 'closed'})
    server.put('z', {'c': 'Namespace', 'id': 'team', 'items': [{'c': 'Rules', 'j': RULES}]}, admin=True)
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    server.put('team', {'c': 'Account', 'id': ACCOUNT, 'items': [
        {'c': 'Self', 'j': {'created': 1}}, {'c': 'Sess', 'k': digest, 'j': {'created': 1, 'expires': 991231235959998}}]}, admin=True)


def make_external(server):
    """A token of a provider, whose keys are there as if they had been fetched."""
    key, now = Key('RS256', 'bench'), int(time.time())
    configure(server, 'team', accounts={'registration': 'closed', 'issuers': [
        {'issuer': ISSUER, 'audiences': ['bench'], 'roles': {'claim': 'groups', 'map': {'staff': 'editor'}}}]})
    id_ = encode(hashlib.sha256(b'stampd issuer\0' + ISSUER.encode() + b'\0').digest())
    stamp = int(time.strftime('%y%m%d%H%M%S000', time.gmtime(now)))
    server.put('team', {'c': 'Issuer', 'id': id_, 'items': [{'c': 'Keys', 'j': {'issuer': ISSUER, 'keys': [key.jwk]}}]},
               {'c': 'Issuer', 'id': f'{id_}-state', 'items': [{'c': 'State', 'j': {'fetched': stamp, 'tried': stamp}}]}, admin=True)
    return key.token({'iss': ISSUER, 'aud': 'bench', 'sub': 'somebody', 'name': 'Some Body', 'email': 'somebody@example.org',
                      'groups': ['staff', 'all'], 'iat': now - 5, 'exp': now + 36000})


def use_counters(server, count):
    """Each address owes something for a day.  A line of the table that has no more room forgets one, now and then."""
    with Connection(server.path / 'run/stampd/worker-0.sock') as connection:
        for number in range(count):
            answer = connection.ask('/rated/op/put', method='POST', body=b'{"param":{"docs":[]}}', CONTENT_TYPE='application/json',
                                    STAMPD_NS='rated', STAMPD_DATABASE='stampd_rated', STAMPD_CLIENT=f'10.1.{number // 250}.{number % 250}')
            assert answer.status == 200, answer.body
    assert server.metrics()['stampd_rate_counters'] >= count * 99 // 100


def get(ns, class_, id_):
    return f'/{ns}/op/get?param=' + urllib.parse.quote(to_json({'docs': [{'c': class_, 'id': id_}]}).decode(), safe='')


def fill_searched(server, ns, count):
    Schemas(server, tempfile.mkdtemp()).apply(ns, CLASSES)
    for start in range(0, count, 32):
        server.put(ns, *({'c': 'Doc', 'id': str(n), 'items': [{'c': 'Main', 'j': {
            'number': n // SHARE, 'owner': ACCOUNT if n % 2 else 'another', 'text': 'x' * 200}}]} for n in range(start, min(start + 32, count))), admin=True)


def access(options):
    settings = {'exempt_clients': '192.0.2.1', 'limit_client_requests': 0, 'limit_client_connections': 0, 'limit_client_long': 100, 'limit_namespace_long': 100}
    with started(namespaces={OPEN: 'open', 'rated': 'open', 'team': 'closed'}, **settings) as (server,):
        fill(server)
        counters = sized(options, COUNTERS, 300)
        use_counters(server, counters)
        external = make_external(server)

        def side(path, **more):
            return lambda: wrk(server, path, options.seconds, CONNECTIONS, **more)

        yield Row('cached read of 2 KB', rounds(options.pairs, {
            BASE: side(get(OPEN, 'Bench', '2 KB')), f'quotas, {counters:,} counters': side(get('rated', 'Bench', '2 KB')),
            'session, rules': side(get('team', 'Bench', '2 KB'), bearer=TOKEN),
            'token of a provider, rules': side(get('team', 'Bench', '2 KB'), bearer=external)}, options.calm),
            {f'quotas, {counters:,} counters': 0.97, 'session, rules': 0.90, 'token of a provider, rules': 0.80}, base=BASE)
        yield Row('the same of a document with members', rounds(options.pairs, {
            BASE: side(get(OPEN, 'Team', 't')), 'session, rule of members': side(get('team', 'Team', 't'), bearer=TOKEN)}, options.calm),
            {'session, rule of members': 0.85}, base=BASE)
        copies = {ns: to_json({'syncs': [held(document) for start in range(0, 100, 20) for document in server.get(
            ns, *(('Bench', f'n{i}') for i in range(start, start + 20)), admin=True)]}) for ns in (OPEN, 'team')}
        yield Row('synchronisation of 100 unchanged', rounds(options.pairs, {
            BASE: side(f'/{OPEN}/op/sync', body=copies[OPEN]), 'session, rules': side('/team/op/sync', body=copies['team'], bearer=TOKEN)}, options.calm),
            {'session, rules': 0.85}, base=BASE)
        documents = sized(options, DOCUMENTS, 10 * SHARE)
        for ns in (OPEN, 'team'):
            fill_searched(server, ns, documents)
        template = json.dumps({'param': {'c': 'Doc', 'i': 'Main', 'where': [{'f': 'number', 't': 'eq', 'v1': 0}], 'limit': SHARE // 2}}).replace('"v1": 0', '"v1": @')
        most = documents // SHARE - 1
        yield Row(f'find of {SHARE // 2} documents', rounds(options.pairs, {
            BASE: side(f'/{OPEN}/op/find', kind='find', template=template, count=most),
            'session, a rule that admits half': side('/team/op/find', kind='find', template=template, count=most, bearer=TOKEN)}, options.calm),
            {'session, a rule that admits half': 0.4}, base=BASE)
