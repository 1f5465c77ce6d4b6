"""Encrypted ids on every road: one script of requests, tasks, streams, modules and commands runs in a namespace with encrypted ids and in one without;
both see the same, but for stamps, texts drawn at random and the order of lists.  The script runs each operation that the server has."""
import json
import re
import shutil
from urllib.parse import quote

import pytest

import archives
import test_rules_paths
from kit import Kit
from listener import Listener
from manager import Manager
from push_key import CONTACT, PushKey
from push_service import Browser, PushService
from schema import Schemas
from stack import refused, run_program, wait_until
from test_encrypted_ids import PERSON, PLAN, PLANTED, everything_stored, name, person
from test_sealed_move import furnish
from test_thumbnails import PHOTO, attach, items, run, sweep, tasks
from test_uploads import TYPE, create as create_upload, metadata
from vault import create

pytestmark = pytest.mark.plain

WORLDS = ('vault', 'clear')
STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'clear': 'open'}, 'postgres': {'log_statement': 'all', 'log_parameter_max_length': -1}, 'settings': {}}
SCHEMA = {'Person': PERSON, 'Plan': PLAN, 'Paper': {'encryptedIds': True, 'items': {'Main': {'singleton': True}}}, 'Photo': {'encryptedIds': True, **PHOTO}}
QUEUE = {'qn': 16, 'ops': ['resize'], 'request': 'anybody'}
STORED = re.compile(r'~[A-Za-z0-9_-]{23,}')
# A stamp, then what is drawn at random: names of tasks, cursors, tokens.
DRAWN = (re.compile(r'\b\d{15}\b'), re.compile(r'(?<![\w-])[\w-]{20,}(?![\w-])'))
# Operations that the script does not run; those of the matrix of test_rules_paths.py run in test_encrypted_ids_paths.py.
ELSEWHERE = {
    **dict.fromkeys(('account', 'accounts', 'login', 'logout', 'register', 'sessions'), 'test_encrypted_ids_paths.py'),
    **dict.fromkeys(('confirm', 'maillogin', 'passkey', 'reset', 'whois'), 'documents Account alone, by the names that `login` finds'),
    'membership': 'test_encrypted_ids_paths.py',
    'search': 'an encrypted namespace declares no search in SQL',
    **dict.fromkeys(('issuers', 'metrics', 'ns', 'resource', 'warnings'), 'of z, which is not encrypted'),
}


@pytest.fixture(scope='module', autouse=True)
def kit(request):
    kit = Kit()
    with PushKey() as key:
        request.module.STACK['settings'] = {'modules': kit.build('visit.c'), **key.settings, 'subscription_trial_min': 0}
        kit.push_key = key
        yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def service():
    service = PushService(CONTACT)
    yield service
    service.close()


@pytest.fixture(scope='module')
def made(stack, kit, service, tmp_path_factory):
    furnish(stack)
    create(stack, 'vault', ids=','.join(SCHEMA))
    for ns in WORLDS:
        schema = SCHEMA if ns == 'vault' else {name: {**one, 'encryptedIds': False} for name, one in SCHEMA.items()}
        Schemas(stack, tmp_path_factory.mktemp('schemas')).apply(ns, schema)
        stack.op('z', 'ns', {'set': {'ns': ns, 'workers': [QUEUE], 'reads': ['near']}}, admin=True)
        kit.push_key.enable(stack, service, ns)
    create(stack, 'near', ids='Person,Note')
    stack.op('z', 'ns', {'set': {'ns': 'near', 'readers': list(WORLDS)}}, admin=True)
    stack.put('near', person('a', n='near'))
    return stack


def plain(text):
    for drawn in DRAWN:
        text = drawn.sub('drawn', text)
    return text


def without_order(value):
    if isinstance(value, dict):
        return {plain(name): without_order(one) for name, one in value.items()}
    if isinstance(value, list):
        return sorted((without_order(one) for one in value), key=json.dumps)
    return plain(json.dumps(value, ensure_ascii=False))


def texts_of(text):
    """JSON texts, one or one a line; or the text."""
    for pieces in ([text], text.splitlines()):
        try:
            return [json.loads(piece) for piece in pieces]
        except ValueError:
            pass
    return [text]


