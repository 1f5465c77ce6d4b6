"""stampctl import-couchdb from a server: all documents, what has changed meanwhile, deletions; a server that fails, cuts and repeats."""
import json
import subprocess

import pytest

from couch_service import LOGIN, Couch, away, broken, busy, cut, half
from stack import wait_until
from test_import_couchdb import stored

pytestmark = pytest.mark.plain

SPARE = [f'empty{number}' for number in range(17)]
STACK = {'workers': 2, 'settings': {'limit_content_bytes': 4096}, 'namespaces': {'z': 'closed', 'lab': 'open', **dict.fromkeys(SPARE, 'open')}}


@pytest.fixture
def empty(spares):
    return next(spares)


@pytest.fixture
def couch():
    couch = Couch()
    yield couch
    couch.stop()


def run(stack, ns, couch, *more, **how):
    return stack.admin('import-couchdb', ns, couch.url, '--class', 'Row', *more, **how)


def truth(couch):
    """What the namespace must have, as `stored` without files."""
    return {f'Row/{id_}': {name: value for name, value in one.items() if name[0] != '_'} for id_, one in couch.documents.items() if id_[0] != '_'}


def here(stack, ns):
    return {name: json.loads(items['Main']) for name, items in stored(stack, ns).items()}


def fill(couch, count=450):
    couch.put('_design/views', views={})
    for number in range(count):
        couch.put(f'r{number:04}"&+/ é', n=number, files={'f': b'%d' % (number % 5)} if number % 50 == 0 else {})


def test_a_database_that_changes_meanwhile(stack, empty, couch):
    """The document at which a page ends is deleted, others come and go behind and before it; later runs catch up."""
    fill(couch)
    ids = sorted(couch.documents)

    def change(number):
        if number == 3:
            couch.delete(ids[199])  # the last of the first page
            couch.put(ids[1], n='again')
            couch.put('zzz', n='late')
        elif number == 4:
            couch.delete(ids[300])
            couch.put('0000', n='before all')
    couch.before = change
    done = run(stack, empty, couch)
    assert 'up to date with CouchDB' in done.text and here(stack, empty) == truth(couch)
    assert stack.http.get(f'{stack.url}/{empty}/doc/Row/r0050%22%26%2B%2F%20%C3%A9/file/f').content == b'0'
    couch.before = None
    assert '0 documents read: 0 changed here' in run(stack, empty, couch).text
    couch.put('zzz', n='later', files={'new': bytes(range(256))})
    couch.delete(ids[5])
    couch.delete('0000')
    couch.put('0000', n='back')
    before = len(couch.requests)
    assert '3 documents read: 3 changed here' in run(stack, empty, couch).text and here(stack, empty) == truth(couch)
    assert not any('_all_docs' in one for one in couch.requests[before:])
    assert stack.http.get(f'{stack.url}/{empty}/doc/Row/zzz/file/new').content == bytes(range(256))
    stack.admin('verify', '--ns', empty)


def test_a_server_that_fails_cuts_and_repeats(stack, empty, couch):
    fill(couch, 30)
    couch.page_most = 7  # fewer than it is asked for
    couch.troubles = [busy, half, broken, None, cut, busy, None, half, None, None, broken]
    couch.troubles = [one or (lambda handler: False) for one in couch.troubles]
    run(stack, empty, couch)
    assert here(stack, empty) == truth(couch) and not couch.troubles

    def same_page(handler):
        handler.path = next(one for one in couch.requests if '_all_docs' in one and 'startkey' not in one)
        return False
    couch.troubles = [lambda handler: False, lambda handler: False] + [same_page] * 9
    before = len(couch.requests)
    done = stack.admin('import-couchdb', empty, couch.url, '--class', 'Other', status=1)
    assert 'the same page again' in done.error and len(couch.requests) < before + 9


