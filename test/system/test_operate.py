"""What an administrator relies on: checks that find what is missing, namespaces that come and go by one command."""
import grp
import os
import re
import subprocess
import threading
import time

import psycopg2
import pytest
import requests

from stack import BUILD, PATIENCE_S, SERVER_USER, SOURCE, children, free_port, give, run_program, stampctl, wait_until
from succession import succeed

pytestmark = pytest.mark.plain

STACK = {'workers': 6}  # more than clients write at the same time: when all others are at commits for two seconds, the last one begins none
WORKER = ('setpriv', '--reuid', 'daemon', '--regid', 'daemon', '--groups', 'www-data', '--') if SERVER_USER else ()


def ask_stampctl(stack, *words, **more):
    return stack.stampctl(*words, cwd='/', **more).text


@pytest.fixture(autouse=True)
def reload_command(stack):
    conf = stack.path / 'etc/stampd.conf'
    if 'nginx_reload' not in conf.read_text():
        with conf.open('a') as file:
            file.write(f'nginx_reload = kill -HUP $(cat {stack.path}/run/nginx/nginx.pid)\n')


@pytest.fixture
def admin(stack):
    return lambda *words, **more: stack.admin(*words, cwd='/', **more).text


# --- stampd --test, check-config ---

class Settings:
    def __init__(self, path):
        self.path, self.conf = path, path / 'stampd.conf'

    def test(self, program='stampd', **settings):
        settings = {'run_directory': self.path, **SERVER_USER, **settings}
        self.conf.write_text(''.join(f'{name} = {value}\n' for name, value in settings.items()))
        return subprocess.run([BUILD / 'src' / program, '--test', '--config', self.conf], capture_output=True, text=True, timeout=60)


@pytest.fixture
def settings(tmp_path):
    return Settings(give(tmp_path))


def secret(path, text, mode=0o600):
    path.write_text(text + '\n')
    path.chmod(mode)
    return give(path)


@pytest.mark.parametrize('wrong, words', [
    ({'modules': 'nothere.so'}, 'nothere.so: No such file'),
    ({'modules': '/dev/null'}, 'no regular file'),
    ({'socket_group': 'nothere'}, 'socket_group = nothere: there is no such group'),
    ({'zone': 'Mars/Olympus'}, 'zone = Mars/Olympus: there is no such time zone'),
    ({'user': 'nobody-here'}, 'there is no such user'),
    ({'user': 'root'}, 'does not run as root'),
    ({'queue_key_file': '/nonexistent/key'}, 'queue_key_file = /nonexistent/key: No such file'),
    ({'queue_ca_file': '/nonexistent/ca.pem'}, 'queue_ca_file = /nonexistent/ca.pem: cannot be read'),
    ({'mail_password_file': '/nonexistent/word'}, 'mail_password_file = /nonexistent/word: No such file'),
    ({'push_key_file': '/nonexistent/push', 'push_contact': 'mailto:a@example.org'}, '/nonexistent/push'),
])
def test_the_trial_finds_what_is_missing(settings, wrong, words):
    if 'user' in wrong and not SERVER_USER:
        pytest.skip('only root becomes another user')
    done = settings.test(**wrong)
    assert done.returncode == 1 and words in done.stderr, done
    assert 'settings are good' not in done.stdout


def test_the_trial_finds_secrets_that_all_can_read(settings, tmp_path):
    good = settings.test(queue_key_file=secret(tmp_path / 'good', 'a' * 64))
    assert good.returncode == 0, good
    loose = settings.test(queue_key_file=secret(tmp_path / 'loose', 'a' * 64, 0o644))
    assert loose.returncode == 1 and 'any user may read' in loose.stderr
    other = settings.test(queue_key_file=tmp_path / 'good', queue_key_sha256='0' * 64)
    assert other.returncode == 1 and 'is the digest of another key' in other.stderr
    stores = settings.test(object_stores_file=tmp_path / 'loose')
    assert stores.returncode == 1 and f'object_stores_file = {tmp_path}/loose: any user may read' in stores.stderr
    settings.conf.touch()
    settings.conf.chmod(0o644)
    password = settings.test(database='host=/run/postgresql user=stampd password=hunter2')
    assert password.returncode == 1 and 'holds a password, and any user may read it' in password.stderr
    assert 'hunter2' not in password.stderr
    settings.conf.chmod(0o640)
    assert settings.test(database='host=/run/postgresql user=stampd password=hunter2').returncode == 0


