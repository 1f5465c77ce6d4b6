"""Encrypted namespaces: what is stored of them discloses nothing, what was moved or altered is never served, and keys change under way."""
import json
import subprocess
import threading

import pytest

import archives
import firestore_export
from manager import Manager
from stack import BUILD, SERVER_USER, refused, run_program, wait_until
from succession import succeed
from vault import create, new_site_key

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open'}, 'settings': {'limit_kept_bytes': 1 << 20}}
PLANTED = 'marzipan-7719'


def doc(id_, *items):
    return {'c': 'Note', 'id': id_, 'items': list(items)}


def line(key, value):
    return {'c': 'Line', 'k': key, 'j': value}


@pytest.fixture(scope='module')
def vault(stack):
    """The stack with an encrypted namespace."""
    stack.set(site_key_file=new_site_key(stack, 'site.key'))
    create(stack, 'vault')
    return stack


def content(document, key):
    item, = (item for item in document['items'] if item.get('k', '') == key)
    return item.get('j')


def test_documents_are_as_they_were_written(vault):
    items = [line('a', {'x': [1, 'é']}), line('b' * 255, 'long'), {'c': 'Main', 'j': {'one': 1}}, {'c': 'Text', 's': '~1.not sealed'}]
    vault.put('vault', doc('n1', *items))
    vault.restart_stampd()  # nothing is cached
    found = vault.get('vault', ('Note', 'n1'))
    assert sorted((item['c'], item.get('k', ''), item.get('j', item.get('s'))) for item in found['items']) == sorted(
        ((item['c'], item.get('k', ''), item.get('j', item.get('s'))) for item in items), key=lambda item: item[:2])
    version = vault.put('vault', doc('n1', {'c': 'Line', 'k': 'a', 'del': True}, line('c', 3)))
    vault.restart_stampd()
    found = vault.get('vault', ('Note', 'n1'))
    assert content(found, 'c') == 3 and found['v'] == version and not any(item.get('k') == 'a' for item in found['items'] if 'j' in item)
    # by its key, the same row
    vault.put('vault', doc('n1', line('c', 4)))
    assert vault.psql('vault', "select count(*) from item where id = 'n1' and iclass = 'Line' and content is not null")[0][0] == 2
    vault.put('vault', {'c': 'Note', 'id': 'n1', 'delete': True})
    assert vault.psql('vault', "select count(*) from item where id = 'n1'")[0][0] == 0


def test_a_dump_and_the_log_disclose_nothing(vault):
    start, = vault.psql(None, 'select pg_current_wal_insert_lsn()')[0]
    headers = {'Idempotency-Key': '"planted"'}
    body = {'param': {'docs': [doc('n2', line(PLANTED + 'key', PLANTED), {'c': 'Text', 's': PLANTED})]}}
    for ns in ('vault', 'lab'):
        answer = vault.request('POST', f'/{ns}/op/put', json=body, headers=headers)
        assert answer.status_code == 200, answer.text
    again = vault.request('POST', '/vault/op/put', json=body, headers=headers)
    assert again.status_code == 200 and again.json()['out'] == vault.request('POST', '/vault/op/put', json=body, headers=headers).json()['out']
    dumps = {ns: subprocess.run(['pg_dump', vault.conninfo(ns)], stdout=subprocess.PIPE, check=True).stdout for ns in ('vault', 'lab')}
    assert PLANTED.encode() in dumps['lab'] and PLANTED.encode() not in dumps['vault']
    # The log has the row of the other namespace, so that it would be found.
    end, = vault.psql(None, 'select pg_current_wal_flush_lsn()')[0]
    assert start != end
    log = b''.join(path.read_bytes() for path in sorted((vault.path / 'pg/pg_wal').glob('0*')))
    assert log.count(PLANTED.encode()) > 0
    for ns in ('vault', 'lab'):  # twice: the head of a page of the log may stand within one of them
        vault.put(ns, doc('n2', line('again', f'{PLANTED}-{ns} {PLANTED}-{ns}')))
    vault.psql(None, 'checkpoint')
    log = b''.join(path.read_bytes() for path in sorted((vault.path / 'pg/pg_wal').glob('0*')))
    assert (PLANTED + '-lab').encode() in log and (PLANTED + '-vault').encode() not in log


