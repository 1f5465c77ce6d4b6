"""Attachments, as the database keeps them: items P that name files, references in step on every path, exact sums, claims, and the cleaner.
The files themselves are put into the store by hand: how they are uploaded is tested in test_attachment_http.py."""
import hashlib
import itertools
import random

import psycopg2
import pytest

from stack import Problem, wait_until
from test_accounts import OPEN, PASSWORD, bearer

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', 'full': 'open', 'bare': 'open', 'team': 'closed'},
         'settings': {'keep_interval_s': 1, 'limit_client_connections': 0, 'limit_client_requests': 0}}
NUMBERS = itertools.count(1)
RIGHTS = ('read', 'list', 'create', 'update', 'delete')
RULES = {'Note': {'owner': 'Main.owner', **{right: ['owner'] for right in RIGHTS}},
         'Open': {**{right: ['account'] for right in RIGHTS}, 'items': {'P': {'see': ['role:reader'], 'write': ['account']}}}}


def registered(stack, ns, size=10, account=None):
    """The digest of a new file that the database knows; the account may attach it."""
    sha = hashlib.sha256(f'file {next(NUMBERS)} {stack.path}'.encode()).hexdigest()
    stack.psql(ns, 'select blob_touch(%s, %s)', (sha, size))
    if account:
        assert stack.psql(ns, 'select blob_claim(%s, %s, 1000)', (sha, account))[0][0]
    return sha


def attachment(key, sha, mime='text/plain'):
    return {'c': 'P', 'k': key, 'sha': sha, 'mime': mime}


def note(id_, *items, class_='Note'):
    return {'c': class_, 'id': id_, 'items': list(items)}


def files(stack, ns, id_, class_='Note'):
    """The attachments that a reader gets: {key: content}."""
    found = stack.get(ns, (class_, id_), admin=True)
    return {item['k']: item['j'] for item in found['items'] if item['c'] == 'P'}


def volume(stack, ns, id_):
    return stack.psql(ns, "select v1, v2 from doc where class = 'Note' and id = %s", (id_,))[0]


def references(stack, ns, id_):
    """{(key, digest): it is live}"""
    rows = stack.psql(ns, "select key, encode(digest, 'hex'), ended is null from blob_ref where id = %s", (id_,))
    return {(key, sha): is_live for key, sha, is_live in rows}


def assert_exact(stack, ns):
    """Each sum and each reference is what the items are."""
    assert stack.psql(ns, """select d.class, d.id, d.v2 from doc d where d.v2 <> (select coalesce(sum((i.content::json ->> 'size')::bigint), 0)
        from item i where i.class = d.class and i.id = d.id and i.iclass = 'P' and i.content is not null)""") == []
    live = 'select class, id, key, digest from blob_ref where ended is null'
    items = "select class, id, key, decode(content::json ->> 'sha', 'hex') from item where iclass = 'P' and content is not null"
    assert stack.psql(ns, f'({live} except {items}) union all ({items} except {live})') == []
    assert stack.psql(ns, 'select r.digest from blob_ref r left join blob b on b.digest = r.digest where b.digest is null or b.removing and r.ended is null') == []


@pytest.fixture(autouse=True)
def exact(stack):
    yield
    for ns in ('lab', 'full', 'team'):
        assert_exact(stack, ns)


def op(stack, account, name, param, ns='team'):
    answer = stack.http.post(f'{stack.url}/{ns}/op/{name}', json={'param': param}, headers=bearer(account.token), timeout=60)
    if answer.status_code != 200:
        raise Problem(answer)
    return answer.json()['out']


def refusal(stack, *documents, account=None, ns='lab', **more):
    with pytest.raises(Problem) as problem:
        op(stack, account, 'put', {'docs': list(documents)}, ns) if account else stack.put(ns, *documents, **more)
    return problem.value


# --- items ---

