"""Records on disk of an encrypted namespace: nothing in clear, every way of reading, keys, deaths, and a namespace in the place of another one."""
import json
import shutil
import subprocess

import pytest

import vault
from succession import succeed
from journal_world import CURSOR, DATA, GET, OVERWRITE, PATTERN, PERSIST, RANGE, SET, Client, Journal, text
from kit import Kit
from stack import BUILD, StackError, wait_until
from test_records import one, run, state
from test_records_disk import check_acknowledged, kill_all, serves, start

pytestmark = pytest.mark.plain

KEY = 'key-of-vault'
STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open'}, 'settings': {}}
MANY, SIZE = 900, 8000  # three times the memory


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': str(kit.build('record.c')), 'restart_young_ms': 0, 'records_mb': 2, 'records_disk_mb': 64,
                         'limit_namespace_records_mb': 0, 'limit_client_requests': 0, 'limit_client_connections': 0}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module', autouse=True)
def site(stack):
    stack.set(site_key_file=str(vault.new_site_key(stack)))
    vault.create(stack)


@pytest.fixture(scope='module')
def journal(stack, site):
    journal = Journal(stack)
    journal.write_keys(('lab', 'write', 'key-of-all'), ('vault', 'write', KEY))
    yield journal
    shutil.rmtree(journal.path, ignore_errors=True)


def stored(stack):
    return b''.join(file.read_bytes() for file in (stack.path / 'records').iterdir())


def link_to(journal):
    return Client(journal.socket, KEY, 'vault')


def test_nothing_is_in_clear(stack, journal):
    """By HTTP, a module and the journal: keys, further keys, values, owners of locks."""
    assert state(stack, 'set', 'hidden-key-1', ns='vault', value='hidden-value-1', keys=['hidden-key-2'], persist=True) == 'OK'
    assert state(stack, 'lock', 'hidden-key-1', ns='vault', owner='hidden-owner', lock_ms=600000) == 'OK'
    assert stack.op('vault', 'Record', {'do': 'set', 'key': 'hidden-key-3', 'text': 'hidden-value-3', 'persist': True})['out']['state'] == 'OK'
    process = journal.start()
    try:
        serves(journal, 'vault', KEY)
        assert link_to(journal).error(SET, 'hidden-key-4', text('hidden-value-4'), PERSIST) == ''
    finally:
        process.kill()
        process.wait()
    assert state(stack, 'set', 'to-be-found-key', value='to-be-found-value', persist=True) == 'OK'
    for end in (kill_all, lambda stack: stack.step('stampd', 'stop', 'now'), None):
        found = stored(stack)
        assert b'to-be-found-key' in found and b'to-be-found-value' in found and b'hidden-' not in found
        if end:
            end(stack)
            start(stack)
        assert one(stack, 'get', 'hidden-key-2', ns='vault')['value'] == 'hidden-value-1'
        assert state(stack, 'lock', 'hidden-key-1', ns='vault', owner='other', lock_ms=1000) == 'LOCKED'
        assert stack.op('vault', 'Record', {'do': 'get', 'key': 'hidden-key-3'})['out']['text'] == 'hidden-value-3'
        assert one(stack, 'get', 'hidden-key-4', ns='vault')['value'] == 'hidden-value-4'
        assert state(stack, 'get', 'hidden-key-1') == 'NOT_FOUND'


