"""Traces: a collector gets spans of sampled requests, with what the database and tasks took; a stranger forces none, and nothing waits for a collector that is away."""
import contextlib
import os
import re
import shutil
import signal
import threading

import psycopg2
import pytest

from collector import Collector, attributes
from kit import Kit
from manager import Manager
from stack import BUILD, children, free_port, is_alive, name_of, run_program, wait_until

pytestmark = pytest.mark.plain

SECRET = 'marzipan'
CALLER = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
UNSAMPLED = CALLER[:-1] + '0'
STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'demo': 'read', 'lab': 'open'}, 'settings': {}}


def spans(collector):
    found = []
    for body in collector.messages('/v1/traces'):
        (resource,) = body['resourceSpans']
        assert attributes(resource['resource'])['service.name'] == 'stampd'
        found += resource['scopeSpans'][0]['spans']
    return found


def of_request(collector, request):
    """The span of the request with this id, and those below it; waits for it."""
    def look():
        return [span for span in spans(collector) if attributes(span).get('stampd.request') == request]
    (root,) = wait_until(look, what=f'the span of {request}')
    return root, [span for span in spans(collector) if span['traceId'] == root['traceId'] and span is not root and span != root]


@pytest.fixture(scope='module', autouse=True)
def collector():
    kit = Kit()
    port = free_port()
    STACK['settings'] = {'modules': kit.build('tasks.c'), 'trace_url': f'http://127.0.0.1:{port}/v1/traces', 'trace_ratio': 1000000}
    collector = Collector(port)
    yield collector
    collector.close()
    shutil.rmtree(kit.path, ignore_errors=True)


def put(stack, id, request, **more):
    answer = stack.request('PUT', f'/lab/doc/Note/{id}', json={'items': [{'c': 'Main', 'j': SECRET}]}, headers={'X-Request-Id': request, **more})
    assert answer.status_code in (200, 201), answer.text


def exporters(stack):
    return [pid for pid in children(stack.pid()) if name_of(pid) == 'stampd-traces']


def flush(stack):
    """What was traced before has come to the collector when this returns: the exporter sends it before it ends."""
    (former,) = wait_until(lambda: exporters(stack), what='the exporter')
    os.kill(former, signal.SIGTERM)
    wait_until(lambda: not is_alive(former), what='its end')


def metric(stack, result):
    return int(re.search(rf'stampd_spans_total{{result="{result}"}} (\d+)', stack.probe('/metrics').text).group(1))


def test_a_request_has_a_span_and_its_statements(stack, collector):
    put(stack, 'secret-id', 'first', tracestate='a=b')
    root, below = of_request(collector, 'first')
    has = attributes(root)
    assert root['name'] == 'document' and root['kind'] == 2 and 'parentSpanId' not in root and 'links' not in root and 'status' not in root
    assert has['http.request.method'] == 'PUT' and has['http.response.status_code'] == '201' and has['stampd.namespace'] == 'lab'
    assert re.fullmatch('[0-9a-f]{32}', root['traceId']) and re.fullmatch('[0-9a-f]{16}', root['spanId'])
    assert below and all(span['parentSpanId'] == root['spanId'] and span['kind'] == 3 and attributes(span)['db.system.name'] == 'postgresql' for span in below)
    begin, end = int(root['startTimeUnixNano']), int(root['endTimeUnixNano'])
    assert all(begin <= int(span['startTimeUnixNano']) <= int(span['endTimeUnixNano']) <= end for span in below)
    waited = sum(int(span['endTimeUnixNano']) - int(span['startTimeUnixNano']) for span in below) // 1000
    assert int(has['stampd.database_us']) >= waited and int(has['stampd.database_us']) * 1000 <= end - begin
    assert int(has['stampd.validation_us']) > 0
    wait_until(lambda: metric(stack, 'sent') > len(below), what='the count')


def test_spans_have_no_ids_and_no_contents(stack, collector):
    put(stack, 'secret-id', 'again')
    stack.request('POST', f'/lab/op/{SECRET}', json={}, headers={'X-Request-Id': 'strange'})
    stack.request('GET', f'/{SECRET}/doc/Note/secret-id', headers={'X-Request-Id': 'nowhere'})
    stack.request('GET', '/lab/doc/Note/secret-id', headers={'X-Request-Id': 'bearer', 'Authorization': f'Bearer {SECRET}'})
    assert of_request(collector, 'again')[0]['name'] == 'document' and of_request(collector, 'strange')[0]['name'] == 'refused'
    assert attributes(of_request(collector, 'strange')[0])['error.type'] == 'NOPERATION'
    assert not [body for *_, body in collector.bodies if SECRET in body or 'secret-id' in body or 'Note' in body]


