"""A build without an optional library refuses what needs it, and says why.  Each test is for builds without its feature."""
import pytest

from stack import BUILD, StackError, refused

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'team': 'closed'}}
PASSKEYS = '{"passkeys":{"rp":"example.org"}}'


def without(feature):
    is_there = f'#define HAVE_{feature} 1' in (BUILD / 'config.h').read_text().splitlines()
    return pytest.mark.skipif(is_there, reason=f'this build has {feature}')


@without('PASSKEYS')
def test_passkeys_are_refused(stack):
    problem = refused('AARG', stack.op, 'z', 'ns', {'set': {'ns': 'team', 'accounts': {'passkeys': {'rp': 'example.org'}}}}, admin=True)
    assert 'libfido2' in str(problem.body)
    assert 'libfido2' in stack.admin('ns', 'accounts', 'team', PASSKEYS, status=1).error
    stack.psql('z', f"""update item set content = replace(content, '"access"', '"accounts":{PASSKEYS},"access"')
                        where class = 'Namespace' and id = 'team' and iclass = 'Conf'""")
    stack.restart_stampd()
    problem = refused('SCLOSED', stack.op, 'team', 'passkey', {'begin': 'login'})
    assert 'libfido2' in str(problem.body)


@without('ARCHIVES')
def test_archives_are_neither_written_nor_read(stack, tmp_path):
    archive = tmp_path / 'team.tar.zst'
    assert 'libarchive' in stack.admin('export', 'team', archive, status=1).error and not archive.exists()
    archive.write_bytes(b'anything')
    for words in (('verify', archive), ('import', 'team', archive)):
        assert 'libarchive' in stack.admin(*words, status=1).error


@without('RECORDS_ON_DISK')
def test_a_folder_of_records_is_refused_at_the_start(stack, tmp_path):
    with pytest.raises(StackError):
        stack.set(records_directory=str(tmp_path / 'records'), records_mb='4')
    assert 'made without LMDB' in stack.log()