def test_an_item_describes_a_file_that_is_there(stack):
    sha, other = registered(stack, 'lab', 700), registered(stack, 'lab', 30)
    stack.put('lab', note('a', {'c': 'Main', 'j': 1}, attachment('one', sha, 'image/png.gc'), attachment('two', sha), {'c': 'P', 'k': 'three', 'sha': other}))
    assert files(stack, 'lab', 'a') == {'one': {'mime': 'image/png.gc', 'size': 700, 'sha': sha}, 'two': {'mime': 'text/plain', 'size': 700, 'sha': sha},
                                        'three': {'mime': 'application/octet-stream', 'size': 30, 'sha': other}}
    assert volume(stack, 'lab', 'a')[1] == 1430
    stack.put('lab', note('a', {'c': 'P', 'k': 'two', 'j': None}))
    stack.put('lab', note('a', attachment('one', other)))
    assert volume(stack, 'lab', 'a')[1] == 60
    assert references(stack, 'lab', 'a') == {('one', sha): False, ('two', sha): False, ('one', other): True, ('three', other): True}
    stack.put('lab', note('a', attachment('one', sha)))
    assert references(stack, 'lab', 'a')[('one', sha)], 'it has the former file again'


def test_what_names_no_file_is_refused(stack):
    sha = registered(stack, 'lab')
    stack.put('lab', note('there', attachment('f', sha)))
    missing = 'ab' * 32
    problem = refusal(stack, note('b', attachment('f', missing)))
    assert (problem.status, problem.code, problem.body['args'], problem.body['at']) == (404, 'NATTACHMENT', [missing], '/param/docs/0/items/0/sha')
    source = {'c': 'Note', 'id': 'there', 'k': 'f'}
    for wrong in ({'k': 'none'}, {'id': 'none'}, {'c': 'None'}):
        problem = refusal(stack, note('b', {'c': 'P', 'k': 'f', 'from': {**source, **wrong}}))
        assert (problem.code, problem.body['at']) == ('NATTACHMENT', '/param/docs/0/items/0/from')
    assert refusal(stack, note('b', {'c': 'P', 'k': 'f', 'sha': missing, 'from': source})).code == 'NATTACHMENT'
    good = {'mime': 'a/b', 'size': 1, 'sha': sha}
    for item in ({'sha': sha[:-1]}, {'sha': sha.upper()}, {'sha': 7}, {'sha': sha, 'mime': 'x'}, {'sha': sha, 'mime': 'a/b\r\nX: y'}, {'mime': 'a/b'}, {}, {'j': 1}, {'j': good},
                 {'j': {**good, 'more': 1}}, {'s': 'x'}, {'sha': sha, 'j': good}, {'sha': sha, 'del': True}, {'from': 'Note'}, {'from': {}}, {'from': {**source, 'v': 1}},
                 {'from': {**source, 'id': ''}}, {'from': {**source, 'id': 'x' * 256}}, {'from': {**source, 'c': 'note'}}, {'sha': sha, 'k': ''}):
        assert refusal(stack, note('b', {'c': 'P', 'k': 'f', **item})).code == 'AARG', item
    assert refusal(stack, note('b', {'c': 'P', 'sha': sha})).code == 'AARG', 'an attachment has a key'
    assert refusal(stack, note('b', {'c': 'Main', 'k': 'f', 'sha': sha})).code == 'AARG', 'only an item P has a file'
    assert stack.psql('lab', "select 1 from doc where id = 'b'") == []
    for content in ('{"mime":"a/b"}', '1'):
        with pytest.raises(psycopg2.errors.InvalidParameterValue):
            stack.psql('lab', "select put_item('Note', 'b', 'P', 'f', %s)", (content,))