def test_a_failed_request_has_its_fault(stack, collector):
    answer = stack.request('GET', '/lab/doc/Note/none', headers={'X-Request-Id': 'none'})
    root, _ = of_request(collector, 'none')
    assert answer.status_code == 404 and attributes(root)['error.type'] == 'NDOCUMENT' and 'status' not in root


def test_a_request_that_no_operation_serves_has_its_own_name(stack, collector):
    """Not that of the request that its worker served before."""
    for number in range(3):
        put(stack, 'a', f'before{number}')
        stack.request('OPTIONS', '/demo/op/get', headers={'X-Request-Id': f'options{number}'})
        root, _ = of_request(collector, f'options{number}')
        assert root['name'] == 'options' and attributes(root)['stampd.namespace'] == 'demo'


def test_a_stranger_names_no_trace(stack, collector):
    """Every request is sampled here, and the caller's context is a link."""
    for number, parent in enumerate((CALLER, UNSAMPLED)):
        put(stack, 'b', f'stranger{number}', traceparent=parent)
        root, _ = of_request(collector, f'stranger{number}')
        assert root['traceId'] != CALLER[3:35] and 'parentSpanId' not in root
        assert root['links'] == [{'traceId': CALLER[3:35], 'spanId': CALLER[36:52]}]
    for number, wrong in enumerate((CALLER[:-1], CALLER.upper(), 'x' * 55, '00-' + '0' * 32 + CALLER[35:])):
        put(stack, 'b', f'wrong{number}', traceparent=wrong)
        assert 'links' not in of_request(collector, f'wrong{number}')[0]


def test_postgresql_sees_the_trace(stack, collector):
    stack.put('lab', {'c': 'Note', 'id': 'held', 'items': []})
    with contextlib.closing(psycopg2.connect(stack.conninfo('lab'))) as holder:
        holder.cursor().execute("select 1 from stampd.doc where id = 'held' for update")
        thread = threading.Thread(target=put, args=(stack, 'held', 'waits'))
        thread.start()
        seen = "select application_name from pg_stat_activity where wait_event_type = 'Lock' and application_name like 'stampd 00-%'"
        ((name,),) = wait_until(lambda: stack.psql('lab', seen), what='the name')
        holder.rollback()
        thread.join()
    root, _ = of_request(collector, 'waits')
    assert name == f'stampd 00-{root["traceId"]}-{root["spanId"]}-01'
    wait_until(lambda: not stack.psql('lab', "select 1 from pg_stat_activity where application_name like 'stampd 00-%'"), what='the usual name')


def test_a_task_is_linked_to_its_request(stack, collector):
    answer = stack.request('POST', '/lab/op/task', json={'param': {'op': 'put', 'param': {'docs': [{'c': 'Note', 'id': 'byTask', 'items': []}]}}},
                           headers={'X-Request-Id': 'asks'}, admin=True)
    taskid = answer.json()['out']['id']
    root, _ = of_request(collector, 'asks')
    assert stack.psql('lab', 'select trace from taskqueue where taskid = %s', (taskid,)) == [(f'00-{root["traceId"]}-{root["spanId"]}-01',)]
    assert Manager(stack, 'lab').run(taskid)['result'] == 'done'

    def look():
        return [span for span in spans(collector) if span.get('links') == [{'traceId': root['traceId'], 'spanId': root['spanId']}]]
    (task,) = wait_until(look, what='the run')
    assert task['name'] == 'put' and task['kind'] == 1
    below = [span for span in spans(collector) if span.get('parentSpanId') == task['spanId']]
    (request,) = [span for span in spans(collector) if span['spanId'] == task['parentSpanId']]
    assert below and all(span['kind'] == 3 for span in below) and request['name'] == 'tasks'