def test_the_argument_of_a_task_is_encrypted(vault):
    task = vault.op('vault', 'task', {'op': 'put', 'param': {'docs': [doc('n3', line('k', PLANTED))]}, 'start': vault.psql('vault', "select stamp_of(now() + interval '1 day')")[0][0]}, admin=True)['out']
    (param,), = vault.psql('vault', 'select param from taskqueue')
    assert param.startswith('~1.'), task
    id_, = (row for row, in vault.psql('vault', 'select taskid from taskqueue'))
    manager = Manager(vault, 'vault')
    manager.hurry()
    assert manager.run(id_)['result'] == 'done'
    assert content(vault.get('vault', ('Note', 'n3')), 'k') == PLANTED
    manager.scan()
    vault.psql('vault', 'truncate task_history')


def test_what_the_end_of_a_task_takes_is_decrypted(vault):
    vault.op('z', 'ns', {'set': {'ns': 'vault', 'workers': [{'qn': 16, 'ops': ['resize']}]}}, admin=True)
    for _ in range(2):
        vault.op('vault', 'task', {'op': 'resize', 'param': {'text': PLANTED}}, admin=True)
    (task,) = vault.op('vault', 'take', {'qn': 16}, admin=True)['out']['tasks']
    end = {**{name: task[name] for name in ('id', 'starttime', 'retry')}, 'take': {'qn': 16}}
    (following,) = vault.op('vault', 'done', end, admin=True)['out']['tasks']
    assert following['param'] == {'text': PLANTED} and vault.op('vault', 'done', end, admin=True)['out']['tasks'] == [following]
    failure = {**{name: following[name] for name in ('id', 'starttime', 'retry')}, 'report': PLANTED, 'delay': 0, 'take': {'qn': 16, 'wait': 60}}
    (again,) = vault.op('vault', 'fail', failure, admin=True)['out']['tasks']
    assert again['param'] == {'text': PLANTED} and vault.op('vault', 'fail', failure, admin=True)['out']['tasks'] == [again]
    assert vault.psql('vault', 'select report from task_history where exc is not null') == [(None,)]
    waited = {**{name: again[name] for name in ('id', 'starttime', 'retry')}, 'report': PLANTED, 'delay': 1, 'take': {'qn': 16, 'wait': 60}}
    tasks = vault.op('vault', 'fail', waited, admin=True)['out']['tasks'] or wait_until(lambda: vault.op('vault', 'take', {'qn': 16}, admin=True)['out']['tasks'])
    assert tasks[0]['param'] == {'text': PLANTED}
    assert all(param.startswith('~1.') for param, in vault.psql('vault', 'select param from taskqueue'))
    vault.psql('vault', 'truncate taskqueue, task_history')


def test_a_claim_that_cannot_be_decrypted_is_not_followed_by_others(vault):
    """The keys cannot be read when a new one is needed; the claim has been made, and the request is not run again by the server."""
    vault.op('z', 'ns', {'set': {'ns': 'vault', 'workers': [{'qn': 16, 'ops': ['resize']}]}}, admin=True)
    for _ in range(4):
        vault.op('vault', 'task', {'op': 'resize', 'param': {'text': PLANTED}}, admin=True)
    sealed = vault.psql('vault', 'select taskid, param from taskqueue')
    vault.psql('vault', "update taskqueue set param = '~2.' || substr(param, 4)")
    vault.psql('vault', 'revoke select on data_key from stampd')
    try:
        answer = vault.request('POST', '/vault/op/take', json={'param': {'qn': 16}}, headers={'Authorization': f'Bearer {vault.key}'})
        assert (answer.status_code, answer.json()['code']) == (500, 'XUNKNOWN') and 'phase' not in answer.json()
        assert vault.psql('vault', 'select count(*) from taskqueue where starttime is not null') == [(1,)]
    finally:
        vault.psql('vault', 'grant select on data_key to stampd')
    for taskid, param in sealed:
        vault.psql('vault', 'update taskqueue set param = %s where taskid = %s', (param, taskid))
    (task,) = vault.op('vault', 'take', {'qn': 16}, admin=True)['out']['tasks']
    assert task['param'] == {'text': PLANTED} and vault.psql('vault', 'select count(*) from taskqueue where starttime is not null') == [(2,)]
    vault.psql('vault', 'truncate taskqueue, task_history')


