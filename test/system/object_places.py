"""Two object stores that a test can trouble, beside a namespace whose files are moved there and back."""
import contextlib
import os
import time

import pytest

from object_service import Service
from stack import PATIENCE_S, give, wait_until
from test_attachment_files import LONG_AGO
from test_attachment_http import checked, digest, fetch, send, sha, store

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open', 'shut': 'closed'},
         'settings': {'limit_blob_bytes': 64 << 20, 'keep_interval_s': 1, 'restart_young_ms': 0, 'limit_client_connections': 0}}
PIECE = 8 << 20


def age_files(paths, before):
    """Files that have been leaving since before this moment may go."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):  # it has gone
            if path.stat().st_mode & 0o1000 and path.stat().st_mtime < before:
                os.utime(path, (time.time() - 100, time.time() - 100))


class Places:
    """Two stores that a test can trouble, and the files of a document."""

    def __init__(self, stack):
        self.stack, self.own, self.other = stack, Service(), Service()
        self.path = stack.path / 'etc/stores'
        self.name_stores()
        stack.put('lab', {'c': 'Note', 'id': 'n', 'items': [{'c': 'Main', 'j': {}}]})
        stack.set(object_stores_file=self.path, object_stores_interval_s=1)
        stack.reload_nginx()
        self.contents = {}

    def name_stores(self, *more):
        self.path.write_text('\n'.join((self.own.section('own'), self.other.section('other'), *more)))
        self.path.chmod(0o600)
        give(self.path)

    def add(self, key, content):
        store(self.stack, f'Note/n/file/{key}', content, 'image/png')
        self.contents[key] = content

    def place(self, name):
        return self.stack.admin('files', 'place', 'lab', name).out

    def row(self, content):
        return self.stack.psql('lab', "select store, object, removing from blob where digest = decode(%s, 'hex')", (sha(content),))

    def local(self, content):
        path = self.stack.path / 'files/stampd_lab' / sha(content)[:2] / sha(content)
        return path if path.exists() else None

    def is_in(self, name, *contents):
        return all(self.row(content)[0][0] == name for content in contents or self.contents.values())

    def age(self):
        """What has been leaving for three seconds may go: requests that found it before have ended."""
        age_files((path for path in map(self.local, self.contents.values()) if path), time.time() - 3)
        self.stack.psql('lab', f"update blob_left set since = {LONG_AGO} where since < stamp_of(now() - interval '3 seconds')")

    def is_settled(self, name):
        """All files are there, and nowhere else."""
        self.age()
        contents = {digest for digest, in self.stack.psql('lab', "select encode(digest, 'hex') from blob")}  # those of former tests, too
        objects = {who: {key.split('/')[-1].split('-')[0] for key in list(service.objects)} for who, service in (('own', self.own), ('other', self.other))}
        return (self.is_in(name or None) and not self.stack.psql('lab', 'select 1 from blob_left')
                and all(objects[who] == (contents if who == name else set()) for who in objects)
                and all(bool(self.local(content)) == (not name) for content in self.contents.values()))

    def settle(self, name):
        self.place(name or 'directory')
        wait_until(lambda: self.is_settled(name), PATIENCE_S, f'files in {name or "the directory"}')

    def check(self):
        for key, content in self.contents.items():
            answer = fetch(self.stack, f'Note/n/file/{key}')
            assert answer.status_code == 200 and answer.content == content and answer.headers['Repr-Digest'] == digest(content)

    def forget(self):
        """All files of the namespace, for the next test."""
        self.own.always = self.other.always = None
        self.own.troubles.clear()
        if self.stack.settings.get('debug_die_at'):
            self.stack.set(debug_die_at='')
        self.settle('')
        for key in self.contents:
            checked(send(self.stack, 'DELETE', f'Note/n/file/{key}'), 200)
        self.contents.clear()


@pytest.fixture(scope='module')
def all_places(stack):
    places = Places(stack)
    yield places
    places.own.stop()
    places.other.stop()


@pytest.fixture
def places(all_places):
    yield all_places
    all_places.forget()
    assert not all_places.own.refused and not all_places.other.refused


@pytest.fixture
def moved(places):
    places.add('f', b'0123456789')
    places.settle('own')
    return places


def metric(stack, name):
    return stack.metrics()[f'stampd_{name}_total']
