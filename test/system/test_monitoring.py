"""What Prometheus reads: metrics by its rules, alerts that fire when they should, a dashboard of metrics that exist."""
import json
import re
import shutil
import subprocess

import pytest

from stack import PATIENCE_S, SOURCE, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'}}
FOLDER = SOURCE / 'doc/examples/monitoring'
RULES = (FOLDER / 'alerts.yml').read_text()
BOARD = json.loads((FOLDER / 'grafana.json').read_text())
PROMTOOL = shutil.which('promtool')
NEEDS_PROMTOOL = pytest.mark.skipif(not PROMTOOL, reason='there is no promtool (Debian: prometheus)')

# What each alert sees, values a minute from the start on: once nothing is wrong, once all is.
SEEN = {
    'StampdDown': ('up{job="stampd"}', '1x400', '0x400'),
    'StampdHistoryLost': ('stampd_history_lost{database="a"}', '0x400', '1x400'),
    'StampdBusy': ('stampd_workers_busy', '5x400', '8x400'),
    'StampdSlow': ('stampd_request_seconds_bucket{le="1",instance="a"}', '0+100x400', '0+1x400'),
    'StampdInDoubt': ('stampd_entries_in_doubt', '0x400', '1x400'),
    'StampdConflicts': ('stampd_conflicts_total', '0+10x400', '0+300x400'),
    'StampdTasksWait': ('stampd_tasks_due_oldest_seconds{ns="a"}', '30x400', '700x400'),
    'StampdNoScan': ('stampd_tasks_look_age_seconds{ns=""}', '30x400', '700x400'),
    'StampdTasksParked': ('stampd_tasks{state="parked",ns="a",queue="0"}', '0x400', '1x400'),
    'StampdClaimsExpire': ('stampd_external_expired_total{ns="a"}', '3x400', '0+1x400'),
    'StampdKeeperStands': ('stampd_purge_round_seconds', '0+60x400', '60x400'),
    'StampdRecordsRefused': ('stampd_records_refused_total', '3x400', '0+1x400'),
    'StampdLiveReset': ('stampd_live_held_overflows_total', '3x400', '0+1x400'),
    'StampdFilesStand': ('stampd_object_store_failures_total', '3x400', '0+1x400'),
}
BESIDE = [('stampd_workers', '8x400'), ('stampd_commits_total', '0+100x400'), ('stampd_purge_rounds_total', '0+1x400'),
          *((f'stampd_request_seconds_bucket{{le="{bound}",instance="a"}}', '0+100x400') for bound in ('10', '+Inf'))]


def series(name, values):
    return {'series': name, 'values': values.replace('x', '+0x') if '+' not in values else values}


def alerts():
    """(name, labels, annotations, expression) of each."""
    for part in re.split(r'^ +- alert: ', RULES, flags=re.M)[1:]:
        name, expression, severity, do = re.fullmatch(r'(\w+)\n +expr: (.*)\n(?: +for: \w+\n)? +labels: \{severity: (\w+)\}\n +annotations: \{do: "(.*)"\}\n', part).groups()
        yield name, severity, do, expression


@pytest.fixture(scope='module')
def pages(stack):
    """What Prometheus gets of the server and of its queue manager."""
    stack.step('queue', 'start')
    wait_until(lambda: stack.probe('/metrics/qm').status_code == 200, what='the queue manager')
    return [stack.probe(path) for path in ('/metrics', '/metrics/qm')]


@NEEDS_PROMTOOL
def test_metrics_are_by_the_rules_of_prometheus(pages):
    for page in pages:
        done = subprocess.run([PROMTOOL, 'check', 'metrics'], input=page.content, capture_output=True, timeout=PATIENCE_S, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, b'')


@NEEDS_PROMTOOL
def test_each_alert_fires_when_it_should(tmp_path):
    tests = []
    for is_bad in (False, True):
        tests.append({'interval': '1m', 'input_series': [series(name, values[is_bad]) for name, *values in SEEN.values()] + [series(*one) for one in BESIDE],
                      'alert_rule_test': [{'eval_time': '399m', 'alertname': name, 'exp_alerts': expected(name, severity, do) if is_bad else []}
                                          for name, severity, do, _ in alerts()]})
    (tmp_path / 'tests.yml').write_text(json.dumps({'rule_files': [str(FOLDER / 'alerts.yml')], 'evaluation_interval': '1m', 'tests': tests}))
    done = subprocess.run([PROMTOOL, 'test', 'rules', tmp_path / 'tests.yml'], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def expected(name, severity, do):
    """The alert with the labels of what it sees, without those that its expression leaves out."""
    labels = dict(re.findall(r'(\w+)="([^"]*)"', SEEN[name][0]))
    left_out = {'StampdSlow': {'le'}, 'StampdTasksParked': {'state'}}.get(name, set())
    return [{'exp_labels': {'severity': severity, **{label: value for label, value in labels.items() if label not in left_out and value}}, 'exp_annotations': {'do': do}}]


def test_each_alert_has_a_case():
    assert [name for name, *_ in alerts()] == list(SEEN) and RULES.count('- alert:') == len(SEEN)


def answers(stack, **labels):
    found = re.findall(r'^stampd_answers_total\{(.*)\} (\d+)$', stack.probe('/metrics').text, flags=re.M)
    wanted = {f'{key}="{value}"' for key, value in labels.items()}
    return sum(int(count) for has, count in found if wanted <= set(has.split(',')))


def waited(stack):
    return float(re.search(r'^stampd_database_seconds_total (\S+)$', stack.probe('/metrics').text, flags=re.M).group(1))


def test_requests_are_counted_by_namespace_operation_and_class(stack):
    before, waited_s = answers(stack), waited(stack)
    stack.put('lab', {'c': 'Note', 'id': 'a', 'items': []})
    for path in ('/lab/doc/Note/a', '/lab/doc/Note/none', '/lab/doc/Note/none', '/nowhere/doc/Note/a'):
        stack.request('GET', path)
    stack.request('POST', '/lab/op/secretName', json={'param': {}})
    assert answers(stack, ns='lab', op='put', **{'class': 'done'}) == 1
    assert answers(stack, ns='lab', op='document', **{'class': 'done'}) == 1 and answers(stack, ns='lab', op='document', **{'class': 'N'}) == 2
    assert answers(stack, op='refused', **{'class': 'N'}) >= 1  # what clients write is in no label
    assert 'secretName' not in stack.probe('/metrics').text and 'nowhere' not in stack.probe('/metrics').text
    assert answers(stack) >= before + 5 and waited(stack) > waited_s


def names_of(queries):
    return {re.sub(r'_bucket$', '', name) for query in queries for name in re.findall(r'\bstampd_\w+', query)}


def test_alerts_and_panels_ask_for_metrics_that_exist(pages):
    there = {name for page in pages for name in re.findall(r'^# TYPE (\w+) ', page.text, flags=re.M)}
    assert names_of(expression for *_, expression in alerts()) <= there
    queries = [target['expr'] for panel in BOARD['panels'] for target in panel['targets']]
    queries += [variable['query'] for variable in BOARD['templating']['list']]
    assert len(names_of(queries)) > 20 and names_of(queries) <= there
    assert len({panel['id'] for panel in BOARD['panels']}) == len(BOARD['panels'])