class Side:
    """The script in one namespace: what was seen at each step, and which operations ran."""

    def __init__(self, stack, ns, service, folder):
        self.stack, self.ns, self.service, self.folder = stack, ns, service, folder
        self.seen, self.ran, self.manager = [], set(), Manager(stack, ns)

    def see(self, what, value, may_be_stored=False):
        assert may_be_stored or not STORED.search(json.dumps(value)), (what, value)
        self.seen.append((plain(what), without_order(value)))
        return value

    def ask(self, method, path, what=None, may_be_stored=False, **more):
        answer = self.stack.http.request(method, f'{self.stack.url}/{self.ns}/{path}', **more)
        text = answer.text.replace(f'/{self.ns}/', '/NS/')
        body = texts_of(text)
        headers = {one: answer.headers.get(one) for one in ('ETag', 'Content-Type', 'Location', 'Upload-Offset', 'Repr-Digest')}
        self.see(what or f'{method} {path}', [answer.status_code, {one: value and value.replace(self.ns, 'NS') for one, value in headers.items()}, body], may_be_stored)
        self.ran.add(path.split('/')[1].partition('?')[0] if path.startswith('op/') else method)
        return answer

    def op(self, operation, param=None, admin=False, session=None, syncs=None, **more):
        body = {one: value for one, value in (('param', param), ('session', session), ('syncs', syncs), ('admin', self.stack.key if admin else None)) if value is not None}
        return self.ask('POST', f'op/{operation}', f'{operation} {param}', json=body, **more).json()

    def out(self, *words, **more):
        answer = self.op(*words, **more)
        assert 'out' in answer, answer
        return answer['out']

    def put(self, *documents, **more):
        return self.out('put', {'docs': list(documents)}, **more)['v']

    def task(self, taskid, what):
        self.see(what, {one: value for one, value in self.manager.run(taskid).items() if one != 'id'})
        self.ran |= {one for one, in self.stack.psql(self.ns, 'select opname from task_history where taskid = %s', (taskid,))}


# --- the script ---

ODD = 'é/@"~.%?'


def documents(side):
    side.put(person('h', home='Ulm'), *(person(id_, n=number, team='red', skills=['x', number], mail=f'{number}@x') for number, id_ in enumerate(['a', 'b', 'c', ODD])),
             *({'c': 'Plan', 'id': name(id_), 'items': [{'c': 'Info', 'j': {'day': 40}}]} for id_ in 'ab'), *({'c': 'Paper', 'id': name(id_), 'items': [{'c': 'Main', 'j': 1}]} for id_ in 'ab'),
             {'c': 'Note', 'id': 'plain', 'items': [{'c': 'Main', 'j': 1}]})
    side.put({'c': 'Person', 'id': name('a'), 'items': [{'c': 'Line', 'k': key, 'j': key} for key in 'abc']})
    names = [{'c': 'Person', 'id': name(id_)} for id_ in ('a', ODD, 'none')]
    found = side.out('get', {'docs': names})['docs'][0]
    side.out('get', {'docs': [{**names[0], 'age': 60}, {**names[0], 'age': 60, 'ns': 'near'}]})
    side.put({**names[0], 'items': [{'c': 'Line', 'k': 'b', 'del': True}]})
    side.op('sync', syncs=[{**names[0], **{one: found[one] for one in ('v', 'ct', 'dt')}}, *names[1:]])
    side.op('put', {'docs': [{**person('a', n=9), 'if': 5}, {**person('b', n=9), 'if': 5}]})
    side.op('put', {'docs': [person('d', mail='0@x')]})
    side.op('put', {'docs': [person('h', home='Rom')]})
    side.op('put', {'docs': [{'c': 'Person', 'id': name('a'), 'items': [{'c': 'Main', 'k': 'wrong', 'j': 1}]}]})
    for wish in ({'c': 'Person'}, {'c': 'Person', 'after': 1}, {}):
        side.op('list', wish)
    for wish in ({'want': 'ids'}, {'want': 'items'}, {'id': {'t': 'eq', 'v1': name('b')}}):
        side.op('find', {'c': 'Plan', 'i': 'Info', 'where': [{'f': 'day', 't': 'eq', 'v1': 40}], **wish})
    for act in ({'delete': True}, {'del': True}, {'merge': {'day': 41}}):
        side.op('changemany', {'c': 'Plan', 'i': 'Info', 'where': [{'f': 'day', 't': 'eq', 'v1': 40}], 'id': {'t': 'eq', 'v1': name('b')}, **act})
    side.stack.older_transactions_end()
    token = side.out('collection', {'c': 'Person', 'collection': 'team', 'value': 'red'})['token']
    side.op('collection', {'c': 'Person', 'collection': 'skill', 'value': 'x', 'want': 'ids'})
    side.put(person('b', team='blue'), {'c': 'Person', 'id': name('c'), 'delete': True})
    side.op('collection', {'c': 'Person', 'collection': 'team', 'value': 'red', 'token': token})
    side.ask('POST', 'op/collection', json={'param': {'c': 'Person', 'collection': 'team', 'value': 'red', 'stream': True}})


