"""Hostile input: refused with a clear code, nothing stored, nobody slowed, nothing told to the logs.

The tables are in hostile/; each case has a connection of its own through nginx.  Slow clients hang on it meanwhile, and
somebody else keeps reading.  What must still be true is looked at after all of them."""
import json
import re
import threading
import time
from pathlib import Path

import pytest

from hostile import LIMITS, TELLTALE, TIMEOUT_S, addresses, forms, json_texts, limits, put_text, request, resources, searches, subscriptions, wire
from hostile.entry import Entry
from stack import BUILD

STACK = {'workers': 3, 'settings': {**LIMITS, 'cache_mb': 8, 'build': 'of-today'}}
TABLES = {'json': json_texts, 'limits': limits, 'addresses': addresses, 'forms': forms, 'resources': resources, 'searches': searches,
          'subscriptions': subscriptions, 'wire': wire}
CASES = [(table, case) for table, module in TABLES.items() for case in module.cases()]
HAS_SANITIZERS = b'__asan_init' in (BUILD / 'src/stampd').read_bytes()
QUIET = {'class': 'Where', 'id': 'am-i'}
OTHERS_ARE_SERVED = 3  # times at least while all slow clients hang on the server
MEMORY_KB = 128 << 10  # a body of 16 MiB, its tree, and the cache: of one request, not of all together
CODE = re.compile(r'[ANDOS][A-Z0-9]{2,}|DBUILD')


class Siege:
    """The stack, its entry (hostile/entry.py), and how it was before."""

    def __init__(self, stack):
        self.stack, self.entry = stack, Entry(stack)
        hasten(stack)
        self.entry.patience_s = TIMEOUT_S
        for ns in ('lab', 'z'):
            document = {'c': 'Where', 'id': 'am-i', 'items': [{'c': 'In', 'j': f'in {ns}'}]}
            stack.put(ns, document, admin=True)
        self.workers = stack.worker_pids()
        self.before = contents(stack)
        self.beside, self.failures, self.is_over = 0, [], False
        self.reader = threading.Thread(target=self.read_on)
        self.slow = [(case, threading.Thread(target=self.run_slow, args=(case,))) for case in wire.slow_ones()]
        self.slow_answers = {}

    def start(self):
        for thread in self.threads():
            thread.start()

    def threads(self):
        return [*(thread for _, thread in self.slow), self.reader]

    def run_slow(self, case):
        """Comes again until others have been served beside all of them."""
        answers = self.slow_answers[case.name] = []
        while not self.is_over and (not answers or self.beside < OTHERS_ARE_SERVED):
            answers.append(case.send(self.entry))

    def read_on(self):
        while not self.is_over:
            slow = set(self.entry.hanging)
            answer = self.entry.ask(request(target='/lab/op/get', body=wire.READ))
            self.beside += len(slow & self.entry.hanging) == len(self.slow)  # began and ended beside them
            if b'in lab' not in answer.body:
                self.failures.append(answer)
            time.sleep(0.05)

    def end(self):
        self.is_over = True
        for thread in self.threads():
            thread.join()


def hasten(stack):
    """nginx with a short patience."""
    path = stack.path / 'etc/nginx.conf'
    text = path.read_text()
    for name in ('client_header_timeout', 'client_body_timeout'):
        text, count = re.subn(rf'\b{name} \d+s;', f'{name} {TIMEOUT_S}s;', text)
        assert count
    path.write_text(text)
    stack.step('nginx', 'stop')
    stack.step('nginx', 'start')


def contents(stack):
    """Everything stored that the cases may not touch."""
    return {ns: (stack.psql(ns, "select class, id, version from doc where class <> 'Kept' order by 1, 2"), stack.psql(ns, 'select * from subscription'))
            for ns in ('lab', 'demo', 'z')}


@pytest.fixture(scope='module')
def siege(stack):
    siege = Siege(stack)
    siege.start()
    yield siege
    siege.end()


def judge(case, answer):
    answer = answer or type('None', (), {'status': 0})
    assert answer.status in case.status, answer
    if answer.status < 400 or not answer.body:
        return
    problem = answer.problem()
    if problem is None:
        assert answer.headers['content-type'] == 'text/plain; charset=utf-8', answer
        return
    assert problem['status'] == answer.status and problem['title'] and isinstance(problem['args'], list), answer
    assert CODE.fullmatch(problem['code']), answer
    if case.code:
        assert problem['code'] in ([case.code] if isinstance(case.code, str) else case.code), answer


@pytest.mark.parametrize('case', [pytest.param(case, id=f'{table}: {case.name}') for table, case in CASES])
def test_case(siege, case):
    answer = case.send(siege.entry) if callable(case.send) else siege.entry.ask(case.send)
    judge(case, answer)
    if callable(case.back):
        assert case.back(answer.body), answer
    elif case.back:
        comes_back(siege.entry, *case.back)


def comes_back(entry, id_, key, kind, content):
    body = json.dumps({'param': {'docs': [{'c': 'Kept', 'id': id_}]}})
    answer = entry.ask(request(target='/lab/op/get', body=body))
    document, = json.loads(answer.body)['out']['docs']
    item, = [item for item in document['items'] if item['c'] != 'Mark']
    assert document['id'] == id_ and item.get('k') == (key and json.loads(key))
    if kind == 'j':
        assert b'"j":' + content + b'}' in answer.body
    else:
        assert item[kind] == json.loads(content)


# --- after all of them ---

def test_there_are_enough_cases():
    names = [f'{table}: {case.name}' for table, case in CASES]
    assert len(names) >= 300 and len(set(names)) == len(names)


def test_slow_clients_are_sent_away(siege):
    for case, thread in siege.slow:
        thread.join()
        assert siege.slow_answers[case.name]
        for answer in siege.slow_answers[case.name]:
            judge(case, answer)


def test_nobody_else_was_refused_or_slowed(siege):
    assert not siege.failures
    assert siege.beside >= OTHERS_ARE_SERVED


def test_nothing_hostile_is_stored(siege):
    assert contents(siege.stack) == siege.before
    assert siege.stack.psql('lab', "select class, id from item where class not in ('Kept', 'Where')") == []
    assert siege.stack.op('lab', 'list')['out'] == {'classes': ['Kept', 'Where']}
    assert siege.stack.psql('lab', 'select count(*) from idempotency')[0][0] == 2


def test_no_worker_died(siege):
    assert siege.stack.worker_pids() == siege.workers
    assert siege.stack.metrics()['stampd_entries_in_doubt'] == 0


def test_memory_is_given_back(siege):
    for pid in siege.workers:
        status = Path(f'/proc/{pid}/status').read_text()
        used = int(re.search(r'^RssAnon:\s+(\d+) kB', status, re.M)[1])
        assert HAS_SANITIZERS or used < MEMORY_KB, f'{pid} has {used} kB'


def test_logs_tell_no_contents_no_key_no_statement(siege):
    for part in ('stampd', 'nginx', 'postgres'):
        log = siege.stack.log(part)
        assert siege.stack.key not in log, part
        assert TELLTALE.decode() not in log, part
    assert not re.search(r'\b(select|insert into|update \w+ set|delete from)\b', siege.stack.log('stampd'), re.I)


def test_a_request_is_still_answered_at_once(siege):
    siege.end()
    assert siege.stack.get('lab', ('Where', 'am-i'))['items'][0]['j'] == 'in lab'
    assert siege.entry.ask(request(body=put_text(class_=b'"Kept"', id_=b'"last"'))).status == 200
