"""scripts/demo as a newcomer meets it, with little data."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
import requests
import urllib3

import journal_world
from images import png, webp_size
from stack import BUILD, PATIENCE_S, ROOM, SOURCE, children, free_port, is_alive, wait_until
from thin_session import ThinSession

pytestmark = pytest.mark.plain  # it is about scripts: nothing new with another build

DOCUMENTS = 200


class Demo:
    def __init__(self, home, source=SOURCE, build=BUILD, prefix=()):
        self.home = home
        self.command = [*prefix, source / 'scripts/demo']
        self.port = free_port()
        self.environment = {'STAMPD_HOME': str(home), 'STAMPD_PORT': str(self.port), 'STAMPD_PROBE_PORT': str(free_port()),
                            'STAMPD_LOCAL_PORT': str(free_port()), 'STAMPD_WORKERS': '3', 'STAMPD_DEMO_DOCS': str(DOCUMENTS), 'STAMPD_BUILD': str(build)}

    def run(self, *words, **environment):
        return subprocess.run([*self.command, *words], env={**os.environ, **self.environment, **environment},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)

    def good(self, *words, **environment):
        done = self.run(*words, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def state(self):
        return (self.home / 'state').resolve()

    def pid(self, part):
        return int((self.state / f'run/{part}.pid').read_text().split()[0])

    def pids(self):
        masters = [self.pid(part) for part in ('postgres', 'stampd', 'nginx', 'queue', 'journal', 'schema')]
        return masters + [child for master in masters for child in children(master)]

    def get(self, ns, name, **more):
        answer = requests.post(f'https://localhost:{self.port}/{ns}/op/{name}', verify=False, timeout=PATIENCE_S, json=more)
        return answer.status_code, answer.json()


def one_line(done):
    """A failure that says what is wrong in one line."""
    assert done.returncode not in (0, 3), done.stdout
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def gone(pids):
    """Ended; whether their parent has taken note yet is not our matter."""
    return not any(is_alive(pid) for pid in pids)


@pytest.fixture(autouse=True)
def no_warnings():
    urllib3.disable_warnings()


@pytest.fixture(scope='module')
def demo():
    """Started once; the folder above is closed to other users, as a home folder is, and has a blank in its name."""
    closed = Path(tempfile.mkdtemp(prefix='stampd closed-', dir=ROOM))
    demo = Demo(closed / 'home')
    yield demo
    demo.run('reset')
    shutil.rmtree(closed)


@pytest.fixture
def running(demo):
    demo.good()
    return demo


def test_status_before_anything(demo):
    done = demo.run('status')
    assert done.returncode == 3
    assert done.stdout.count('stopped') == 6


def test_the_first_start_shows_three_requests_and_their_answers(demo):
    said = demo.good()
    commands = re.findall(r"^\$ (curl .*)$", said, re.MULTILINE)
    assert len(commands) == 3
    first, second, third = (json.loads(subprocess.check_output(['bash', '-c', command])) for command in commands)
    document = first['out']['docs'][0]
    assert (document['c'], document['id']) == ('Package', 'libc6')
    status = next(item for item in document['items'] if item['c'] == 'Sta')['j']
    assert status['section'] == 'libs' and status['size'] > 100000
    assert second['syncs'][0]['v'] == document['v'] and second['syncs'][0]['items'] == []
    dependents = third['out']['ids']
    assert len(dependents) == 10 and dependents == sorted(dependents) and 'cursor' in third['out']
    for command in commands:
        answer = subprocess.check_output(['bash', '-c', command], text=True)
        assert answer[:80] in said


def test_all_documents_are_there(running):
    found, cursor = 0, None
    while True:
        _, answer = running.get('demo', 'list', param={'c': 'Package', 'limit': 1000, **({'cursor': cursor} if cursor else {})})
        found += len(answer['out']['docs'])
        cursor = answer['out'].get('cursor')
        if not cursor:
            break
    assert found == DOCUMENTS


def test_the_namespaces_and_the_key(running):
    put = {'docs': [{'c': 'Note', 'id': 'a', 'items': [{'c': 'Head', 'j': 1}]}]}
    assert running.get('demo', 'put', param=put)[1]['code'] == 'SCLOSED'
    assert running.get('lab', 'put', param=put)[0] == 200
    assert running.get('z', 'get', param={'docs': [{'c': 'Namespace', 'id': 'lab'}]})[1]['code'] == 'SCLOSED'
    key_file = running.home / 'admin.key'
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert running.get('z', 'get', param={'docs': [{'c': 'Namespace', 'id': 'lab'}]}, admin=key_file.read_text().strip())[0] == 200


def test_accounts_and_rules_of_team(running):
    """Everybody makes an account; a note is its owner's, a list its team's, and its budget the administrators'."""
    def act(caller, name, **param):
        return running.get('team', name, param=param, **({'key': caller['token']} if caller else {}))

    def put(caller, class_, id_, *items):
        return act(caller, 'put', docs=[{'c': class_, 'id': id_, 'items': [dict(zip(('c', 'j', 'k'), item)) for item in items]}])

    def get(caller, class_, id_):
        items = act(caller, 'get', docs=[{'c': class_, 'id': id_}])[1]['out']['docs'][0]['items']
        return {item['c']: item['j'] for item in items}

    ann, bob, eve = (act(None, 'register')[1]['out'] for _ in range(3))
    note = f'note of {ann["account"]}'
    assert put(bob, 'Note', note, ('Info', {'owner': ann['account']}))[1]['code'] == 'SRULE'
    assert put(ann, 'Note', note, ('Info', {'owner': ann['account'], 'text': 'mine'}))[0] == 200
    assert get(ann, 'Note', note)['Info']['text'] == 'mine' and not get(bob, 'Note', note) and not get(None, 'Note', note)
    assert put(ann, 'Team', note, ('Member', {'role': 'admin'}, ann['account']), ('Member', {}, bob['account']))[0] == 200
    assert put(ann, 'List', note, ('Info', {'team': note}), ('Budget', {'most': 9}))[0] == 200
    assert put(bob, 'List', note, ('Entry', {'bread': 2}))[0] == 200
    assert set(get(ann, 'List', note)) == {'Info', 'Budget', 'Entry'} and set(get(bob, 'List', note)) == {'Info', 'Entry'}
    assert not get(eve, 'List', note) and put(eve, 'List', note, ('Entry', {}))[1]['code'] == 'SRULE'
    assert put(ann, 'Page', note, ('Text', {}))[1]['code'] == 'SRULE'
    listed = [found['id'] for found in act(ann, 'list', c='Note')[1]['out']['docs']]
    assert note in listed and note not in [found['id'] for found in act(bob, 'list', c='Note')[1]['out']['docs']]