@pytest.mark.parametrize('body, words', [
    ('__attribute__((constructor)) static void begin(void) { __builtin_trap(); }', 'ended the process by signal'),
    ('#include <stdlib.h>\n__attribute__((constructor)) static void begin(void) { exit(7); }', 'ended the process with status 7'),
])
def test_a_module_that_dies_as_it_is_loaded_is_told(settings, tmp_path, body, words):
    (tmp_path / 'dies.c').write_text(body)
    subprocess.run(['cc', '-fPIC', '-shared', '-o', tmp_path / 'dies.so', tmp_path / 'dies.c'], check=True)
    done = settings.test(modules=tmp_path / 'dies.so')
    assert done.returncode == 1 and words in done.stderr, done


def check(stack, status=0):
    give(stack.path / 'etc/queue.key')  # who asks must be able to read it, as the manager under systemd
    return ask_stampctl(stack, 'check-config', '--nginx', stack.path / 'etc/nginx.conf', status=status, prefix=WORKER)


def test_check_config_tells_what_may_be_wanted(stack):
    said = check(stack)
    assert 'FAIL' not in said
    assert re.search(r'^WARN  .*/qm.sock: no queue manager of this host listens there', said, re.M)
    assert re.search(r'^WARN  nginx: it does not listen on IPv6', said, re.M)
    assert re.search(r'^WARN  mail_to is empty', said, re.M)
    stack.step('queue', 'start')
    try:
        assert re.search(r'^OK +queue manager ', check(stack), re.M)
    finally:
        stack.step('queue', 'stop')


def test_check_config_looks_where_temporary_files_are(stack, tmp_path):
    nginx = (stack.path / 'etc/nginx.conf').read_text()
    changed = tmp_path / 'nginx.conf'
    for folder, is_told in (('/dev/shm/none/yet', True), (tmp_path, False)):
        changed.write_text(re.sub(r'client_body_temp_path .*;', f'client_body_temp_path {folder}/body;', nginx))
        said = ask_stampctl(stack, 'check-config', '--nginx', changed, prefix=WORKER)
        assert ('temporary files are in memory' in said) == is_told, said


NO_PLAIN, NO_HSTS, NO_GROUP = 'nginx: it does not listen for plain HTTP', 'nginx: no HSTS', 'socket_group is empty'


@pytest.mark.parametrize('options, missing', [
    ((), {NO_PLAIN, NO_HSTS}), (('--http', '80'), {NO_HSTS}), (('--hsts', '86400'), {NO_PLAIN}), (('--http', '[::]:8080', '--hsts', '86400'), set()),
    (('--http', '127.0.0.1:80', '--hsts', '86400'), {NO_PLAIN}), (('--acme', '/srv/acme', '--hsts', '86400'), set())])
def test_check_config_looks_for_plain_http_and_hsts(stack, tmp_path, options, missing):
    written = tmp_path / 'nginx.conf'
    written.write_text(ask_stampctl(stack, 'nginx', '--certificate', stack.path / 'etc/certificate.pem', '--key', stack.path / 'etc/certificate.key', *options))
    said = ask_stampctl(stack, 'check-config', '--nginx', written, prefix=WORKER)
    assert {words for words in (NO_PLAIN, NO_HSTS) if re.search(rf'^WARN +{words}', said, re.M)} == missing, said