def test_items_may_be_sent_back_as_they_were_read(stack):
    sha = registered(stack, 'lab')
    stack.put('lab', note('back', {'c': 'Main', 'j': 1}, attachment('f', sha)))
    was = stack.get('lab', ('Note', 'back'))
    back = [{**item, 'j': dict(reversed(item['j'].items())) if item['c'] == 'P' else item['j']} for item in was['items']]
    answer = stack.request('PUT', '/lab/doc/Note/back', json={'items': back})
    assert answer.status_code == 200, answer.text
    assert stack.get('lab', ('Note', 'back')) == was, 'nothing has changed'
    other = [{**item, 'j': {**item['j'], 'sha': registered(stack, 'lab')}} for item in was['items'] if item['c'] == 'P']
    assert stack.request('PUT', '/lab/doc/Note/back', json={'items': other}).json()['code'] == 'AARG'
    assert stack.request('PUT', '/lab/doc/Note/back', json={'items': was['items'][:1]}).status_code == 200
    assert files(stack, 'lab', 'back') == {} and references(stack, 'lab', 'back') == {('f', sha): False}


def test_an_attachment_is_copied_from_another_document(stack):
    sha = registered(stack, 'lab', 5)
    stack.put('lab', note('source', attachment('f', sha, 'a/b')))
    stack.put('lab', note('copy', {'c': 'P', 'k': 'g', 'from': {'c': 'Note', 'id': 'source', 'k': 'f'}}), note('renamed', attachment('f', sha)))
    stack.put('lab', note('renamed', {'c': 'P', 'k': 'f', 'del': True}, {'c': 'P', 'k': 'h', 'from': {'c': 'Note', 'id': 'renamed', 'k': 'f'}, 'mime': 'c/d'}))
    assert files(stack, 'lab', 'copy') == {'g': {'mime': 'a/b', 'size': 5, 'sha': sha}}
    assert files(stack, 'lab', 'renamed') == {'h': {'mime': 'c/d', 'size': 5, 'sha': sha}}


# --- references on every path ---

def test_sums_and_references_are_exact_whatever_ends_the_items(stack):
    sha = [registered(stack, 'lab', 10 ** size) for size in range(4)]
    for id_ in ('deleted', 'renewed', 'by-sql', 'expired', 'item-by-sql'):
        stack.put('lab', note(id_, {'c': 'Main', 'j': 1}, *(attachment(f'f{n}', one) for n, one in enumerate(sha))))
        assert volume(stack, 'lab', id_)[1] == 1111
    stack.put('lab', {'c': 'Note', 'id': 'deleted', 'delete': True})
    stack.put('lab', {**note('renewed', attachment('f2', sha[2]), attachment('new', sha[0])), 'delete': True})
    stack.psql('lab', "select delete_document('Note', 'by-sql')")
    stack.psql('lab', "select expire_document(d) from doc d where class = 'Note' and id = 'expired'")
    stack.psql('lab', "select put_item('Note', 'item-by-sql', 'Main', '', '2')")
    assert {id_: volume(stack, 'lab', id_)[1] for id_ in ('deleted', 'renewed', 'by-sql', 'expired', 'item-by-sql')} == {
        'deleted': 0, 'renewed': 101, 'by-sql': 0, 'expired': 0, 'item-by-sql': 1111}
    assert set(references(stack, 'lab', 'deleted').values()) == {False}
    assert {name for name, is_live in references(stack, 'lab', 'renewed').items() if is_live} == {('f2', sha[2]), ('new', sha[0])}
    stack.put('lab', note('deleted', attachment('f0', sha[3])))
    assert volume(stack, 'lab', 'deleted')[1] == 1000


def test_random_changes_keep_all_sums(stack):
    dice = random.Random(13)
    shas = [registered(stack, 'lab', 3 ** size) for size in range(5)]
    for _ in range(60):
        documents = []
        for id_ in dice.sample(['r1', 'r2', 'r3'], dice.randint(1, 3)):
            items = [dice.choice([attachment(key, dice.choice(shas)), {'c': 'P', 'k': key, 'del': True}]) for key in dice.sample('abcd', dice.randint(0, 4))]
            documents.append({**note(id_, *items), 'delete': dice.random() < 0.2})
        stack.put('lab', *documents)
        if dice.random() < 0.1:
            stack.psql('lab', "select delete_document('Note', 'r2')")
    assert_exact(stack, 'lab')