def resources(side):
    for id_ in ('r', 'r' + ODD):
        path = f'doc/Person/{quote(name(id_), safe="")}'
        side.ask('PUT', path, json={'items': [{'c': 'Line', 'k': 'a', 'j': 1}]})
        etag = side.ask('GET', path).headers['ETag']
        for method, body, headers in (('PATCH', {'items': [{'c': 'Line', 'k': 'b', 'j': 2}]}, {'If-Match': etag}), ('PATCH', {'items': []}, {'If-Match': etag}), ('HEAD', None, {}),
                                      ('GET', None, {'Accept': 'text/html'}), ('DELETE', None, {'If-Match': etag}), ('DELETE', None, {}), ('GET', None, {})):
            side.ask(method, path, json=body, headers=headers)


def attachments(side):
    side.put(person('f', n=1), person('g', n=1))
    path = f'doc/Person/{name("f")}/file/one'
    digest = side.ask('PUT', path, data=b'bytes', headers={'Content-Type': 'text/plain'}).headers.get('Repr-Digest')
    for method, headers in (('GET', {}), ('HEAD', {}), ('GET', {'Range': 'bytes=1-2'}), ('GET', {'If-None-Match': '*'})):
        side.ask(method, path, headers=headers)
    side.see('digest', digest)
    upload = create_upload(side.stack, f'Person/{name("g")}', 6, ns=side.ns).headers['Location']
    for offset, piece in ((0, b'abc'), (3, b'def')):
        side.ask('PATCH', upload.split(f'/{side.ns}/')[1], 'upload', data=piece, headers={'Tus-Resumable': '1.0.0', 'Upload-Offset': str(offset), 'Content-Type': TYPE})
    assert metadata(key='a')
    side.ask('GET', f'doc/Person/{name("g")}/file/a')
    side.ask('DELETE', path)
    side.ask('GET', path)
    side.out('get', {'docs': [{'c': 'Person', 'id': name(id_)} for id_ in 'fg']})


def thumbnails(side):
    side.stack.psql(side.ns, 'delete from taskqueue')
    for text in ('early', 'late'):
        side.put({'c': 'Photo', 'id': name(text), 'items': [{'c': 'Main', 'j': {}}]})
        attach(side.stack, name(text), 'one', ns=side.ns)
        if text == 'late':
            side.stack.psql(side.ns, "delete from taskqueue where opname = 'thumbnail'")
            side.stack.psql(side.ns, 'update thumbnail_sweep set began = 0')
            side.see('swept', sweep(side.stack, side.ns))
        side.see('waiting', len(tasks(side.stack, side.ns)))
        side.see('made', run(side.stack, side.ns))
        side.see('items', sorted(items(side.stack, name(text), ns=side.ns)))


def sessions(side):
    session, browser = f'session-of-the-script-in-{side.ns}', Browser(side.service)
    definitions = [f'Person/{name("a")}', 'Person/team@sent', 'Plan', f'Person/{name("é~.")}']
    side.out('subs', {'defs': definitions, 'push': browser.subscription, 'context': 'of the script'}, session=session)
    side.op('subs', {'drop': definitions[3:], 'add': [f'Paper/{name("s")}']}, session=session)
    side.op('put', {'docs': [person('a', n=2), person('s', team='sent')]}, session=session)
    side.out('subs', None, session=session)
    side.put(person('a', n=3), {'c': 'Plan', 'id': name('s'), 'items': [{'c': 'Info', 'j': {'day': 1}}]}, person('s', team='other'),
             {'c': 'Paper', 'id': name('s'), 'items': [{'c': 'Main', 'j': 2}]})
    (task,), = side.stack.psql(side.ns, "select taskid from taskqueue where opname = 'push'")
    side.manager.hurry()
    side.task(task, 'push')
    assert not browser.wrong and len(browser.messages) == 1
    side.see('pushed', json.loads(json.dumps(browser.messages).replace(side.ns, 'NS')))
    side.op('subs', {'drop': 'all'}, session=session)
    side.op('pushkey')


