"""The programs of test/attacks, each for a moment, against a stack that has what a demonstration has: they end in what they say."""
import json
import subprocess
import sys

import pytest

import journal_world
from schema import Schemas
from stack import BUILD, DEFAULT_SHARES, PATIENCE_S, SOURCE
from vault import create, new_site_key

pytestmark = pytest.mark.plain

FOLDER = SOURCE / 'test/attacks'
STACK = {'workers': 4, 'namespaces': {'z': 'closed', 'demo': 'read', 'lab': 'open', 'team': 'rules', 'shut': 'closed'},
         'settings': {'limit_thumbnail_pixels': 10**7, 'limit_client_partial_uploads': 10, 'limit_partial_uploads': 100, 'limit_upload_bytes': 1 << 22, **DEFAULT_SHARES}}
PROGRAMS = sorted(path.stem for path in FOLDER.glob('*.py') if path.stem != 'kit')


@pytest.fixture(scope='module')
def target(stack, tmp_path_factory):
    rules = json.loads((SOURCE / 'scripts/lib/team-rules.json').read_text())
    stack.op('z', 'ns', {'set': {'ns': 'team', 'rules': rules, 'accounts': {'registration': 'open', 'anonymous': True}}}, admin=True)
    main = {'singleton': True, 'fields': {'mood': 'string'}}
    Schemas(stack, tmp_path_factory.mktemp('schemas')).apply('team', {'Diary': {'items': {'Main': main}, 'collections': {'moods': {'key': ['Main.mood']}}}})
    stack.set(site_key_file=new_site_key(stack))
    create(stack)
    return stack


def attack(target, program, *more, status=0):
    words = ['--url', target.url, '--key-file', target.key_file, '--state', target.path, '--seconds', 1, '--longest', PATIENCE_S, *more]
    done = subprocess.run([sys.executable, FOLDER / f'{program}.py', *map(str, words)], capture_output=True, text=True, timeout=4 * PATIENCE_S)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout.splitlines()


@pytest.mark.parametrize('program', [program for program in PROGRAMS if program not in ('thumbnails', 'journal')])
def test_it_is_refused_or_bounded(target, program):
    more = {'writes': ['--connections', 6], 'uploads': ['--connections', 12], 'parts': ['--uploads', 30], 'headers': ['--connections', 30]}
    *figures, verdict = attack(target, program, *more.get(program, []))
    assert verdict == ('refused' if program in ('digests', 'logins', 'origins', 'logs', 'names') else 'bounded') and len(figures) > 1


@pytest.mark.skipif(not (BUILD / 'src/stamp-thumbnail').exists(), reason='this build makes no thumbnails')
def test_images_beside_readers(target, tmp_path):
    Schemas(target, tmp_path).apply('lab', {'Photo': {'items': {'Main': {'singleton': True}}, 'thumbnails': {'small': {'width': 64, 'height': 64}}}})
    target.step('queue', 'start')
    *figures, verdict = attack(target, 'thumbnails', '--side', 3000, '--images', 3, '--awaited', PATIENCE_S)
    assert verdict == 'bounded' and 'images: 3' in figures


def test_patterns_beside_another_connection(target):
    with journal_world.beside(target) as journal:
        *figures, verdict = attack(target, 'journal', '--socket', journal.socket, '--journal-key', journal_world.ALL, '--keys', 300)
    assert verdict == 'bounded' and 'connections: 8' in figures


def test_an_attack_that_succeeds_is_told(target):
    """In a namespace that lists the page by name, and for a neighbour who cannot be served."""
    name = 'origins'
    text = (FOLDER / f'{name}.py').read_text()
    assert "'origins': ['*']" in text
    path = target.path / 'etc/attacks'
    path.mkdir()
    (path / 'kit.py').write_text((FOLDER / 'kit.py').read_text())
    (path / f'{name}.py').write_text(text.replace("'origins': ['*']", "'origins': ['https://evil.example']"))
    done = subprocess.run([sys.executable, path / f'{name}.py', '--url', target.url, '--key-file', target.key_file], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1 and done.stdout.startswith('succeeded: login by ')
    assert attack(target, 'logs', '--state', '', status=2)[0].startswith('not tried: ')