def test_a_commit_refuses_a_file_that_is_being_removed(stack):
    sha = registered(stack, 'lab')
    stack.put('lab', note('holds', attachment('f', sha)))
    with stack.keeper_stopped():  # the cleaner keeps what is referred to
        stack.psql('lab', "update blob set removing = true where digest = decode(%s, 'hex')", (sha,))  # never happens: it is referred to
        problem = refusal(stack, note('c', {'c': 'P', 'k': 'f', 'from': {'c': 'Note', 'id': 'holds', 'k': 'f'}}))
    assert (problem.code, problem.body['args']) == ('NATTACHMENT', [sha])
    stack.psql('lab', 'select blob_touch(%s, 10)', (sha,))
    stack.put('lab', note('c', {'c': 'P', 'k': 'f', 'from': {'c': 'Note', 'id': 'holds', 'k': 'f'}}))


# --- volumes ---

def test_volumes_are_summed_by_class(stack):
    sha = registered(stack, 'lab', 1000)
    stack.put('lab', note('v1', attachment('f', sha), class_='Vol'), note('v2', attachment('f', sha), attachment('g', sha), class_='Vol'), note('v3', class_='Vol'))
    stack.put('lab', {'c': 'Vol', 'id': 'v3', 'delete': True})
    sums = {class_: rest for class_, *rest in stack.psql('lab', 'select * from volumes()')}
    assert sums['Vol'][0] == 2 and sums['Vol'][2] == 3000
    (all_,) = stack.psql('lab', 'select count(*), sum(v1)::bigint, sum(v2)::bigint from doc where ctime <> 0')
    assert tuple(sums[None]) == tuple(all_)
    out = stack.op('lab', 'volumes', admin=True)['out']
    classes = out.pop('classes')
    assert (out['docs'], out['v1'], out['v2']) == all_
    assert {one['c']: [one['docs'], one['v1'], one['v2']] for one in classes} == {class_: list(rest) for class_, rest in sums.items() if class_}
    sizes = [one['v1'] + one['v2'] for one in classes]
    assert sizes == sorted(sizes, reverse=True)
    assert stack.op('z', 'volumes', admin=True)['out']['docs'] > 0
    with pytest.raises(Problem, match='SCLOSED'):
        stack.op('lab', 'volumes')


def test_volumes_of_a_namespace_without_documents(stack):
    assert stack.op('bare', 'volumes', admin=True)['out'] == {'docs': 0, 'v1': 0, 'v2': 0, 'classes': []}


def test_metrics_have_the_volumes_of_each_namespace(stack):
    """Also of those without a quota, from the first round of the keeper on; of z, too, and of one without documents."""
    stack.put('lab', note('measured', attachment('f', registered(stack, 'lab', 1234))))

    def shown(ns):
        metrics = stack.metrics()
        return [metrics.get(f'stampd_stored_{kind}{{ns="{ns}"}}') for kind in ('bytes', 'file_bytes')]

    def counted(ns):
        out = stack.op(ns, 'volumes', admin=True)['out']
        return [out['v1'] + out['v2'], out['v2']]
    assert counted('lab')[0] > counted('lab')[1] >= 1234
    for ns in ('lab', 'z', 'bare'):
        wait_until(lambda ns=ns: shown(ns) == counted(ns), what=ns)
    stack.put('lab', {'c': 'Note', 'id': 'measured', 'delete': True})
    wait_until(lambda: shown('lab') == counted('lab'), what='what a commit has removed')