def test_the_first_taste_of_the_readme(running):
    taste = re.search(r'^## A first taste$.*?^```sh$(.*?)^```$', (SOURCE / 'README.md').read_text(), re.M | re.S)[1]
    said = subprocess.check_output(['bash', '-c', taste.replace(':8443/', f':{running.port}/')], text=True).splitlines()
    put, own, other = (json.loads(line)['out'] for line in said)
    assert put['docs'][0]['v'] == own['docs'][0]['v'] > 0 and own['docs'][0]['items'][0]['j']['text'] == 'Buy milk'
    assert other['docs'][0] == {'c': 'Note', 'id': 'milk', 'v': 0, 'ct': 0, 'dt': 0, 'items': []}


def test_starting_again_is_harmless(running):
    def servers():
        return [(running.pid(part), set(children(running.pid(part)))) for part in ('stampd', 'nginx', 'queue', 'journal', 'schema')]

    postgres, before = running.pid('postgres'), servers()  # the children of PostgreSQL come and go
    running.good('start')
    assert running.pid('postgres') == postgres
    for (pid, those), (former_pid, former) in zip(servers(), before):
        assert pid == former_pid and those <= former, 'nothing is started; a process of nginx ends after a minute'
    assert 'runs, pid' in running.good('status')


def test_records_have_the_journal_protocol(running):
    key_file = running.home / 'journal.key'
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    client = journal_world.Client(running.state / 'run/stampd/journal.sock', key_file.read_text().strip())
    assert client.ask(journal_world.SET, 'page', (journal_world.STRING, b'new'), journal_world.OVERWRITE)['error'] == ''
    answer = running.get('lab', 'record', param={'commands': [{'do': 'get', 'key': 'page'}]}, admin=(running.home / 'admin.key').read_text().strip())[1]
    assert answer['out']['results'][0]['value'] == 'new'