def live(side):
    side.put(person('live', n=1))
    listener = Listener(side.stack, 'Plan', f'Person/{name("live")}', f'Person/{name("none")}', ns=side.ns)
    listener.opened()
    listener.wait_for(f'Person/{name("live")}', side.put(person('live', n=2)))
    (stored,), = side.stack.psql(side.ns, "select id from doc where class = 'Person' order by version desc limit 1")
    (version,), = side.stack.psql(side.ns, f"select delete_document('Person', '{stored}')")
    listener.wait_for(f'Person/{name("live")}', version)
    wait_until(lambda: not side.stack.get(side.ns, ('Person', name('live'))).get('items'), what='the change of the database')
    last = wait_until(lambda: listener.last, what='an id')
    listener.close()
    again = Listener(side.stack, 'Plan', f'Person/{name("live")}', ns=side.ns, last=last)
    again.wait_for('Plan', side.put(person('live', n=3), {'c': 'Plan', 'id': name('live'), 'items': [{'c': 'Info', 'j': {'day': 2}}]}))
    again.close()
    events = sorted({definition for event, data in listener.events + again.events if event == 'change' for definition, _ in data['changed']})
    assert side.see('events', events) == [f'Person/{name("live")}', 'Plan']


def tasks_of_the_server(side):
    def request(**more):
        return side.out('task', {'op': 'put', 'param': {'docs': [person('t', n=1)]}, 'info': 'mine', **more}, admin=True)['id']
    side.stack.psql(side.ns, 'delete from taskqueue')
    done, dropped, held = request(), request(delay=3600), request(delay=3600)
    side.op('owntask', {'show': done}, admin=True)
    side.see('due', sorted(one == done for one in side.manager.due()))
    side.task(done, 'run')
    side.op('owntask', {'show': done}, admin=True)
    side.op('owntask', {'cancel': dropped}, admin=True)
    side.op('tasks', {'hold': held}, admin=True)
    for wish in ({'list': {}}, {'show': held}, {'history': {}}, {'backlog': True}, {'redrive': done}):
        side.out('tasks', wish, admin=True, may_be_stored=True)
        if side.seen[-1][0] != f"tasks {wish}" or 'list' in wish or 'show' in wish or 'history' in wish:
            side.seen.pop()  # with arguments as they are stored
    side.put({'c': 'Person', 'id': name('t'), 'delete': True})
    side.task(done, 'run again')
    side.out('get', {'docs': [{'c': 'Person', 'id': name('t')}]})
    side.op('tasks', {'drop': held}, admin=True)


def workers(side):
    for end, more in (('done', {'docs': [{**person('w', n=1)}], 'result': {'id': name('w')}}), ('fail', {'code': 'XMINE'}), ('done', {'docs': [{**person('w', n=2), 'if': 5}]})):
        side.stack.psql(side.ns, 'delete from taskqueue')
        side.out('task', {'op': 'resize', 'param': {'id': name('w')}})
        task, = side.out('take', {'qn': 16, 'worker': 'mine'}, admin=True)['tasks']
        claim = {one: task[one] for one in ('id', 'starttime', 'retry')}
        side.out('keep', {**claim, 'claim': 3600}, admin=True)
        side.op(end, {**claim, **more}, admin=True, syncs=[{'c': 'Person', 'id': name('w')}])
    side.stack.psql(side.ns, 'delete from taskqueue')


def spooled(side):
    task = {'op': 'put', 'param': {'docs': [person('sp', n=1)]}}
    side.op('spool', {'series': 'ab' * 16, 'records': [{'n': 1, 'd': '0' * 64, 'task': task}]}, admin=True)
    side.op('spool', {'series': 'ab' * 16, 'records': [{'n': 1, 'd': '0' * 64, 'task': task}]}, admin=True)
    (id_,), = side.stack.psql(side.ns, "select taskid from taskqueue where opname = 'put'")
    side.task(id_, 'spooled')
    side.out('get', {'docs': [{'c': 'Person', 'id': name('sp')}]})


def modules(side):
    param = {'id': name('a'), 'to': name('b'), 'ns': 'near'}
    for _ in range(2):
        side.op('Visit', param, syncs=[{'c': 'Person', 'id': name('b')}])
    (task,), = side.stack.psql(side.ns, "select taskid from taskqueue where opname = 'Walk'")
    side.task(task, 'walk')
    walked = side.out('get', {'docs': [{'c': 'Note', 'id': 'walked'}]})['docs'][0]['items'][0]['j']
    assert {name('a'), name('b'), name(ODD)} <= set(walked)
    for search in ('Documents', 'Judged'):
        found = side.out('Rows', {'search': search, 'c': 'Person'})
        assert sorted(row['id'] for row in found) == sorted(walked)
        side.out('Rows', {'search': search, 'c': 'Note'})


