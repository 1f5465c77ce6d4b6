"""stampctl against the real server: the life of a namespace, migrations, loading and its interruptions."""
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2
import pytest

from stack import BUILD, PATIENCE_S, SOURCE, Problem, run_program, stampctl, wait_until

STACK = {'workers': 2, 'tools': BUILD}


@pytest.fixture
def load(stack):
    def call(*words, ns='lab', **more):
        return run_program(*stack.copy_words('load', *words, ns=ns), **more)
    return call


def reload_words(stack):
    file = stack.path / 'nginx.pid'
    file.write_text(f'{stack.pid("nginx")}\n')
    return ['--nginx-pid', file]


def code_of(stack, ns, name='get', **more):
    try:
        stack.op(ns, name, {'docs': [{'c': 'P', 'id': 'a'}]}, **more)
        return None
    except Problem as problem:
        return problem.code


def document(number, text='x'):
    return {'c': 'Package', 'id': f'p{number}', 'items': [{'c': 'Meta', 'j': {'n': number, 't': text}}, {'c': 'Tag', 'k': 'a', 'j': 1}]}


def lines_of(documents):
    return ''.join(json.dumps(one) + '\n' for one in documents)


def contents(stack, ns, ids):
    ids = list(ids)
    found = {}
    for start in range(0, len(ids), 32):
        for one in stack.op(ns, 'get', {'docs': [{'c': 'Package', 'id': id} for id in ids[start:start + 32]]})['out']['docs']:
            found[one['id']] = {(item['c'], item.get('k')): item['j'] for item in one['items']}
    return found


# --- words ---

COMMANDS = ['', 'ns', 'ns create', 'ns drop', 'ns keys', 'ns list', 'ns migrate', 'ns move', 'ns restored', 'ns access', 'ns origins', 'ns quotas', 'ns records', 'ns workers', 'ns state', 'ns off', 'ns on', 'ns map',
            'task', 'task list', 'task show', 'task history', 'task backlog', 'task run', 'task move', 'task hold', 'task drop',
            'load', 'dump', 'find', 'search', 'purge', 'import-couchdb', 'import-csv', 'import-firestore', 'ping', 'check-config', 'key', 'key new', 'key hash', 'key records', 'push', 'push key', 'push public', 'nginx',
            'files', 'files check', 'files copy', 'files fetch', 'files verify',
            'rules', 'rules set', 'rules show', 'rules check', 'rules test', 'rules explain',
            'account', 'account list', 'account show', 'account create', 'account password', 'account disable', 'account enable', 'account sessions',
            'audit', 'version']


@pytest.mark.parametrize('command', COMMANDS)
def test_help_goes_to_standard_output(command):
    outcome = stampctl(*command.split(), '--help')
    assert outcome.out.startswith(f'usage: stampctl {command}'.rstrip()) and not outcome.error


@pytest.mark.parametrize('words', ['', 'nothing', 'ns', 'ns nothing', 'ns create', 'ns create ping', 'ns create Demo', 'ns create a b',
                                   'ns drop lab', 'ns access lab all', 'ns migrate', 'ns list --odd', 'load', 'load URL FILE',
                                   'load URL FILE --ns lab --batch 0', 'dump', 'dump URL', 'purge', 'purge URL --ns lab', 'account', 'account show URL', 'account list URL',
                                   'find URL Post', 'find URL Post Main', 'find URL Post Main --ns lab --where [',
                                   'dump URL --ns lab --class a', 'dump URL --ns lab --cursor A', 'nginx', 'key new', 'push', 'push key'])
def test_wrong_usage_is_one_line_and_2(stack, words):
    config = ['--config', stack.path / 'etc/stampd.conf'] if words.startswith('ns ') and words != 'ns nothing' else []
    outcome = stampctl(*words.split(), *config, status=2)
    assert not outcome.out and outcome.error.startswith('stampctl: ') and outcome.error.count('\n') == 1


