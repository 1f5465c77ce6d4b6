"""Metrics by OTLP: a collector gets what /metrics shows, once an interval and at the end; nothing waits for a collector that is away."""
import os
import re
import signal

import pytest

from collector import Collector, attributes
from stack import BUILD, children, free_port, is_alive, name_of, run_program, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'}, 'settings': {}}
TYPES = {'counter': 'sum', 'gauge': 'gauge', 'histogram': 'histogram'}


@pytest.fixture(scope='module', autouse=True)
def collector():
    port = free_port()
    STACK['settings'] = {'metrics_url': f'http://127.0.0.1:{port}/v1/metrics', 'metrics_interval_s': 1}
    collector = Collector(port)
    yield collector
    collector.close()


def last(collector):
    """The metrics of the last message by name."""
    (resource,) = collector.messages('/v1/metrics')[-1]['resourceMetrics']
    (scope,) = resource['scopeMetrics']
    return {metric['name']: metric for metric in scope['metrics']}


def points(metric):
    return next(metric[kind] for kind in TYPES.values() if kind in metric)['dataPoints']


def value_of(collector, name):
    if not collector.bodies:
        return None
    (point,) = points(last(collector)[name])
    return int(point['asInt'])


def page(stack):
    """The samples and the types of /metrics."""
    text = stack.probe('/metrics').text
    samples = {match[1]: match[2] for match in re.finditer(r'(?m)^(stampd_\S+) (\S+)$', text)}
    return samples, dict(re.findall(r'(?m)^# TYPE (\S+) (\w+)$', text)), dict(re.findall(r'(?m)^# HELP (\S+) (.*)$', text))


def exporters(stack):
    return [pid for pid in children(stack.pid()) if name_of(pid) == 'stampd-metrics']


def put(stack, id):
    stack.put('lab', {'c': 'Note', 'id': id, 'items': []})


def series(name, point):
    labels = ','.join(f'{key}="{value}"' for key, value in attributes(point).items())
    return name + (f'{{{labels}}}' if labels else '')


def all_series(found):
    return {series(name, point) for name, metric in found.items() if 'histogram' not in metric for point in points(metric)}


def without_empty(series):
    return re.sub(r'\w+="",?', '', series).replace(',}', '}').replace('{}', '')


def test_a_collector_gets_what_the_page_shows(stack, collector):
    for id in ('a', 'b', 'c'):
        put(stack, id)
    stack.request('GET', '/lab/doc/Note/none')
    commits = int(page(stack)[0]['stampd_commits_total'])
    wait_until(lambda: value_of(collector, 'stampd_commits_total') == commits, what='the commits')
    wait_until(lambda: len(collector.bodies) > 1, what='another interval')
    wait_until(lambda: all_series(last(collector)) == {without_empty(one) for one in page(stack)[0] if not one.startswith('stampd_request_seconds')},
               what='the same series')
    found, (_, types, helps) = last(collector), page(stack)
    assert {name: TYPES[types[name]] for name in found} == {name: next(kind for kind in TYPES.values() if kind in metric) for name, metric in found.items()}
    assert all(metric['description'] == helps[name] for name, metric in found.items())
    assert all(metric['sum']['isMonotonic'] and metric['sum']['aggregationTemporality'] == 2 for metric in found.values() if 'sum' in metric)
    assert all(0 < int(point['startTimeUnixNano']) <= int(point['timeUnixNano']) for metric in found.values() for point in points(metric))


def test_a_histogram_keeps_its_bounds(stack, collector):
    put(stack, 'd')
    samples, *_ = page(stack)
    count, sum_s = samples['stampd_request_seconds_count'], float(samples['stampd_request_seconds_sum'])

    def look():
        (point,) = points(last(collector)['stampd_request_seconds'])
        return point if (point['count'], point['sum']) == (count, sum_s) else None
    point = wait_until(look, what='the count')
    below, counts = 0, [int(one) for one in point['bucketCounts']]
    assert len(counts) == len(point['explicitBounds']) + 1 and sum(counts) == int(count)
    for bound, inside in zip(point['explicitBounds'], counts):
        below += inside
        assert samples[f'stampd_request_seconds_bucket{{le="{bound:g}"}}'] == str(below)


def test_the_resource_names_the_server(stack, collector):
    (resource,) = collector.messages('/v1/metrics')[-1]['resourceMetrics']
    has = attributes(resource['resource'])
    assert has['service.name'] == 'stampd' and has['service.instance.id'].startswith(has['host.name'] + ':/')


def test_the_last_message_is_sent_at_the_end(stack, collector):
    (former,) = wait_until(lambda: exporters(stack), what='the exporter')
    put(stack, 'e')
    commits = int(page(stack)[0]['stampd_commits_total'])
    os.kill(former, signal.SIGTERM)
    wait_until(lambda: not is_alive(former), what='its end')
    assert value_of(collector, 'stampd_commits_total') == commits
    wait_until(lambda: exporters(stack) not in ([], [former]), what='the next exporter')


def test_a_collector_that_refuses_or_is_slow_costs_messages_only(stack, collector):
    collector.status = 503
    wait_until(lambda: 'the collector has not accepted metrics status=503' in stack.log(), what='the line')
    collector.gate.clear()
    for number in range(20):
        put(stack, f'unheard{number}')
    commits = int(page(stack)[0]['stampd_commits_total'])
    collector.status = 200
    collector.gate.set()
    wait_until(lambda: value_of(collector, 'stampd_commits_total') == commits, what='the sums after the rest')


def test_by_itself_nothing_is_sent(stack, collector):
    stack.set(metrics_url='')
    wait_until(lambda: not exporters(stack), what='the end of the exporter')
    before = len(collector.bodies)
    put(stack, 'f')
    assert len(collector.bodies) == before


@pytest.mark.parametrize('url', ['ftp://localhost', 'localhost:4318', 'http://a b'])
def test_an_address_that_is_none_is_refused(stack, tmp_path, url):
    path = tmp_path / 'stampd.conf'
    path.write_text(re.sub(r'(?m)^metrics_url = .*\n', '', stack.config.read_text()) + f'metrics_url = {url}\n')
    assert f'metrics_url = {url}: expected' in run_program(BUILD / 'src/stampd', '-t', '-c', path, status=None).text
