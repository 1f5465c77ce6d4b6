"""Applications as modules: built outside the tree against what `make install` gives, loaded by a server of their own.
What they do wrong harms their own request only."""
import re
import shutil
import subprocess
import threading
import time

import psycopg2
import pytest
import requests

from kit import Kit
from stack import BUILD, PATIENCE_S, SERVER_USER, SOURCE, Problem, give, is_alive, refused, wait_until

STACK = {'workers': 4, 'settings': {}}
MEMORY_MB = 192
LIMIT_S = 900  # of an operation that has none of its own
IS_SANITIZED = b'__asan_init' in (BUILD / 'src/stampd').read_bytes()
sanitizers_have_rules_of_their_own = pytest.mark.skipif(IS_SANITIZED, reason='the sanitizer watches memory itself')


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    modules = [kit.build_example(), kit.build('trial.c'), kit.build('plus.cc')]
    STACK['settings'] = {'modules': '\n  ' + '\n  '.join(map(str, modules)), 'memory_mb': MEMORY_MB, 'cache_mb': 16,
                         'limit_operation_s': LIMIT_S, 'restart_young_ms': 0}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


def call(stack, name, param=None, ns='demo', **more):
    return stack.request('POST', f'/{ns}/op/{name}', json={'param': param or {}}, **{'timeout': 120, **more})


def out(stack, name, param=None, **more):
    return stack.op('demo', name, param or {}, **more).get('out')


def items_of(document):
    return {(item['c'], item.get('k')): item.get('j', item.get('s')) for item in document['items']}


# --- the example ---

def test_the_story_of_the_associations(stack):
    assert call(stack, 'FoundAsso', {'asso': 'chess', 'title': 'Chess'}).json()['code'] == 'SCLOSED'
    for _ in range(2):
        out(stack, 'FoundAsso', {'asso': 'chess', 'title': 'Chess'}, admin=stack.key)
    refused('AASSO', out, stack, 'FoundAsso', {'asso': 'chess', 'title': 'Cheese'}, admin=stack.key)
    out(stack, 'FoundAsso', {'asso': 'boats', 'title': 'Boats'}, admin=stack.key)
    version = out(stack, 'Enrol', {'asso': 'chess', 'member': '7', 'name': 'Ann "A"', 'since': 1999})['v']
    out(stack, 'Enrol', {'asso': 'boats', 'member': '7', 'name': 'Bob'})
    assert stack.get('demo', ('Asso', 'chess'))['v'] == version
    assert refused('NASSO', out, stack, 'Enrol', {'asso': 'none', 'member': '1', 'name': 'x'}).body['status'] == 404
    assert refused('AARG', out, stack, 'Enrol', {'asso': 'chess', 'member': '1', 'name': ''}).body['args'] == ['name']

    out(stack, 'JoinGroup', {'group': 'fete', 'title': 'Fête', 'asso': 'chess', 'member': '7'})
    out(stack, 'JoinGroup', {'group': 'fete', 'asso': 'boats', 'member': '7'})
    assert refused('NMEMBER', out, stack, 'JoinGroup', {'group': 'fete', 'asso': 'boats', 'member': '8'}).body['args'] == ['boats', '8']
    group = items_of(stack.get('demo', ('GT', 'fete')))
    assert group == {('Nom', None): {'title': 'Fête'},
                     ('Sta', 'chess'): {'title': 'Chess', 'active': True}, ('Sta', 'boats'): {'title': 'Boats', 'active': True},
                     ('Adh', '7.chess'): {'name': 'Ann "A"', 'since': 1999}, ('Adh', '7.boats'): {'name': 'Bob', 'since': 2026}}

    def members():
        return [entry['key'] for entry in out(stack, 'GroupReport', {'group': 'fete', 'age': 1})['members']]

    wait_until(lambda: members() == ['7.boats', '7.chess'], what='a report that is a second old at most')
    csv = 'member,name,since\r\n"7.boats","Bob",2026\r\n"7.chess","Ann ""A""",1999\r\n'
    wait_until(lambda: call(stack, 'GroupReport', {'group': 'fete', 'as': 'csv', 'age': 1}).text == csv, what='the same of any worker')
    assert call(stack, 'GroupReport', {'group': 'fete', 'as': 'csv'}).headers['Content-Type'] == 'text/csv; charset=utf-8'

    out(stack, 'LeaveGroup', {'group': 'fete', 'asso': 'chess', 'member': '7'})
    assert set(items_of(stack.get('demo', ('GT', 'fete')))) == {('Nom', None), ('Sta', 'boats'), ('Adh', '7.boats')}


