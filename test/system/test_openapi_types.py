"""The example of a generated client (doc/examples/openapi): types from the description of a namespace, and what the compiler then refuses."""
import json
import os
import shutil
import subprocess

import pytest

from schema import Schemas
from stack import PATIENCE_S, SOURCE
from web import FETCHES, install_packages

pytestmark = [pytest.mark.plain, FETCHES, pytest.mark.skipif(not shutil.which('node'), reason='there is no Node (Debian: nodejs)')]

STACK = {'workers': 2}
NOTE = {'items': {'Title': {'singleton': True, 'content': {'type': 'object', 'properties': {'text': {'type': 'string'}}, 'required': ['text']}}}}


@pytest.fixture(scope='module')
def run(stack, tmp_path_factory):
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('lab', {'Note': NOTE})
    folder = tmp_path_factory.mktemp('openapi') / 'openapi'
    shutil.copytree(SOURCE / 'doc/examples/openapi', folder)
    install_packages(folder)

    def run(*command):
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                              env={**os.environ, 'STAMPD_URL': stack.url, 'NODE_EXTRA_CA_CERTS': str(stack.path / 'etc/certificate.pem')})
    made = run('npm', 'run', 'types')
    assert made.returncode == 0, made.stdout + made.stderr
    run.folder = folder
    return run


def test_a_generated_client_writes_and_reads(run):
    built = run('npm', 'run', 'build')
    assert built.returncode == 0, built.stdout + built.stderr
    done = run('node', 'built/notes.js')
    assert (done.stdout, done.returncode) == ('true Shopping\nNDOCUMENT\n', 0), done.stdout + done.stderr


WRONG = [("text: 'Shopping'", "words: 'Shopping'"), ("'/op/put'", "'/op/volumes'"), ("c: 'Note', id: 'first', items", "c: 'Note', items")]


def test_what_the_server_would_refuse_is_not_compiled(run):
    """One run of the compiler for all of them, since it takes seconds to read the types."""
    program = (run.folder / 'notes.ts').read_text()
    names = [f'wrong{number}.ts' for number, _ in enumerate(WRONG)]
    for name, wrong in zip(names, WRONG):
        assert wrong[0] in program
        (run.folder / name).write_text(program.replace(*wrong))
    settings = json.loads((run.folder / 'tsconfig.json').read_text())
    (run.folder / 'wrong.json').write_text(json.dumps({**settings, 'files': ['notes.ts', *names]}))
    printed = run('npx', 'tsc', '--noEmit', '--project', 'wrong.json').stdout
    assert sorted({line.partition('(')[0] for line in printed.splitlines() if 'error TS' in line}) == names, printed