def content(number):
    word = f'concealed-{number}/'
    return (word * (SIZE // len(word) + 1))[:SIZE]


def pages(stack, **query):
    seen, after = {}, {}
    while after is not None:
        page = run(stack, {'do': 'get', 'limit': 20, **query, **after}, ns='vault')[0]
        seen.update((record['key'], record['value']) for record in page['records'])
        after = {'after': page['after']} if 'after' in page else None
    return seen


def check_reads(stack, journal):
    def wanted(numbers):
        return {f'many{number:04}': content(number) for number in numbers}
    assert pages(stack, prefix='many') == wanted(range(MANY))
    assert pages(stack, **{'from': 'many0100', 'to': 'many0149'}) == wanted(range(100, 150))
    assert pages(stack, prefix='many', pattern='[05]0$') == wanted(range(0, MANY, 50))
    assert one(stack, 'get', 'many0007', ns='vault')['value'] == content(7)
    assert stack.op('vault', 'Record', {'do': 'get', 'key': 'many0008'})['out']['text'] == content(8)
    link = link_to(journal)
    for first, numbers in ((dict(key='many0300', other='many0349', flags=RANGE | DATA), range(300, 350)),
                           (dict(key='^many...7$', flags=PATTERN | DATA), range(7, MANY, 10))):
        found, answer = {}, link.ask(GET, **first)
        while True:
            assert answer['error'] == ''
            found.update((key, value.decode()) for key, _, value in answer['records'])
            if not answer['cursor']:
                break
            answer = link.ask(GET, key=answer['cursor'], flags=CURSOR | DATA)
        assert found == wanted(numbers)


def test_more_than_the_memory(stack, journal):
    """By key, range, prefix, pattern and cursor, over HTTP, from a module and the journal; also after a restart."""
    process = journal.start()
    try:
        serves(journal, 'vault', KEY)
        link = link_to(journal)
        for first in range(0, MANY, 20):
            numbers = range(first, first + 20)
            if first % 40:
                assert [link.error(SET, f'many{number:04}', text(content(number)), PERSIST | OVERWRITE) for number in numbers] == [''] * 20
            else:
                commands = [{'do': 'set', 'key': f'many{number:04}', 'value': content(number), 'persist': True} for number in numbers]
                assert [result['state'] for result in run(stack, *commands, ns='vault')] == ['OK'] * 20
        assert stack.metrics()['stampd_records_away'] > MANY / 2
        check_reads(stack, journal)
        kill_all(stack, process)
        start(stack)
        process = journal.start()
        serves(journal, 'vault', KEY)
        check_reads(stack, journal)
        assert b'concealed' not in stored(stack)
        assert state(stack, 'truncate', 'many0000', ns='vault', size=10) == 'OK'
        assert state(stack, 'rename', 'many0001', ns='vault', to='other') == 'OK' and one(stack, 'get', 'other', ns='vault')['value'] == content(1)
        assert [result['state'] for first in range(0, MANY, 100)
                for result in run(stack, *({'do': 'delete', 'key': f'many{number:04}', 'immediate': True} for number in range(first, first + 100)), ns='vault')
                if result['state'] not in ('OK', 'NOT_FOUND')] == []
    finally:
        process.kill()
        process.wait()


def test_what_was_acknowledged_is_never_lost(stack, journal):
    process = journal.start()
    serves(journal, 'vault', KEY)
    check_acknowledged(stack, journal, process, ns='vault', key=KEY)


def changed(config, **settings):
    """The text of a file of settings, with others."""
    kept = [line for line in config.read_text().splitlines() if line.split(' =')[0] not in settings]
    return '\n'.join([*kept, *(f'{name} = {value}' for name, value in settings.items())]) + '\n'


def journal_says(journal, **settings):
    """Of a stamp-journal that does not start with these settings."""
    config = journal.path / 'other.conf'
    config.write_text(changed(journal.config, **settings))
    done = subprocess.run([BUILD / 'src/stamp-journal', '-c', config, '-k', journal.keys], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          timeout=60, check=False)
    assert done.returncode == 1
    return done.stderr


def test_a_wrong_site_key_is_refused(stack, journal):
    other = vault.new_site_key(stack, 'wrong.key')
    assert 'another site key' in journal_says(journal, site_key_file=other)
    assert 'there is none here: see site_key_file' in journal_says(journal, site_key_file='')
    assert 'site_key_file' in journal_says(journal, site_key_file='/nowhere/site.key')
    key = stack.path / 'records/key'
    sound = key.read_bytes()
    stack.step('stampd', 'stop', 'now')
    key.unlink()
    with pytest.raises(Exception, match='stampd'):
        stack.step('stampd', 'start')
    assert 'a record is encrypted, and the file key is missing' in stack.log() and not key.exists()
    key.write_bytes(sound)
    shutil.copystat(stack.path / 'records/log', key)
    shutil.chown(key, (stack.path / 'records/log').owner())
    start(stack)
    assert one(stack, 'get', 'hidden-key-2', ns='vault')['value'] == 'hidden-value-1'


def write_settings(stack, **settings):
    """For the next start, of whatever program."""
    stack.settings.update(settings)
    stack.config.write_text(changed(stack.config, **settings))


def test_the_site_key_is_replaced_while_it_serves(stack, journal):
    def change(**settings):
        write_settings(stack, **settings)
        succeed(stack)
    key, former = stack.path / 'records/key', stack.settings['site_key_file']
    before = key.read_text()
    process = journal.start()  # it goes on with the key that it has
    try:
        serves(journal, 'vault', KEY)
        change(site_key_file=str(vault.new_site_key(stack, 'second.key')), site_key_former_file=former)
        assert key.read_text().split()[0] != before.split()[0]
        assert state(stack, 'set', 'by-stampd', ns='vault', value='x', persist=True) == 'OK'
        assert link_to(journal).error(SET, 'by-journal', text('y'), PERSIST) == ''
        stack.admin('ns', 'keys', 'vault', '--wrap')
        change(site_key_former_file='')
    finally:
        process.kill()
        process.wait()
    stack.admin('ns', 'keys', 'vault', '--new')
    stack.admin('ns', 'keys', 'vault', '--reseal')
    kill_all(stack)
    start(stack)
    values = [one(stack, 'get', name, ns='vault')['value'] for name in ('by-stampd', 'by-journal', 'hidden-key-2')]
    assert values == ['x', 'y', 'hidden-value-1']
    assert 'another site key' in journal_says(journal)  # which has the former one


def test_the_site_key_is_replaced_while_nothing_runs(stack):
    """The data keys are wrapped by a command, and so may be the key of the records: else its start needs the former site key once more."""
    former, other = stack.settings['site_key_file'], str(vault.new_site_key(stack, 'third.key'))
    stack.step('stampd', 'stop', 'now')
    write_settings(stack, site_key_file=other, site_key_former_file=former)
    stack.admin('ns', 'keys', 'vault', '--wrap')
    write_settings(stack, site_key_former_file='')
    before = (stack.path / 'records/key').read_text()
    with pytest.raises(StackError, match='stampd'):
        stack.step('stampd', 'start')
    assert 'its file key is damaged, or encrypted under another site key' in stack.log() and (stack.path / 'records/key').read_text() == before
    assert 'another site key' in stack.stampctl('key', 'records', status=1).error
    write_settings(stack, site_key_former_file=former)
    assert f'under site key {before.split()[0]}' in stack.stampctl('key', 'records').out
    assert before.split()[0] not in stack.stampctl('key', 'records', '--wrap').out
    write_settings(stack, site_key_former_file='')
    start(stack)
    assert one(stack, 'get', 'hidden-key-2', ns='vault')['value'] == 'hidden-value-1'


def key_records(stack, *words):
    shown, = map(json.loads, stack.stampctl('key', 'records', *words, '--json').out.splitlines())
    assert shown['folder'] == str(stack.path / 'records')
    return shown


def test_the_records_get_another_key(stack, journal):
    """It waits for all processes, a start that is killed at each step is followed by another one, and the former key is of no use then."""
    folder = stack.path / 'records'
    former = (folder / 'key').read_bytes()
    journal.config.write_text(changed(journal.config, site_key_file=stack.settings['site_key_file']))
    names = [f'rekeyed{number:04}' for number in range(1200)]
    for first in range(0, len(names), 100):
        commands = [{'do': 'set', 'key': name, 'value': name * 10, 'persist': True} for name in names[first:first + 100]]
        assert {result['state'] for result in run(stack, *commands, ns='vault')} == {'OK'}
    process = journal.start()
    try:
        serves(journal, 'vault', KEY)
        assert key_records(stack)['next'] is False
        assert key_records(stack, '--new')['next'] is True and 'was waiting already' in stack.stampctl('key', 'records', '--new').error
        owners = {(folder / name).owner() for name in ('key', 'key.next', 'log')}
        assert len(owners) == 1
        succeed(stack)
        kill_all(stack)
        start(stack)  # stamp-journal still runs
        assert (folder / 'key').read_bytes() == former and key_records(stack)['next'] is True
        assert link_to(journal).error(SET, 'rekeyed-by-journal', text('y'), PERSIST) == ''
        assert state(stack, 'set', 'rekeyed-by-stampd', ns='vault', value='x', persist=True) == 'OK'
        kill_all(stack, process)
    finally:
        process.kill()
        process.wait()
    for step in ('records-rekeyed', 'disk-table-emptied', 'records-rekey-over'):
        write_settings(stack, debug_die_at=step)
        with pytest.raises(StackError, match='stampd'):
            stack.step('stampd', 'start')
        assert (folder / 'key').read_bytes() == former and (folder / 'key.next').exists()
    write_settings(stack, debug_die_at='')
    process = journal.start()  # whoever starts first
    try:
        wait_until(lambda: not (folder / 'key.next').exists(), what='the new key')
        start(stack)
        serves(journal, 'vault', KEY)
        assert (folder / 'key').read_bytes() != former and not (folder / 'key.next').exists() and key_records(stack)['next'] is False
        assert pages(stack, prefix='rekeyed0') | pages(stack, prefix='rekeyed1') == {name: name * 10 for name in names}
        assert [one(stack, 'get', f'rekeyed-by-{name}', ns='vault')['value'] for name in ('journal', 'stampd')] == ['y', 'x']
        assert one(stack, 'get', 'hidden-key-2', ns='vault')['value'] == 'hidden-value-1' and link_to(journal).value('rekeyed-by-journal') == [b'y']
        kill_all(stack, process)
    finally:
        process.kill()
        process.wait()
    present = (folder / 'key').read_bytes()
    (folder / 'key').write_bytes(former)
    with pytest.raises(StackError, match='stampd'):
        stack.step('stampd', 'start')
    assert 'encrypted under another key than that in the file key' in stack.log()
    (folder / 'key').write_bytes(present)
    start(stack)
    assert one(stack, 'get', 'hidden-key-2', ns='vault')['value'] == 'hidden-value-1'


def test_a_namespace_in_the_place_of_an_encrypted_one(stack):
    """Dropped, and made in clear and encrypted again, while stampd does not run."""
    def replace(*how):
        stack.step('stampd', 'stop', 'now')
        stack.admin('ns', 'drop', 'vault', '--yes')
        stack.admin('ns', 'create', 'vault', '--access', 'open', *how)
        start(stack)
        wait_until(lambda: stack.ping('vault').status_code == 200, what='the namespace')
        wait_until(lambda: stack.metrics().get('stampd_records{ns="vault"}', 0) == 0, what='the end of the former records')
    replace()
    assert state(stack, 'get', 'hidden-key-2', ns='vault') == 'NOT_FOUND'
    assert state(stack, 'set', 'clear-key', ns='vault', value='clear-value', persist=True) == 'OK' and b'clear-value' in stored(stack)
    replace('--encrypted')
    assert state(stack, 'get', 'clear-key', ns='vault') == 'NOT_FOUND'
    assert state(stack, 'set', 'clear-key', ns='vault', value='hidden-again', persist=True) == 'OK'
    kill_all(stack)
    start(stack)
    assert one(stack, 'get', 'clear-key', ns='vault')['value'] == 'hidden-again' and b'hidden-' not in stored(stack)