def test_an_application_is_the_same_in_every_namespace_but_z(stack):
    for ns in ('demo', 'lab'):
        stack.op(ns, 'FoundAsso', {'asso': ns, 'title': ns}, admin=True)
        assert items_of(stack.get(ns, ('Asso', ns), admin=True))[('Sta', None)]['title'] == ns
    assert stack.get('lab', ('Asso', 'demo'))['v'] == 0
    with pytest.raises(Problem, match='SCLOSED'):
        stack.op('z', 'Enrol', {'asso': 'x', 'member': '1', 'name': 'x'})


def test_declared_classes_are_kept_by_the_generic_put_too(stack):
    def put(item, class_='Asso'):
        return stack.put('lab', {'c': class_, 'id': 'declared', 'items': [item]})

    put({'c': 'Adh', 'k': '1', 'j': {}})
    put({'c': 'Other', 'j': {}}, class_='Free')
    for item in ({'c': 'Adh', 'j': {}}, {'c': 'Sta', 'k': '1', 'j': {}}, {'c': 'Adh', 'k': '1', 's': 'raw'}, {'c': 'Other', 'j': 1}):
        with pytest.raises(Problem, match='AARG'):
            put(item)
    assert items_of(stack.get('lab', ('Asso', 'declared'))) == {('Adh', '1'): {}}


# --- the header ---

def test_what_the_header_declares_the_program_exports_and_nothing_else():
    text = ''.join((SOURCE / 'src' / name).read_text() for name in ('stampd.h', 'stampd_record.h', 'stampd_task.h'))
    header = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    declared = set(re.findall(r'\b(stampd_\w+)\((?=(?:const |struct |enum |void|int64_t))', header)) - {'stampd_bytes', 'stampd_mutate'}
    exported = subprocess.run(['nm', '-D', '--defined-only', '--format=posix', BUILD / 'src/stampd'], check=True,
                              capture_output=True, text=True).stdout.splitlines()
    functions = {line.split()[0] for line in exported if line.split()[1] == 'T'}
    assert len(declared) > 80
    assert declared <= functions
    if not IS_SANITIZED:
        assert functions == declared


@pytest.mark.parametrize('compiler', ['cc -std=c11', 'c++ -x c++ -std=c++11', 'clang -std=c11', 'clang++ -x c++ -std=c++11'])
def test_the_header_stands_alone(kit, compiler):
    if not shutil.which(compiler.split()[0]):
        pytest.skip(f'{compiler.split()[0]} is not installed')
    source = kit.path / 'alone.c'
    source.write_text('#include <stampd_record.h>\n#include <stampd.h>\n#include <stampd_filter.h>\n#include <stampd_record.h>\nint main(void) { return 0; }\n')
    flags = [flag for flag in kit.flags if flag.startswith('-I')]
    subprocess.run([*compiler.split(), '-Wall', '-Wextra', '-pedantic-errors', '-Werror', *flags, '-fsyntax-only', source],
                   check=True)


# --- C++ ---

def test_a_module_may_be_written_in_cpp(stack):
    answer = call(stack, 'Greet', {'name': 'wörld'})
    assert (answer.content.decode(), answer.headers['Content-Type']) == ('hello wörld', 'text/plain; charset=utf-8')


# --- results ---

def test_results_of_all_kinds(stack):
    assert call(stack, 'Give', {'as': 'nothing'}).json() == {}
    assert call(stack, 'Give', {'as': 'json', 'x': [1.50]}).text == '{"out":{"as": "json", "x": [1.5]}}'
    answer = call(stack, 'Give', {'as': 'text'})
    assert (answer.content, answer.headers['Content-Type']) == ('<p>hé'.encode(), 'text/html; charset=utf-8')
    answer = call(stack, 'Give', {'as': 'bytes'})
    assert (answer.content, answer.headers['Content-Type']) == (b'\0\xff\r\n\r\n{', 'application/octet-stream')


