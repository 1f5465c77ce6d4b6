"""The record of administration: every road of it, with who, what, where and how it ended; no secrets; bounded."""
import json
import os
import re
import stat

import pytest

from stack import PATIENCE_S, SERVER_USER, SOURCE, give, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 1, 'namespaces': {'z': 'closed', 'lab': 'open'}, 'settings': {'limit_client_requests': 0, 'exempt_clients': '', 'limit_client_attempts': 1000000}}
PASSWORD = 'marzipan-marzipan'
WRONG = 'pumpernickel'
CONTENT = 'gingerbread'

# Of each operation for administrators: params that change something, or are recorded although they only look; then some that look.
DEEDS = {
    'ns': [('z', {'set': {'ns': 'lab', 'message': CONTENT}}, 'ns set', 'lab'), ('z', {'set': {'ns': 'nowhere', 'state': 0}}, 'ns set', 'nowhere')],
    'schema': [('z', {'set': {'ns': 'lab', 'schema': {'classes': {CONTENT: 1}}}}, 'schema set', 'lab'), ('z', {'apply': {'ns': 'lab'}}, 'schema apply', 'lab')],
    'resource': [('z', {'put': {'ns': 'lab', 'files': [{'path': 'a.txt', 'type': 'text/plain', 's': CONTENT}]}}, 'resource put', 'lab')],
    'tasks': [('lab', {'drop': 'no-such-task'}, 'tasks drop', 'no-such-task'), ('lab', {'pause': {'op': 'put', 'reason': CONTENT}}, 'tasks pause', None),
              ('lab', {'resume': {'op': 'put'}}, 'tasks resume', None), ('lab', {'move': {'id': 'no-such-task', 'startat': 260101000000000}}, 'tasks move', 'no-such-task')],
    'accounts': [('z', {'set': {'account': 'nobody-here', 'password': PASSWORD}}, 'accounts set', 'nobody-here'), ('z', {'delete': 'nobody-here'}, 'accounts delete', 'nobody-here'), ('z', {'key': {'label': CONTENT}}, 'accounts key', None)],
    'issuers': [('lab', {'fetch': 'nobody'}, 'issuers fetch', 'nobody')],
}
LOOKS = {'accounts': [('z', {'list': {}}), ('z', {'find': CONTENT}), ('z', {'get': 'nobody-here'})], 'ns': [('z', {'get': 'lab'}), ('z', {'list': {}})], 'schema': [('lab', {}), ('z', {'get': 'lab'})], 'resource': [('z', {'list': 'lab'})],
         'tasks': [('lab', {'list': {}}), ('lab', {'backlog': True})], 'issuers': [('lab', {})], 'metrics': [('z', {})], 'warnings': [('z', {})],
         'explain': [('lab', {})], 'volumes': [('lab', {})]}
# No operation of people: the server schedules them.
TASKS = {'copy': [('lab', {}, 'copy', None)], 'push': [('lab', {}, 'push', None)]}


@pytest.fixture(scope='module')
def audit(stack):
    folder = stack.path / 'audit'
    folder.mkdir()
    give(folder)
    stack.set(audit_file=folder / 'audit.log', audit_refused=10000)
    stack.op('z', 'ns', {'set': {'ns': 'z', 'accounts': {'session_days': 1}}}, admin=True)
    return Audit(stack, folder / 'audit.log')


class Audit:
    def __init__(self, stack, path):
        self.stack, self.path = stack, path

    def events(self):
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def of(self, act):
        """Returns the events of what `act` does, and what it returns."""
        before = len(self.events())
        result = act()
        return self.events()[before:], result


def ask(stack, ns, operation, param=None, bearer=None):
    headers = {'Authorization': f'Bearer {bearer}'} if bearer else {}
    answer = stack.http.post(f'{stack.url}/{ns}/op/{operation}', json={'param': {} if param is None else param}, headers=headers, timeout=PATIENCE_S)
    return 'done' if answer.status_code == 200 else answer.json()['code']


def administrators(stack):
    listed = map(json.loads, stack.stampctl('operations', '--json').text.splitlines())
    return {one['name'] for one in listed if one['kind'] == 'operation' and one['right'] == 'administrator' and not one['module']}


def summary(event):
    return {name: event.get(name) for name in ('who', 'operation', 'ns', 'target', 'outcome')}


def internal(stack, operation):
    return ask(stack, 'z', operation, {}, stack.key) == 'NOPERATION'


def test_each_operation_of_the_registry_has_its_rows(audit):
    """A new operation for administrators needs a deed here, or looks only."""
    missing = administrators(audit.stack) - DEEDS.keys() - LOOKS.keys() - TASKS.keys()
    assert not {name for name in missing if not internal(audit.stack, name)}


