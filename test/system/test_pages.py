"""What an administrator types from the pages of doc/how-to exists: packages, commands, options, settings."""
import re
import shlex
import subprocess

import pytest

from stack import BUILD, SOURCE, Stack, stampctl, wait_until

pytestmark = pytest.mark.plain

PAGE = (SOURCE / 'doc/how-to/operating.md').read_text()
ALL_PAGES = ''.join(path.read_text() for path in sorted((SOURCE / 'doc/how-to').glob('*.md')))
BLOCK = re.compile(r'^```sh\n(.*?)^```$', re.M | re.S)
IMPLIED = {'gcc', 'libc6-dev', 'make', 'openssl', 'ca-certificates'}  # by build-essential, libssl-dev's users, curl


def commands(page):
    """The command lines of the page, those that go on in the next line joined, without JSON in quotes."""
    for block in BLOCK.findall(page):
        text = re.sub(r'<<END\n.*?^END$', '', block, flags=re.M | re.S).replace('\\\n', ' ')
        text = re.sub(r"'\s*\{[^']*'", 'JSON', text)
        for line in text.splitlines():
            for part in re.split(r' && | \| |;', line):
                words = shlex.split(part, comments=True)
                if words[:1] == ['runuser']:
                    words = words[words.index('--') + 1:]
                if words:
                    yield words


def test_every_package_is_named():
    named = {word for words in commands(PAGE) if words[:2] == ['apt', 'install'] for word in words[2:]}
    lists = '\n'.join((SOURCE / f'scripts/lib/packages.{name}').read_text() for name in ('build', 'run'))
    wanted = {line.split('#')[0].strip() for line in lists.splitlines()} - {''}
    wanted = {re.sub(r'^(postgresql)(-client)?-15$', r'\1', one) for one in wanted}
    assert wanted - IMPLIED <= named, wanted - IMPLIED - named


def test_every_command_of_stampctl_takes_its_options():
    found = 0
    for words in commands(ALL_PAGES):
        if words[0] != 'stampctl':
            continue
        found += 1
        name = next(count for count in (2, 1) if count < len(words) and not words[count].startswith('-') and (count == 1 or words[1] in
                    ('ns', 'key', 'push', 'schema', 'task', 'cron')))
        said = stampctl(*words[1:1 + name], '--help')
        for word in words:
            if word.startswith('--') and len(word) > 2:
                assert re.search(rf'{word.split("=")[0]}\b', said.out), (words, word)
    assert found >= 16


def test_the_settings_of_the_page_are_settings(tmp_path):
    (text,) = re.findall(r'stampd.conf <<END\n(.*?)^END$', PAGE, re.M | re.S)
    known = subprocess.check_output([BUILD / 'src/stampd', '--settings'], text=True)
    names = re.findall(r'^(\w+) = ', text, re.M)
    assert {'user', 'queue_key_file', 'queue_url', 'nginx_reload'} <= set(names)
    for name in names:
        assert re.search(rf'^#{name} =', known, re.M), name


def test_every_metric_is_described():
    with Stack('pages', workers=1) as stack:
        stack.step('queue', 'start')
        wait_until(lambda: stack.probe('/metrics/qm').status_code == 200, what='an answer of the queue manager')
        given = set(re.findall(r'^# TYPE (stampd_\w+) ', stack.probe('/metrics').text + stack.probe('/metrics/qm').text, re.M))
    pages = ''.join((SOURCE / 'doc/reference' / page).read_text() for page in ('protocol.md', 'tasks.md'))
    described = set(re.findall(r'`(stampd_\w+)', pages))
    for first, others in re.findall(r'`(stampd_\w+_)[a-z]+`((?:, `_\w+`)+)', pages):  # `stampd_queue_tasks_later`, `_due`
        described |= {first + other for other in re.findall(r'`_(\w+)`', others)}
    assert len(given) >= 30 and given <= described, given - described


def test_the_log_lines_of_the_page_are_in_the_sources():
    sources = ''.join(path.read_text() for path in sorted((SOURCE / 'src').rglob('*.[ch]')))
    sources = re.sub(r'"\s*\n\s*"', '', sources)
    page = (SOURCE / 'doc/reference/log-messages.md').read_text()
    lines = [line for head in re.findall(r'^\| (`.*?) \| (?:error|warning|info)', page, re.M) for line in re.findall(r'`(.*?)`', head)]
    assert len(lines) >= 50
    for line in lines:
        for piece in line.split('…'):
            assert piece.strip(' :=') in sources, line
