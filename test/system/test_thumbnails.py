"""Thumbnails of attachments: made by a task in a confined process, as the schema declares; they follow their image through replacement, removal,
rights, quotas and encryption, and no image that is damaged, hostile or too large is tried twice."""
import hashlib
import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from door_client import Client
from images import bomb, gif, png, webp_size
from manager import Manager
from object_service import Service
from schema import Schemas
from stack import BUILD, PATIENCE_S, give, is_alive, name_of, refused, wait_until
from test_attachment_http import fetch, send, sha, store
from test_attachments import assert_exact
from test_quotas import set_quotas
from vault import create, new_site_key

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'namespaces': {'z': 'closed', 'lab': 'open', 'demo': 'open', 'shut': 'closed'},
         'settings': {'limit_client_connections': 0, 'limit_client_requests': 0, 'limit_thumbnail_bytes': 1 << 20, 'limit_thumbnail_pixels': 10**7,
                      'limit_thumbnail_s': 10, 'task_retries': '0 0 0', 'restart_young_ms': 0}}
DECLARED = {'small': {'width': 64, 'height': 64}, 'large': {'width': 400, 'height': 100}}
PHOTO = {'items': {'Main': {'singleton': True}}, 'thumbnails': DECLARED}
IMAGE = png(300, 200)