@pytest.mark.parametrize('more', [{}, {'resource': 'r'}])
def test_a_past_task_of_which_the_history_keeps_no_clear_argument_runs_again(vault, more):
    manager = Manager(vault, 'vault')
    manager.scan()
    vault.psql('vault', 'truncate task_history')
    id_ = vault.op('vault', 'task', {'op': 'put', 'param': {'docs': [doc('n4', line('k', PLANTED))]}, **more}, admin=True)['out']['id']
    assert manager.run(id_)['result'] == 'done'
    (kept, result), = vault.psql('vault', 'select param, result from task_history')
    assert kept.startswith('~1.') and result.startswith('~1.')
    assert vault.op('vault', 'tasks', {'history': {}}, admin=True)['out']['attempts'][0]['param'] == kept
    vault.put('vault', {'c': 'Note', 'id': 'n4', 'delete': True})
    assert vault.op('vault', 'tasks', {'redrive': id_}, admin=True)['out']['done'] == 1
    assert manager.run(id_)['result'] == 'done'
    assert content(vault.get('vault', ('Note', 'n4')), 'k') == PLANTED
    with pytest.raises(Exception, match='encrypted_namespace'):
        vault.psql('vault', "update task_history set param = '{}'")


@pytest.mark.parametrize('change', [
    "update item set id = 'to' where id = 'from'",
    "update item set content = (select content from item where id = 'other') where id = 'from'",
    "update item set key = (select key from item where id = 'other') where id = 'from'",
    "update item set iclass = 'Row' where id = 'from'",
    "update item set raw = true where id = 'from'",
    "update item set content = overlay(content placing 'AAAA' from 30) where id = 'from'",
    "update item set content = '~' where id = 'from'",
    "update item set key = 'clear' where id = 'from'"])
def test_what_was_moved_or_altered_is_a_fault(vault, change):
    vault.put('vault', *(doc(id_, line('key', f'of {id_}')) for id_ in ('from', 'other')), doc('to'))
    vault.psql('vault', change)
    vault.psql('vault', "select pg_notify('stampd', 'all')")
    vault.restart_stampd()
    refused('BCONTENT', vault.get, 'vault', ('Note', 'to' if " id = 'to'" in change else 'from'))
    assert content(vault.get('vault', ('Note', 'other')), 'key') == 'of other'
    vault.psql('vault', "delete from item where id in ('from', 'to', 'other'); delete from doc where id in ('from', 'to', 'other')")
    vault.psql('vault', "select pg_notify('stampd', 'all')")
    vault.restart_stampd()


def test_the_database_stores_nothing_in_clear(vault):
    for sql in ("select put_item('Note', 'clear', 'Line', 'a', '1')", "select task_create('x', '{\"a\":1}')",
                "select task_create('push', '{\"session\":\"x\",\"more\":1}', resource => 'x')",
                "insert into subscription (session, version, until, context) values ('a-session-of-nobody', 1, 1, 'clear')",
                "insert into subscription_definition (session, key, def) values ('a-session-of-nobody', 'cNote/@', 'Note')",
                "insert into unique_property (class, name, keys, is_global) values ('Note', 'a', '{Main.a}', true)"):
        with pytest.raises(Exception, match='encrypted_namespace'):
            vault.psql('vault', sql)


def test_what_needs_contents_in_the_database_is_refused(vault, tmp_path):
    assert vault.op('vault', 'list', {'c': 'Note'})['out']
    schema = tmp_path / 'schema'
    main = {'singleton': True, 'fields': {'f': 'string'}}
    for declared in ({'items': {'Main': main}}, {'items': {'Main': {'singleton': True}}, 'unique': {'f': {'key': ['Main.f'], 'global': True}}}):
        schema.write_text(json.dumps({'classes': {'Note': declared}}))
        vault.admin('schema', 'set', 'vault', schema)
        assert 'encrypted' in vault.admin('schema', 'apply', 'vault', status=1).error
    schema.write_text(json.dumps({'classes': {'Tune': {'items': {'Main': {'singleton': True, 'content': {'type': 'object'}}}}}}))
    vault.admin('schema', 'set', 'vault', schema)
    vault.admin('schema', 'apply', 'vault')
    refused('ACONTENT', vault.put, 'vault', {'c': 'Tune', 'id': 't', 'items': [{'c': 'Main', 'j': 1}]})


