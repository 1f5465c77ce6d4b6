"""stampctl dump: what it writes is what the server has, can be loaded elsewhere, and goes on where it ended."""
import json
import os
import re
import signal
import subprocess

import pytest

from stack import PATIENCE_S, SOURCE, run_program, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'demo': 'read', 'lab': 'open', 'other': 'open', 'shut': 'closed'},
         'settings': {'limit_content_bytes': 8 << 20}}
PACKAGES = 3000


class Dumped:
    def __init__(self, ended):
        self.out, self.error = ended.out, ended.error

    @property
    def documents(self):
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def names(self):
        return [(document['c'], document['id']) for document in self.documents]


@pytest.fixture
def control(stack):
    return lambda command, *words, ns='lab', **more: Dumped(run_program(*stack.copy_words(command, *words, ns=ns), **more))


@pytest.fixture(scope='module')
def catalogue():
    """The lines of the demonstration's first thousands of documents."""
    available = subprocess.run(['apt-cache', 'dumpavail'], stdout=subprocess.PIPE, check=False).stdout
    if available.count(b'\nPackage: ') < PACKAGES:
        available = open('/var/lib/dpkg/status', 'rb').read()
    done = subprocess.run(['/usr/bin/python3', SOURCE / 'scripts/lib/catalogue.py', '--limit', str(PACKAGES)], input=available,
                          stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def contents(documents):
    """What was stored, without what the server adds."""
    return [(document['c'], document['id'], [{name: value for name, value in item.items() if name != 'v'} for item in document['items']])
            for document in documents]


def test_a_copy_of_the_catalogue(control, catalogue, tmp_path):
    control('load', '-', ns='lab', text=catalogue)
    first, second = tmp_path / 'first', tmp_path / 'second'
    outcome = control('dump', '--output', first)
    documents = [json.loads(line) for line in first.read_text().splitlines()]
    assert outcome.out.startswith(f'{len(documents)} documents')
    loaded = {(document['c'], document['id']): document for document in map(json.loads, catalogue.splitlines())}
    assert [(document['c'], document['id']) for document in documents] == sorted(loaded, key=lambda name: (name[0].encode(), name[1].encode()))
    order = lambda item: (item['c'].encode(), item.get('k', '').encode())  # noqa: E731
    assert contents(documents) == [(*name, sorted(loaded[name]['items'], key=order)) for name, _ in ((one[:2], one) for one in contents(documents))]
    control('load', first, ns='other')
    control('dump', '--output', second, ns='other')
    assert contents(map(json.loads, second.read_text().splitlines())) == contents(documents)
    versions = re.compile(r'"(v|ct|dt)":\d{15}')
    assert versions.sub('', first.read_text()) == versions.sub('', second.read_text())


@pytest.fixture(scope='module')
def small(stack):
    """Documents of several classes; none is like another."""
    names = [('A', 'a'), ('A', 'b'), ('B', "it's"), ('B', 'x.y'), ('B', 'é\n'), ('C', '1'), ('C', '10'), ('C', '2')]
    for number, (class_, id_) in enumerate(names):
        stack.put('shut', {'c': class_, 'id': id_, 'items': [{'c': 'Item', 'k': 'k', 'j': number}, {'c': 'Raw', 's': 'a\nb'}]}, admin=True)
    stack.put('shut', {'c': 'Gone', 'id': 'a', 'items': []}, admin=True)
    stack.put('shut', {'c': 'Gone', 'id': 'a', 'delete': True}, admin=True)
    return names


@pytest.fixture
def dump(stack, control, small):
    return lambda *words, **more: control('dump', *words, '--key-file', stack.key_file, ns='shut', **more)


def test_what_is_wanted_of_it(stack, dump, small):
    assert dump().names == small
    assert dump('--class', 'B').names == small[2:5]
    assert dump('--class', 'None').names == []
    assert dump('--class', 'C', '--prefix', '1').names == [('C', '1'), ('C', '10')]
    assert dump('--prefix', '1').names == [('C', '1'), ('C', '10')]
    document = stack.get('shut', ('B', 'x.y'), admin=True)
    assert dump('--after', document['v'] - 1).names[0] == ('B', 'x.y')
    assert dump().documents[3] == document
    assert dump('--parallel', 1).names == small


def test_a_dump_needs_the_key_of_a_closed_namespace(control):
    outcome = control('dump', ns='shut', status=1)
    assert 'SCLOSED' in outcome.error and 'no document was written' in outcome.error and not outcome.out
    assert 'NNAMESPACE' in control('dump', ns='nowhere', status=1).error


def test_it_goes_on_behind_a_document(dump, small, tmp_path):
    for number, (class_, id_) in enumerate(small):
        assert dump('--cursor', f'{class_}.{id_}').names == small[number + 1:]
    assert dump('--cursor', 'AA.x').names == small[2:]
    assert dump('--cursor', 'B.ÿ').names == small[5:]
    for wrong in ('A', '.a', 'A.', ''):
        assert 'CLASS.ID' in dump('--cursor', wrong, status=2).error
    file = tmp_path / 'lines'
    file.write_text(dump().out)
    whole = file.read_text()
    lines = whole.splitlines(keepends=True)
    file.write_text(''.join(lines[:5]) + lines[5][:20])
    dump('--output', file, '--cursor', 'B.é\n')
    assert file.read_text() == whole
    dump('--output', file)
    assert file.read_text() == whole, 'without a cursor the file is written anew'


def test_one_line_a_document_whatever_its_blanks(stack, control):
    body = '{"param":{"docs":[{"c":"Blank","id":"a","items":[{"c":"Item","j":{\n"a":\r\n\t[1,\n2]}}]}]}}'
    assert stack.request('POST', '/other/op/put', form=body, headers={'Content-Type': 'application/json'}).status_code == 200
    assert control('dump', '--class', 'Blank', ns='other').out.endswith('"j":{ "a":  \t[1, 2]}}]}\n')


def test_documents_too_large_to_come_together(stack, control):
    """Twelve times 6 MB do not come in one answer."""
    for number in range(12):
        stack.put('other', {'c': 'Large', 'id': f'{number:02}', 'items': [{'c': 'Raw', 's': f'{number:02}' * 3000000}]})
    outcome = control('dump', '--class', 'Large', ns='other')
    assert [document['items'][0]['s'][:2] for document in outcome.documents] == [f'{number:02}' for number in range(12)]


def start(stack, *words, ns='lab'):
    return subprocess.Popen(stack.copy_words('dump', *words, ns=ns), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_an_interrupted_dump_goes_on(stack, control, tmp_path):
    """The pipe is full, so that it waits when it is told to end."""
    pipe, whole = tmp_path / 'pipe', control('dump').out
    os.mkfifo(pipe)
    running = start(stack, '--output', pipe)
    try:
        with open(pipe) as reader:
            part = reader.read(100000)
            running.send_signal(signal.SIGINT)
            part += reader.read()
        out, error = running.communicate(timeout=PATIENCE_S)
    finally:
        running.kill()
    if part != whole:  # else it was done before the signal came
        assert running.returncode == 1, (out, error)
        cursor = re.search(r"interrupted; continue with --cursor '(.*)'", error)[1]
        assert part + control('dump', '--cursor', cursor).out == whole


def test_workers_that_die_lose_no_document(stack, control, tmp_path):
    whole = control('dump').out
    running = start(stack, '--parallel', 2, '--output', tmp_path / 'lines')
    for _ in range(3):
        stack.kill_worker()
        wait_until(lambda: len(stack.worker_pids()) >= STACK['workers'], what='the successor')
    out, error = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, (out, error)
    assert (tmp_path / 'lines').read_text() == whole


def test_an_output_that_takes_no_more(stack):
    done = run_program(*stack.copy_words('dump', '--output', '/dev/full'), status=1)
    assert '/dev/full: No space left on device' in done.error