def test_synchronisations_join_json_results_only(stack):
    syncs = [{'c': 'Note', 'id': 'none'}]
    assert stack.op('demo', 'Give', {'as': 'nothing'}, syncs) == {'syncs': [{'c': 'Note', 'id': 'none', 'v': 0, 'ct': 0, 'dt': 0}]}
    assert list(stack.op('demo', 'Give', {'as': 'json'}, syncs)) == ['out', 'syncs']
    answer = stack.request('POST', '/demo/op/Give', json={'param': {'as': 'bytes'}, 'syncs': syncs})
    assert answer.content == b'\0\xff\r\n\r\n{'


# --- exceptions ---

def test_exceptions_with_code_arguments_and_detail(stack):
    problem = refused('AQUOTA', out, stack, 'Raise', {'code': 'AQUOTA', 'detail': 'Too many é.', 'one': 'a', 'two': 'b'}).body
    assert (problem['status'], problem['major'], problem['phase']) == (400, 1, 1)
    assert (problem['args'], problem['detail']) == (['a', 'b'], 'Too many é.')
    assert problem['message'] == f'{problem["title"]} Too many é.'
    for code, status, major in (('NX', 404, 1), ('B0', 500, 2), ('XTOTAL', 500, 3), ('DOLD', 400, 4), ('CLASH', 409, 5),
                                ('OLUNCH', 503, 6), ('SGUEST', 403, 7), ('AVERSION', 409, 1)):
        problem = refused(code, out, stack, 'Raise', {'code': code}).body
        assert (problem['status'], problem['major'], problem['args']) == (status, major, [])
    for code in ('quota', 'ZED', 'A', 'XUNKNOWN', 'A-B', 'ABCDEFGHIJKLMNOPQ'):
        refused('BMODULE', out, stack, 'Raise', {'code': code})


@pytest.mark.parametrize('letter, goes_on', [('B', True), ('X', True), ('C', True), ('A', False), ('N', False), ('S', False)])
def test_the_letter_decides_whether_it_is_tried_again(stack, letter, goes_on):
    for _ in range(4):
        answer = call(stack, 'Stumble', {'code': f'{letter}TRIP'})
        assert answer.status_code == 200 if goes_on else answer.status_code in (400, 403, 404, 200)
        if not goes_on and answer.status_code != 200:
            assert answer.json()['code'] == f'{letter}TRIP'
            return
    assert goes_on


# --- the cycle ---

def test_operations_that_meet_are_run_again(stack):
    versions, problems = [], []

    def count():
        with requests.Session() as session:
            for _ in range(15):
                answer = session.post(f'{stack.url}/lab/op/Count', json={}, verify=stack.http.verify, timeout=PATIENCE_S)
                if answer.status_code == 200:
                    versions.append(answer.json()['out']['v'])
                else:
                    problems.append(answer.json()['code'])

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(problems) <= {'CONTENTION'}
    counter = stack.get('lab', ('Trial', 'counter'))
    assert items_of(counter) == {('Count', None): {'n': len(versions)}}
    assert len(set(versions)) == len(versions)
    assert counter['v'] == max(versions)


def test_afterwork_sees_result_and_version(stack):
    answer = stack.op('demo', 'Count')['out']
    document = stack.get('demo', ('Trial', 'counter'))
    assert answer == {'work': items_of(document)[('Count', None)], 'v': document['v']}


def test_under_an_idempotency_key_afterwork_is_run_on_the_answer_kept(stack):
    def count():
        return stack.request('POST', '/demo/op/Count', json={}, headers={'Idempotency-Key': 'count-once'}).json()

    assert count() == count()