def test_an_import_that_is_killed_goes_on(stack, empty, couch):
    fill(couch, 300)
    couch.page_most = 20

    def wait(handler):
        program.kill()
        program.wait()
        return broken(handler)
    for pages in (2, 5, 30):
        couch.troubles = [lambda handler: False] * pages + [wait]
        program = subprocess.Popen(stack.admin_words('import-couchdb', empty, couch.url, '--class', 'Row'), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        program.wait(timeout=240)
        couch.troubles = []
    wait_until(lambda: stack.psql(empty, "select pg_try_advisory_xact_lock(hashtextextended('stampd import', 0))") == [(True,)], what='the end of the session of the killed one')
    before = len(couch.requests)
    assert 'going on after' in run(stack, empty, couch).text and here(stack, empty) == truth(couch)
    assert len(couch.requests) - before < 300 // 20


def test_classes_of_deleted_documents(stack, empty, couch, tmp_path):
    """A deletion has no type: it holds in all classes of the mapping.  A document that changes its type leaves the former class."""
    (tmp_path / 'mapping').write_text(json.dumps({'type': 'type', 'classes': {'a': 'One', 'b': 'Two'}, 'class': 'Rest'}))
    words = ('import-couchdb', empty, couch.url, '--mapping', tmp_path / 'mapping')
    stack.put(empty, {'c': 'Own', 'id': 'x', 'items': [{'c': 'Main', 'j': 1}]})
    for id_, type_ in (('x', 'a'), ('y', 'b'), ('z', 'c')):
        couch.put(id_, type=type_)
    stack.admin(*words)
    assert set(stored(stack, empty)) == {'Own/x', 'One/x', 'Two/y', 'Rest/z'}
    couch.put('x', type='b')
    couch.delete('y')
    couch.delete('z')
    stack.admin(*words)
    assert set(stored(stack, empty)) == {'Own/x', 'Two/x'}


def test_wrong_documents(stack, empty, couch):
    couch.put('a', n=1)
    couch.put('b', n='\0')
    couch.put('c', files={'f': ('image/png', b'x', {'digest': 'md5-AAAAAAAAAAAAAAAAAAAAAA=='})})
    couch.put('d', files={'f': ('text/plain', b'x', {'digest': 'md5-AAAAAAAAAAAAAAAAAAAAAA=='}), 'g': ('image/x', b'x', {'digest': 'md5-AA', 'encoding': 'gzip'})})
    couch.put('e', n='x' * 5000)
    done = run(stack, empty, couch, '--dry-run', status=1)
    assert '2 documents are right, 3 wrong; nothing was stored' in done.text and 'those of its digest' in done.error and 'limit_content_bytes' in done.error
    assert stored(stack, empty) == {} and stack.psql(empty, 'select 1 from import_source') == []
    done = run(stack, empty, couch, status=1)
    assert 'the document "b"' in done.error and set(stored(stack, empty)) == {'Row/a'}
    done = run(stack, empty, couch, '--skip-wrong', status=1)
    assert '3 wrong left out' in done.text and set(stored(stack, empty)) == {'Row/a', 'Row/d'}


def test_attachments_that_lists_have_as_stubs(stack, empty, couch, tmp_path):
    """As Cloudant, Sync Gateway and old releases send them: such a document is fetched alone, and no other one."""
    (tmp_path / 'mapping').write_text(json.dumps({'type': 'type', 'classes': {'a': 'One', 'b': 'Two'}, 'class': 'Rest'}))
    words = ('import-couchdb', empty, couch.url, '--mapping', tmp_path / 'mapping')
    couch.stubs = 'lists'
    couch.put('plain', type='a')
    couch.put('a/b "+&? é', type='a', files={'f': bytes(range(256)), 'g': b''})
    done = stack.admin(*words, '--dry-run')
    assert '2 documents are right, 0 wrong' in done.text and stored(stack, empty) == {}

    def fetched():
        return sum('/_' not in one and '?' in one for one in couch.requests)
    before = fetched()
    couch.troubles = [lambda handler: False, lambda handler: False, busy, half, cut]  # the head, the page, and the document
    stack.admin(*words)
    assert set(stored(stack, empty)) == {'One/plain', 'One/a/b "+&? é'} and fetched() - before == 4
    place = f'{stack.url}/{empty}/doc/One/a%2Fb%20%22%2B%26%3F%20%C3%A9/file/f'
    assert stack.http.get(place).content == bytes(range(256))
    couch.put('a/b "+&? é', type='b', files={'f': b'new'})
    couch.put('plain', type='b')
    before = fetched()
    stack.admin(*words)
    assert set(stored(stack, empty)) == {'Two/plain', 'Two/a/b "+&? é'} and fetched() - before == 1
    assert stack.http.get(place.replace('/One/', '/Two/')).content == b'new'
    stack.admin('verify', '--ns', empty)


def test_stubs_that_cannot_be_fetched(stack, empty, couch):
    couch.stubs = 'all'
    couch.put('a', n=1)
    couch.put('b', n=2, files={'f': b'x'})
    couch.put('c', n=3)
    done = run(stack, empty, couch, status=1)
    assert 'the document "b": the server sends its attachments without their bytes' in done.error and set(stored(stack, empty)) == {'Row/a'}
    couch.stubs = 'lists'
    couch.troubles = [away, away, lambda handler: handler.answer(404, {'error': 'not_found', 'reason': 'deleted'})]
    done = run(stack, empty, couch, status=1)
    assert 'status 404: deleted' in done.error and 'the document "b": its attachments could not be fetched; run the command again' in done.error
    couch.stubs = 'all'
    done = run(stack, empty, couch, '--skip-wrong', status=1)
    assert '1 wrong left out' in done.text and set(stored(stack, empty)) == {'Row/a', 'Row/c'}


def test_a_document_that_comes_in_one_page_twice(stack, empty, couch):
    """The last change counts."""
    couch.put('x', n=0)
    run(stack, empty, couch)
    rows = [{'seq': couch.sequence(1), 'id': 'x', 'changes': [{'rev': '2-a'}], 'doc': {'_id': 'x', '_rev': '2-a', 'n': number}} for number in range(1, 40)]
    couch.troubles = [away, lambda handler: handler.answer(200, {'results': rows, 'last_seq': couch.sequence(1), 'pending': 0})]
    run(stack, empty, couch)
    assert here(stack, empty) == {'Row/x': {'n': 39}}


def test_what_is_refused(stack, empty, tmp_path):
    couch = Couch(LOGIN)
    try:
        couch.put('a', n=1)
        login = tmp_path / 'login'
        login.write_text(LOGIN + '\n')
        assert 'refuses it with status 401: Name or password' in run(stack, empty, couch, status=1).error
        login.chmod(0o644)
        assert run(stack, empty, couch, '--login', login, status=1).error
        login.chmod(0o600)
        assert '1 documents read' in run(stack, empty, couch, '--login', login).text
        couch.made = '1800000000'
        assert 'another one than before' in run(stack, empty, couch, '--login', login, status=1).error
        assert '1 documents read: 0 changed' in run(stack, empty, couch, '--login', login, '--anew').text
        couch.troubles = [busy] * 99
        assert 'busy or has failed; run the command again' in run(stack, empty, couch, '--login', login, '--retry', '0', status=1).error
        couch.troubles = [lambda handler: handler.answer(404, {'error': 'not_found', 'reason': 'Database does not exist.'})]
        assert 'does not exist' in run(stack, empty, couch, '--login', login, status=1).error
        couch.troubles = [lambda handler: handler.answer(200, {'couchdb': 'Welcome'})]
        assert 'not that of a database' in run(stack, empty, couch, '--login', login, status=1).error
    finally:
        couch.stop()
    for words, told in (((couch.url.replace('//', '//a:b@'),), '--login'), (('http://couch.example.org/people', '--login', login), 'in clear'),
                        (('https://couch.example.org',), 'address of a database'), ((tmp_path / 'file', '--anew'), 'address of a database'), ((couch.url, '--without-attachments'), 'goes with a file')):
        assert told in stack.admin('import-couchdb', empty, *words, '--class', 'Row', status=2).error