def test_archives_move_documents_in_and_out(vault, tmp_path):
    vault.put('vault', doc('n4', line('k', {'deep': [1, 2]})), doc('n5', line('gone', 1)))
    vault.put('vault', {'c': 'Note', 'id': 'n5', 'delete': True})
    vault.admin('export', 'vault', tmp_path / 'first')
    assert archives.documents(tmp_path / 'first')['Note', 'n4']['items'][0]['j'] == {'deep': [1, 2]}
    create(vault, 'safe')
    vault.admin('import', 'safe', tmp_path / 'first', '--no-configuration')
    vault.restart_stampd()
    assert content(vault.get('safe', ('Note', 'n4')), 'k') == {'deep': [1, 2]}
    assert all(text is None or text.startswith('~1.') for text, in vault.psql('safe', 'select content from item'))
    vault.admin('export', 'safe', tmp_path / 'second')
    assert archives.documents(tmp_path / 'second') == archives.documents(tmp_path / 'first')
    vault.admin('ns', 'create', 'plain', '--access', 'open')
    vault.admin('import', 'plain', tmp_path / 'first', '--no-configuration')
    assert vault.admin('verify', '--ns', 'vault') and vault.admin('verify', tmp_path / 'first', '--ns', 'safe')
    assert vault.psql('plain', "select content::json from item where id = 'n4'")[0][0] == {'deep': [1, 2]}
    assert 'encrypted' in vault.admin('import', 'vault', tmp_path / 'first', '--merge', status=1).error
    (tmp_path / 'rows.csv').write_text('id,word\n1,one\n')
    assert 'encrypted' in vault.admin('import-csv', 'vault', tmp_path / 'rows.csv', '--class', 'Word', '--id', 'id', status=1).error
    (tmp_path / 'all.json').write_text('{"rows":[{"id":"a","doc":{"_id":"a"}}]}')
    assert 'encrypted' in vault.admin('import-couchdb', 'vault', tmp_path / 'all.json', '--class', 'Word', status=1).error
    folder = firestore_export.write(tmp_path / 'export', {'output-0': [firestore_export.entity('words/a', {'word': 'one'})]})
    assert 'encrypted' in vault.admin('import-firestore', 'vault', folder, '--class', 'Word', status=1).error


def ids(stack, ns):
    """The keys under which the contents of a document are sealed."""
    return {text.split('.')[0] for text, in stack.psql(ns, "select content from item where id = 'n6' and content is not null")}


def test_keys_change_while_it_serves(vault):
    vault.put('vault', doc('n6', line('old', 'under the first')))
    listed = [json.loads(row) for row in vault.admin('ns', 'keys', 'vault', '--new', '--json').out.splitlines()]
    assert [row['id'] for row in listed] == [1, 2]
    vault.put('vault', doc('n6', line('new', 'under the second')))
    assert ids(vault, 'vault') == {'~1', '~2'}
    vault.put('vault', doc('n6', line('old', 'again')))
    assert ids(vault, 'vault') == {'~2'} and vault.psql('vault', "select count(*) from item where id = 'n6'")[0][0] == 2
    # the key of the site
    second = new_site_key(vault, 'second.key')
    vault.set(site_key_file=second, site_key_former_file=vault.settings['site_key_file'])
    assert content(vault.get('vault', ('Note', 'n6')), 'new') == 'under the second'
    for code in ('vault', 'safe'):
        vault.admin('ns', 'keys', code, '--wrap')
    vault.set(site_key_former_file='')
    assert content(vault.get('vault', ('Note', 'n6')), 'new') == 'under the second'
    assert 'is not encrypted' in vault.admin('ns', 'keys', 'lab', status=1).error