@pytest.fixture(scope='module', autouse=True)
def declared(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    for ns in ('lab', 'demo', 'shut'):
        schemas.apply(ns, {'Photo': PHOTO, 'Plain': {'items': {'Main': {'singleton': True}}}})
    return schemas


@pytest.fixture(autouse=True)
def exact(stack):
    yield
    assert_exact(stack, 'lab')


@pytest.fixture
def photo(stack):
    """A document of its own: its id."""
    photo.number = getattr(photo, 'number', 0) + 1
    stack.psql('lab', 'delete from taskqueue')
    stack.put('lab', {'c': 'Photo', 'id': f'p{photo.number}', 'items': [{'c': 'Main', 'j': {}}]})
    return f'p{photo.number}'


def tasks(stack, ns='lab', operation='thumbnail'):
    return [taskid for taskid, in stack.psql(ns, 'select taskid from taskqueue where opname = %s and starttime is null order by number', (operation,))]


def run(stack, ns='lab'):
    """The outcomes of all tasks `thumbnail` that wait."""
    return [Manager(stack, ns).run(taskid)['result'] for taskid in tasks(stack, ns)]


def attempt(stack, taskid, ns='lab'):
    """The outcome of an attempt that may fail, as if its time had come."""
    manager = Manager(stack, ns)
    manager.hurry()
    outcome, = manager.post(taskid).json()['tasks']
    return outcome


def attach(stack, id_, key, content=IMAGE, type='image/png', ns='lab', **more):
    return store(stack, f'Photo/{id_}/file/{key}', content, type, ns=ns, **more)


def items(stack, id_, ns='lab', class_='Photo'):
    """The attachments of a document: {key: content}."""
    found = stack.get(ns, (class_, id_), admin=True)
    return {item['k']: item['j'] for item in found['items'] if item['c'] == 'P'}


def last_result(stack, ns='lab'):
    return json.loads(stack.psql(ns, "select result from task_history where opname = 'thumbnail' order by number desc limit 1")[0][0])


def reason(stack, content, ns='lab'):
    return stack.psql(ns, "select thumbnail from blob where digest = decode(%s, 'hex')", (sha(content),))[0][0]


def parent_of(pid):
    return int(next(line for line in Path(f'/proc/{pid}/status').read_text().splitlines() if line.startswith('PPid:')).split()[1])


# --- made ---

def test_an_image_gets_its_thumbnails(stack, photo):
    attach(stack, photo, 'one')
    assert set(items(stack, photo)) == {'one'} and len(tasks(stack)) == 1, 'the commit has created the task'
    assert run(stack) == ['done'] and last_result(stack) == {'made': 2, 'refused': 0}
    found = items(stack, photo)
    assert set(found) == {'one', 'one~large', 'one~small'}
    for name, box, size in (('small', '64x64', (64, 43)), ('large', '400x100', (150, 100))):
        described = found[f'one~{name}']
        assert described['mime'] == f'image/webp;thumbnail={box};of={sha(IMAGE)}'
        answer = fetch(stack, f'Photo/{photo}/file/one~{name}')
        assert webp_size(answer.content) == size and answer.headers['Content-Type'].startswith('image/webp')
        assert answer.headers['Content-Disposition'].startswith('inline'), 'shown as other images are'
        assert (described['sha'], described['size']) == (sha(answer.content), len(answer.content))
    assert stack.psql('lab', 'select v2 from doc where id = %s', (photo,))[0][0] == sum(one['size'] for one in found.values())
    assert not tasks(stack), 'its own commit creates no other'


def test_small_images_are_not_enlarged(stack, photo):
    attach(stack, photo, 'tiny', png(20, 10))
    attach(stack, photo, 'moving', gif(30, 30), 'image/gif')
    run(stack)
    for key, size in (('tiny', (20, 10)), ('moving', (30, 30))):
        assert webp_size(fetch(stack, f'Photo/{photo}/file/{key}~small').content) == size


def test_only_images_of_declaring_classes(stack, photo):
    for type in ('text/plain', 'image/svg+xml', 'image/png.g', 'image/png.gc', 'application/pdf'):
        attach(stack, photo, 'other', IMAGE, type)
        assert not tasks(stack), type
    stack.put('lab', {'c': 'Plain', 'id': photo, 'items': [{'c': 'Main', 'j': {}}]})
    store(stack, f'Plain/{photo}/file/one', IMAGE, 'image/png')
    store(stack, f'Plain/{photo}/file/one~small', IMAGE, 'image/png')
    assert not tasks(stack)


def test_several_commits_need_one_task(stack, photo):
    for number in range(3):
        attach(stack, photo, f'k{number}', png(100 + number, 50))
    assert len(tasks(stack)) == 1
    assert run(stack) == ['done'] and last_result(stack)['made'] == 6 and len(items(stack, photo)) == 9


# --- keys ---

def test_clients_cannot_write_them(stack, photo):
    attach(stack, photo, 'one')
    run(stack)
    before = items(stack, photo)
    for key in ('one~small', 'other~large'):
        refusal = refused('AARG', attach, stack, photo, key)
        assert refusal.body['args'] == ['key']
        named = {'c': 'P', 'k': key, 'from': {'c': 'Photo', 'id': photo, 'k': 'one'}}
        refusal = refused('AARG', stack.put, 'lab', {'c': 'Photo', 'id': photo, 'items': [named]})
        assert refusal.body['at'] == '/param/docs/0/items/0/k'
    attach(stack, photo, 'one~other'), attach(stack, photo, 'small'), attach(stack, photo, '~small')
    run(stack)
    found = items(stack, photo)
    assert {key: found[key] for key in before} == before
    assert {'one~other', 'one~other~small', 'small~large', '~small', '~small~small'} <= set(found), 'they are keys as others'


def test_items_may_be_sent_back(stack, photo):
    attach(stack, photo, 'one')
    run(stack)
    before = items(stack, photo)
    version = stack.get('lab', ('Photo', photo))['v']
    stack.put('lab', {'c': 'Photo', 'id': photo, 'items': [{'c': 'P', 'k': key, 'j': content} for key, content in before.items()]})
    assert stack.get('lab', ('Photo', photo))['v'] == version and items(stack, photo) == before and not tasks(stack)


def test_a_removed_thumbnail_is_made_again(stack, photo):
    attach(stack, photo, 'one')
    run(stack)
    assert send(stack, 'DELETE', f'Photo/{photo}/file/one~small').status_code == 200
    assert 'one~small' not in items(stack, photo) and len(tasks(stack)) == 1
    assert run(stack) == ['done'] and last_result(stack)['made'] == 1 and 'one~small' in items(stack, photo)


def test_elsewhere_a_thumbnail_is_a_file_as_any_other(stack, photo):
    attach(stack, photo, 'one')
    run(stack)
    taken = {'c': 'P', 'k': 'cover', 'from': {'c': 'Photo', 'id': photo, 'k': 'one~small'}}
    stack.put('lab', {'c': 'Photo', 'id': f'{photo} too', 'items': [taken]})
    assert items(stack, f'{photo} too')['cover']['mime'] == 'image/webp'
    run(stack)
    assert set(items(stack, f'{photo} too')) == {'cover', 'cover~small', 'cover~large'}


def test_a_file_that_had_the_key_before_stays(stack, photo, declared):
    stack.put('lab', {'c': 'Late', 'id': photo, 'items': [{'c': 'Main', 'j': {}}]})
    for key, content in (('one', IMAGE), ('one~small', b'not of the server')):
        store(stack, f'Late/{photo}/file/{key}', content, 'image/png')
    late = {'items': {'Main': {'singleton': True}}, 'thumbnails': {'small': DECLARED['small'], 'other': DECLARED['large']}}
    declared.apply('lab', {'Photo': PHOTO, 'Late': late})
    stack.put('lab', {'c': 'Late', 'id': photo, 'items': [{'c': 'P', 'k': 'one', 'del': True}]})
    store(stack, f'Late/{photo}/file/one', IMAGE, 'image/png')
    run(stack)
    assert items(stack, photo, class_='Late')['one~small']['sha'] == sha(b'not of the server')
    assert 'one~other' in items(stack, photo, class_='Late')


# --- they follow the image ---

def test_a_replaced_image_gets_others(stack, photo):
    attach(stack, photo, 'one')
    run(stack)
    other = png(50, 100, (0, 0, 250))
    attach(stack, photo, 'one', other)
    assert set(items(stack, photo)) == {'one'}, 'no thumbnail of another image is ever seen'
    run(stack)
    found = items(stack, photo)
    assert all(found[f'one~{name}']['mime'].endswith(f'of={sha(other)}') for name in DECLARED)
    assert webp_size(fetch(stack, f'Photo/{photo}/file/one~small').content) == (32, 64)


def test_a_removed_image_takes_them_away(stack, photo):
    attach(stack, photo, 'one'), attach(stack, photo, 'two')
    run(stack)
    send(stack, 'DELETE', f'Photo/{photo}/file/one')
    assert set(items(stack, photo)) == {'two', 'two~small', 'two~large'} and not tasks(stack)
    attach(stack, photo, 'two', IMAGE, 'text/plain')
    assert set(items(stack, photo)) == {'two'}, 'it is no image any more'
    stack.put('lab', {'c': 'Photo', 'id': photo, 'delete': True})
    assert stack.psql('lab', "select 1 from item where id = %s and content is not null", (photo,)) == []


def test_a_task_for_what_has_changed_does_nothing(stack, photo):
    attach(stack, photo, 'one')
    stack.put('lab', {'c': 'Photo', 'id': photo, 'items': [{'c': 'P', 'k': 'one', 'del': True}]})
    assert run(stack) == ['done'] and last_result(stack) == {'made': 0, 'refused': 0}
    attach(stack, photo, 'one')
    stack.put('lab', {'c': 'Photo', 'id': photo, 'delete': True})
    assert run(stack) == ['done'] and last_result(stack) == {'made': 0, 'refused': 0}


def test_another_size_is_made_again(stack, photo, declared):
    attach(stack, photo, 'one')
    run(stack)
    declared.apply('lab', {'Photo': {**PHOTO, 'thumbnails': {'small': {'width': 30, 'height': 30}}}})
    sweep(stack)
    run(stack)
    found = items(stack, photo)
    assert set(found) == {'one', 'one~small'} and found['one~small']['mime'].startswith('image/webp;thumbnail=30x30;')
    declared.apply('lab', {'Photo': PHOTO})
    sweep(stack)
    run(stack)
    assert set(items(stack, photo)) == {'one', 'one~small', 'one~large'}


def sweep(stack, ns='lab'):
    """The scan of a manager creates the task; returns how many documents it finds, or None: none is due."""
    manager = Manager(stack, ns)
    manager.scan()
    if not (taskids := tasks(stack, ns, 'thumbnailsweep')):
        return None
    before = len(tasks(stack, ns))
    assert manager.run(taskids[0])['result'] == 'done'
    return len(tasks(stack, ns)) - before


def test_a_client_does_not_write_the_servers_mark(stack, photo):
    attach(stack, photo, 'one')
    assert run(stack) == ['done']
    mark = items(stack, photo)['one~small']['mime']
    copied = fetch(stack, f'Photo/{photo}/file/one~small').content
    attach(stack, photo, 'one~copy', copied, mark)
    assert items(stack, photo)['one~copy']['mime'] == 'image/webp', 'and the file is there'
    stack.put('lab', {'c': 'Photo', 'id': photo, 'items': [{'c': 'P', 'k': 'two~copy', 'sha': sha(copied), 'mime': mark}]})
    assert items(stack, photo)['two~copy']['mime'] == 'image/webp'
    assert set(items(stack, photo)) == {'one', 'one~small', 'one~large', 'one~copy', 'two~copy'}


# --- what is no image ---

HOSTILE = [
    ('random', b'\0' + os.urandom(3000), 'unsupported format'),  # two bytes make an image JPEG
    ('svg', b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="file:///etc/passwd"/></svg>', 'unsupported format'),
    ('pdf', b'%PDF-1.4\n1 0 obj<<>>endobj\n', 'unsupported format'),
    ('empty', b'', 'unsupported format'),
    ('truncated', png(300, 200)[:-60], 'damaged image'),
    ('head', png(300, 200)[:33], 'damaged image'),
    ('bomb', bomb(50000, 50000), 'too many pixels'),
    ('large', png(64, 64) + bytes(1 << 20), 'too many bytes'),
]


@pytest.mark.parametrize('name, content, why', HOSTILE, ids=[case[0] for case in HOSTILE])
def test_what_cannot_be_decoded_is_noted(stack, photo, name, content, why):
    attach(stack, photo, 'bad', content)
    attach(stack, photo, 'good')
    assert run(stack) == ['done'], 'the task ends'
    assert reason(stack, content) == why and last_result(stack) == {'made': 2, 'refused': 1}
    assert set(items(stack, photo)) == {'bad', 'good', 'good~small', 'good~large'}
    attach(stack, photo, 'again', content)
    assert run(stack) == ['done'] and last_result(stack) == {'made': 0, 'refused': 0}, 'it is not tried again'
    assert reason(stack, IMAGE) is None


def program(stack, text):
    """A program in place of stamp-thumbnail."""
    path = stack.path / 'etc' / f'decoder-{hashlib.sha256(text.encode()).hexdigest()[:8]}'
    path.write_text('#!/bin/sh\n' + text)
    path.chmod(0o755)
    give(path)
    stack.set(thumbnail_program=path)
    return path


@pytest.fixture
def own_program(stack):
    yield lambda text: program(stack, text)
    stack.set(thumbnail_program='')


BROKEN = [('kill -SEGV $$', 'the decoder crashed'), ('cat >/dev/null; echo 9; printf abc', 'the decoder crashed'), ('cat >/dev/null', 'the decoder crashed'),
          ('cat >/dev/null; echo 3; printf abc; echo 3; printf abcd', 'the decoder crashed'), ('kill -XCPU $$', 'too much computation')]


@pytest.mark.parametrize('text, why', BROKEN)
def test_a_decoder_that_crashes_fails_this_image_only(stack, photo, own_program, text, why):
    own_program(text)
    pids = stack.worker_pids()
    content = png(10, 20 + BROKEN.index((text, why)))
    attach(stack, photo, 'bad', content)
    assert run(stack) == ['done'] and reason(stack, content) == why
    assert stack.worker_pids() == pids, 'the worker is the same'


@pytest.mark.parametrize('name', ['KILL', 'TERM', 'INT'])
def test_a_decoder_that_is_killed_is_tried_again(stack, photo, own_program, name):
    own_program(f'kill -{name} $$')
    content = png(11, 12, colour=(len(name), ord(name[0]), 9))
    attach(stack, photo, 'one', content)
    taskid, = tasks(stack)
    assert attempt(stack, taskid)['result'] == 'failed' and reason(stack, content) is None
    stack.set(thumbnail_program='')
    assert attempt(stack, taskid)['result'] == 'done' and 'one~small' in items(stack, photo)


def test_a_decoder_that_is_killed_each_time_ends(stack, photo, own_program):
    own_program('kill -KILL $$')
    content = png(12, 13)
    attach(stack, photo, 'one', content)
    taskid, = tasks(stack)
    results = [attempt(stack, taskid)['result'] for _ in range(3)]
    assert results == ['failed', 'failed', 'done'] and reason(stack, content) == 'the decoder was killed'


def test_a_decoder_that_does_not_end_is_killed(stack, photo, own_program):
    stack.set(limit_thumbnail_s=1)
    mark = stack.path / 'etc/late'
    own_program(f'echo $$ > {mark}; exec sleep 1000')
    give(mark.parent)
    attach(stack, photo, 'one', png(13, 14))
    taskid, = tasks(stack)
    assert attempt(stack, taskid)['code'] == 'XTIME'
    wait_until(lambda: not is_alive(int(mark.read_text())), what='the decoder is gone')
    stack.set(limit_thumbnail_s=10, thumbnail_program='')
    assert attempt(stack, taskid)['result'] == 'done'


def test_images_hold_no_worker(stack, own_program):
    """Three images of 0.8 MB held all workers for as long as their decoders took, and readers of other namespaces waited.  A process of its
    own waits for one decoder; what another namespace wants of it waits in nginx."""
    gate, mark = stack.path / 'etc/gate', stack.path / 'etc/begun'
    own_program(f'touch {mark}; while [ ! -e {gate} ]; do sleep 0.1; done; kill -KILL $$')
    give(mark.parent)
    for ns in ('lab', 'demo'):
        stack.psql(ns, 'delete from taskqueue')
        for number in range(2):
            stack.put(ns, {'c': 'Photo', 'id': f'share{number}', 'items': [{'c': 'Main', 'j': {}}]})
            attach(stack, f'share{number}', 'one', png(20, 21 + number), ns=ns)
    (first, second), (other, _) = tasks(stack), tasks(stack, 'demo')
    runners = [threading.Thread(target=attempt, args=(stack, first), daemon=True)]
    runners[0].start()
    wait_until(mark.exists, what='a decoder')
    runners += [threading.Thread(target=attempt, args=(stack, other, 'demo'), daemon=True) for _ in range(2)]
    for runner in runners[1:]:
        runner.start()
    assert [attempt(stack, second)['result'] for _ in range(3)] == ['waiting'] * 3, 'it waits for its turn, and has not failed'
    assert stack.psql('lab', "select qn, retry from taskqueue where opname = 'thumbnail' and starttime is null") == [(2, 0)]
    for _ in range(20):
        assert stack.get('demo', ('Photo', 'share0')) and stack.get('lab', ('Photo', 'share0'))
        # Who has just answered may count for a moment more.
        wait_until(lambda: stack.metrics()['stampd_workers_busy'] <= 2, what='none but the process of the thumbnails, and whoever answers this')
    assert stack.psql('demo', "select starttime from taskqueue where opname = 'thumbnail'") == [(None,), (None,)]
    gate.touch()
    for runner in runners:
        runner.join(PATIENCE_S)
    gate.unlink()
    stack.set(thumbnail_program='')
    assert attempt(stack, second)['result'] == 'done' and attempt(stack, other, 'demo')['result'] == 'done'


def test_tasks_beside_an_image_are_run_by_workers(stack, photo):
    """One request of a manager may have both: what waits for a decoder comes again alone."""
    attach(stack, photo, 'one')
    stack.psql('lab', "update taskqueue set startat = stamp_now() where opname = 'thumbnail'")
    image, = tasks(stack)
    other = stack.op('lab', 'task', {'op': 'put', 'param': {'docs': [{'c': 'Plain', 'id': photo, 'items': []}]}})['out']['id']
    outcomes = Manager(stack, 'lab').run_many([image, other])
    assert outcomes[image]['result'] == 'waiting' and outcomes[other]['result'] == 'done' and set(items(stack, photo)) == {'one'}
    assert Manager(stack, 'lab').run_together([image, other])[0]['result'] == 'done' and 'one~small' in items(stack, photo)


def test_images_of_a_crowd_hold_no_worker(stack, own_program):
    """Eight images held half of the workers.  Their queue runs one task at once, also after the deaths of a worker and of the manager."""
    stack.set(limit_thumbnail_s=600)
    gate, marks = stack.path / 'etc/gate', stack.path / 'etc/decoders'
    marks.mkdir(exist_ok=True)
    os.chmod(marks, 0o777)
    own_program(f'touch {marks}/$$; while [ ! -e {gate} ]; do sleep 0.1; done; kill -KILL $$')
    give(marks.parent)
    stack.psql('lab', 'delete from taskqueue')
    stack.put('demo', {'c': 'Plain', 'id': 'read', 'items': [{'c': 'Main', 'j': {}}]})
    for number in range(8):
        stack.put('lab', {'c': 'Photo', 'id': f'crowd{number}', 'items': [{'c': 'Main', 'j': {}}]})
        attach(stack, f'crowd{number}', 'one', png(40, 41 + number))
    held = []
    stack.step('queue', 'start')
    try:
        wait_until(lambda: list(marks.iterdir()), what='a decoder')
        with Client(stack, '127.0.0.50') as client:
            for number in range(50):
                assert client.get('demo', 'Plain', 'read').status == 200
                if number % 10 == 0:
                    held.append(stack.metrics()['stampd_long_requests'])
        assert held == [0] * 5, 'no worker waits for a decoder, and the reader for none'
        decoder, = marks.iterdir()
        waiter = parent_of(int(decoder.name))
        assert waiter not in stack.worker_pids() and name_of(waiter) == 'stampd-thumbs'
        os.kill(waiter, signal.SIGKILL)
        wait_until(lambda: len(list(marks.iterdir())) > 1, what='another try, or another image')
        stack.step('queue', 'stop')
        stack.step('queue', 'start')
        stack.set(thumbnail_program='', limit_thumbnail_s=10)
        gate.touch()
        wait_until(lambda: all({'one~small', 'one~large'} <= set(items(stack, f'crowd{number}')) for number in range(8)), what='all thumbnails')
    finally:
        gate.touch()
        stack.step('queue', 'stop')
        gate.unlink()
    assert all(set(items(stack, f'crowd{number}')) == {'one', 'one~small', 'one~large'} for number in range(8)), 'none is lost or doubled'


def test_two_namespaces_take_turns_at_the_decoder(stack, own_program):
    """A crowd of images in one namespace came first; those of another are decoded between them, not behind them."""
    order = stack.path / 'etc/order'
    order.touch()
    order.chmod(0o666)
    own_program(f'sha256sum >> {order}; sleep 0.2; kill -SEGV $$')
    give(order)
    crowd, few = [png(60, 61 + number) for number in range(20)], [png(50, 51 + number) for number in range(2)]
    for ns, contents in (('lab', crowd), ('demo', few)):
        stack.psql(ns, 'delete from taskqueue')
        for number, content in enumerate(contents):
            stack.put(ns, {'c': 'Photo', 'id': f'turn{number}', 'items': [{'c': 'Main', 'j': {}}]})
            attach(stack, f'turn{number}', 'one', content, ns=ns)
    stack.step('queue', 'start')
    try:
        wait_until(lambda: not tasks(stack) and not tasks(stack, 'demo'), what='all images were tried')
    finally:
        stack.step('queue', 'stop')
    tried = [line.split()[0] for line in order.read_text().splitlines()]
    assert sorted(tried) == sorted(map(sha, crowd + few))
    assert max(tried.index(sha(content)) for content in few) < len(tried) - 1, 'images of the crowd are left when those of the other are done'


def test_a_missing_program_is_no_fault_of_an_image(stack, photo, own_program):
    stack.set(thumbnail_program='/nowhere/stamp-thumbnail')
    content = png(14, 15)
    attach(stack, photo, 'one', content)
    taskid, = tasks(stack)
    assert attempt(stack, taskid)['code'] == 'BINTERNAL' and reason(stack, content) is None
    stack.set(thumbnail_program='')
    assert attempt(stack, taskid)['result'] == 'done'


def test_a_server_without_thumbnails_says_so(stack, declared, photo, own_program, tmp_path):
    """As a build without libvips: tasks wait for a server that makes them, and none are declared there; all else works."""
    stack.set(thumbnail_program='none')
    content = png(15, 16)
    attach(stack, photo, 'one', content)
    taskid, = tasks(stack)
    assert attempt(stack, taskid)['code'] == 'OTHUMBNAILS' and reason(stack, content) is None and set(items(stack, photo)) == {'one'}
    classes = {'classes': {'Photo': PHOTO}}
    assert 'libvips' in refused('OTHUMBNAILS', stack.op, 'z', 'schema', {'set': {'ns': 'lab', 'schema': classes}}, admin=True).body['title']
    stack.op('z', 'schema', {'check': classes}, admin=True)
    (tmp_path / 'photo.json').write_text(json.dumps(classes))
    for words in (('set', 'lab', tmp_path / 'photo.json'), ('plan', 'lab'), ('apply', 'lab')):
        assert 'thumbnails are declared' in stack.admin('schema', *words, status=1).error, words
    stack.op('z', 'schema', {'set': {'ns': 'lab', 'schema': {'classes': {'Photo': {'items': PHOTO['items']}}}}}, admin=True)
    declared.apply('lab', {'Photo': {'items': PHOTO['items']}, 'Plain': {'items': PHOTO['items']}})
    stack.set(thumbnail_program='')
    declared.apply('lab', {'Photo': PHOTO, 'Plain': {'items': PHOTO['items']}})
    assert attempt(stack, taskid)['result'] == 'done' and 'one~small' in items(stack, photo)


# --- the program ---

def decode(content, *words, **more):
    """Output and status of the program; its output is a pipe."""
    done = subprocess.run([BUILD / 'src/stamp-thumbnail', *words], input=content, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=PATIENCE_S, **more)
    return done.stdout, done.returncode


def test_the_program_alone():
    out, status = decode(IMAGE, '64x64', '10x10', env={})
    size, _, rest = out.partition(b'\n')
    assert status == 0 and webp_size(rest[:int(size)]) == (64, 43)
    size, _, rest = rest[int(size):].partition(b'\n')
    assert webp_size(rest) == (10, 7) and len(rest) == int(size)
    for words in ((), ('64',), ('64x',), ('0x5',), ('5x99999',), ('--pixels', '0', '5x5'), ('--bytes', 'x', '5x5'), ['5x5'] * 9, ('--none', '5x5')):
        assert decode(IMAGE, *words) == (b'', 2), words
    assert decode(IMAGE, '--pixels', '59999', '5x5') == (b'', 12) and decode(IMAGE, '--pixels', '60000', '5x5')[1] == 0
    assert decode(IMAGE, '--bytes', str(len(IMAGE) - 1), '5x5') == (b'', 13) and decode(IMAGE, '--bytes', str(len(IMAGE)), '5x5')[1] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason='looks into processes that let nobody but root do so')
def test_the_program_is_confined(stack):
    """As the kernel shows it, while it waits for the rest of an image."""
    folder = stack.path / 'etc'
    with subprocess.Popen([BUILD / 'src/stamp-thumbnail', '5x5'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}, cwd=folder) as process:
        proc = f'/proc/{process.pid}'

        def read(name):
            with open(f'{proc}/{name}', encoding='ascii') as file:
                return file.read()
        wait_until(lambda: 'Seccomp:\t2' in read('status'), what='the filter')
        assert 'NoNewPrivs:\t1' in read('status')
        limits = {line[:26].strip(): line[26:].split()[:2] for line in read('limits').splitlines()[1:]}
        assert limits['Max file size'] == ['0', '0'] and limits['Max open files'] == ['16', '16'] and limits['Max core file size'] == ['0', '0']
        assert limits['Max cpu time'] == ['20', '21']
        assert len(os.listdir(f'{proc}/fd')) == 3 and read('environ') == ''
        out, _ = process.communicate(IMAGE)
        assert webp_size(out.partition(b'\n')[2]) == (5, 3)


# --- rights, quotas, places ---

def test_who_may_not_read_the_document_gets_none(stack):
    stack.put('shut', {'c': 'Photo', 'id': 'p', 'items': [{'c': 'Main', 'j': {}}]}, admin=True)
    attach(stack, 'p', 'one', ns='shut', admin=True)
    run(stack, 'shut')
    assert fetch(stack, 'Photo/p/file/one~small', ns='shut', admin=True).status_code == 200
    digest = items(stack, 'p', 'shut')['one~small']['sha']
    for path in ('one~small', f'sha/{digest}'):
        assert send(stack, 'GET', f'Photo/p/file/{path}', ns='shut').status_code in (401, 403)


def test_they_count_in_quotas(stack):
    stack.put('demo', {'c': 'Photo', 'id': 'p', 'items': [{'c': 'Main', 'j': {}}]})
    attach(stack, 'p', 'one', ns='demo')
    used = stack.psql('demo', 'select sum(v1 + v2) from doc')[0][0]
    set_quotas(stack, {'namespace': {'bytes': int(used) + 10}})
    taskid, = tasks(stack, 'demo')
    outcome = attempt(stack, taskid, 'demo')
    assert (outcome['result'], outcome['code']) == ('failed', 'ALIMIT') and set(items(stack, 'p', 'demo')) == {'one'}
    set_quotas(stack, None)
    assert attempt(stack, taskid, 'demo')['result'] == 'done' and set(items(stack, 'p', 'demo')) == {'one', 'one~small', 'one~large'}


def test_a_full_document_gets_none(stack, photo):
    attach(stack, photo, 'text', b'text', 'text/plain')
    others = [{'c': 'P', 'k': f'text {number}', 'from': {'c': 'Photo', 'id': photo, 'k': 'text'}} for number in range(96)]
    stack.put('lab', {'c': 'Photo', 'id': photo, 'items': others})
    attach(stack, photo, 'one')
    stack.set(limit_items=100)
    try:
        assert run(stack) == ['done'] and last_result(stack) == {'made': 0, 'refused': 0} and len(items(stack, photo)) == 98
    finally:
        stack.set(limit_items=20000)


def test_a_worker_that_dies_in_between_leaves_nothing_half_done(stack, photo):
    attach(stack, photo, 'one')
    manager = Manager(stack, 'lab')
    for point in ('blob-registered', 'commit-marked', 'commit-answered'):
        if not (taskids := tasks(stack)):
            break  # the last one died when all was committed
        stack.set(debug_die_at=f'{point}:1:1')
        manager.hurry()
        manager.post(*taskids)
        stack.set(debug_die_at='')
        wait_until(lambda: manager.scan()['running'] == [], what='the lost task is found')
        assert set(items(stack, photo)) in ({'one'}, {'one', 'one~small', 'one~large'})
    manager.hurry()
    run(stack)
    assert set(items(stack, photo)) == {'one', 'one~small', 'one~large'}


@pytest.fixture(scope='module')
def vault(stack, declared):
    """An encrypted namespace whose files may lie in an object store."""
    service, stores = Service(), stack.path / 'etc/stores'
    stores.write_text(service.section('own'))
    stores.chmod(0o600)
    give(stores)
    stack.set(site_key_file=new_site_key(stack), object_stores_file=stores, object_stores_interval_s=1, keep_interval_s=1)
    create(stack, 'vault')
    declared.apply('vault', {'Photo': PHOTO})
    stack.service = service
    yield stack
    service.stop()


def places(stack, ns):
    return {place for place, in stack.psql(ns, 'select store from blob')}


def test_in_an_encrypted_namespace(vault):
    vault.put('vault', {'c': 'Photo', 'id': 'p', 'items': [{'c': 'Main', 'j': {}}]})
    attach(vault, 'p', 'one', ns='vault')
    assert run(vault, 'vault') == ['done']
    thumbnail = fetch(vault, 'Photo/p/file/one~small', ns='vault').content
    assert webp_size(thumbnail) == (64, 43)
    for path in (vault.path / 'files/stampd_vault').rglob('*'):
        assert not path.is_file() or (b'WEBP' not in path.read_bytes() and IMAGE[:8] not in path.read_bytes())
    attach(vault, 'p', 'bad', b'no image', ns='vault')
    assert run(vault, 'vault') == ['done']
    assert vault.psql('vault', 'select thumbnail from blob where thumbnail is not null') == [('unsupported format',)]
    assert sweep(vault, 'vault') == 0, 'all is done'


@pytest.mark.parametrize('ns', ['lab', 'vault'])
def test_an_image_in_an_object_store(vault, ns):
    vault.put(ns, {'c': 'Photo', 'id': 'stored', 'items': [{'c': 'Main', 'j': {}}]})
    attach(vault, 'stored', 'one', png(333, 222), ns=ns)
    vault.admin('files', 'place', ns, 'own')
    wait_until(lambda: places(vault, ns) == {'own'}, PATIENCE_S, 'the files are there')
    for path in (vault.path / f'files/stampd_{ns}').glob('??/*'):
        path.unlink(missing_ok=True)
    assert run(vault, ns) == ['done']
    assert webp_size(fetch(vault, 'Photo/stored/file/one~small', ns=ns).content) == (64, 43)
    vault.admin('files', 'place', ns, 'directory')
    wait_until(lambda: places(vault, ns) == {None}, PATIENCE_S, 'the files are back')


# --- the declaration ---

@pytest.mark.parametrize('declaration, path, expected', [
    (7, 'thumbnails', 'An object of names and boxes is expected.'),
    ({'a-b': DECLARED['small']}, 'thumbnails.a-b', 'A name of a thumbnail is a letter, then up to 15 letters and digits.'),
    ({'a' * 17: DECLARED['small']}, f'thumbnails.{"a" * 17}', 'A name of a thumbnail'),
    ({'a': {'width': 15, 'height': 64}}, 'thumbnails.a.width', 'An integer from 16 to 2048 is expected.'),
    ({'a': {'width': 64, 'height': 2049}}, 'thumbnails.a.height', 'An integer from 16 to 2048 is expected.'),
    ({'a': {'width': 64}}, 'thumbnails.a', 'The members width and height are expected.'),
    ({'a': {'width': 64, 'height': 64, 'crop': True}}, 'thumbnails.a.crop', 'The members here are width and height.'),
    ({f'a{number}': DECLARED['small'] for number in range(9)}, 'thumbnails', 'At most 8 members are expected.'),
])
def test_a_wrong_declaration_is_refused(declared, declaration, path, expected):
    told = declared.set('lab', {'Photo': {'items': {}, 'thumbnails': declaration}}, status=1)
    assert f'classes.Photo.{path}: {expected}' in told