def test_check_config_asks_for_nothing_of_https_without_it(stack, tmp_path):
    changed = tmp_path / 'nginx.conf'
    changed.write_text((stack.path / 'etc/nginx.conf').read_text().replace(' ssl', ''))
    said = ask_stampctl(stack, 'check-config', '--nginx', changed, prefix=WORKER)
    assert NO_PLAIN not in said and NO_HSTS not in said, said


def test_check_config_looks_who_may_connect_to_the_workers(stack):
    conf, path = stack.path / 'etc/stampd.conf', stack.path / 'run/stampd/worker-0.sock'
    kept, mode = conf.read_text(), path.stat().st_mode
    path.chmod(0o666)
    try:
        conf.write_text(re.sub('^socket_group.*\n', '', kept, flags=re.M))
        assert re.search(rf'^WARN +{NO_GROUP}', check(stack, status=1), re.M)
        conf.write_text(kept)
        assert NO_GROUP not in check(stack, status=1) or 'socket_group' not in kept
        assert re.search(r'^FAIL +.*worker-0.sock: everybody may connect \(mode 666\)', check(stack, status=1), re.M)
    finally:
        conf.write_text(kept)
        path.chmod(mode & 0o777)


@pytest.mark.parametrize('user, is_member', [('root', True), ('nobody', False), ('no-such-user', False)])
def test_check_config_looks_whether_nginx_may_connect(stack, tmp_path, user, is_member):
    conf, nginx = stack.path / 'etc/stampd.conf', tmp_path / 'nginx.conf'
    kept = conf.read_text()
    text = (stack.path / 'etc/nginx.conf').read_text()
    nginx.write_text(f'user {user};\n' + re.sub(r'^user .*;\n', '', text, flags=re.M))
    try:
        conf.write_text(re.sub('^socket_group.*\n', '', kept, flags=re.M) + '\nsocket_group = daemon\n')
        said = ask_stampctl(stack, 'check-config', '--nginx', nginx, status=None, prefix=WORKER)
    finally:
        conf.write_text(kept)
    assert re.search(rf'^{"OK" if is_member else "FAIL"} +nginx: its user {user} is in socket_group daemon$', said, re.M), said


@pytest.mark.parametrize('folder, is_open', [('closed/files', False), ('/usr', True), ('/no/such/folder', True)])
def test_check_config_looks_whether_nginx_reaches_the_files(stack, tmp_path, folder, is_open):
    conf, nginx, closed = stack.path / 'etc/stampd.conf', tmp_path / 'nginx.conf', tmp_path / 'closed'
    kept = conf.read_text()
    (closed / 'files').mkdir(parents=True)
    closed.chmod(0o700)
    nginx.write_text('user nobody;\n' + re.sub(r'^user .*;\n', '', (stack.path / 'etc/nginx.conf').read_text(), flags=re.M))
    try:
        conf.write_text(re.sub('^(socket_group|blob_directory).*\n', '', kept, flags=re.M) + f'\nsocket_group = daemon\nblob_directory = {tmp_path / folder}\n')
        said = ask_stampctl(stack, 'check-config', '--nginx', nginx, status=None, prefix=WORKER)
    finally:
        conf.write_text(kept)
    assert bool(re.search(r'^FAIL +nginx: its user nobody cannot enter /.*: it cannot send the files in blob_directory', said, re.M)) != is_open, said


def test_the_trial_tells_that_no_group_may_connect(settings):
    assert NO_GROUP in settings.test().stderr
    group = grp.getgrgid(os.getegid()).gr_name
    assert NO_GROUP not in settings.test(socket_group=group).stderr