def test_lines_of_the_log_have_the_context(stack, collector):
    """A line of any kind: that of a failed run."""
    answer = stack.request('POST', '/lab/op/task', json={'param': {'op': 'put', 'param': {'docs': [{'c': 'Note', 'id': 'held', 'if': 1, 'items': []}]}}},
                           headers={'X-Request-Id': 'fails'}, admin=True)
    root, _ = of_request(collector, 'fails')
    assert Manager(stack, 'lab').post(answer.json()['out']['id']).status_code == 500
    wait_until(lambda: re.search(rf'task failed .* trace=00-{root["traceId"]}-{root["spanId"]}-01', stack.log()), what='the line')


def test_a_collector_that_refuses_or_is_slow_costs_spans_only(stack, collector):
    collector.status, before = 503, metric(stack, 'dropped')
    put(stack, 'c', 'refused')
    wait_until(lambda: metric(stack, 'dropped') > before, what='spans that were dropped')
    wait_until(lambda: 'the collector has not accepted spans status=503' in stack.log(), what='the line')
    collector.gate.clear()
    for number in range(20):
        put(stack, 'c', f'unheard{number}')
    collector.status = 200
    collector.gate.set()
    numbers = iter(range(10 ** 6))

    def look():
        put(stack, 'c', f'heard{next(numbers)}')
        return [span for span in spans(collector) if attributes(span).get('stampd.request', '').startswith('heard')]
    wait_until(look, what='a span after the rest')


def test_the_exporter_is_replaced(stack, collector):
    (former,) = wait_until(lambda: exporters(stack), what='the exporter')
    os.kill(former, signal.SIGKILL)
    wait_until(lambda: exporters(stack) not in ([], [former]), what='the next exporter')
    put(stack, 'd', 'after')
    of_request(collector, 'after')


def test_callers_that_are_trusted(stack, collector):
    """The flag of the caller decides, and a task of a sampled trace is traced when it runs; without a header nothing is sampled."""
    stack.set(trace_caller='trusted', trace_ratio=0)
    put(stack, 'e', 'unasked')
    put(stack, 'e', 'unsampled', traceparent=UNSAMPLED)
    put(stack, 'e', 'joined', traceparent=CALLER, tracestate='a=b')
    root, _ = of_request(collector, 'joined')
    assert root['traceId'] == CALLER[3:35] and root['parentSpanId'] == CALLER[36:52] and 'links' not in root
    answer = stack.request('POST', '/lab/op/task', json={'param': {'op': 'put', 'param': {'docs': []}}},
                           headers={'X-Request-Id': 'makes', 'traceparent': CALLER, 'tracestate': 'a=b'}, admin=True)
    maker, _ = of_request(collector, 'makes')
    taskid = answer.json()['out']['id']
    assert stack.psql('lab', 'select trace from taskqueue where taskid = %s', (taskid,)) == [(f'00-{maker["traceId"]}-{maker["spanId"]}-01 a=b',)]
    assert Manager(stack, 'lab').run(taskid)['result'] == 'done'

    def look():
        return [span for span in spans(collector) if span['name'] == 'tasks' and span.get('parentSpanId') == maker['spanId']]
    (run,) = wait_until(look, what='the run')
    assert run['traceId'] == CALLER[3:35]
    flush(stack)
    assert not [span for span in spans(collector) if attributes(span).get('stampd.request') in ('unasked', 'unsampled')]


def test_a_stranger_forces_no_trace(stack, collector):
    """Of a million requests one is sampled here."""
    stack.set(trace_caller='ignored', trace_ratio=1)
    for number in range(3):
        put(stack, 'f', f'forced{number}', traceparent=CALLER)
    flush(stack)
    assert not [span for span in spans(collector) if attributes(span).get('stampd.request', '').startswith('forced')]


def test_by_itself_nothing_is_traced(stack, collector):
    stack.set(trace_url='', trace_caller='ignored', trace_ratio=1000000)
    before = len(collector.bodies)
    put(stack, 'f', 'untraced', traceparent=CALLER)
    assert len(collector.bodies) == before and 'untraced' not in str(collector.bodies)


@pytest.mark.parametrize('url', ['ftp://localhost', 'localhost:4318', 'http://a b'])
def test_an_address_that_is_none_is_refused(stack, tmp_path, url):
    path = tmp_path / 'stampd.conf'
    path.write_text(re.sub(r'(?m)^trace_url = .*\n', '', stack.config.read_text()) + f'trace_url = {url}\n')
    assert f'trace_url = {url}: expected' in run_program(BUILD / 'src/stampd', '-t', '-c', path, status=None).text
