"""The tutorials, typed from top to bottom: each command of doc/tutorial is run as it stands there, and prints what stands
behind it.  A block `sh terminal` runs beside the others, and what is shown of it later is awaited; `…` stands for any text.  A block
`browser NAME` has the steps of a person with a browser, as hands.py does them."""
import contextlib
import os
import re
import signal
import subprocess
import time

import pytest

import browser as browsers
from hands import People
from replay import DEMONSTRATION, learn
from stack import BUILD, PATIENCE_S, SOURCE, Stack, children, wait_until
from web import FETCHES, build_web

pytestmark = [pytest.mark.plain, FETCHES]  # a page is one test, and the longest takes 50 s

PAGES = sorted(path.name for path in (SOURCE / 'doc/tutorial').glob('*.md'))


class Shell:
    """One bash that is given a block after the other."""

    def __init__(self, folder, environment):
        self.end, self.number = 'end-of-block', 0
        self.process = subprocess.Popen(['bash', '-e'], cwd=folder, env=environment, stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=1, start_new_session=True)

    def run(self, block):
        """What the block prints."""
        self.number += 1
        mark = f'{self.end}-{self.number}'
        self.process.stdin.write(f'{block}\necho {mark}\n')
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.strip() == mark:
                return ''.join(lines)
            lines.append(line)
        raise AssertionError(f'the shell ended:\n{block}\n{"".join(lines)}')

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def is_shown(told, printed):
    """Are the lines of the page there, in their order and one behind the other; `…` is any text?"""
    pattern = '\n'.join(re.escape(line).replace('…', '.*') for line in told.strip().splitlines())
    return re.search(rf'^{pattern}$', printed, re.M)


def wrong_answer(told, printed, stamps):
    if '…' in told:
        pattern = re.escape(re.sub(r'\s+', '', told)).replace('…', '[^,}]*')
        return None if re.fullmatch(pattern, re.sub(r'\s+', '', printed)) else f'{told} is told, {printed} is given'
    return learn(told, printed.strip(), stamps)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder that looks like that of the sources, with the demonstration's programs in it; and its server."""
    monkeypatch.setenv('STACK_RELOAD', 'yes')
    with Stack('tutorial', workers=3) as stack:
        stack.step('queue', 'start')
        (stack.path / 'www').mkdir()
        former = set(children(stack.pid('nginx')))
        stack.step('nginx', 'refresh')
        wait_until(lambda: not former & set(children(stack.pid('nginx'))), what='the end of the former workers of nginx')  # curl does not ask twice
        for name in ('doc', 'scripts', 'src'):
            (tmp_path / name).symlink_to(SOURCE / name)
        home = tmp_path / 'var/demo'
        home.mkdir(parents=True)
        (home / 'state').symlink_to(stack.path)
        (home / 'admin.key').symlink_to(stack.key_file)
        (home / 'stampctl').write_text(f"#!/bin/sh\nexec '{BUILD}/src/stampctl' -c '{stack.path}/etc/stampd.conf' \"$@\"\n")
        (home / 'stampctl').chmod(0o755)
        for program in ('stamp-spool', 'stamp-forward'):
            (home / program).symlink_to(BUILD / 'src' / program)
        environment = {**os.environ, 'PGUSER': 'postgres', 'STAMPD_SQL': str(SOURCE / 'sql'), 'PYTHONUNBUFFERED': '1'}
        yield tmp_path, environment, stack


@pytest.fixture
def start_browser():
    with contextlib.ExitStack() as ends:
        yield lambda: ends.enter_context(contextlib.closing(browsers.Browser()))


@pytest.mark.parametrize('page', PAGES)
def test_a_tutorial_can_be_typed(page, place, start_browser):
    folder, environment, stack = place
    text = (SOURCE / 'doc/tutorial' / page).read_text().replace(DEMONSTRATION, stack.url)
    if '```browser' in text:
        if not browsers.PROGRAM:
            pytest.skip('there is no Chromium (Debian: chromium-headless-shell)')
        build_web('client', folder / 'var/web/client')  # skips where that cannot be built
    people = People(start_browser)
    shell, beside, printed, stamps, ran = Shell(folder, environment), [], '', {}, 0
    try:
        for match in BLOCK_OF_TUTORIAL.finditer(text):
            kind, more, block = match.groups()
            where = f'doc/tutorial/{page}:{text.count(chr(10), 0, match.start()) + 1}'
            if kind == 'sh' and more == ' terminal':
                output = folder / f'terminal-{len(beside)}'
                beside.append((subprocess.Popen(['bash', '-ec', block], cwd=folder, env=environment, start_new_session=True,
                                                stdin=subprocess.DEVNULL, stdout=output.open('w'), stderr=subprocess.STDOUT), output))
                printed = None
            elif kind == 'sh' and not block.startswith('scripts/demo'):
                assert not re.search(r'(?<!\d)\d{15}(?!\d)', block), f"{where}: a stamp of somebody else's server cannot be typed"
                printed, ran = shell.run(block), ran + 1
            elif kind == 'browser':
                for line in block.splitlines():
                    people.do(more.strip(), line)
            elif kind == 'json':
                wrong = wrong_answer(block, printed, stamps)
                assert not wrong, f'{where}: {wrong}'
            elif kind == 'text' and printed and is_shown(block, printed):
                continue
            elif kind == 'text':  # of the terminal beside
                assert beside, f'{where}: not printed, but:\n{printed}'
                end = time.monotonic() + PATIENCE_S
                while not is_shown(block, shown := beside[-1][1].read_text(errors='replace')):  # a character may be half written
                    assert time.monotonic() < end, f'{where}: the terminal shows:\n{shown}'
                    time.sleep(0.1)
        assert ran >= 3
    finally:
        shell.close()
        for process, _ in beside:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


BLOCK_OF_TUTORIAL = re.compile(r'^```(\w+)( \w+)?\n(.*?)^```$', re.M | re.S)


def test_what_is_shown_is_compared():
    assert is_shown('a\n… b', 'x\na\n17 b\n')
    assert not is_shown('a\nb', 'a\nc\nb\n')
    assert not wrong_answer('{"id":"…","n":…}', '{"id":"k2v","n":17}\n', {})
    assert wrong_answer('{"id":"…","n":…}', '{"id":"k2v","n":17,"x":1}\n', {})
    assert wrong_answer('{"a":1}', '{"a":2}', {})