def test_check_config_looks_at_the_certificate(stack):
    key, certificate = stack.path / 'etc/certificate.key', stack.path / 'etc/certificate.pem'
    kept = certificate.read_bytes()
    key.chmod(0o644)
    try:
        assert 'any user may read or write the key' in check(stack, status=1)
        key.chmod(0o600)
        subprocess.run(['openssl', 'req', '-x509', '-key', key, '-days', '3', '-subj', '/CN=localhost', '-out', certificate],
                       check=True, capture_output=True)
        assert re.search(r'^WARN  nginx: certificate .* ends in [23] days', check(stack), re.M)
    finally:
        key.chmod(0o600)
        certificate.write_bytes(kept)


@pytest.mark.skipif(not SERVER_USER, reason='root is refused by PostgreSQL')
def test_who_asks_as_the_wrong_user_is_told_so(stack):
    conf = stack.path / 'etc/stampd.conf'
    text = conf.read_text()
    conf.write_text(text.replace('user=stampd', 'user=nobody'))
    try:
        assert 'run it as the user of stampd' in ask_stampctl(stack, 'check-config', status=1)
        assert 'run it as the user of stampd' in ask_stampctl(stack, 'ping', stack.url, '--insecure', status=1)
    finally:
        conf.write_text(text)


# --- keys ---

def test_keys_of_managers_and_weak_ones(tmp_path):
    def key(*words, status=0):
        return stampctl('key', *words, status=status).text
    assert re.fullmatch(r'queue_key_sha256 = [0-9a-f]{64}\n', key('new', '--queue', tmp_path / 'queue'))
    assert re.fullmatch(r'admin_key_sha256 = [0-9a-f]{64}\n', key('new', tmp_path / 'admin'))
    assert key('hash', tmp_path / 'admin') == key('hash', tmp_path / 'admin')
    assert 'can be found by trying' in key('hash', secret(tmp_path / 'short', 'hunter2'), status=1)
    assert 'any user may read or write it' in key('hash', secret(tmp_path / 'loose', 'a' * 64, 0o644), status=1)


# --- namespaces ---

def status_of(stack, path):
    return stack.request('GET', path).status_code


def test_a_namespace_comes_and_goes_with_one_command(stack, admin):
    assert status_of(stack, '/passing/ping') == 404
    with stack.nginx_renewed():
        admin('ns', 'create', 'passing', '--access', 'read')
    wait_until(lambda: status_of(stack, '/passing/ping') == 200, what='that the server knows it')
    pids = children(stack.pid('nginx'))  # one of the former ones may still be about to end
    admin('ns', 'create', 'passing')  # nothing new: nginx is left alone
    admin('ns', 'map')
    assert set(children(stack.pid('nginx'))) <= set(pids)
    admin('ns', 'drop', 'passing', '--yes')
    wait_until(lambda: status_of(stack, '/passing/ping') == 404, what='that nginx has forgotten it')


def test_what_is_created_is_served_from_then_on(stack, admin):
    admin('ns', 'create', 'prompt', '--access', 'read')
    found = [requests.get(f'{stack.url}/prompt/ping', verify=str(stack.path / 'etc/certificate.pem'), timeout=PATIENCE_S).status_code for _ in range(20)]
    assert found == [200] * 20, 'each over a connection of its own'
    admin('ns', 'drop', 'prompt', '--yes')


def test_a_reload_that_fails_is_told(stack, admin):
    conf = stack.path / 'etc/stampd.conf'
    text = conf.read_text()
    conf.write_text(re.sub(r'(?m)^nginx_reload = .*\n(  .*\n)*', 'nginx_reload = exit 3\n', text))
    try:
        assert 'nginx_reload = exit 3: failed (status 3)' in admin('ns', 'create', 'failing', status=1)
    finally:
        conf.write_text(text)
        admin('ns', 'drop', 'failing', '--yes')