@pytest.mark.parametrize('words, meant', [('nss', 'is ns meant?'), ('ns lst', 'is ns list meant?'), ('tsk', 'is task meant?'),
                                          ('ns create x --axcess read', 'is --access meant?'), ('load --bach 5 u f', 'is --batch meant?'),
                                          ('quux', 'there is no such command (see'), ('ns list --quux', 'there is no such option (see'),
                                          ('account show --json -Xq3', 'show: -X: there is no such option; a word that begins with - stands behind -- (see')])
def test_what_was_meant(words, meant):
    outcome = stampctl(*words.split(), status=2)
    assert meant in outcome.error and outcome.error.count('\n') == 1


# --- namespaces ---

def test_the_life_of_a_namespace(stack):
    nginx = reload_words(stack)
    assert code_of(stack, 'life') == 'NNAMESPACE'
    stack.admin('ns', 'create', 'life', *nginx)
    wait_until(lambda: code_of(stack, 'life') == 'SCLOSED', what='the closed namespace')
    stack.admin('ns', 'access', 'life', 'read')
    wait_until(lambda: code_of(stack, 'life') is None, what='free reading')
    assert code_of(stack, 'life', 'put') == 'SCLOSED'
    stack.admin('ns', 'off', 'life', 'back at ten')
    wait_until(lambda: code_of(stack, 'life') == 'OOFF', what='maintenance')
    row, = [line for line in stack.admin('ns', 'list').out.splitlines() if line.startswith('life ')]
    assert 'stampd_life' in row and 'read' in row and row.endswith('back at ten')
    stack.admin('ns', 'on', 'life')
    wait_until(lambda: code_of(stack, 'life') is None, what='the end of maintenance')
    assert 'applied' not in stack.admin('ns', 'create', 'life', *nginx).out
    assert code_of(stack, 'life') is None, 'a second ns create changes nothing'
    stack.admin('ns', 'drop', 'life', '--yes', *nginx)
    wait_until(lambda: code_of(stack, 'life') == 'NNAMESPACE', what='the end of the namespace')
    assert 'there is no such namespace' in stack.admin('ns', 'drop', 'life', '--yes', status=1).error


def test_only_the_workers_role_may_connect(stack):
    stack.admin('ns', 'create', 'shut')
    rows = stack.psql(None, "select has_database_privilege('public', 'stampd_shut', 'connect'),"
                      " has_database_privilege('stampd', 'stampd_shut', 'connect')")
    assert rows == [(False, True)]
    stack.admin('ns', 'drop', 'shut', '--yes')


def test_an_interrupted_create_is_completed(stack):
    stack.psql(None, 'create database stampd_half template template0')
    outcome = stack.admin('ns', 'create', 'half', '--access', 'open')
    assert 'applied 0001' in outcome.out and 'made the database' not in outcome.out
    stack.admin('ns', 'drop', 'half', '--yes')


def test_a_database_with_something_else_is_left_alone(stack):
    stack.psql(None, 'create database other template template0')
    run_psql = stack.conninfo_of_server() + ' dbname=other'
    subprocess.run(['psql', '-qX', run_psql, '-c', 'create table kept ()'], check=True)
    assert 'table public.kept' in stack.admin('ns', 'create', 'more', '--database', 'other', status=1).error
    assert 'is the database of namespace lab' in stack.admin('ns', 'create', 'more', '--database', 'stampd_lab', status=1).error
    stack.psql(None, 'drop database other')


def test_z_stays_while_others_are(stack):
    assert 'drop them first' in stack.admin('ns', 'drop', 'z', '--yes', status=1).error