def test_the_site_key_changes_while_it_serves(vault):
    """By successors: no request fails, and each step is served by servers that have the keys."""
    vault.put('vault', doc('n7', line('k', 'rotated')))
    third, before = new_site_key(vault, 'third.key'), vault.psql('vault', 'select distinct site from data_key')
    failures, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            answer = vault.request('POST', '/vault/op/get', json={'param': {'docs': [{'c': 'Note', 'id': 'n7'}]}})
            if answer.status_code != 200:
                failures.append(answer.text)

    def change(**settings):
        vault.settings.update(settings)
        kept = [text for text in vault.config.read_text().splitlines() if text.split(' =')[0] not in settings]
        vault.config.write_text('\n'.join([*kept, *(f'{name} = {value}' for name, value in settings.items())]) + '\n')
        succeed(vault)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        change(site_key_file=third, site_key_former_file=vault.settings['site_key_file'])
        for code in ('vault', 'safe'):
            vault.admin('ns', 'keys', code, '--wrap')
        change(site_key_former_file='')
    finally:
        stop.set()
        asking.join()
    assert not failures, failures[:3]
    assert content(vault.get('vault', ('Note', 'n7')), 'k') == 'rotated'
    assert vault.psql('vault', 'select distinct site from data_key') != before


def test_other_sources_of_the_site_key(vault):
    file, good = vault.settings['site_key_file'], vault.config.read_text()
    config = vault.path / 'etc/source.conf'
    folder = file.parent

    def check(environment=None, **settings):
        lines = [text for text in good.splitlines() if not text.startswith('site_key')] + [f'{name} = {value}' for name, value in settings.items()]
        config.write_text('\n'.join(lines) + '\n')
        return run_program(BUILD / 'src/stampctl', 'check-config', '--config', config, status=None, environment=environment).text

    wrong = 'its data keys cannot be used'
    assert wrong in check() and wrong not in check(site_key_command=f'/bin/cat  {file}')
    assert wrong not in check({'CREDENTIALS_DIRECTORY': str(folder)}, site_key_file=f'$CREDENTIALS_DIRECTORY/{file.name}')
    for command, why in (('/bin/false', 'has failed (status 1)'), ('/bin/true', 'has printed nothing'), ('/nonexistent/program', 'cannot be run'),
                         ('/bin/echo secret-in-the-log', 'is no site key'), ('cat x', 'expected an absolute path')):
        config.write_text('\n'.join(text for text in good.splitlines() if not text.startswith('site_key')) + f'\nsite_key_command = {command}\n')
        ended = run_program(BUILD / 'src/stampd', '--config', config, status=None, **SERVER_USER)
        assert ended.status and why in ended.error, ended.error
    assert 'and no site_key_file' in check(site_key_command=f'/bin/cat {file}', site_key_file=file)
    vault.set(site_key_command=f'/bin/cat {file}', site_key_file='')
    assert content(vault.get('vault', ('Note', 'n7')), 'k') == 'rotated'
    vault.set(site_key_command='', site_key_file=file)


def test_on_a_disk_it_does_not_start(vault):
    config, disk, keys = vault.path / 'etc/disk.conf', vault.path / 'log', vault.path / 'etc/journal.keys'
    keys.write_text('')
    lines = [text for text in vault.config.read_text().splitlines() if not text.startswith('run_directory')]
    for settings in (f'run_directory = {disk}', f'run_directory = {vault.path}/run/stampd\nsegment = {disk}/segment'):
        config.write_text('\n'.join(lines) + f'\n{settings}\n')
        why = settings.splitlines()[-1] + ': it is on a disk, where contents of encrypted namespaces would be in clear'
        for words in (('stampd', '--test'), ('stampd',), ('stampctl', 'check-config'), ('stamp-journal', '--keys', keys)):
            ended = run_program(BUILD / 'src' / words[0], *words[1:], '--config', config, status=1)
            assert why in ended.text, (words, ended.text)
    assert not (disk / 'segment').exists()


def test_the_last_process_erases_what_it_has_decrypted(vault):
    mark = 'erased when it stops'
    vault.put('vault', doc('erased', line('text', mark)))
    assert vault.get('vault', ('Note', 'erased'))
    segment = vault.path / 'run/stampd/segment'
    assert mark.encode() in segment.read_bytes()
    vault.step('stampd', 'stop')
    for file in (segment, segment.parent / 'records'):
        assert not any(file.read_bytes()[64:]), file
    vault.restart_stampd()
    assert mark in json.dumps(vault.get('vault', ('Note', 'erased')))