def test_deep_arguments_are_stored_as_they_came(stack):
    text = '{"items":[{"docs":[{"items":[[1.0,{"a":[]}]]}]}]}'
    body = '{"param":{"class":"Count","value":%s}}' % text
    answer = stack.request('POST', '/demo/op/Carry', form=body, headers={'Content-Type': 'application/json'})
    assert answer.status_code == 200, answer.text
    answer = stack.request('POST', '/demo/op/get', json={'param': {'docs': [{'c': 'Trial', 'id': 'carry'}]}})
    assert f'"j":{text}' in answer.text
    size = len(stack.log())
    refused('BMODULE', out, stack, 'Carry', {'class': 'Many', 'value': 1})
    assert stack.log()[size:].count('operation=Carry') == 1, 'one misuse, however often the operation is tried, is one line'
    refused('ALIMIT', out, stack, 'Carry', {'class': 'Count', 'value': 'x' * 1048576})


# --- hooks ---

def test_hooks_of_workers(stack):
    answer = out(stack, 'Started')
    assert answer['started'] == 1
    assert answer['pid'] in stack.worker_pids()
    assert f'trial starts pid={answer["pid"]}' in stack.log()
    stack.reload()
    wait_until(lambda: f'trial stops pid={answer["pid"]}' in stack.log(), what='the hook at the end')
    assert out(stack, 'Started')['started'] == 1


# --- isolation ---

class Others:
    """Clients that go on working while something happens; each answer must be right."""

    def __init__(self, stack):
        self.stack, self.problems, self.count, self.is_over = stack, [], 0, False
        self.threads = [threading.Thread(target=self.work) for _ in range(2)]

    def work(self):
        with requests.Session() as session:
            while not self.is_over:
                try:
                    answer = session.post(f'{self.stack.url}/lab/op/get', verify=self.stack.http.verify, timeout=PATIENCE_S,
                                          json={'param': {'docs': [{'c': 'Note', 'id': 'others'}]}})
                    if answer.status_code != 200 or answer.json()['out']['docs'][0]['items'][0]['j'] != 'here':
                        self.problems.append(answer.text)
                except (requests.RequestException, ValueError) as problem:
                    self.problems.append(repr(problem))
                self.count += 1
                time.sleep(0.005)

    def __enter__(self):
        self.stack.put('lab', {'c': 'Note', 'id': 'others', 'items': [{'c': 'Head', 'j': 'here'}]})
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        before = self.count
        wait_until(lambda: self.count >= before + 20, what='the others')
        self.is_over = True
        for thread in self.threads:
            thread.join()
        assert self.problems == []


def expect_lost(answer, code='XCRASH', status=502, is_unchanged=True):
    """The worker ended; whether anything can have been done is in the phase."""
    assert answer.headers['Content-Type'] == 'application/problem+json'
    problem = answer.json()
    assert (answer.status_code, problem['status'], problem['code']) == (status, status, code), problem
    assert problem['args'] == (['application'] if code == 'XCRASH' else []), problem
    assert problem.get('phase') == (1 if is_unchanged else None), problem
    assert problem['detail'] == ('Nothing was changed.' if is_unchanged else 'It may or may not have been done.')


def wait_for_workers(stack):
    wait_until(lambda: len(stack.worker_pids()) == STACK['workers'] + 1, what='the successor')  # and the relay


def lines_since(stack, size):
    return stack.log()[size:]


@pytest.mark.parametrize('how', ['trap', 'abort', 'exit', pytest.param('null', marks=sanitizers_have_rules_of_their_own)])
def test_a_crash_harms_its_own_request_only(stack, how):
    wait_for_workers(stack)
    size = len(stack.log())
    before = set(stack.worker_pids())
    given = {} if how == 'trap' else {'X-Request-Id': f'mine-{how}'}
    with Others(stack):
        answer = call(stack, 'Crash', {'how': how}, ns='demo', headers=given)
    expect_lost(answer)
    wait_for_workers(stack)
    assert len(before - set(stack.worker_pids())) == 1
    request = answer.headers['X-Request-Id']
    assert request == given.get('X-Request-Id', request) and request
    lines = lines_since(stack, size)
    assert re.search(rf'error: worker .* pid=.* request={request}$', lines, re.M), lines
    assert re.search(rf'it was running application code operation=Crash .* request={request}$', lines, re.M)
    out(stack, 'Started')