def test_a_dropped_database_is_forgotten(stack, admin):
    admin('ns', 'create', 'brief', '--access', 'open')
    wait_until(lambda: status_of(stack, '/brief/ping') == 200, what='the namespace')
    stack.op('brief', 'put', {'docs': [{'c': 'P', 'id': 'a', 'items': [{'c': 'A', 'j': 1}]}]})
    wait_until(lambda: 'relay listens database=stampd_brief' in stack.log(), what='the relay')
    admin('ns', 'drop', 'brief', '--yes')
    wait_until(lambda: 'relay dropped database=stampd_brief' in stack.log(), what='that it is forgotten')
    size = len(stack.log())
    time.sleep(3)  # it tried every 1.7 s
    assert 'stampd_brief' not in stack.log()[size:]
    admin('ns', 'create', 'brief', '--access', 'open')
    wait_until(lambda: 'relay listens database=stampd_brief' in stack.log()[size:], what='that it is looked for again at once')
    wait_until(lambda: status_of(stack, '/brief/ping') == 200, what='the namespace')
    stack.op('brief', 'put', {'docs': [{'c': 'P', 'id': 'a', 'items': [{'c': 'A', 'j': 2}]}]})
    admin('ns', 'drop', 'brief', '--yes')


def test_the_files_of_a_namespace_go_with_it(stack, admin):
    admin('ns', 'create', 'filed', '--access', 'open')
    wait_until(lambda: status_of(stack, '/filed/ping') == 200, what='the namespace')
    for ns in ('filed', 'lab'):
        stack.op(ns, 'put', {'docs': [{'c': 'Filed', 'id': 'a', 'items': [{'c': 'A', 'j': 1}]}]})
        assert stack.request('PUT', f'/{ns}/doc/Filed/a/file/k', form=b'of the namespace').status_code == 201
    folder, others = stack.path / 'files/stampd_filed', stack.path / 'files/stampd_lab'
    (folder / 'new/unfinished').write_bytes(b'half')
    aside = stack.path / 'not of the store'
    aside.mkdir()
    (aside / 'kept').write_bytes(b'kept')
    (folder / 'ab').symlink_to(aside)
    assert 'drop the namespace again' in admin('ns', 'drop', 'filed', '--yes', status=1)
    assert 'stampd_filed' in admin('ns', 'list', status=1), 'what is left of it is not forgotten'
    (folder / 'ab').unlink()
    admin('ns', 'drop', 'filed', '--yes')
    assert not folder.exists() and (aside / 'kept').exists() and any(path.is_file() for path in others.rglob('*'))
    wait_until(lambda: status_of(stack, '/filed/ping') == 404, what='that nginx has forgotten it')


@pytest.mark.parametrize('content', ['5', '{"database":7}', '{"database":"stampd_odd","access":"ajar"}', '{"access":["open"]}'])
def test_one_odd_document_of_z_stops_nobody_else(stack, admin, content):
    admin('ns', 'create', 'odd')
    stack.psql('z', "select stampd.put_item('Namespace', 'odd', 'Conf', '', %s)", (content,))
    said = admin('ns', 'access', 'lab', 'closed')
    assert 'Namespace/odd' in said
    admin('ns', 'access', 'lab', 'open')
    assert 'stampd_lab' in admin('ns', 'list', status=1 if 'stampd_odd' not in content else 0)
    admin('ns', 'map')
    assert re.search(r'^FAIL  namespace odd: its configuration is malformed', check(stack, status=1), re.M)
    admin('ns', 'create', 'odd')
    assert 'FAIL' not in check(stack)
    admin('ns', 'drop', 'odd', '--yes')


# --- how long requests take ---

def latencies(stack):
    """Bounds and cumulated counts; the sum; the count."""
    found = stack.metrics()
    buckets = [(float(name.split('"')[1]), count) for name, count in found.items() if name.startswith('stampd_request_seconds_bucket{')]
    return buckets, found['stampd_request_seconds_sum'], found['stampd_request_seconds_count']