def test_without_the_site_key_it_does_not_start(vault):
    good = vault.settings['site_key_file']
    config = vault.config.read_text()
    wrong, malformed = new_site_key(vault, 'wrong.key'), new_site_key(vault, 'malformed.key')
    malformed.write_text('0123\n')
    broken = vault.path / 'etc/broken.conf'
    for path, why in (('', 'there is no site key'), (wrong, 'under another site key'), (malformed, 'no site key of 64')):
        broken.write_text(config.replace(f'site_key_file = {good}', f'site_key_file = {path}'))
        ended = run_program(BUILD / 'src/stampd', '--config', broken, status=1, **SERVER_USER)
        assert why in ended.error, ended.error
    broken.write_text(config.replace(f'site_key_file = {good}', f'site_key_file = {wrong}'))
    checked = run_program(BUILD / 'src/stampctl', 'check-config', '--config', broken, status=None)
    assert checked.status == 1 and 'namespace vault: its data keys cannot be used' in checked.text
    good.chmod(0o644)
    broken.write_text(config)
    assert 'any user may read' in run_program(BUILD / 'src/stampd', '--config', broken, status=1, **SERVER_USER).error
    good.chmod(0o600)
    # a key that was copied from another namespace opens nothing
    rows = vault.psql('safe', 'select site, wrapped from data_key')
    kept = vault.psql('vault', 'select wrapped from data_key where id = 1')[0][0]
    vault.psql('vault', 'update data_key set wrapped = %s where id = 1', (rows[0][1],))
    assert 'altered, or is of another' in run_program(BUILD / 'src/stampd', '--config', broken, status=1, **SERVER_USER).error
    vault.psql('vault', 'update data_key set wrapped = %s where id = 1', (kept,))
    # nor does one that is said to be encrypted and has none
    vault.psql('safe', 'create table kept as select * from data_key; delete from data_key')
    assert 'has no data key' in run_program(BUILD / 'src/stampd', '--config', broken, status=1, **SERVER_USER).error
    vault.psql('safe', 'insert into data_key select * from kept; drop table kept')


def test_no_namespace_is_made_without_a_site_key(vault):
    """Nor its database, which the same command without the option would complete in clear."""
    config = vault.path / 'etc/keyless.conf'
    config.write_text('\n'.join(text for text in vault.config.read_text().splitlines() if not text.startswith('site_key')) + '\n')
    words = [BUILD / 'src/stampctl', 'ns', 'create', 'later', '--encrypted', '--config', config, '--admin-conninfo', vault.conninfo_of_server()]
    assert 'an encrypted namespace needs a site key' in run_program(*words, status=1).error
    assert vault.psql('z', "select count(*) from pg_database where datname like '%later'") == [(0,)]


def test_a_namespace_stays_as_it_was_created(vault):
    assert 'is not encrypted' in vault.admin('ns', 'create', 'lab', '--encrypted', status=1).error
    assert vault.psql('lab', 'select count(*) from data_key') == [(0,)]
    rows = vault.psql('vault', 'select id, wrapped from data_key order by id')
    vault.admin('ns', 'create', 'vault')
    assert vault.psql('vault', 'select id, wrapped from data_key order by id') == rows
    assert 'not available in an encrypted namespace' in vault.admin('schema', 'check', '--content', 'vault', status=1).error


def test_former_keys_stay_when_new_ones_cannot_be_unwrapped(vault):
    """Else what is written next would be in clear, and what is read would not be decrypted."""
    vault.put('vault', doc('n9', line('k', 'before')))
    vault.psql('vault', "insert into data_key (id, site, wrapped) select max(id) + 1, 'another', 'x' from data_key")
    vault.psql('vault', 'update schema set number = number + 1')
    vault.psql('vault', "select pg_notify('stampd', 'all')")
    for number in range(9):
        answer = vault.request('POST', '/vault/op/put', json={'param': {'docs': [doc('n9', line('k', f'{PLANTED} {number}'))]}})
        assert answer.status_code in (200, 503), answer.text
    stored, = vault.psql('vault', "select content from item where id = 'n9' and iclass = 'Line'")[0]
    assert stored.startswith('~') and PLANTED not in vault.log('postgres')
    vault.psql('vault', "delete from data_key where site = 'another'; update schema set number = number + 1")
    vault.psql('vault', "select pg_notify('stampd', 'all')")
    wait_until(lambda: vault.request('POST', '/vault/op/put', json={'param': {'docs': [doc('n9', line('k', 'after'))]}}).status_code == 200, what='a commit')
    assert content(vault.get('vault', ('Note', 'n9')), 'k') == 'after'
