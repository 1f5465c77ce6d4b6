"""stampctl import-couchdb from a server that others have written, pouchdb-server: attachments, odd ids, deletions, conflicts, changes since."""
import json
import shutil
import subprocess
from urllib.parse import quote

import pytest
import requests

from stack import SOURCE, free_port, wait_until
from test_import_couchdb import stored
from web import FETCHES, install_packages

pytestmark = [pytest.mark.plain, FETCHES, pytest.mark.skipif(not shutil.which('node'), reason='there is no Node (Debian: nodejs)')]

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open'}}
FILES = {'one.txt': b'one', 'zero': b'', 'a/b': bytes(range(256)) * 300}
COUNT = 450  # more than two pages


class Server:
    """A database in memory."""

    def __init__(self, folder):
        packages, log = folder / 'pouchdb', folder / 'server.log'
        shutil.copytree(SOURCE / 'test/system/pouchdb', packages)
        install_packages(packages)
        port = free_port()
        with open(log, 'wb') as file:
            self.process = subprocess.Popen(['node', packages / 'node_modules/pouchdb-server/bin/pouchdb-server', '--in-memory', '--host', '127.0.0.1', '--port', str(port),
                                             '--config', folder / 'config.json'], cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        self.url, self.http = f'http://127.0.0.1:{port}/trial', requests.Session()
        wait_until(lambda: self.process.poll() is not None or 'has started' in log.read_text(), what='pouchdb-server')
        assert self.process.poll() is None, log.read_text()
        self.ask('PUT', '')

    def ask(self, method, path, **more):
        answer = self.http.request(method, f'{self.url}/{path}' if path else self.url, timeout=60, **more)
        assert answer.ok, (method, path, answer.text)
        return answer.json()

    def change(self, name, **members):
        """The new revision."""
        before = self.http.get(f'{self.url}/{quote(name, safe="")}', timeout=60)
        rev = {'_rev': before.json()['_rev']} if before.ok else {}
        return self.ask('PUT', quote(name, safe=''), json={**rev, **members})['rev']

    def truth(self):
        rows = self.ask('GET', '_all_docs?include_docs=true')['rows']
        return {f'Row/{row["id"]}': {name: value for name, value in row['doc'].items() if name[0] != '_'} for row in rows if row['id'][0] != '_'}


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp('pouchdb'))
    yield server
    server.process.kill()
    server.process.wait()


def here(stack):
    return {name: json.loads(items['Main']) for name, items in stored(stack, 'lab').items()}


def test_a_database_and_its_changes(stack, server):
    names = [f'r{number:04}"&+/ é' for number in range(COUNT)]
    server.ask('POST', '_bulk_docs', json={'docs': [{'_id': name, 'n': number, 'text': '"]},{[ \\'} for number, name in enumerate(names)]})
    server.change('_design/views', views={})
    rev = server.change('files', n=1)
    for name, data in FILES.items():
        rev = server.ask('PUT', f'files/{quote(name, safe="")}?rev={rev}', data=data, headers={'Content-Type': 'application/octet-stream'})['rev']
    # A document of which two have changed one revision, and one whose winner is a deletion.
    server.ask('POST', '_bulk_docs', json={'new_edits': False, 'docs': [{'_id': 'both', '_rev': f'2-{digit * 32}', 'by': digit,
                                                                         '_revisions': {'start': 2, 'ids': [digit * 32, '1' * 32]}} for digit in 'ab']})
    server.ask('DELETE', f'{quote(names[7], safe="")}?rev={server.change(names[7], n="last")}')
    import_it = lambda: stack.admin('import-couchdb', 'lab', server.url, '--class', 'Row')  # noqa: E731
    assert 'up to date with CouchDB' in import_it().text
    truth = server.truth()
    assert len(truth) == COUNT + 1 and here(stack) == truth and truth['Row/both'] == {'by': 'b'}
    for name, data in FILES.items():
        assert stack.http.get(f'{stack.url}/lab/doc/Row/files/file/{quote(name, safe="")}').content == data, name
    assert '0 documents read' in import_it().text
    for number in range(0, COUNT, 3):
        if number % 2 and names[number] != names[7]:
            server.ask('DELETE', f'{quote(names[number], safe="")}?rev={server.change(names[number], n=number)}')
        else:
            server.change(names[number], n=-number, files=None)
    server.change(names[7], n='back')
    import_it()
    assert here(stack) == server.truth()
    stack.admin('verify', '--ns', 'lab')