def test_the_quota_of_a_namespace_counts_attachments(stack):
    stack.op('z', 'ns', {'set': {'ns': 'full', 'quotas': {'namespace': {'bytes': 5000}}}}, admin=True)
    small, large = registered(stack, 'full', 3000), registered(stack, 'full', 4000)
    stack.put('full', note('first', attachment('f', small)))

    def is_exact():
        ((exact,),) = stack.psql('full', 'select v1 + v2 from volumes() where class is null')
        return stack.metrics().get('stampd_stored_bytes{ns="full"}') == exact
    wait_until(is_exact, what='an exact sum')
    with stack.keeper_stopped():
        problem = refusal(stack, note('second', attachment('f', large)), ns='full')
        assert (problem.code, problem.body['args'][:2]) == ('ALIMIT', ['quotas.namespace.bytes', '5000'])
        stack.put('full', note('first', {'c': 'P', 'k': 'f', 'del': True}))
        stack.put('full', note('second', attachment('f', large)))
    stack.op('z', 'ns', {'set': {'ns': 'full', 'quotas': None}}, admin=True)


def test_quotas_of_classes_and_of_attachments_hold_from_the_first_write(stack):
    """The sums are exact: no measurement of the keeper counts a commit twice that it overlaps, as one may until the next."""
    small, large = registered(stack, 'full', 3000), registered(stack, 'full', 4000)
    stack.put('full', note('before', attachment('f', small), class_='Photo'), note('other', attachment('f', small)))

    def stored_bytes():
        return stack.metrics().get('stampd_stored_file_bytes{ns="full"}'), stack.psql('full', 'select v2 from volumes() where class is null')[0][0]
    wait_until(lambda: len(set(stored_bytes())) == 1, what='an exact sum')

    def limit(**quotas):
        stack.op('z', 'ns', {'set': {'ns': 'full', 'quotas': quotas or None}}, admin=True)

    def assert_full(name, *documents):
        problem = refusal(stack, *documents, ns='full')
        assert (problem.code, problem.body['args'][0]) == ('ALIMIT', f'quotas.{name}'), problem.body
        return problem.body['args'][1:]

    with stack.keeper_stopped():
        limit(classes={'Photo': {'file_bytes': 6000, 'bytes': 9600}})
        assert assert_full('classes.Photo.file_bytes', note('second', attachment('f', large), class_='Photo')) == ['6000', '7000']
        stack.put('full', note('second', attachment('f', large)))  # of another class
        stack.put('full', note('second', attachment('f', small), class_='Photo'))
        assert_full('classes.Photo.bytes', note('third', {'c': 'Main', 'j': 'x' * 4000}, class_='Photo'))
        stack.put('full', {'c': 'Photo', 'id': 'second', 'delete': True}, note('third', attachment('f', small), class_='Photo'))
        assert_full('classes.Photo.file_bytes', note('third', attachment('g', small), class_='Photo'))
        assert stack.metrics()['stampd_quota_refused_total{ns="full",quota="classes.file_bytes"}'] >= 2
        limit(namespace={'file_bytes': 14000})
        stack.put('full', note('words', {'c': 'Main', 'j': 'x' * 5000}))
        assert_full('namespace.file_bytes', note('third', attachment('g', small), class_='Photo'))
        assert stored_bytes() == (13000, 13000)
        limit()


# --- who may attach what ---

class Account:
    def __init__(self, stack, name):
        made = stack.op('team', 'register', {'name': name, 'password': PASSWORD})['out']
        self.id, self.token = made['account'], made['token']


@pytest.fixture(scope='module')
def team(stack):
    stack.op('z', 'ns', {'set': {'ns': 'team', 'access': 'rules', 'accounts': OPEN, 'rules': RULES}}, admin=True)
    return Account(stack, 'ann'), Account(stack, 'bob')