def test_every_deed_by_the_key_and_by_an_account(audit):
    stack = audit.stack
    account = stack.op('z', 'accounts', {'create': {'name': 'ann', 'password': PASSWORD, 'roles': ['administrator']}}, admin=True)['out']['account']
    token = 'z_' + stack.op('z', 'login', {'name': 'ann', 'password': PASSWORD})['out']['token']
    for who, bearer in (('key', stack.key), (f'account {account}', token)):
        for operation, rows in (DEEDS | TASKS).items():
            for ns, param, words, target in rows:
                events, code = audit.of(lambda: ask(stack, ns, operation, param, bearer))  # noqa: B023
                assert [summary(event) for event in events] == [dict(who=who, operation=words, ns=ns, target=target, outcome=code)], (operation, param)
                assert events[0]['program'] == 'stampd' and events[0]['request'] and events[0]['message'] == 'audit'


def test_looks_are_not_recorded(audit):
    for operation, rows in LOOKS.items():
        for ns, param in rows:
            assert audit.of(lambda: ask(audit.stack, ns, operation, param, audit.stack.key))[0] == [], operation  # noqa: B023


def test_each_attempt_of_a_stranger(audit):
    """Without a key, and with a wrong one: nothing of what was sent is recorded."""
    for operation in DEEDS | LOOKS | TASKS:
        for ns in ('z', 'lab'):
            for bearer in (None, WRONG, 'z_st_' + WRONG):
                events, code = audit.of(lambda: ask(audit.stack, ns, operation, {'set': {'ns': CONTENT}}, bearer))  # noqa: B023
                assert [summary(event) for event in events] == [dict(who='nobody', operation=operation, ns=ns, target=None, outcome=code)], (operation, bearer)
                assert code in ('SCLOSED', 'SKEY')


def test_a_wrong_key_is_an_attempt_whatever_it_is_for(audit):
    for operation, recorded in (('get', 'get'), ('no_such_' + CONTENT, 'unknown')):
        events, _ = audit.of(lambda: ask(audit.stack, 'lab', operation, {'docs': []}, WRONG))  # noqa: B023
        assert [summary(event) for event in events] == [dict(who='nobody', operation=recorded, ns='lab', target=None, outcome='SKEY')]


def test_what_is_no_administration_is_not_recorded(audit):
    stack = audit.stack
    documents = {'docs': [{'c': 'Note', 'id': 'a', 'items': [{'c': 'Main', 'j': 1}]}]}
    for bearer in (None, stack.key):
        assert audit.of(lambda: ask(stack, 'lab', 'put', documents, bearer)) == ([], 'done')  # noqa: B023
    assert audit.of(lambda: ask(stack, 'lab', 'no_such_operation'))[0] == []
    assert audit.of(lambda: ask(stack, 'lab', 'put', {'docs': 7}))[0] == []


def test_whatever_changes_z_is_recorded(audit):
    stack = audit.stack
    headers = {'Authorization': f'Bearer {stack.key}'}
    events, code = audit.of(lambda: ask(stack, 'z', 'put', {'docs': [{'c': 'Note', 'id': CONTENT, 'items': [{'c': 'Main', 'j': CONTENT}]}]}, stack.key))
    assert [summary(event) for event in events] == [dict(who='key', operation='put', ns='z', target=None, outcome=code)] and code == 'done'
    events, answer = audit.of(lambda: stack.http.put(f'{stack.url}/z/doc/Note/b', json={'items': [{'c': 'Main', 'j': CONTENT}]}, headers=headers, timeout=PATIENCE_S))
    assert [summary(event) for event in events] == [dict(who='key', operation='PUT', ns='z', target='Note/b', outcome='done')] and answer.status_code in (200, 201)
    assert audit.of(lambda: stack.http.get(f'{stack.url}/z/doc/Note/b', headers=headers, timeout=PATIENCE_S))[0] == []
    for name, password, outcome in (('ann', PASSWORD, 'done'), ('ann', WRONG, None)):
        (event,), code = audit.of(lambda: ask(stack, 'z', 'login', {'name': name, 'password': password}))  # noqa: B023
        assert event['operation'] == 'login' and event['outcome'] == code and (code == 'done') == (outcome == 'done')


# --- commands ---

def commands_in_sources():
    text = '\n'.join(path.read_text() for path in sorted((SOURCE / 'src').glob('control/**/*.c')) + [SOURCE / 'src/stampctl.c'])
    return set(re.findall(r'(?:\{|\bCOMMAND(?:_OF)?\()\s*"([a-z-]+(?: [a-z]+)?)",\s*"', text))


def test_each_command_that_looks_exists():
    text = re.search(r'looks\[\] = \{(.*?)\};', (SOURCE / 'src/control/cmd_audit.c').read_text(), re.DOTALL).group(1)
    looks = set(re.findall('"([^"]+)"', text))
    assert looks and not looks - commands_in_sources()