def test_a_browser_of_this_host_needs_no_certificate(running):
    """The same is served without TLS on a port of its own: to http://localhost, which browsers take for secure."""
    local = f"http://localhost:{running.environment['STAMPD_LOCAL_PORT']}"
    body = {'param': {'docs': [{'c': 'Package', 'id': 'libc6'}]}}
    for origin in (local, f'https://localhost:{running.port}'):
        answer = requests.post(f'{origin}/demo/op/get', json=body, headers={'Origin': origin}, verify=False, timeout=PATIENCE_S)
        assert answer.status_code == 200 and answer.json()['out']['docs'][0]['v'] > 0
    assert local in running.good()


def test_a_local_port_that_nobody_asked_for_is_left_to_whoever_has_it(demo):
    demo.good('stop')
    with socket.socket() as holder:
        holder.bind(('127.0.0.1', 0))
        holder.listen()
        port = holder.getsockname()[1] - 2
        said = demo.good('start', STAMPD_PORT=str(port), STAMPD_LOCAL_PORT='')
        assert f'https://localhost:{port}' in said and f'localhost:{port + 2}' not in said
    demo.good('stop')
    assert 'http://localhost' not in demo.good('start', STAMPD_LOCAL_PORT='0')
    demo.good('stop')


def test_another_port_while_it_runs_is_refused(running):
    assert str(running.port) in one_line(running.run(STAMPD_PORT=str(free_port())))


def test_all_that_it_keeps_is_in_its_home(running):
    state = running.home / 'state'
    assert not state.is_symlink() and (state / 'pg/PG_VERSION').exists() and (state / 'log/stampd.log').exists()
    assert stat.S_IMODE((state / 'log').stat().st_mode) == 0o700
    named = re.search(r'^run_directory = (.*)/run/stampd$', (state / 'etc/stampd.conf').read_text(), re.M)[1]
    assert os.path.samefile(named, state)
    running.good('stop')
    assert not os.path.lexists(named)
    running.good()
    assert os.path.samefile(named, state)


def test_stampctl_and_a_module_there(running):
    assert 'stampd_lab' in subprocess.check_output([running.home / 'stampctl', 'ns', 'list'], text=True)
    subprocess.run(['cc', '-std=c11', '-D_GNU_SOURCE', '-fPIC', '-shared', f'-I{SOURCE}/src', '-o', running.home / 'state/modules/asso.so',
                    SOURCE / 'doc/examples/asso/asso.c'], check=True)
    (running.home / 'settings').write_text('limit_syncs = 500\n')
    try:
        running.good('restart')
        admin = (running.home / 'admin.key').read_text().strip()
        assert running.get('lab', 'FoundAsso', param={'asso': 'chess', 'title': 'Chess'}, admin=admin)[0] == 200
        assert 'limit_syncs = 500' in (running.home / 'state/etc/stampd.conf').read_text()
    finally:
        (running.home / 'state/modules/asso.so').unlink()
        (running.home / 'settings').unlink()
    running.good('restart')
    assert running.get('lab', 'FoundAsso', param={}, admin=admin)[1]['code'] == 'NOPERATION'


