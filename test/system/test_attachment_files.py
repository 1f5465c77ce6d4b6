"""The cleaner: files that nothing refers to are removed in two rounds, no other file is, wherever a process is killed."""
import hashlib
import itertools
import os
import threading
import time

import pytest

from stack import PATIENCE_S, give, wait_until
from test_attachments import assert_exact, attachment, note, references

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'}, 'settings': {'keep_interval_s': 1, 'restart_young_ms': 0, 'limit_client_connections': 0}}
POINTS = ['cleaner-marked', 'cleaner-taken', 'cleaner-removed', 'cleaner-removed:2', 'cleaner-forgotten', 'cleaner-noted']
LONG_AGO = 250101000000000
DAY_S = 86400
NUMBERS = itertools.count(1)


@pytest.fixture(scope='module')
def store(stack):
    folder = stack.path / 'attached'
    folder.mkdir()
    give(folder)
    stack.set(blob_directory=folder)
    return Store(stack, folder / 'stampd_lab')


class Store:
    def __init__(self, stack, folder):
        self.stack, self.folder = stack, folder

    def path(self, sha):
        return self.folder / sha[:2] / sha

    def has(self, sha):
        return self.path(sha).exists()

    def write(self, sha, path=None, age_s=0):
        path = path or self.path(sha)
        for folder in (self.folder, path.parent):
            folder.mkdir(exist_ok=True)
            give(folder)
        path.write_bytes(b'0123456789')
        give(path)
        os.utime(path, (time.time() - age_s, time.time() - age_s))
        return path

    def new(self, is_registered=True, is_written=True, age_s=2 * DAY_S):
        """A file of ten bytes that was uploaded long ago, as an uploader leaves it."""
        sha = hashlib.sha256(f'{next(NUMBERS)} {self.folder}'.encode()).hexdigest()
        if is_registered:
            self.stack.psql('lab', 'select blob_touch(%s, 10)', (sha,))
        if is_written:
            self.write(sha, age_s=age_s)
        if is_registered and age_s > DAY_S:
            self.stack.psql('lab', f"update blob set touched = {LONG_AGO} where digest = decode(%s, 'hex')", (sha,))
        return sha

    def upload(self, sha):
        """As the worker does it: the row first, then the file."""
        self.stack.psql('lab', 'select blob_touch(%s, 10)', (sha,))
        self.write(sha)

    def rows(self):
        return {sha for sha, in self.stack.psql('lab', "select encode(digest, 'hex') from blob")}


class Scene:
    """Files of each kind."""

    def __init__(self, store):
        stack, self.store, name = store.stack, store, f'scene{next(NUMBERS)}'
        self.live, kept, claimed = (store.new(age_s=0) for _ in range(3))
        stack.put('lab', note(name, attachment('live', self.live), attachment('kept', kept)))
        stack.put('lab', note(name, {'c': 'P', 'k': 'kept', 'del': True}))
        stack.psql('lab', 'select blob_claim(%s, %s, 1000)', (claimed, 'ann'))
        self.stays = {self.live, kept, claimed, store.new(age_s=0)}
        stack.psql('lab', f"update blob set touched = {LONG_AGO} where encode(digest, 'hex') = any (%s)", ([self.live, kept, claimed],))
        self.younger = {store.new(is_registered=False, age_s=60)}
        self.goes = {store.new() for _ in range(3)} | {store.new(is_written=False), store.new(is_registered=False)}
        unfinished = store.folder / 'new'
        self.ended, self.begun = store.write(None, unfinished / f'{name}-old', 2 * DAY_S), store.write(None, unfinished / f'{name}-young', 60)

    def is_clean(self):
        assert all(self.store.has(sha) for sha in self.stays | self.younger)
        return not any(self.store.has(sha) for sha in self.goes) and not self.ended.exists() and not self.store.rows() & self.goes

    def check(self):
        wait_until(self.is_clean, PATIENCE_S, 'only what is used stays')
        assert self.begun.exists() and self.stays <= self.store.rows() and not self.younger & self.store.rows()
        assert_exact(self.store.stack, 'lab')


