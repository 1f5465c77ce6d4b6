"""Mutations as they are written: README.md tells how."""
import re
from pathlib import Path

KINDS = ('unit', 'system', 'program', 'torture', 'history', 'model')


class Problem(Exception):
    """A mutation that cannot be read, or that does not apply any more."""


STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/', re.DOTALL)


def bare(text, has_comments=True):
    """The text without white space and comments, and where each of its characters stands.  In nginx's configuration /* begins none."""
    comments = {place for found in STRING_OR_COMMENT.finditer(text) if has_comments and found[0].startswith('/*')
                for place in range(*found.span())}
    places = [place for place, one in enumerate(text) if not one.isspace() and place not in comments]
    return ''.join(text[place] for place in places), places


def missing_test(words, source):
    """What the test named by `words`, as after "by", lacks in the tree at `source`; None when it is there."""
    kind, name, *more = [*words.split(), '']
    path = {'unit': f'test/unit/test_{name}.c', 'system': f'test/system/{name}', 'program': f'test/system/{name}.c'}.get(kind)
    if path is None:
        return None
    if not (source / path).is_file():
        return f'there is no {path}'
    if kind == 'system' and more[0] == '-k' and re.fullmatch(r'\w+', more[1]):
        tests = re.findall(r'^def (test_\w+)', (source / path).read_text(), re.MULTILINE)
        if not any(more[1] in test for test in tests):
            return f'{path} has no test {more[1]!r}'
    return None


class Change:
    """In one file: a text that stands there once, behind an anchor perhaps, and what stands there instead."""

    def __init__(self, file, anchor):
        self.file, self.anchor = file, anchor
        self.old, self.new = [], []

    def make(self, text):
        has_comments = not self.file.startswith('nginx/')
        present, places = bare(text, has_comments)
        begin = 0
        if self.anchor:
            begin = present.find(bare(self.anchor)[0])
            if begin < 0:
                raise Problem(f'{self.file}: there is no {self.anchor!r}')
        wanted = bare('\n'.join(self.old), has_comments)[0]
        found = present.find(wanted, begin)
        if found < 0 or (not self.anchor and present.find(wanted, found + 1) >= 0):
            count = present.count(wanted, begin)
            raise Problem(f'{self.file}: {count} times, not once: {" ".join(self.old)[:80]!r}')
        return text[:places[found]] + '\n'.join(self.new) + text[places[found + len(wanted) - 1] + 1:]


class Mutation:
    def __init__(self, module, name):
        self.module, self.name = module, name
        self.tests, self.harms, self.changes = [], [], []
        self.reason = ''

    @property
    def file(self):
        return self.changes[0].file

    def is_quick(self):
        return bool(self.tests) and all(test.startswith('unit ') for test in self.tests)

    def harm_edits(self):
        return {} if not self.harms else self.apply([change for harm in self.harms for change in harm.changes])

    def edit(self, source):
        """{file: its text with the mutation}, of the tree at `source`."""
        for missing in filter(None, (missing_test(test, source) for test in self.tests)):
            raise Problem(missing)
        return self.apply([change for one in (*self.harms, self) for change in one.changes], source)

    def apply(self, changes, source=None):
        source = source or Path(__file__).resolve().parents[2]
        texts = {}
        for change in changes:
            if change.file not in texts:
                path = source / change.file
                if not path.is_file():
                    raise Problem(f'there is no {change.file}')
                texts[change.file] = path.read_text()
            texts[change.file] = change.make(texts[change.file])
        return texts

    def check(self):
        if not self.changes or any(not ''.join(change.old).strip() for change in self.changes):
            raise Problem(f'{self.module}: {self.name}: it changes nothing')
        if bool(self.tests) == bool(self.reason):
            raise Problem(f'{self.module}: {self.name}: either "by" or "because" is expected')


def read_file(path, mutations, harms):
    one, file, anchor, change = None, None, None, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        sign, _, rest = line.partition(' ')
        if not line.strip() or sign == '#':
            continue
        if sign in ('=', '~'):
            one, file, anchor, change = Mutation(path.stem, rest), None, None, None
            known = harms if sign == '~' else mutations
            if rest in known:
                raise Problem(f'{path.name}:{number}: {rest!r} stands there twice')
            known[rest] = one
        elif one is None:
            raise Problem(f'{path.name}:{number}: "= NAME" is expected')
        elif sign == 'by':
            if rest.split()[0] not in KINDS:
                raise Problem(f'{path.name}:{number}: one of {", ".join(KINDS)} is expected')
            one.tests.append(rest)
        elif sign == 'because':
            one.reason = f'{one.reason} {rest}'.strip()
        elif sign == 'with':
            if rest not in harms:
                raise Problem(f'{path.name}:{number}: there is no harm {rest!r}')
            one.harms.append(harms[rest])
        elif sign == 'in':
            file, anchor, change = rest, None, None
        elif sign == 'after':
            anchor, change = rest, None
        elif sign == '-':
            if change is None or change.new:
                change = Change(file, anchor)
                one.changes.append(change)
            change.old.append(rest)
        elif sign == '+' and change:
            change.new.append(rest)
        else:
            raise Problem(f'{path.name}:{number}: {line!r} is no line of a mutation')


def read_all(folder):
    """All mutations, in the order of the files' names; names are unique."""
    mutations, harms = {}, {}
    for path in sorted(folder.glob('*.mutants'), key=lambda path: (path.stem != 'harms', path.stem)):
        read_file(path, mutations, harms)
    for one in mutations.values():
        one.check()
    return list(mutations.values())