@pytest.mark.skipif(not (BUILD / 'src/stamp-thumbnail').exists(), reason='this build has no libvips')
def test_thumbnails_of_a_build_in_a_closed_folder(running):
    """The servers' users may enter neither the folder of the build nor that of the demonstration."""
    closed = Path(tempfile.mkdtemp(prefix='stampd-closed-', dir=ROOM))
    (closed / 'src').mkdir()
    for program in ('stampd', 'stampctl', 'stamp-queue', 'stamp-journal', 'stamp-thumbnail'):
        shutil.copy(BUILD / 'src' / program, closed / 'src')
    declared = closed / 'schema.json'
    declared.write_text(json.dumps({'classes': {'Photo': {'items': {'Main': {'singleton': True}}, 'thumbnails': {'small': {'width': 64, 'height': 64}}}}}))
    try:
        running.good('restart', STAMPD_BUILD=str(closed))
        for words in (('set', 'lab', declared), ('apply', 'lab')):
            subprocess.run([running.home / 'stampctl', 'schema', *words], check=True, stdout=subprocess.DEVNULL)
        address = f'https://localhost:{running.port}/lab/doc/Photo/p'
        assert running.get('lab', 'put', param={'docs': [{'c': 'Photo', 'id': 'p', 'items': [{'c': 'Main', 'j': {}}]}]})[0] == 200
        put = requests.put(f'{address}/file/one', png(300, 200), headers={'Content-Type': 'image/png'}, verify=False, timeout=PATIENCE_S)
        assert put.ok, put.text

        def small():
            answer = requests.get(f'{address}/file/one~small', verify=False, timeout=PATIENCE_S)
            return answer.ok and answer.content
        assert webp_size(wait_until(small, what='the thumbnail')) == (64, 43)
        said = running.good('start', STAMPD_BUILD=str(closed))
        assert 'libvips-dev' not in said
        (closed / 'src/stamp-thumbnail').unlink()
        assert 'libvips-dev' in running.good('start', STAMPD_BUILD=str(closed))
    finally:
        running.good('restart')
        shutil.rmtree(closed)


def test_a_newer_build_takes_over_and_no_request_fails(running, tmp_path_factory):
    """Clients that come all the time, over kept connections and new ones, see 200 and nothing else.  The servers' users may
    not enter the folder of the build."""
    build = Path(tempfile.mkdtemp(prefix='stampd-build-', dir=ROOM))
    (build / 'src').mkdir()
    statuses, over, certificate = [], threading.Event(), str(running.state / 'etc/certificate.pem')

    def give():
        for program in ('stampd', 'stampctl', 'stamp-queue', 'stamp-journal'):
            shutil.copy(BUILD / 'src' / program, build / 'src' / f'{program}.new')
            (build / 'src' / f'{program}.new').rename(build / 'src' / program)

    def ask(kept):
        address = f'https://localhost:{running.port}'
        with ThinSession(address) as own:
            own.verify = certificate
            while not over.wait(0.01):  # they need not fill a processor
                answer = own.post(f'{address}/demo/op/get', timeout=60, json={'param': {'docs': [{'c': 'Package', 'id': 'libc6'}]}})
                statuses.append(answer.status_code)
                if not kept:
                    own.drop_idle()

    give()
    threads = [threading.Thread(target=ask, args=(number % 2,)) for number in range(4)]
    masters = lambda: [running.pid(part) for part in ('stampd', 'queue', 'journal', 'nginx')]  # noqa: E731
    try:
        for thread in threads:
            thread.start()
        for word in ('restart', 'start'):
            before, asked = masters(), len(statuses)
            if word == 'start':
                give()
            assert 'was replaced' in running.good(word, STAMPD_BUILD=str(build))
            after = masters()
            assert after[0] != before[0] and after[1] != before[1] and after[2] != before[2] and after[3] == before[3] and not is_alive(before[0])
            assert 'was replaced' not in running.good('start', STAMPD_BUILD=str(build)) and masters() == after
            wait_until(lambda: len(statuses) > asked + 20, what='answers of the new one')
        running.good('status')
    finally:
        over.set()
        for thread in threads:
            if thread.is_alive():
                thread.join()
    assert set(statuses) == {200}, [one for one in statuses if one != 200][:5]
    pids = running.pids()
    running.good('stop')
    assert gone(pids)
    shutil.rmtree(build)
    running.good('start')