def test_how_long_requests_take_is_counted(stack):
    def is_counted():
        return latencies(stack)[2] - before >= 80
    stack.restart_stampd()  # what is counted after its answer is counted
    _, sum_before, before = latencies(stack)
    for number in range(40):
        stack.op('lab', 'put' if number % 2 else 'get', {'docs': [{'c': 'Timed', 'id': 'x'}]})
        stack.request('GET', '/lab/doc/Timed/none')  # a fault takes its time too
        stack.ping('lab')
    wait_until(is_counted, what='the count of the last one')
    buckets, total, count = latencies(stack)
    assert count - before == 80, 'operations and resources; no pings, no probes'
    assert [le for le, _ in buckets] == sorted(le for le, _ in buckets) and buckets[-1] == (float('inf'), count)
    assert [number for _, number in buckets] == sorted(number for _, number in buckets)
    assert 0 < total - sum_before < 80 * 60


def test_a_request_that_waits_is_in_a_high_bucket(stack):
    def quicker_than_a_second():
        buckets, _, count = latencies(stack)
        return dict(buckets)[1.0], count
    stack.put('lab', {'c': 'Timed', 'id': 'slow', 'items': []})
    stack.restart_stampd()  # what is counted after its answer is counted
    before = quicker_than_a_second()
    with psycopg2.connect(stack.conninfo('lab')) as holder, holder.cursor() as cursor:
        cursor.execute("select from stampd.doc where class = 'Timed' and id = 'slow' for update")
        waiting = threading.Thread(target=stack.put, args=('lab', {'c': 'Timed', 'id': 'slow', 'items': [{'c': 'A', 'j': 1}]}))
        waiting.start()
        wait_until(lambda: stack.psql(None, "select 1 from pg_stat_activity where datname = 'stampd_lab' and wait_event_type = 'Lock'"), what='the wait')
        time.sleep(1.3)
        holder.rollback()
        waiting.join()
    wait_until(lambda: quicker_than_a_second()[1] > before[1], what='the count, which follows the answer')
    after = quicker_than_a_second()
    assert after[1] - before[1] == 1 and after[0] == before[0], (before, after)


# --- the metric of who never looked ---

def test_that_nobody_looks_for_tasks_can_be_seen_from_the_start(stack):
    assert stack.metrics()['stampd_tasks_look_age_seconds{ns=""}'] >= 0


# --- upgrades ---

def test_an_upgrade_behind_nginx_is_without_a_single_failure(stack):
    """Clients that write all the time, over kept connections and new ones, see 200 and nothing else."""
    statuses, over = [], threading.Event()

    def write(number):
        count = 0
        with requests.Session() as own:
            own.verify, own.trust_env = stack.http.verify, False
            while not over.is_set():
                count += 1
                item = {'c': 'A', 'j': count}
                answer = (own if count % 3 else requests).post(
                    f'{stack.url}/lab/op/put', json={'param': {'docs': [{'c': 'Up', 'id': f'u{number}', 'items': [item]}]}}, timeout=60,
                    verify=stack.http.verify)
                statuses.append(answer.status_code)
                time.sleep(0.01)
        found = stack.op('lab', 'get', {'docs': [{'c': 'Up', 'id': f'u{number}'}]})['out']['docs'][0]['items'][0]['j']
        if found != count:
            statuses.append(f'{found} is kept, {count} was written')

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(2):
            succeed(stack)
            answered = len(statuses)
            wait_until(lambda: len(statuses) > answered + 100, what='answers')
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200}, [one for one in statuses if one != 200][:5]


# --- nginx on the internet ---

@pytest.fixture
def site(stack, tmp_path):
    """nginx with a configuration that has all there is; afterwards that of the scripts again."""
    class Site:
        path, conf = tmp_path, stack.path / 'etc/nginx.conf'
        plain, second = free_port(), free_port()

        def write(self, *words, status=0):
            return ask_stampctl(stack, 'nginx', '--listen', f'127.0.0.1:{stack.port}', '--listen', f'[::1]:{self.second}',
                            '--probe-listen', f'127.0.0.1:{stack.probe_port}', '--folder', stack.path / 'run/nginx',
                            '--access-log', tmp_path / 'access.log', '--error-log', stack.path / 'log/nginx.log',
                            '--certificate', stack.path / 'etc/certificate.pem', '--key', stack.path / 'etc/certificate.key',
                            *(('--user', 'www-data') if SERVER_USER else ()), '-o', self.conf, *words, status=status)
    before = (stack.path / 'etc/nginx.conf').read_bytes()
    os.environ['STAMPD_NGINX'] = str(SOURCE / 'nginx')
    yield Site()
    (stack.path / 'etc/nginx.conf').write_bytes(before)
    stack.reload_nginx()


