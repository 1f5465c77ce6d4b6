"""stampctl --json: each command that lists or shows prints one JSON object a line, with what its lines for people have."""
import json

import pytest

from stack import stampctl

pytestmark = pytest.mark.plain

STACK = {'workers': 2}


@pytest.fixture
def ask(stack):
    """The objects of a command's lines."""
    def call(*words, status=0, on_databases=True):
        where = ['--config', stack.path / 'etc/stampd.conf'] if on_databases is not None else []
        if on_databases:
            where += ['--admin-conninfo', stack.conninfo_of_server()]
        return [json.loads(line) for line in stampctl(*words, '--json', *where, status=status).out.splitlines()]
    return call


def test_namespaces_and_their_origins(stack, ask):
    listed = {one['code']: one for one in ask('ns', 'list')}
    assert sorted(listed) == ['demo', 'lab', 'z']
    assert listed['demo']['access'] == 'read' and listed['demo']['exists'] and (listed['demo']['state'], listed['demo']['message']) == ('on', None)
    assert listed['lab']['bytes'] > 1_000_000 and listed['lab']['documents'] >= 0 and listed['lab']['schema'] > 0
    assert listed['z']['database'] == 'stampd_z'
    assert ask('ns', 'origins', 'lab') == []
    stampctl('ns', 'origins', 'lab', 'https://a.example', '--config', stack.path / 'etc/stampd.conf', '--admin-conninfo',
        stack.conninfo_of_server())
    assert ask('ns', 'origins', 'lab') == [{'origin': 'https://a.example'}]


def test_operations(ask):
    listed = {one['name']: one for one in ask('operations', on_databases=False)}
    assert listed['get'] == {'name': 'get', 'kind': 'operation', 'right': 'read', 'reads': True, 'grants': False, 'rules': True, 'module': None}
    assert listed['put']['right'] == 'write' and not listed['put']['reads']
    assert {one['kind'] for one in listed.values()} == {'operation', 'resource'}


def test_periodic_tasks(stack, ask):
    words = ['--config', stack.path / 'etc/stampd.conf', '--admin-conninfo', stack.conninfo_of_server()]
    stampctl('cron', 'add', 'lab', 'nightly', 'D0330', 'put', *words)
    [rule] = ask('cron', 'list', 'lab')
    assert {name: rule[name] for name in ('name', 'period', 'op', 'module')} == {
        'name': 'nightly', 'period': 'D0330', 'op': 'put', 'module': None}
    assert rule['state'] in ('planned', 'not planned yet') and ('next' in rule) == (rule['state'] == 'planned')
    stampctl('cron', 'drop', 'lab', 'nightly', *words)
    times = ask('cron', 'next', 'D0330', '--count', 3, '--zone', 'UTC', on_databases=None)
    assert len(times) == 3 and all(one['next'].endswith('T03:30:00+0000') for one in times)


def test_findings(stack, ask, tmp_path):
    nginx = stack.path / 'etc/nginx.conf'
    found = ask('check-config', '--nginx', nginx, on_databases=False)
    assert {one['result'] for one in found} <= {'OK', 'WARN'} and any('namespace lab' in one['text'] for one in found)
    changed = tmp_path / 'nginx.conf'
    changed.write_text(nginx.read_text().replace('client_max_body_size 16777216;', 'client_max_body_size 1m;'))
    found = ask('check-config', '--nginx', changed, status=1, on_databases=False)
    assert [one['text'] for one in found if one['result'] == 'FAIL'] == ['nginx: client_max_body_size 1m, limit_body_bytes is 16777216']


def test_ping(stack, ask):
    trust = ['--ca', stack.path / 'etc/certificate.pem']
    found = {one['path']: one for one in ask('ping', stack.url, *trust, on_databases=False)}
    assert sorted(found) == ['/demo/ping', '/lab/ping', '/ping', '/z/ping']
    assert found['/lab/ping']['problem'] is None and found['/lab/ping']['answer']['off'] == 0
    [failed] = ask('ping', 'http://127.0.0.1:1', '-', status=1, on_databases=False)
    assert failed['path'] == '/ping' and failed['problem'] and 'answer' not in failed


def test_keys_and_version(ask, tmp_path):
    key, push = tmp_path / 'key', tmp_path / 'push'
    [made] = ask('key', 'new', '--queue', key, on_databases=None)
    [digest] = ask('key', 'hash', key, on_databases=None)
    assert made == {'queue_key_sha256': digest['sha256']} and len(digest['sha256']) == 64
    assert ask('key', 'new', '--archive', tmp_path / 'archive', on_databases=None) == [{'key_file': str(tmp_path / 'archive')}]
    assert ask('push', 'key', push, on_databases=None) == [{'push_key_file': str(push)}]
    [public] = ask('push', 'public', push, on_databases=None)
    assert public == {'applicationServerKey': stampctl('push', 'public', push).out.strip()}
    [version] = ask('version', on_databases=None)
    assert stampctl('version').out == f'stampctl {version["version"]}\n'


def test_steps_of_a_schema(stack, ask, tmp_path):
    words = ['--config', stack.path / 'etc/stampd.conf', '--admin-conninfo', stack.conninfo_of_server()]
    declared = tmp_path / 'schema.json'
    declared.write_text(json.dumps({'classes': {'P': {'items': {'I': {'fields': {'n': 'int'}}}}}}))
    assert ask('schema', 'plan', 'lab') == []
    stampctl('schema', 'set', 'lab', declared, *words)
    steps = ask('schema', 'plan', 'lab')
    assert steps and all(set(one) == {'step', 'sql'} for one in steps) and any('create' in one['sql'] for one in steps)
    assert ''.join(f'-- {one["step"]}\n{one["sql"]}' for one in steps) == stampctl('schema', 'plan', 'lab', *words).out
