"""Replays the examples of a page of doc/.

What a page shows is typed, block by block, as it stands there:

    ```sh           that begins with `curl`, or with `stampctl` and has an answer behind it: a command of bash; $URL, $PROBE, $KEY and
                    $QUEUE_KEY are set
    ```sh terminal  the same, beside the others: what is shown of it later is awaited
    ```sql          with an answer behind it: a command for psql, in the database of the namespace lab
    ```json schema  the schema of lab from here on
    ```json         behind one of these, its answer; white space between the members is for people
    ```text         behind one of these, what it prints
    ```json rules, ```json cases    access rules, and a table of cases for them: run by test_rules.py
    ```js, ```c     code, not replayed

A stamp in an answer stands for one stamp of the answers, the same wherever it comes again, and a later one for a later one.  A request
takes the stamps that were received before.  `…` stands for any value; in ```text for any text of its line.

A request that cannot be replayed has a reason in the line above it: *Not replayed: it needs a browser.*
"""
import json
import os
import re
import shlex
import signal
import subprocess
import time

from schema import Schemas
from stack import BUILD, PATIENCE_S, SOURCE

DEMONSTRATION = 'https://localhost:8443'
BLOCK = re.compile(r'^```(\w*)((?: \w+)?)\n(.*?)^```$', re.M | re.S)
STAMP = re.compile(r'(?<!\d)\d{15}(?!\d)')
STAMP_OR_ANY = re.compile(r'(?<!\d)\d{15}(?!\d)|…')
STRING_OR_BLANKS = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')
REASON = re.compile(r'^\*Not replayed: [^*]{10,}\*$')
CURL = re.compile(r'(^|[|;&({]) *curl ', re.M)
REQUEST = re.compile(r'^(GET|POST|PUT|PATCH|DELETE|HEAD) /', re.M)
ANSWER = re.compile(r'^\{"(out|syncs|type":"about:blank)"')
PRESENT = '"t":'  # of pings and scans: it never comes again


class Example:
    """A command of a page, with the answer behind it, or None."""

    def __init__(self, page, line, kind, request, answer_kind, shown):
        self.where, self.kind, self.request, self.answer_kind, self.shown = f'{page}:{line}', kind, request, answer_kind, shown


def read_page(page, text=None):
    """The examples of a page in their order; an assertion fails at a request that would not be replayed, and gives no reason."""
    text = (SOURCE / page).read_text() if text is None else text
    blocks, found, replayed = list(BLOCK.finditer(text)), [], False
    for number, match in enumerate(blocks):
        kind, more, content = match[1], match[2].strip(), match[3]
        where = f'{page}:{text.count(chr(10), 0, match.start()) + 1}'
        behind = blocks[number + 1] if number + 1 < len(blocks) else None
        answer = behind if behind and behind[1] in ('json', 'text') and not behind[2].strip() else None
        if answer and text[match.end():answer.start()].strip():
            answer = None  # it is of something else
        before = text[:match.start()].rstrip('\n').rpartition('\n')[2]
        line = int(where.rpartition(':')[2])
        if REASON.match(before):
            replayed = True  # so is the answer behind it
        elif kind == 'json' and more == 'schema':
            found.append(Example(page, line, 'schema', content, None, None))
            replayed = False
        elif kind == 'sh' and (content.startswith('curl ') or answer and content.startswith('stampctl ')):
            found.append(Example(page, line, more or 'sh', content, answer and answer[1], answer and answer[3]))
            replayed = answer is not None
        elif kind == 'sql' and answer:
            found.append(Example(page, line, 'sql', content, answer[1], answer[3]))
            replayed = True
        elif kind == 'text' and not replayed and any(one.kind == 'terminal' for one in found):
            found.append(Example(page, line, 'awaited', None, 'text', content))
            replayed = False
        else:
            is_request = REQUEST.search(content) or kind == 'sh' and CURL.search(content)
            assert not is_request or kind in ('js', 'c'), f'{where}: a request that is not replayed, without a reason'
            assert replayed or not (kind == 'json' and ANSWER.match(content)), f'{where}: an answer without its request'
            replayed = False
    return found


def compact(text):
    return STRING_OR_BLANKS.sub(lambda match: match[1] or '', text)


