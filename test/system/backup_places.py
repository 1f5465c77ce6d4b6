"""Backups of a stack whose files are in a directory and in an object store: what the tests of `stampctl backup` share."""
import itertools
import shutil

import pytest

from object_service import Service
from stack import give
from test_attachment_http import checked, fetch, send, sha, store
from test_backup import Backup
from vault import new_site_key

# Neither the mover nor the cleaner works: the tests do what these would have done.
STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'}, 'postgres': {'archive_mode': 'on'},
         'settings': {'limit_blob_bytes': 128 << 20, 'limit_upload_bytes': 128 << 20, 'keep_interval_s': 3600, 'object_stores_interval_s': 3600, 'limit_client_connections': 0}}
PIECE = 8 << 20
LONG_AGO = 250101000000000
NUMBERS = itertools.count(1)


class Places:
    """The files of a document, in the directory or in a store."""

    def __init__(self, stack):
        self.stack, self.own, self.contents = stack, Service(), {}
        self.path = stack.path / 'etc/stores'
        self.name_store()
        stack.set(object_stores_file=self.path, site_key_file=new_site_key(stack))
        stack.reload_nginx()
        stack.put('lab', {'c': 'Note', 'id': 'n', 'items': [{'c': 'Main', 'j': {}}]})
        stack.admin('files', 'place', 'lab', 'own')

    def name_store(self, name='own', port=None):
        self.path.write_text(self.own.section(name).replace(f':{self.own.server_port}', f':{port or self.own.server_port}'))
        self.path.chmod(0o600)
        give(self.path)

    def add(self, *contents):
        """In the directory."""
        for content in contents:
            key = f'f{next(NUMBERS)}'
            store(self.stack, f'Note/n/file/{key}', content)
            self.contents[key] = content

    def local(self, content):
        return self.stack.path / 'files/stampd_lab' / sha(content)[:2] / sha(content)

    def name(self, content):
        """Of the object."""
        (name,), = self.stack.psql('lab', "select object from blob where digest = decode(%s, 'hex')", (sha(content),))
        return name

    def move(self, ns='lab'):
        """All files of the directory, to the store."""
        for path in list((self.stack.path / f'files/stampd_{ns}').glob('*/*')):
            if len(path.name) != 64:
                continue
            content, name = path.read_bytes(), f'stampd_{ns}/{path.name}-{next(NUMBERS):016}'
            self.own.objects[name] = content
            self.stack.psql(ns, "update blob set store = 'own', object = %s, head = %s where digest = decode(%s, 'hex')",
                            (name, content[:80] if ns == 'vault' else None, path.name))
            path.unlink()

    def send(self, *contents):
        self.add(*contents)
        self.move()

    def bring(self, content):
        """Back, to the directory."""
        del self.own.objects[self.name(content)]
        self.local(content).write_bytes(content)
        self.local(content).chmod(0o440)
        shutil.chown(self.local(content), *(getattr(self.local(content).parent.stat(), name) for name in ('st_uid', 'st_gid')))
        self.stack.psql('lab', "update blob set store = null, object = null where digest = decode(%s, 'hex')", (sha(content),))

    def remove(self, *contents):
        """The document, the directory and the store have them no longer."""
        for key in [key for key, content in self.contents.items() if content in contents]:
            checked(send(self.stack, 'DELETE', f'Note/n/file/{key}'), 200)
            del self.contents[key]
        for content in contents:
            self.own.objects.pop(self.name(content), None)
            self.local(content).unlink(missing_ok=True)
            for table in ('blob_claim', 'blob_ref', 'blob'):
                self.stack.psql('lab', f"delete from {table} where digest = decode(%s, 'hex')", (sha(content),))

    def age(self):
        """So that none may be on its way."""
        self.stack.psql('lab', f'update blob set touched = {LONG_AGO}')

    def check(self):
        for key, content in self.contents.items():
            assert fetch(self.stack, f'Note/n/file/{key}').content == content

    def forget(self):
        self.own.always = None
        self.remove(*set(self.contents.values()))
        self.own.objects.clear()


class Kept(Backup):
    """A folder for backups of a stack with object stores, whose commands connect as administrator."""

    def files(self, *words, **more):
        return self.stack.admin('backup', 'files', self.path, *words, **more)

    def give_back(self, *words, **more):
        return self.stack.admin('backup', 'return', self.path, *words, **more)

    def copies(self, part='objects', ns='lab'):
        """The contents of the copies, by name."""
        return {path.name: path.read_bytes() for path in (self.path / part / f'stampd_{ns}').glob('*/*')}

    def copy(self, content, part='objects', ns='lab'):
        return self.path / part / f'stampd_{ns}' / sha(content)[:2] / sha(content)


@pytest.fixture(scope='module')
def all_places(stack):
    places = Places(stack)
    yield places
    places.own.stop()


@pytest.fixture
def places(all_places):
    yield all_places
    all_places.forget()
    assert not all_places.own.refused


@pytest.fixture
def folder(places):
    backup = Kept(places.stack, 'backup')
    yield backup
    backup.drop()


@pytest.fixture
def backup(folder):
    return folder


def reads(service):
    return [path for command, path in service.requests if command == 'GET']


def writes(service):
    return [path for command, path in service.requests if command in ('PUT', 'POST')]


# --- copies ---


def lose(places, *contents):
    """The store has the objects no longer.  What it had."""
    return {name: places.own.objects.pop(name) for name in map(places.name, contents)}