def test_namespaces_may_be_made_at_once(stack):
    outcomes = []
    threads = [threading.Thread(target=lambda: outcomes.append(stack.admin('ns', 'create', 'same'))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 3
    stack.admin('ns', 'drop', 'same', '--yes')


def test_codes_that_are_words_of_nginx(stack):
    nginx = reload_words(stack)
    for code in ('default', 'include', 'volatile', 'hostnames'):
        stack.admin('ns', 'create', code, '--access', 'open', *nginx)
    wait_until(lambda: all(code_of(stack, code) is None for code in ('default', 'include', 'volatile', 'hostnames')))
    for code in ('default', 'include', 'volatile', 'hostnames'):
        stack.admin('ns', 'drop', code, '--yes', *nginx)


# --- migrations ---

def test_a_newer_schema_is_left_alone(stack, tmp_path):
    for path in sorted((SOURCE / 'sql').glob('*.sql'))[:3]:
        shutil.copy(path, tmp_path)
    outcome = stack.admin('ns', 'migrate', 'lab', status=1, environment={'STAMPD_SQL': str(tmp_path)})
    assert 'newer than this release of stampctl (3)' in outcome.error


def test_one_migration_at_a_time(stack):
    outcomes = []
    with psycopg2.connect(stack.conninfo('lab')) as other, other.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(hashtextextended('stampd migration', 0))")
        thread = threading.Thread(target=lambda: outcomes.append(stack.admin('ns', 'migrate', 'lab')))
        thread.start()
        waits = wait_until(lambda: not thread.is_alive() or stack.psql(
            None, "select pid from pg_stat_activity where datname = 'stampd_lab' and wait_event = 'advisory'"), what='the second')
        cursor.execute('select pg_advisory_unlock_all()')
    other.close()
    thread.join(PATIENCE_S)
    assert waits is not True, 'it did not wait'
    assert outcomes and outcomes[0].status == 0


def test_a_migration_that_fails_names_its_line_and_leaves_nothing(stack, tmp_path):
    for file in (SOURCE / 'sql').glob('*.sql'):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    number = len(list(tmp_path.iterdir())) + 1
    bad = tmp_path / f'{number:04}_bad.sql'
    bad.write_text('-- été\ncreate table stampd.first ();\ncreate table stampd.second (a nothing);\n')
    outcome = stack.admin('ns', 'migrate', 'lab', status=1, environment={'STAMPD_SQL': str(tmp_path)})
    assert f'{bad}:3: ' in outcome.error and 'nothing' in outcome.error
    assert stack.psql('lab', "select to_regclass('stampd.first') is null, max(number) < %s from migration", (number,)) == [(True, True)]
    bad.rename(tmp_path / f'{number + 1:04}_gap.sql')
    assert f'expected number {number:04}' in stack.admin('ns', 'migrate', 'lab', status=1, environment={'STAMPD_SQL': str(tmp_path)}).error


def test_a_later_file_is_applied_alone_and_this_release_refuses_the_database(stack, tmp_path):
    files = sorted((SOURCE / 'sql').glob('0*.sql'))
    for file in files:
        shutil.copy(file, tmp_path)
    later = tmp_path / f'{len(files) + 1:04}_later.sql'
    later.write_text("alter table stampd.doc add column colour text not null default 'red';\n")
    stack.admin('ns', 'create', 'later', '--access', 'open', *reload_words(stack))
    try:
        stack.psql('later', "select put_item('P', 'a', 'N', '', '1')")
        wait_until(lambda: code_of(stack, 'later') is None, what='the namespace')
        out = stack.admin('ns', 'migrate', 'later', environment={'STAMPD_SQL': str(tmp_path)}).out
        assert f'applied {later.name}' in out and out.count('applied') == 1
        assert stack.psql('later', 'select id, colour from doc') == [('a', 'red')]
        # Sessions that were open go on; a new one is refused, and stampctl of this release keeps off.
        stack.psql(None, "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'stampd_later'")
        wait_until(lambda: code_of(stack, 'later') == 'ODATABASE', what='the refusal')
        assert f'is at migration {len(files) + 1}, this program needs {len(files)}: install the newer release' in stack.log()
        refused = stack.admin('ns', 'migrate', 'later', status=1).error
        assert f'has schema {len(files) + 1}, which is newer than this release of stampctl ({len(files)})' in refused
    finally:
        stack.connections.pop('later').close()
        stack.admin('ns', 'drop', 'later', '--yes', *reload_words(stack))


# --- load ---

def test_items_of_attachments_are_not_loaded(stack, load):
    lines = lines_of([{'c': 'Note', 'id': 'attached', 'items': [{'c': 'P', 'k': 'a', 'j': 1}]}])
    assert 'reserved for attachments' in load('-', text=lines, status=1).error
    assert stack.psql('lab', "select 1 from doc where id = 'attached'") == []


def test_documents_are_loaded_and_the_last_line_wins(stack, load):
    documents = [document(number % 400, f'round {number // 400}') for number in range(1000)]
    outcome = load('-', text=lines_of(documents))
    assert outcome.out.startswith('1000 lines, 1000 documents stored')
    wanted = {one['id']: {(item['c'], item.get('k')): item['j'] for item in one['items']} for one in documents}
    assert contents(stack, 'lab', wanted) == wanted


def test_a_key_opens_a_closed_namespace(stack, load, tmp_path):
    assert 'SCLOSED' in load('-', ns='demo', status=1, text=lines_of([document(1)])).error
    load('-', '--key-file', stack.key_file, ns='demo', text=lines_of([document(1)]))
    wrong = tmp_path / 'key'
    wrong.write_text('0' * 64 + '\n')
    wrong.chmod(0o600)
    assert 'SKEY' in load('-', '--key-file', wrong, ns='demo', status=1, text=lines_of([document(1)])).error


def test_a_wrong_line_ends_the_load_and_is_named(stack, load, tmp_path):
    file = tmp_path / 'lines'
    file.write_text(lines_of(document(1000 + number) for number in range(40)) + '\n{"c":"Package"}\n' + lines_of([document(1999)]))
    outcome = load(file, status=1)
    assert 'line 42: expected a text as "id"' in outcome.error and '--from 42' in outcome.error
    assert not contents(stack, 'lab', ['p1999'])['p1999']
    load(file, '--from', 43)
    assert contents(stack, 'lab', ['p1999'])['p1999']


def test_an_unknown_member_of_a_line_is_refused(stack, load):
    for member, words in (('item', 'did you mean "items"?'), ('If', 'known are c, id, v, ct, dt and items')):
        outcome = load('-', status=1, text='{"c":"Note","id":"unknown","%s":[]}\n' % member)
        assert member in outcome.error and words in outcome.error, outcome.error
    assert stack.get('lab', ('Note', 'unknown'))['v'] == 0


def test_a_refused_document_is_named_and_its_neighbours_are_stored(stack, load):
    documents = [document(2000 + number) for number in range(100)]
    documents[50] = {'c': 'no class', 'id': 'x', 'items': []}
    outcome = load('-', '--keep-going', status=1, text=lines_of(documents))
    assert 'line 51: refused: AARG' in outcome.error and '99 documents stored' in outcome.out
    assert all(contents(stack, 'lab', (f'p{2000 + number}' for number in range(100) if number != 50)).values())
    assert '--from' in load('-', status=1, text=lines_of(documents)).error


def test_an_interrupted_load_goes_on(stack, load, tmp_path):
    file, state = tmp_path / 'lines', tmp_path / 'state'
    os.mkfifo(file)
    words = stack.copy_words('load', '--state', state, file)
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        with open(file, 'w') as pipe:
            pipe.write(lines_of(document(3000 + number) for number in range(70)))
            pipe.flush()
            wait_until(lambda: contents(stack, 'lab', ['p3069'])['p3069'], what='the last document written to the pipe')
            running.send_signal(signal.SIGINT)
            out, error = running.communicate(timeout=PATIENCE_S)
    finally:
        running.kill()
    assert running.returncode == 1 and 'interrupted; lines up to 70 are stored' in error, (out, error)
    file.unlink()
    file.write_text(lines_of(document(3000 + number, 'y') for number in range(100)))
    assert load('--state', state, file).out.startswith('30 lines, 30 documents')
    found = contents(stack, 'lab', ['p3069', 'p3070'])
    assert [found[id]['Meta', None]['t'] for id in ('p3069', 'p3070')] == ['x', 'y']
    assert load('--state', state, file).out.startswith('0 lines')
    file.write_text(lines_of(document(3000 + number, 'longer') for number in range(101)))
    assert 'not the file that was loaded before' in load('--state', state, file, status=1).error
    assert 'the state of another load' in load('--state', state, file, ns='demo', status=1).error


def test_workers_that_die_lose_no_line(stack, load, tmp_path):
    file = tmp_path / 'lines'
    documents = [document(5000 + number) for number in range(3000)]
    file.write_text(lines_of(documents))
    outcomes = []
    loading = threading.Thread(target=lambda: outcomes.append(load(file)))
    loading.start()
    for last in (300, 1200, 2100):
        wait_until(lambda: contents(stack, 'lab', [f'p{5000 + last}'])[f'p{5000 + last}'], what=f'line {last}')
        stack.kill_worker(stack.worker_pids()[0])  # the relay is the youngest
        wait_until(lambda: len(stack.worker_pids()) >= STACK['workers'], what='the successor')
    loading.join()
    assert outcomes and outcomes[0].out.startswith('3000 lines, 3000 documents')
    assert all(contents(stack, 'lab', (one['id'] for one in documents)).values())


class HoldingServer(ThreadingHTTPServer):
    """Takes documents, and holds its answers back as long as `is_held` says so of a document; knows which have come, are on the way
    and were answered."""
    daemon_threads = True

    def __init__(self, is_held):
        super().__init__(('127.0.0.1', 0), HoldingHandler)
        self.is_held, self.come, self.on_the_way, self.answered, self.twice = is_held, [], [], [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class HoldingHandler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        (name,) = [document['id'] for document in body['param']['docs']]
        server = self.server
        server.twice += [name] if name in server.on_the_way else []
        server.come.append(name)
        server.on_the_way.append(name)
        while server.is_held(server, name):
            time.sleep(0.01)
        server.on_the_way.remove(name)
        server.answered.append(name)
        text = b'{"out":{"v":1}}'
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def test_what_was_on_the_way_is_loaded_again(tmp_path):
    """The first document is not answered, all behind it are; then it is interrupted, and does not wait for the first."""
    documents, file, state = [document(number) for number in range(20)], tmp_path / 'lines', tmp_path / 'state'
    file.write_text(lines_of(documents))
    held = threading.Event()
    held.set()
    with HoldingServer(lambda _, name: name == 'p0' and held.is_set()) as server:
        words = ['load', f'http://127.0.0.1:{server.server_port}', '--ns', 'lab', '--batch', '1', '--parallel', '3', '--state', state, file]
        loading = subprocess.Popen([BUILD / 'src/stampctl', *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: len(server.answered) == 19, what='all but the first')

        def interrupt():
            loading.send_signal(signal.SIGINT)
            time.sleep(0.05)
            return loading.poll() is not None

        wait_until(interrupt, what='the end of it')
        loading.communicate()
        held.clear()
        before = len(server.come)
        words[words.index('--parallel') + 1] = '1'  # of several that are sent at once any may come first
        assert stampctl(*words).status == 0
        assert server.come[before] == 'p0'


def test_lines_of_one_document_follow_each_other(tmp_path):
    """The next one is sent when the one before is answered: the last line wins."""
    file = tmp_path / 'lines'
    file.write_text(lines_of([document(0, 'first'), document(0, 'second'), document(1), document(0, 'third')]))
    patience = iter(range(50))
    with HoldingServer(lambda server, name: not server.twice and next(patience, None) is not None) as server:
        stampctl('load', f'http://127.0.0.1:{server.server_port}', '--ns', 'lab', '--batch', '1', '--parallel', '4', file)
    assert server.twice == [] and server.come.count('p0') == 3


# --- the rest ---

def test_ping_says_what_is_off(stack):
    trust = ['--ca', stack.path / 'etc/certificate.pem', '--config', stack.path / 'etc/stampd.conf']
    outcome = stampctl('ping', stack.url, *trust)
    assert [line.split()[:2] for line in outcome.out.splitlines()] == [['OK', '/ping'], ['OK', '/demo/ping'], ['OK', '/lab/ping'], ['OK', '/z/ping']]
    stack.admin('ns', 'off', 'lab', 'resting')
    wait_until(lambda: stack.ping('lab').json()['off'] != 0)
    assert 'resting' in stampctl('ping', stack.url, 'lab', *trust, status=1).out
    stack.admin('ns', 'on', 'lab')
    wait_until(lambda: stack.ping('lab').json()['off'] == 0)
    stampctl('ping', 'http://127.0.0.1:1', 'lab', status=1)


def test_check_config_finds_what_does_not_agree(stack, tmp_path):
    config, nginx = stack.path / 'etc/stampd.conf', stack.path / 'etc/nginx.conf'
    outcome = stampctl('check-config', '--config', config, '--nginx', nginx)
    assert outcome.out and all(line.startswith(('OK ', 'WARN ')) for line in outcome.out.splitlines())
    changed = tmp_path / 'nginx.conf'
    changed.write_text(nginx.read_text().replace('client_max_body_size 16777216;', 'client_max_body_size 1m;'))
    outcome = stampctl('check-config', '--config', config, '--nginx', changed, status=1)
    assert [line for line in outcome.out.splitlines() if line.startswith('FAIL')] == [
        'FAIL  nginx: client_max_body_size 1m, limit_body_bytes is 16777216']
    changed.write_text(nginx.read_text().replace('client_max_body_size 524288;', 'client_max_body_size 511k;'))
    outcome = stampctl('check-config', '--config', config, '--nginx', changed, status=1)
    assert [line for line in outcome.out.splitlines() if line.startswith('FAIL')] == [
        'FAIL  nginx: client_max_body_size 511k, limit_anonymous_body_bytes is 524288']


def test_a_key_is_made_once_and_for_its_owner(tmp_path):
    file = tmp_path / 'key'
    line = stampctl('key', 'new', file).out
    assert file.stat().st_mode & 0o777 == 0o600 and len(file.read_text().strip()) == 64
    assert line == f'admin_key_sha256 = {stampctl("key", "hash", file).out}'
    kept = file.read_text()
    assert 'exists' in stampctl('key', 'new', file, status=1).error and file.read_text() == kept


def test_each_kind_of_key_has_its_line(tmp_path):
    """The key of an archive has no line for the settings: it would make an administrator of whoever has the archive's key."""
    files = {kind: tmp_path / kind for kind in ('archive', 'queue', 'site')}
    lines = {kind: stampctl('key', 'new', f'--{kind}', file).out for kind, file in files.items()}
    assert lines == {'archive': f'--key-file {files["archive"]}\n', 'site': f'site_key_file = {files["site"]}\n',
                     'queue': f'queue_key_sha256 = {stampctl("key", "hash", files["queue"]).out}'}
    for file in files.values():
        assert file.stat().st_mode & 0o777 == 0o600 and len(file.read_text().strip()) == 64
    for kinds in (['--archive', '--site'], ['--queue', '--archive'], ['--site', '--queue']):
        assert 'expected one of' in stampctl('key', 'new', *kinds, tmp_path / 'none', status=2).error and not (tmp_path / 'none').exists()