def rounds(stack):
    return stack.metrics()['stampd_purge_rounds_total']


def deaths(stack, point):
    return stack.log().count(f'died at {point.partition(":")[0]},')


def test_what_nothing_refers_to_is_removed_in_two_rounds(stack, store):
    before = stack.metrics()['stampd_files_removed_total']
    scene = Scene(store)
    scene.check()
    wait_until(lambda: stack.metrics()['stampd_files_removed_total'] >= before + len(scene.goes), PATIENCE_S, 'they are counted')


def test_a_mark_ends_with_an_upload_of_the_same_bytes(stack, store):
    sha = store.new(age_s=0)
    stack.psql('lab', "update blob set removing = true where digest = decode(%s, 'hex')", (sha,))
    store.upload(sha)
    stack.put('lab', note('again', attachment('f', sha)))
    done = rounds(stack)
    wait_until(lambda: rounds(stack) >= done + 3, PATIENCE_S, 'three rounds')
    assert store.has(sha)


def test_references_end_after_their_time(stack, store):
    sha = store.new(age_s=0)
    stack.put('lab', note('was', attachment('f', sha)))
    stack.put('lab', {'c': 'Note', 'id': 'was', 'delete': True})
    stack.psql('lab', f"update blob set touched = {LONG_AGO} where digest = decode(%s, 'hex')", (sha,))
    done = rounds(stack)
    wait_until(lambda: rounds(stack) >= done + 3, PATIENCE_S, 'three rounds')
    assert store.has(sha) and references(stack, 'lab', 'was') == {('f', sha): False}, 'it is kept for a time'
    stack.psql('lab', "update blob_ref set ended = %s where id = 'was'", (LONG_AGO,))
    wait_until(lambda: not store.has(sha) and sha not in store.rows(), PATIENCE_S, 'the end')
    assert references(stack, 'lab', 'was') == {}


def test_the_cleaner_and_uploads_of_the_same_files_meet(stack, store):
    """Files are marked and taken back all the time; whatever is attached is there."""
    shas = [store.new() for _ in range(6)]
    ending, wrong = threading.Event(), []

    def attach(number):
        while not ending.is_set():
            sha = shas[number]
            store.upload(sha)
            stack.put('lab', note(f'meets{number}', attachment('f', sha)))
            if not store.has(sha):
                wrong.append(sha)
            stack.put('lab', {'c': 'Note', 'id': f'meets{number}', 'delete': True})
            stack.psql('lab', f"delete from blob_ref where id = 'meets{number}'; update blob set touched = {LONG_AGO} where digest = decode(%s, 'hex')", (sha,))
            time.sleep(0.05)

    done, removed = rounds(stack), stack.metrics()['stampd_files_removed_total']
    threads = [threading.Thread(target=attach, args=(number,)) for number in range(0, len(shas), 3)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: rounds(stack) >= done + 6 and stack.metrics()['stampd_files_removed_total'] > removed, PATIENCE_S, 'rounds')
    finally:
        ending.set()
        for thread in threads:
            thread.join()
    assert not wrong


@pytest.mark.parametrize('point', POINTS)
def test_wherever_the_cleaner_is_killed_no_used_file_is_lost(stack, store, point):
    before = deaths(stack, point)
    stack.set(debug_die_at=point)
    scene = Scene(store)
    wait_until(lambda: deaths(stack, point) > before, PATIENCE_S, point)
    back = sorted(scene.goes)[0]
    store.upload(back)  # whatever was done to it: it is taken back, and attached
    stack.put('lab', note(f'back{next(NUMBERS)}', attachment('f', back)))
    scene.goes.remove(back)
    scene.stays.add(back)
    scene.check()
    stack.set(debug_die_at='')