def test_a_successor_that_cannot_start_leaves_the_old_one_to_a_restart(running):
    """Fewer workers: the sockets of the others cannot be taken over."""
    before = running.pid('stampd')
    assert 'stopped and started' in running.good('restart', STAMPD_WORKERS='2')
    assert running.pid('stampd') != before
    running.good('status')
    assert 'was replaced' in running.good('restart', STAMPD_WORKERS='3')
    running.good('status')


def test_a_cluster_that_somebody_else_has_restarted_is_taken_over(running):
    before = running.pid('postgres')
    data = re.search(r'host=(\S+)/run/postgres', (running.state / 'etc/stampd.conf').read_text())[1] + '/pg'
    user = ('setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--init-groups', '--') if os.getuid() == 0 else ()
    subprocess.run([*user, '/usr/lib/postgresql/15/bin/pg_ctl', 'restart', '-D', data, '-w', '-l', '/dev/null'], check=True, cwd='/',
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    after = int((running.state / 'pg/postmaster.pid').read_text().split()[0])
    assert before != after
    wait_until(lambda: running.run('status').returncode == 0, what='that all is well again')
    running.good()
    assert running.pid('postgres') == after
    pids = running.pids()
    running.good('stop')
    assert gone(pids)


TWO_INSTALLATIONS = r"""
set -euo pipefail
. "$1/scripts/lib/base.sh"
. "$1/scripts/lib/packages.sh"
ROOM=$2 PACKAGE_LOG=$2/log.$3 PACKAGES_LOCK=$2/lock SERVICES_POLICY=$2/policy CLUSTER_FOLDER=$2/clusters CLUSTER_POLICY=$2/clusters/stampd.conf
as_admin() { "$@"; }
packages_missing() { [ -e "$ROOM/installed" ] || echo some-package; }
services_disable() { :; }
apt_get() {
    [ "$1" = install ] || return 0
    for i in 1 2 3 4 5 6; do
        [ -e "$SERVICES_POLICY" ] && [ -e "$CLUSTER_POLICY" ] || { echo "E: a service would start" >>"$PACKAGE_LOG"; return 1; }
        sleep 0.1
    done
    echo "$$" >>"$ROOM/installed"
}
packages_install run
"""


def test_two_installations_of_packages_at_once(tmp_path):
    both = [subprocess.Popen(['bash', '-c', TWO_INSTALLATIONS, 'demo', SOURCE, tmp_path, str(number)], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True) for number in range(2)]
    for one in both:
        said = one.communicate(timeout=60)[0]
        assert one.returncode == 0, said
    assert len((tmp_path / 'installed').read_text().splitlines()) == 1
    assert not (tmp_path / 'policy').exists() and not (tmp_path / 'clusters').exists()


@pytest.mark.parametrize('parts', [('stampd',), ('nginx',), ('postgres',), ('postgres', 'stampd', 'nginx')])
def test_a_start_after_kill_9_heals(running, parts):
    """While somebody looks at a namespace all the time: what its ping remembers of the time without a database is over too."""
    over = threading.Event()

    def look():
        while not over.is_set():
            with contextlib.suppress(requests.RequestException):
                requests.get(f'https://localhost:{running.port}/lab/ping', verify=False, timeout=PATIENCE_S)

    for part in parts:
        os.kill(running.pid(part), signal.SIGKILL)
    wait_until(lambda: running.run('status').returncode != 0)
    looking = threading.Thread(target=look)
    looking.start()
    try:
        running.good()
    finally:
        over.set()
        looking.join()
    running.good('status')
    assert running.get('demo', 'get', param={'docs': [{'c': 'Package', 'id': 'libc6'}]})[1]['out']['docs'][0]['v'] > 0


def test_stop_leaves_no_process_and_start_keeps_the_data(running):
    put = {'docs': [{'c': 'Note', 'id': 'kept', 'items': [{'c': 'Head', 'j': 'kept'}]}]}
    version = running.get('lab', 'put', param=put)[1]['out']['v']
    pids = running.pids()
    running.good('stop')
    assert gone(pids)
    assert not list(running.state.glob('run/**/*.sock')) and not list(running.state.glob('run/postgres/.s*'))
    assert running.run('status').returncode == 3
    running.good('stop')
    running.good('start')
    assert running.get('lab', 'get', param={'docs': [{'c': 'Note', 'id': 'kept'}]})[1]['out']['docs'][0]['v'] == version


def test_pids_of_strangers_are_left_alone(running):
    """A note of another boot, or of a process that has ended, names nobody."""
    running.good('stop')
    sleeper = subprocess.Popen(['sleep', '600'])
    try:
        boot = Path('/proc/sys/kernel/random/boot_id').read_text()
        for note in (f'{sleeper.pid} 1 {boot}', f'{sleeper.pid} 1 another-boot\n', 'nonsense\n', ''):
            (running.state / 'run/stampd.pid').write_text(note)
            running.good('stop')
            assert sleeper.poll() is None
        (running.state / 'run/stampd.pid').write_text(f'{sleeper.pid} 1 {boot}')
        running.good('start')
        running.good('stop')
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.mark.parametrize('setting', ['STAMPD_PORT', 'STAMPD_PROBE_PORT', 'STAMPD_LOCAL_PORT'])
def test_a_taken_port_is_one_line(demo, setting):
    demo.good('stop')
    with socket.socket() as holder:
        holder.bind(('127.0.0.1', 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        line = one_line(demo.run('start', **{setting: port}))
    assert port in line and setting in line
    assert demo.run('status').returncode == 3


def test_a_full_disk_is_one_line(demo, tmp_path):
    demo.good('stop')
    (tmp_path / 'df').write_text('#!/bin/sh\nprintf " Avail\\n    7M\\n"\n')
    (tmp_path / 'df').chmod(0o755)
    assert '7 MB' in one_line(demo.run('start', PATH=f'{tmp_path}:{os.environ["PATH"]}'))


@pytest.mark.parametrize('settings', [{'STAMPD_PORT': 'x'}, {'STAMPD_PORT': '65536'}, {'STAMPD_WORKERS': '0'},
                                      {'STAMPD_DEMO_DOCS': '-1'}])
def test_settings_that_are_wrong(demo, settings):
    assert next(iter(settings)) in one_line(demo.run('start', **settings))


def test_reset_removes_everything(demo):
    demo.good()
    state, pids = demo.state, demo.pids()
    demo.good('reset')
    assert gone(pids) and not state.exists() and not demo.home.exists()


def test_as_a_user_who_is_not_root():
    """Everything runs as that user.  The programs are copied to where the user can read them."""
    place = Path(tempfile.mkdtemp(prefix='stampd-user-', dir='/var/tmp'))
    prefix = ()
    if os.getuid() == 0:
        prefix = ('setpriv', '--reuid', 'nobody', '--regid', 'nogroup', '--clear-groups', '--')
        shutil.chown(place, 'nobody', 'nogroup')
    demo = Demo(place / 'home', place, place / 'build', prefix)
    demo.environment.update(HOME=str(place), STAMPD_DEMO_DOCS='20')
    try:
        for folder in ('scripts', 'sql', 'nginx'):
            shutil.copytree(SOURCE / folder, place / folder)
        (place / 'build/src').mkdir(parents=True)
        for program in ('stampd', 'stampctl', 'stamp-queue', 'stamp-journal'):
            shutil.copy(BUILD / 'src' / program, place / 'build/src')
        demo.good()
        assert demo.get('demo', 'get', param={'docs': [{'c': 'Package', 'id': 'libc6'}]})[1]['out']['docs'][0]['v'] > 0
        owners = {Path(f'/proc/{pid}').stat().st_uid for pid in demo.pids()}
        assert owners == {place.stat().st_uid}
        pids = demo.pids()
        demo.good('reset')
        assert gone(pids) and not demo.home.exists()
    finally:
        demo.run('stop')
        shutil.rmtree(place, ignore_errors=True)