def test_commands_are_recorded_with_their_user(audit):
    stack = audit.stack
    who = f'user {__import__("pwd").getpwuid(os.getuid()).pw_name}'
    for words, ns, target, status in ((('ns', 'access', 'lab', 'open'), 'lab', None, 0), (('cron', 'add', 'lab', 'nightly', 'D0315', 'put'), 'lab', 'nightly', 0),
                                      (('cron', 'drop', 'lab', 'nightly'), 'lab', 'nightly', 0), (('ns', 'access', 'nowhere', 'open'), 'nowhere', None, 1),
                                      (('ns', 'state', 'lab', 'on', CONTENT), 'lab', None, 0), (('task', 'drop', 'lab', 'none', 'nothing'), 'lab', 'none nothing', None)):
        events, outcome = audit.of(lambda: stack.admin(*words, status=status))  # noqa: B023
        assert [summary(event) for event in events] == [dict(who=who, operation=' '.join(words[:2]), ns=ns, target=target, outcome='failed' if outcome.status else 'done')], words
        assert events[0]['program'] == 'stampctl'
    for words in (('ns', 'list'), ('task', 'list', 'lab'), ('cron', 'list', 'lab'), ('rules', 'show', 'lab')):
        assert audit.of(lambda: stack.admin(*words, status=None))[0] == [], words  # noqa: B023


def test_the_file_is_shown(audit):
    stack = audit.stack
    shown = stack.stampctl('audit').text.splitlines()
    assert len(shown) == len(audit.events()) and re.search(r'  key +ns set +z +done +lab$', '\n'.join(shown), re.MULTILINE)
    assert [json.loads(line) for line in stack.stampctl('audit', '--json').text.splitlines()] == audit.events()
    refused = [json.loads(line) for line in stack.stampctl('audit', '--json', '--refused', '--ns', 'lab').text.splitlines()]
    assert refused == [event for event in audit.events() if event['outcome'] != 'done' and event.get('ns') == 'lab'] != []


def test_no_secret_and_no_content_is_in_the_file(audit):
    text = audit.path.read_text()
    assert not [word for word in (PASSWORD, WRONG, CONTENT, audit.stack.key) if word in text]
    mode = audit.path.stat()
    assert stat.S_IMODE(mode.st_mode) == 0o640 and mode.st_uid == audit.path.parent.stat().st_uid


# --- bounds ---

def test_strangers_have_a_share(audit):
    """Without one, each is counted; the next event says how many there were."""
    stack = audit.stack
    stack.set(audit_refused=0)
    events, _ = audit.of(lambda: [ask(stack, 'z', 'ns', {}, WRONG) for _ in range(50)])
    assert events == []
    events, _ = audit.of(lambda: [ask(stack, 'z', 'ns', {'set': {'ns': 'lab', 'message': None}}, stack.key) for _ in range(2)])
    assert [event.get('unrecorded') for event in events] == ['50', None]
    stack.set(audit_refused=10000)


def test_a_full_file_is_renamed(audit):
    """By the server and by stampctl: both files together have a bound, and what comes next is in the new one."""
    stack = audit.stack
    stack.set(audit_mb=1)
    former = audit.path.with_name('audit.log.1')
    line = json.dumps({'who': 'filler', 'text': 'x' * 1000}) + '\n'
    for act, program in ((lambda: ask(stack, 'z', 'ns', {'set': {'ns': 'lab', 'message': None}}, stack.key), 'stampd'),
                         (lambda: stack.admin('ns', 'access', 'lab', 'open'), 'stampctl')):
        with audit.path.open('a') as file:
            file.write(line * 1100)
        size = audit.path.stat().st_size
        act()
        assert former.stat().st_size == size
        (event,) = audit.events()
        assert event['program'] == program and audit.path.stat().st_uid == audit.path.parent.stat().st_uid
    ask(stack, 'z', 'ns', {'set': {'ns': 'lab', 'message': None}}, stack.key)  # the server may write to what stampctl has made
    assert [event['program'] for event in audit.events()] == ['stampctl', 'stampd']


def test_another_program_may_rename_it(audit):
    audit.path.rename(audit.path.with_name('rotated'))
    ask(audit.stack, 'z', 'ns', {'set': {'ns': 'lab', 'message': None}}, audit.stack.key)
    assert len(audit.events()) == 1


@pytest.mark.skipif(not SERVER_USER, reason='needs root, who may write everywhere')
def test_what_cannot_be_written_is_logged(audit):
    stack = audit.stack
    os.chmod(audit.path, 0o400)
    os.chown(audit.path, 0, 0)
    assert ask(stack, 'z', 'ns', {'set': {'ns': 'lab', 'message': None}}, stack.key) == 'done'
    wait_until(lambda: re.search(r'info: audit who=key operation=ns set ns=z target=lab outcome=done', stack.log()), what='the event in the log')
    assert re.search(r'error: audit_file = .*: Permission denied', stack.log())


def test_without_a_file_it_is_in_the_log(audit):
    stack = audit.stack
    stack.set(audit_file='')
    before = stack.log().count('audit who=nobody operation=ns ns=z outcome=SKEY')
    ask(stack, 'z', 'ns', {}, WRONG)
    wait_until(lambda: stack.log().count('audit who=nobody operation=ns ns=z outcome=SKEY') == before + 1, what='the event in the log')
    assert 'audit_file is empty' in stack.stampctl('audit', status=1).error