def learn(shown, received, stamps):
    """Compares an answer with the one that the page shows; `stamps` grows by those shown here first.  Returns what is wrong."""
    shown, at, end = compact(shown), 0, 0
    for match in STAMP_OR_ANY.finditer(shown):
        literal, name = shown[at:match.start()], match[0]
        if not received.startswith(literal, end):
            break
        if name == '…':
            at, end = match.end(), re.compile(r'[^",}\]]*').match(received, end + len(literal)).end()
            continue
        found = STAMP.match(received, end + len(literal))
        if not found:
            return f'a stamp is shown for {received[end + len(literal):][:40]!r}'
        at, end = match.end(), found.end()
        if not literal.endswith(PRESENT) and stamps.setdefault(name, found[0]) != found[0]:
            return f'{name} stood for {stamps[name]}, {found[0]} is received'
    rest = shown[at:]
    if received[end:] != rest:
        same = len(os.path.commonprefix([rest, received[end:]]))
        return f'{rest[same:][:60]!r} is shown, {received[end + same:][:60]!r} is received after {received[:end + same][-60:]!r}'
    return None


def lines_of(text):
    return [re.sub(r'-{3,}', '---', re.sub(r'\s+', ' ', line)).strip() for line in text.strip().splitlines() if line.strip()]


def is_printed(shown, printed, whole=True):
    """Are the lines of the page those that are printed, or (`whole` False) among them, one behind the other?"""
    pattern = '\n'.join(STAMP.sub(r'\\d{15}', re.escape(line).replace('…', '.*')) for line in lines_of(shown))
    received = '\n'.join(lines_of(printed))
    return re.fullmatch(pattern, received) if whole else re.search(rf'^{pattern}$', received, re.M)


class Replay:
    """The examples of one page on one stack; `folder` is where their commands run."""

    def __init__(self, stack, folder):
        self.stack, self.folder, self.stamps, self.beside = stack, folder, {}, []
        tools = folder / 'bin'
        tools.mkdir()
        self.tool(tools / 'stampctl', f"exec '{BUILD}/src/stampctl' -c '{stack.path}/etc/stampd.conf' \"$@\"")
        (folder / 'work').mkdir()
        self.environment = {**os.environ, 'URL': stack.url, 'PROBE': stack.probe_url, 'KEY': stack.key, 'QUEUE_KEY': stack.queue_key,
                            'PGUSER': 'postgres', 'PGHOST': str(stack.database), 'STAMPD_SQL': str(SOURCE / 'sql'),
                            'PATH': f'{tools}:{os.environ["PATH"]}'}

    @staticmethod
    def tool(path, command):
        path.write_text(f'#!/bin/sh\n{command}\n')
        path.chmod(0o755)

    def play(self, page, examples):
        try:
            for example in examples:
                getattr(self, example.kind)(example)
        finally:
            for process, _ in self.beside:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        order = sorted(self.stamps, key=self.stamps.get)
        assert order == sorted(self.stamps), f'{page}: the stamps shown are in another order than those received'
        assert len(set(self.stamps.values())) == len(self.stamps), f'{page}: two stamps are shown for one'

    def command(self, example):
        return STAMP.sub(lambda match: self.stamps.get(match[0], match[0]), example.request).replace(DEMONSTRATION, '$URL')

    def schema(self, example):
        declared = json.loads(example.request)
        Schemas(self.stack, None).apply('lab', declared['classes'], searches=declared.get('searches'))

    def sh(self, example):
        self.judge(example, ['bash', '-ec', self.command(example)])

    def sql(self, example):
        text = 'set search_path = stampd;\n' + self.command(example)
        self.judge(example, ['bash', '-ec', f'psql -XqP footer=off -v ON_ERROR_STOP=1 -d stampd_lab <<< {shlex.quote(text)}'])

    def judge(self, example, command):
        done = subprocess.run(command, env=self.environment, cwd=self.folder / 'work', stdin=subprocess.DEVNULL, text=True, timeout=PATIENCE_S,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT if example.answer_kind == 'text' else subprocess.PIPE)
        what = f'{example.where}:\n{command[-1]}\n{done.stdout}{done.stderr or ""}'
        assert done.returncode == 0 or example.answer_kind == 'text', what
        if example.answer_kind == 'text':
            assert is_printed(example.shown, done.stdout), what
        elif example.shown:
            wrong = learn(example.shown, done.stdout.replace('\n', ''), self.stamps)
            assert not wrong, f'{wrong}\n{what}'

    def terminal(self, example):
        output = self.folder / f'terminal-{len(self.beside)}'
        self.beside.append((subprocess.Popen(['bash', '-ec', self.command(example)], cwd=self.folder / 'work', env=self.environment,
                                             start_new_session=True, stdin=subprocess.DEVNULL, stdout=output.open('w'),
                                             stderr=subprocess.STDOUT), output))
        if example.shown:
            self.awaited(example)

    def awaited(self, example):
        output, end = self.beside[-1][1], time.monotonic() + PATIENCE_S
        while not is_printed(example.shown, printed := output.read_text(errors='replace'), whole=False):  # a character may be half written
            assert time.monotonic() < end, f'{example.where}: the terminal shows:\n{printed}'
            time.sleep(0.1)
