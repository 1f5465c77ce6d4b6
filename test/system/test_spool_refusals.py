"""Which answers make dead letters of records, and which let them wait: each fault of the table (src/base/fault_table.h), as the answer to a
whole batch and to a record; and how dead letters are put again."""
import concurrent.futures
import http.server
import json
import re
import shutil
import threading

import pytest

from stack import PATIENCE_S, SOURCE, wait_until
from test_spool import STACK, begin, forward, put_many, run_spool, spool, state, stored  # noqa: F401

pytestmark = pytest.mark.plain

RECORDS, MOST = 12, 5
TABLE = SOURCE / 'src/base/fault_table.h'
FAULTS = [(code, int(status), remedy) for code, status, remedy in
          re.findall(r'^FAULT\((\w+), "[^"]*", (\d+), \d+, \w+, (\w+),', TABLE.read_text(), re.M)]


class Refuser(http.server.BaseHTTPRequestHandler):
    """Refuses what comes to /CODE, or, to /each/CODE, each record."""
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_POST(self):
        records = json.loads(self.rfile.read(int(self.headers['Content-Length'])))['param']['records']
        *each, code, _, _, _ = self.path.strip('/').split('/')
        self.server.seen.setdefault(code, []).append([record['n'] for record in records])
        if each:
            status, answer = 200, {'out': {'refused': [{'n': record['n'], 'code': code, 'message': 'No.'} for record in records],
                                           'stored': 0, 'known': 0}}
        else:
            status, answer = self.server.statuses[code], {'code': code, 'message': 'No.'}
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def refuser():
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Refuser)
    server.seen, server.statuses = {}, {code: status for code, status, _ in FAULTS} | {'413': 413}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def try_fault(stack, folder, refuser, code, is_final):
    """Of records that a server refuses with this code: those that are dead letters when nothing more happens, and the log."""
    process = begin(stack, folder, url=f'http://127.0.0.1:{refuser.server_port}/{code}', dead_in_a_row=MOST)
    name = code.split('/')[-1]
    try:
        if is_final:
            wait_until(lambda: state(folder)['dead'] == MOST, PATIENCE_S, f'dead letters by {code}')
        seen = len(refuser.seen.get(name, []))
        wait_until(lambda: len(refuser.seen.get(name, [])) >= seen + 3, PATIENCE_S, f'requests refused by {code}')
    finally:
        process.terminate()
        _, log = process.communicate(timeout=PATIENCE_S)
    return state(folder), log


def test_the_table_decides_what_is_a_dead_letter(stack, spool, refuser):
    assert len(FAULTS) > 50 and {remedy for _, _, remedy in FAULTS} == {'FINAL', 'AGAIN', 'HELD', 'SETUP', 'SIGN', 'OVER'}
    assert all(remedy == 'AGAIN' for code, _, remedy in FAULTS if code[0] in 'BXC'), 'a fault of the server buries nothing'
    put_many(spool, range(RECORDS))

    def try_one(fault):
        code, _, remedy = fault
        folder = spool.parent / code
        shutil.copytree(spool, folder)
        return code, remedy == 'FINAL', *try_fault(stack, folder, refuser, code, remedy == 'FINAL')
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for code, is_final, found, log in pool.map(try_one, FAULTS + [('413', 413, 'FINAL')]):
            assert (found['dead'], found['waiting']) == ((MOST, RECORDS - MOST) if is_final else (0, RECORDS)), (code, log)
            assert ('stops namespace=lab' if is_final else f'code={code}') in log, (code, log)


def test_records_that_are_refused_in_a_row_wait_in_their_order_for_people(stack, spool, refuser):
    put_many(spool, range(RECORDS), domain='d', is_strict=1)
    found, log = try_fault(stack, spool, refuser, 'each/NOPERATION', True)
    assert (found['dead'], found['waiting']) == (MOST, RECORDS - MOST) and f'stops namespace=lab: {MOST} records in a row' in log
    assert refuser.seen['NOPERATION'][-1] == list(range(MOST + 1, RECORDS + 1)), 'those that wait are at their places'
    forward(stack, spool)
    assert stored(stack) == list(range(MOST, RECORDS)) and state(spool)['dead'] == MOST
    assert run_spool(spool, 'retry', '--code', 'NOPERATION') == list(range(RECORDS + 1, RECORDS + MOST + 1))
    forward(stack, spool)
    assert stored(stack) == [*range(MOST, RECORDS), *range(MOST)] and state(spool)['dead'] == 0


def test_dead_letters_between_records_that_are_stored_do_not_stop_the_others(stack, spool):
    for number in range(4):
        put_many(spool, [number])
        put_many(spool, [100], op='Nonsense')
    forward(stack, spool, dead_in_a_row=2)
    assert stored(stack) == list(range(4)) and state(spool)['dead'] == 4


def test_records_that_wait_are_judged_again_when_one_behind_them_is_stored(stack, spool):
    put_many(spool, [100] * 3, op='Nonsense')
    put_many(spool, [4])
    forward(stack, spool, dead_in_a_row=2)
    assert stored(stack) == [4] and (state(spool)['dead'], state(spool)['waiting']) == (3, 0)


def test_dead_letters_are_put_again_by_code_and_time(stack, spool):
    put_many(spool, [1, 2], op='Nonsense')
    run_spool(spool, 'put', 'lab', 'put', '{"docs": nonsense}')
    forward(stack, spool)
    assert [record['reason'].split(':')[0] for record in run_spool(spool, 'list', '--dead')[1:]] == ['NOPERATION'] * 2 + ['param is not JSON']
    assert run_spool(spool, 'retry', '--code', 'NOPER') == [], 'the whole code'
    assert run_spool(spool, 'retry', '--all', '--since', '2999-01-01') == []
    assert run_spool(spool, 'retry', '--code', 'NOPERATION', '--since', '2020-02-29T12:30') == [4, 5]
    assert run_spool(spool, 'retry', '--all') == [6] and state(spool)['dead'] == 0 and state(spool)['waiting'] == 3
    for wrong in (['retry'], ['retry', '--all', '1'], ['list', '--all']):
        assert 'wrong usage' in run_spool(spool, *wrong, status=2)
    assert 'is expected' in run_spool(spool, 'retry', '--since', 'yesterday', status=2)
    assert run_spool(spool, 'retry', '1', status=1)
