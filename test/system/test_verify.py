"""stampctl verify --ns: a namespace against itself, and an archive against a namespace; every difference is found and named."""
import hashlib

import pytest

from stack import give
from test_attachment_http import sha, store

pytestmark = pytest.mark.plain

SPARE = [f'n{number}' for number in range(6)]
STACK = {'workers': 2, 'namespaces': {'z': 'closed', **dict.fromkeys(SPARE, 'open')}, 'settings': {'keep_interval_s': 0}}
ONE, TWO = b'one' * 1000, b'two' * 100000


def note(id_, *items):
    return {'c': 'Note', 'id': id_, 'items': [{'c': 'Main', 'j': id_}, *items]}


@pytest.fixture
def ns(stack, spares):
    """A namespace with documents, deleted ones, raw items, and two files, one of them no longer attached."""
    code = next(spares)
    stack.put(code, note('a'), note('b\x1b[2J\x7f\u009b'), note('gone'), {'c': 'Other', 'id': 'o', 'items': [{'c': 'Text', 's': 'raw\n'}]})
    store(stack, 'Note/a/file/one', ONE, ns=code)
    store(stack, 'Note/a/file/two', TWO, ns=code)
    stack.put(code, {'c': 'Note', 'id': 'gone', 'delete': True}, note('a', {'c': 'P', 'k': 'two', 'del': True}))
    return code


def path_of(stack, ns, digest):
    return stack.path / 'files' / f'stampd_{ns}' / digest[:2] / digest


def write(path, content):
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    give(path)


def verify(stack, ns, *words, status=0):
    return stack.admin('verify', *words, '--ns', ns, status=status)


def test_a_namespace_that_is_as_it_should_be(stack, ns):
    done = verify(stack, ns)
    assert '3 documents, 1 deleted ones' in done.text and '2 files of attachments, 303000 bytes' in done.text and 'everything is as it should be' in done.text
    write(path_of(stack, ns, sha(b'left over')), b'left over')
    stack.psql(ns, 'select blob_touch(%s, 3)', (sha(b'new'),))
    done = verify(stack, ns)
    assert 'no attachment has 1 files; 1 more, of 9 bytes, are not registered' in done.text, 'what a crash leaves is no difference'


def test_files_that_are_not_what_they_were(stack, ns):
    """Of attachments, and of those that an attachment had."""
    for content in (ONE, TWO):
        digest = hashlib.sha256(content).hexdigest()
        path = path_of(stack, ns, digest)
        for altered, problem in ((content[:-1] + b'x', 'is damaged'), (content[:-1], 'has another size'), (content + b'x', 'has another size'), (b'', 'has another size'), (None, 'is missing')):
            path.unlink()
            if altered is not None:
                write(path, altered)
            assert f'file {digest}: {problem}' in verify(stack, ns, status=1).error
            write(path, content)
    assert verify(stack, ns)


@pytest.mark.parametrize('change, back, problem', [
    ("update doc set v1 = v1 + 1 where id = 'a'", "update doc set v1 = v1 - 1 where id = 'a'", 'v1 is not the size of its items'),
    ("update doc set v2 = v2 - 1 where id = 'a'", "update doc set v2 = v2 + 1 where id = 'a'", 'v2 is not the size of its attachments'),
    ("update blob_ref set ended = 1 where key = 'one'", "update blob_ref set ended = null where key = 'one'", 'are not the same'),
    ("update blob_ref set ended = null where key = 'two'", "update blob_ref set ended = 1 where key = 'two'", 'are not the same'),
    ('create table kept as table blob; delete from blob', 'insert into blob table kept', 'not registered')])
def test_rows_that_do_not_fit(stack, altered, change, back, problem):
    verify(stack, altered)
    stack.psql(altered, change)
    assert problem in verify(stack, altered, status=1).error
    stack.psql(altered, back)
    stack.psql(altered, 'drop table if exists kept')
    verify(stack, altered)


@pytest.fixture(scope='module')
def altered(stack, spares):
    """As `ns`, of several tests."""
    code = next(spares)
    stack.put(code, note('a'))
    store(stack, 'Note/a/file/one', ONE, ns=code)
    store(stack, 'Note/a/file/two', TWO, ns=code)
    stack.put(code, note('a', {'c': 'P', 'k': 'two', 'del': True}))
    return code


def test_an_archive_and_a_namespace(stack, ns, tmp_path):
    path, later = tmp_path / 'archive', tmp_path / 'later'
    stack.admin('export', ns, path)
    done = verify(stack, ns, path)
    assert '4 documents are the same, 0 differ, 0 are missing, 0 are not in the archive; 1 of 1 files are there' in done.text and 'has what the archive has' in done.text
    stack.put(ns, {'c': 'Note', 'id': 'a', 'items': [{'c': 'Main', 'j': 'x'}]}, note('0new'), {'c': 'Other', 'id': 'o', 'delete': True}, {'c': 'Zoo', 'id': 'z', 'items': []})
    stack.psql(ns, "delete from doc where id like 'b%%'; delete from item where id like 'b%%'")
    done = verify(stack, ns, path, status=1)
    assert '1 documents are the same, 2 differ, 1 are missing, 2 are not in the archive' in done.text and '5 differences' in done.error
    for line in ('Note "a": is newer', 'Note "0new": is not in the archive', 'Other "o": is newer', 'Zoo "z": is not in the archive', 'Note "b\\u001b[2J\\u007f\\u009b": is not in the namespace'):
        assert line in done.error, line
    assert '\x1b' not in done.error and '\x7f' not in done.error
    stack.admin('export', ns, later, '--since', path)
    assert '4 documents are the same, 0 differ' in verify(stack, ns, later).text, 'of an increment, what it has'
    path_of(stack, ns, sha(ONE)).unlink()
    assert f'file {sha(ONE)}: is not in the namespace' in verify(stack, ns, path, status=1).error
    write(path_of(stack, ns, sha(ONE)), ONE)


def test_another_content_with_the_same_version(stack, ns, tmp_path):
    path = tmp_path / 'archive'
    stack.admin('export', ns, path)
    stack.psql(ns, "update item set content = '\"A\"' where id = 'a' and iclass = 'Main'")
    assert 'Note "a": has the same version and another content' in verify(stack, ns, path, status=1).error
    verify(stack, ns)
    stack.psql(ns, 'select purge_zombies(stamp_now())')
    assert '2 documents are the same, 1 differ, 0 are missing' in verify(stack, ns, path, status=1).text, 'a deletion that was purged is not missing'


def test_words(stack, ns):
    assert 'expected ARCHIVE' in stack.admin('verify', status=2).error
    assert 'no such namespace' in verify(stack, 'nowhere', status=1).error
    del ns