def test_all_that_a_server_on_the_internet_needs(stack, site):
    (site.path / 'www/sub').mkdir(parents=True)
    (site.path / 'www/index.html').write_text('<h1>hello</h1>')
    (site.path / 'www/sub/app.js').write_text('go()')
    (site.path / 'acme/.well-known/acme-challenge').mkdir(parents=True)
    (site.path / 'acme/.well-known/acme-challenge/token').write_text('proof')
    (site.path / 'own.conf').write_text('location = /own { return 200 "mine"; }\n')
    site.write('--http', f'127.0.0.1:{site.plain}', '--acme', site.path / 'acme', '--hsts', 31536000, '--root', site.path / 'www',
               '--include', f'{site.path}/*.conf', '--name', 'localhost', '--name', 'www.example.org')
    stack.reload_nginx()
    get = lambda path, **more: stack.http.get(f'{stack.url}{path}', timeout=PATIENCE_S, **more)  # noqa: E731
    assert get('/own').text == 'mine'
    page, script = get('/'), get('/sub/app.js')
    assert (page.text, page.headers['Content-Type']) == ('<h1>hello</h1>', 'text/html')
    assert (script.text, script.headers['Content-Type']) == ('go()', 'text/javascript')
    assert get('/nothing').status_code == 404 and get('/nothing').json()['code'] == 'NPATH'
    assert get('/@files/index.html').status_code == 404 and get('/../etc/passwd').status_code == 404
    assert get('/lab/ping').json()['db'] == 'ok'
    for path in ('/', '/lab/ping', '/nothing'):
        assert get(path).headers['Strict-Transport-Security'] == 'max-age=31536000'
    six = requests.get(f'https://[::1]:{site.second}/lab/ping', verify=False, timeout=PATIENCE_S)
    assert six.json()['db'] == 'ok'
    plain = f'http://127.0.0.1:{site.plain}'
    led = requests.get(f'{plain}/lab/ping?a=1', allow_redirects=False, timeout=PATIENCE_S, headers={'Host': 'www.example.org'})
    assert (led.status_code, led.headers['Location']) == (301, f'https://www.example.org:{stack.port}/lab/ping?a=1')
    assert requests.get(f'{plain}/.well-known/acme-challenge/token', timeout=PATIENCE_S).text == 'proof'
    get('/lab/op/get?admin=secret-of-mine&param={}')

    def log():
        return (site.path / 'access.log').read_text()
    wait_until(lambda: all(f'"GET {line}' in log() for line in ('/lab/op/get" ', '/nothing" 404', '/lab/ping" 200')), what='the lines, each written after its answer')
    assert 'secret-of-mine' not in log()
    from_server = {tuple(line.split()[3:5]): line.split()[-1] for line in log().splitlines()}
    assert from_server['/lab/ping"', '200'] == '200' and from_server['/nothing"', '404'] == '-', 'the log tells what nginx refused by itself'
    assert 'does not listen on IPv6' in check(stack)  # [::1] is not the internet