def test_an_endless_loop_is_ended_at_its_own_limit(stack):
    wait_for_workers(stack)
    size = len(stack.log())
    with Others(stack):
        answer = call(stack, 'Loop')
    expect_lost(answer, 'XTIME', 504)  # the limit of all operations is far away
    request = answer.headers['X-Request-Id']
    assert re.search(rf'killed worker whose application did not return .* request={request}$', lines_since(stack, size), re.M)
    assert 'operation=Loop' in lines_since(stack, size)
    wait_for_workers(stack)
    assert stack.get('demo', ('Trial', 'loop'))['v'] == 0


def test_a_loop_in_afterwork_loses_the_answer_and_not_the_commit(stack):
    with Others(stack):
        expect_lost(call(stack, 'LoopAfter'), 'XTIME', 504, is_unchanged=False)
    assert items_of(stack.get('demo', ('Trial', 'after'))) == {('Count', None): 1}


def test_who_asks_for_documents_is_told_that_time_is_over(stack):
    wait_for_workers(stack)
    pids = set(stack.worker_pids())
    refused('XTIME', out, stack, 'Dawdle')
    assert set(stack.worker_pids()) == pids


@sanitizers_have_rules_of_their_own
def test_a_huge_allocation_fails(stack):
    with Others(stack):
        out(stack, 'Hog', {'mb': MEMORY_MB // 4})
        refused('AMEMORY', out, stack, 'Hog', {'mb': MEMORY_MB * 2})
        refused('AMEMORY', out, stack, 'Hog', {'mb': 1 << 40})
        size = len(stack.log())
        expect_lost(call(stack, 'HogOfCall', {'mb': MEMORY_MB * 2}))
    assert 'out of memory arena=request' in lines_since(stack, size)
    wait_for_workers(stack)


@sanitizers_have_rules_of_their_own
def test_who_leaks_is_replaced_in_good_order(stack):
    wait_for_workers(stack)
    size = len(stack.log())
    with Others(stack):
        leaked = set()

        def leak():
            answer = call(stack, 'Leak', {'mb': 8})
            if answer.status_code == 200:
                leaked.add(answer.json()['out']['pid'])
            else:
                assert answer.json()['code'] == 'AMEMORY'
            return [pid for pid in leaked if not is_alive(pid)]

        gone = wait_until(leak, what='the end of a worker that leaks')
    lines = lines_since(stack, size)
    assert 'keeps too much memory, replacing it' in lines
    assert f'trial stops pid={gone[0]}' in lines
    assert 'killed by signal' not in lines


# --- what is refused at start ---

def user_line():
    return ''.join(f'{name} = {value}\n' for name, value in SERVER_USER.items())


@pytest.fixture
def starts(tmp_path):
    """Starts a server with these modules; returns its exit status and its lines."""
    def start(*modules):
        conf = tmp_path / 'stampd.conf'
        conf.write_text(f'run_directory = {give(tmp_path)}\nworkers = 1\n{user_line()}modules = {" ".join(map(str, modules))}\n')
        done = subprocess.run([BUILD / 'src/stampd', '-c', conf], capture_output=True, text=True, timeout=PATIENCE_S)
        return done.returncode, done.stderr
    return start


@pytest.mark.parametrize('reason, words', [
    ('ABI', r'built for version 2 of stampd\.h, this server has 1: build it again'),
    ('OPERATION', 'there is an operation put already'),
    ('SYMBOL', 'exports no stampd_module'),
    ('CALL', 'undefined symbol: stampd_no_such_function'),
])
def test_a_module_is_refused_with_one_clear_line(kit, starts, reason, words):
    module = kit.build('wrong.c', f'wrong-{reason}', f'-DWRONG_{reason}')
    status, lines = starts(module)
    assert status == 1
    (line,) = (line for line in lines.splitlines() if 'error:' in line)
    assert re.search(f'cannot start: module {module}: .*{words}', line)
    assert line.count(str(module)) == 1


def test_modules_do_not_share_names(kit, starts):
    wrong = kit.build('wrong.c')
    status, lines = starts(wrong, wrong)
    assert status == 1
    assert 'there is an operation Wrong already' in lines


def test_what_is_no_module_is_refused(kit, starts):
    text = kit.path / 'text.so'
    text.write_text('no module')
    loose = kit.build('wrong.c', 'loose')
    loose.chmod(0o666)
    for path, words in ((kit.path / 'none.so', 'No such file'), (text, 'file too short'), (kit.path, 'no regular file'),
                        (loose, 'any user may write it')):
        status, lines = starts(path)
        assert status == 1
        assert re.search(f'cannot start: module {path}: .*{words}', lines)


def test_a_relative_path_is_one_in_the_folder_for_modules(kit, starts):
    folder = subprocess.run(['pkg-config', '--variable=moduledir', 'stampd'], check=True, capture_output=True, text=True,
                            env={**kit.environment, 'PKG_CONFIG_SYSROOT_DIR': ''}).stdout.strip()
    status, lines = starts('no-such-module.so')
    assert status == 1
    assert f'module {folder}/no-such-module.so: No such file' in lines


def test_a_worker_that_cannot_start_says_so_and_is_tried_again(kit, tmp_path):
    module = kit.build('wrong.c', 'wrong-START', '-DWRONG_START')
    conf = tmp_path / 'stampd.conf'
    conf.write_text(f'run_directory = {give(tmp_path)}\nworkers = 1\n{user_line()}modules = {module}\n')
    with subprocess.Popen([BUILD / 'src/stampd', '-c', conf], stderr=subprocess.PIPE, text=True) as server:
        lines = []
        for line in server.stderr:
            lines.append(line)
            if sum('worker_start failed module=wrong' in line for line in lines) == 2:
                break
        server.terminate()
        server.stderr.read()
    assert any('no heart to start' in line for line in lines)


def test_a_change_of_modules_waits_for_the_next_start(stack):
    size = len(stack.log())
    conf = stack.path / 'etc/stampd.conf'
    text = conf.read_text()
    start, end = text.index('modules ='), text.index('memory_mb')
    conf.write_text(text[:start] + text[end:])
    stack.reload()
    wait_until(lambda: 'settings reloaded' in lines_since(stack, size), what='the reload')
    conf.write_text(text)
    assert 'modules = : takes effect at the next start' in lines_since(stack, size)
    wait_for_workers(stack)
    assert out(stack, 'Started')['started'] == 1


# --- what is reserved ---

RESERVED = 'The class P of items is reserved for attachments.'


def test_items_of_attachments_are_reserved(stack):
    """On every path that writes items (tasks: test_tasks.py, stampctl load: test_stampctl.py); a class of documents may have the name."""
    key = {'Authorization': f'Bearer {stack.key}'}
    items = [{'c': 'Count', 'j': 1}, {'c': 'P', 'k': 'a', 'j': {'sha': 'x'}}]

    def expect(answer, at):
        problem = answer.json()
        assert (answer.status_code, problem['code'], problem.get('detail'), problem.get('at')) == (400, 'AARG', RESERVED, at), problem
    for item in (items[1], {'c': 'P', 'k': 'a', 's': 'x'}):
        put = {'docs': [{'c': 'Trial', 'id': 'p', 'items': [items[0], item]}]}
        expect(call(stack, 'put', put, headers=key), '/param/docs/0/items/1/c')
    stack.put('demo', {'c': 'Trial', 'id': 'there', 'items': [items[0]]}, admin=True)
    for method, id_ in (('PUT', 'p'), ('PATCH', 'there')):
        expect(stack.request(method, f'/demo/doc/Trial/{id_}', json={'items': items}, headers=key), '/items/1/c')
    assert call(stack, 'Carry', {'class': 'P', 'key': 'a', 'value': 1}).json()['code'] == 'BMODULE'
    assert f'{RESERVED[:-1]}' in stack.log()
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match='reserved for attachments'):
        stack.psql('demo', "select put_item('Trial', 'p', 'P', 'a', '1')")
    assert stack.psql('demo', "select 1 from doc where id = 'p'") == []
    stack.put('demo', {'c': 'P', 'id': 'p', 'items': [items[0]]}, admin=True)
    assert items_of(stack.get('demo', ('P', 'p'))) == {('Count', None): 1}