def administration(side):
    for operation, param in (('volumes', {}), ('schema', {}), ('explain', {'c': 'Person', 'id': name('a')}), ('copy', {'c': 'Person', 'id': name('a')}),
                             ('record', {'commands': [{'do': 'get', 'key': name('a')}]})):
        if operation == 'schema':
            side.ran.add(operation)  # the declarations differ
            continue
        side.op(operation, param, admin=True)
    side.ran.add('openapi')
    assert side.ask('GET', 'openapi.json', may_be_stored=False).status_code == 200
    side.seen.pop()
    side.op('put', {'docs': [person('k', n=1)]}, headers={'Idempotency-Key': '"one"'})
    side.op('put', {'docs': [person('k', n=1)]}, headers={'Idempotency-Key': '"one"'})


def commands(side):
    def ran(*words):
        return run_program(*side.stack.copy_words(*words, ns=side.ns)).out
    side.put(person('end', until=1), person('p1', n=1), person('p2', n=1))
    side.stack.admin('ns', 'purge', side.ns)
    dumped = [json.loads(line) for line in ran('dump').splitlines()]
    side.see('dumped', dumped)
    side.put({'c': 'Person', 'id': name('p1'), 'delete': True})
    run_program(*side.stack.copy_words('load', '-', ns=side.ns), text='\n'.join(json.dumps(one) for one in dumped if one['id'] in (name('p1'), name('p2'))))
    side.see('verified', side.stack.admin('verify', '--ns', side.ns).out.replace(side.ns, 'NS').rpartition(',')[0])  # its bytes are those of files
    side.stack.admin('export', side.ns, side.folder / side.ns)
    exported = archives.documents(side.folder / side.ns)
    side.see('exported', [[*key, json.dumps(without_order(one))] for key, one in exported.items()])
    side.see('part', sorted(archives.documents(export(side, '--class', 'Person', '--id', name('a'), '--id', name(ODD)))))
    side.see('purged', ran('purge', '--class', 'Paper', '--yes').replace(side.ns, 'NS'))
    side.out('list', {})
    side.see('left', [json.loads(line)['id'] for line in ran('dump').splitlines()])


def export(side, *words):
    path = side.folder / f'{side.ns}-part'
    side.stack.admin('export', side.ns, path, *words)
    return path


SCRIPT = (documents, resources, attachments, thumbnails, sessions, live, tasks_of_the_server, workers, spooled, modules, administration, commands)


@pytest.fixture(scope='module')
def sides(made, service, tmp_path_factory):
    return [Side(made, ns, service, tmp_path_factory.mktemp(ns)) for ns in WORLDS]


@pytest.mark.parametrize('part', SCRIPT, ids=lambda part: part.__name__)
def test_both_see_the_same(sides, part):
    for side in sides:
        side.seen.clear()
        part(side)
    vault, clear = sides
    assert len(vault.seen) == len(clear.seen) > 1
    for one, other in zip(vault.seen, clear.seen, strict=True):
        assert one == other


def test_the_script_runs_every_operation(sides):
    listed = {one['name'] for one in test_rules_paths.operations(sides[0].stack)}
    assert sides[0].ran == sides[1].ran and not set(ELSEWHERE) & sides[0].ran
    assert listed == sides[0].ran & listed | set(ELSEWHERE)


def test_nothing_of_it_is_in_clear(made):
    """In what is stored, and in the statements that were sent to the database of the one."""
    stored = everything_stored(made)
    assert PLANTED.encode() not in stored['dump']
    lines = [line for line in stored['log of statements'].splitlines() if PLANTED.encode() in line]
    assert not [line for line in lines if b'@stampd_vault ' in line] and [line for line in lines if b'@stampd_clear ' in line]


# --- searches of modules ---

def test_a_search_names_documents_by_their_ids(made):
    """By `class` and `id`; an id alone is as it is stored."""
    nameless = made.op('vault', 'Rows', {'search': 'Nameless', 'c': 'Person'})['out']
    assert nameless and all(STORED.fullmatch(row['id']) for row in nameless)
    refused('BCONTENT', made.op, 'vault', 'Rows', {'search': 'Wrong', 'c': 'Person'})
    assert made.op('vault', 'Rows', {'search': 'Wrong', 'c': 'Note'})['out'] == [{'class': 'Note', 'id': 'no id of it'}]