def test_a_digest_alone_opens_no_file(stack, team):
    ann, bob = team
    sha = registered(stack, 'team', 10, ann.id)
    mine, his = {'c': 'Main', 'j': {'owner': ann.id}}, {'c': 'Main', 'j': {'owner': bob.id}}
    assert refusal(stack, note('bobs', his, attachment('f', sha)), account=bob, ns='team').code == 'NATTACHMENT'
    op(stack, ann, 'put', {'docs': [note('anns', mine, attachment('f', sha))]})
    source = {'c': 'P', 'k': 'f', 'from': {'c': 'Note', 'id': 'anns', 'k': 'f'}}
    for item in (attachment('f', sha), source, {**source, 'sha': sha}):
        assert refusal(stack, note('bobs', his, item), account=bob, ns='team').code == 'NATTACHMENT', item
    stack.psql('team', 'update blob_claim set until = 1')
    assert refusal(stack, note('anns2', mine, attachment('f', sha)), account=ann, ns='team').code == 'NATTACHMENT', 'the claim has ended'
    op(stack, ann, 'put', {'docs': [note('anns2', mine, source)]})
    op(stack, ann, 'put', {'docs': [note('anns', attachment('f', sha, 'c/d'))]})
    stack.put('team', note('admins', attachment('f', sha)), admin=True)


def test_rules_decide_about_attachments(stack, team):
    ann, bob = team
    sha = registered(stack, 'team', 10, ann.id)
    op(stack, ann, 'put', {'docs': [note('o', {'c': 'Main', 'j': 1}, attachment('f', sha), class_='Open')]})
    (seen,) = op(stack, ann, 'get', {'docs': [{'c': 'Open', 'id': 'o'}]})['docs']
    assert [item['c'] for item in seen['items']] == ['Main'], 'the class P is hidden'
    problem = refusal(stack, note('o2', {'c': 'P', 'k': 'f', 'from': {'c': 'Open', 'id': 'o', 'k': 'f'}}, class_='Open'), account=bob, ns='team')
    assert problem.code == 'NATTACHMENT', 'what is hidden cannot be copied'
    content = files(stack, 'team', 'o', 'Open')['f']
    assert refusal(stack, note('o', {'c': 'P', 'k': 'f', 'j': content}, class_='Open'), account=bob, ns='team').code == 'AARG', 'nor guessed'
    rules = {**RULES, 'Open': {**RULES['Open'], 'items': {'P': {'write': []}}}}
    stack.op('z', 'ns', {'set': {'ns': 'team', 'rules': rules}}, admin=True)
    for item in (attachment('f', sha, 'x/y'), {'c': 'P', 'k': 'f', 'del': True}):
        assert refusal(stack, note('o', item, class_='Open'), account=ann, ns='team').code == 'SRULE'
    stack.op('z', 'ns', {'set': {'ns': 'team', 'rules': RULES}}, admin=True)


def test_the_quota_of_an_account_counts_attachments(stack, team):
    ann, bob = team
    stack.op('z', 'ns', {'set': {'ns': 'team', 'quotas': {'account': {'bytes': 5000}}}}, admin=True)
    sha = registered(stack, 'team', 3000, ann.id)
    mine = {'c': 'Main', 'j': {'owner': ann.id}}
    op(stack, ann, 'put', {'docs': [note('counted', mine, attachment('f', sha))]})
    problem = refusal(stack, note('counted', attachment('g', sha)), account=ann, ns='team')
    assert (problem.code, problem.body['args'][:2]) == ('ALIMIT', ['quotas.account.bytes', '5000'])
    op(stack, ann, 'put', {'docs': [note('counted', {'c': 'P', 'k': 'f', 'del': True}, attachment('g', sha))]})
    ((counted,),) = stack.psql('team', "select bytes from owned where id = 'counted'")
    ((held,),) = stack.psql('team', "select v1 + v2 from doc where id = 'counted'")
    assert counted == held > 3000
    stack.op('z', 'ns', {'set': {'ns': 'team', 'quotas': None}}, admin=True)