def test_browsers_of_this_host_need_no_certificate(stack, site):
    """--local-port serves the same without TLS, on the loopback only."""
    port = free_port()
    site.write('--local-port', port)
    assert f'listen 127.0.0.1:{port} ' in site.conf.read_text()
    stack.reload_nginx()
    local = f'http://127.0.0.1:{port}'
    assert requests.get(f'{local}/lab/ping', timeout=PATIENCE_S).json()['db'] == 'ok'
    put = {'param': {'docs': [{'c': 'Local', 'id': 'one', 'items': [{'c': 'Main', 'j': 1}]}]}}
    answer = requests.post(f'{local}/lab/op/put', json=put, headers={'Origin': local}, timeout=PATIENCE_S)
    assert answer.status_code == 200 and stack.get('lab', ('Local', 'one'))['items'][0]['j'] == 1
    ask_stampctl(stack, 'nginx', '--certificate', '/c.pem', '--key', '/c.key', '--local-port', '0', status=2)


def test_both_families_and_a_log_are_the_default(stack):
    os.environ['STAMPD_NGINX'] = str(SOURCE / 'nginx')
    text = ask_stampctl(stack, 'nginx', '--certificate', '/c.pem', '--key', '/c.key', '--acme', '/var/www/acme', '--folder', '/var/cache/nginx')
    for address in ('443 ssl', '[::]:443 ssl', '80', '[::]:80'):
        assert re.search(rf'^ +listen {re.escape(address)}\b.*;$', text, re.M), address
    assert 'access_log /var/cache/nginx/access.log stampd buffer=64k flush=1s;' in text and 'pid /var/cache/nginx/nginx.pid;' in text


def test_the_first_idle_worker_is_preferred(stack, tmp_path):
    """Unless idle workers take turns; those that a request waits behind get no other one, whatever their weight."""
    os.environ['STAMPD_NGINX'] = str(SOURCE / 'nginx')
    conf = tmp_path / 'stampd.conf'
    conf.write_text(re.sub(r'(?m)^workers = .*$', 'workers = 16', (stack.path / 'etc/stampd.conf').read_text()))

    def servers(*options):
        text = run_program(stack.build / 'src/stampctl', 'nginx', '--config', conf, '--map', stack.path / 'etc/namespaces.map', '--certificate', '/c.pem',
                           '--key', '/c.key', *options).text
        upstream = re.search(r'upstream stampd \{(.*?)\}', text, re.DOTALL)[1]
        return [words for words in re.findall(r'server unix:\S+ (.*);', upstream) if 'backup' not in words]
    ranked, even = servers(), servers('--in-turn')
    weights = [int(re.search(r'weight=(\d+)', words)[1]) for words in ranked]
    assert weights == sorted(weights, reverse=True) and weights[0] > 10 * weights[1] > 100 and weights[-1] == 1
    assert len(even) == len(ranked) == 8 and all('weight=1' in words.split() for words in even)
    assert all('max_conns=1' in words.split() for words in ranked + even)


def test_without_a_folder_nginx_has_its_files_on_a_disk(stack):
    """run_directory is in memory, where bodies and answers of strangers would fill it."""
    os.environ['STAMPD_NGINX'] = str(SOURCE / 'nginx')
    text = ask_stampctl(stack, 'nginx', '--certificate', '/c.pem', '--key', '/c.key')
    for line in ('client_body_temp_path /var/lib/nginx/body;', 'fastcgi_temp_path /var/lib/nginx/fastcgi;', 'pid /run/nginx.pid;',
                 'access_log /var/log/nginx/access.log stampd buffer=64k flush=1s;', 'error_log /var/log/nginx/error.log warn;'):
        assert line in text, line


def test_what_somebody_has_edited_is_kept(stack, site):
    site.write()
    before = set(site.conf.parent.glob('nginx.conf.~*'))
    site.write('--hsts', 60)
    assert set(site.conf.parent.glob('nginx.conf.~*')) == before  # as it was written
    site.conf.write_text(site.conf.read_text() + '# mine\n')
    assert 'is kept as' in site.write()
    (kept,) = set(site.conf.parent.glob('nginx.conf.~*')) - before
    assert kept.read_text().endswith('# mine\n') and '# mine' not in site.conf.read_text()
