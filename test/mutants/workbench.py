"""A copy of the tree and of a build, where one mutation after the other is made and tried."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get('STAMPD_BUILD', SOURCE / 'var/build')).resolve()
ROOM = Path('/var/tmp')
SKIPPED = ('.git', 'var', 'autom4te.cache', '__pycache__', '.pytest_cache')
MAINS = ('src/stampd', 'src/stampctl', 'src/stamp-queue', 'src/stamp-journal', 'src/stamp-forward', 'src/stamp-spool')
ARCHIVES = ('libstampd.a', 'libstampd-spool.a', 'libstampd-journal.a')
UNIT_MOST_S, PROGRAM_MOST_S, SYSTEM_MOST_S, HISTORY_MOST_S = 60, 300, 600, 400
NO_END = 'it does not end'


class BuildError(Exception):
    """The compiler's or the linker's first words."""


def run(command, seconds, **more):
    """Status and output; one that does not end is ended, with all that it has begun."""
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors='replace', start_new_session=True, **more)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)  # pytest stops what it has started
        try:
            output, _ = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        return None, output
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        raise


def bring_up_to_date():
    for goal in (['all'], ['check', 'TESTS=']):
        subprocess.run(['make', '-s', '-C', BUILD, f'-j{os.cpu_count()}', *goal], check=True, stdout=subprocess.DEVNULL)


class Makefile:
    """The variables of the build's Makefile, as if the tree were another."""

    def __init__(self, tree):
        self.values = {}
        for line in (BUILD / 'Makefile').read_text().replace('\\\n', ' ').splitlines():
            name, equals, value = line.partition(' = ')
            if equals and name.replace('_', '').isalnum():
                self.values.setdefault(name, value)
        for name in ('srcdir', 'top_srcdir', 'abs_srcdir', 'abs_top_srcdir'):
            self.values[name] = str(tree)
        self.values['OBJEXT'] = 'o'

    def get(self, *names):
        """The first of the variables that there is, other variables put in."""
        value = next((self.values[name] for name in names if name in self.values), '')
        return re.sub(r'\$[({](\w+)[)}]', lambda other: self.get(other[1]), value)

    def words(self, *names):
        return shlex.split(self.get(*names))


class Workbench:
    def __init__(self, number):
        self.number = number
        self.room = Path(tempfile.mkdtemp(prefix='stampd-mutants-', dir=ROOM))
        self.room.chmod(0o755)
        self.tree = self.room / 'tree'
        shutil.copytree(SOURCE, self.tree, symlinks=True, ignore=lambda folder, names: [
            name for name in names if name in SKIPPED or Path(folder, name) == BUILD])
        self.build = self.tree / BUILD.relative_to(SOURCE) if BUILD.is_relative_to(SOURCE) else self.room / 'build'
        self.makefile = Makefile(self.tree)
        self.postgres = None
        self.edited, self.objects, self.linked = {}, {}, set()
        self.copy_build()
        self.dependents = self.read_dependencies()

    def copy_build(self):
        """Links to all that has been built; what is linked anew takes their places."""
        for folder, folders, files in os.walk(BUILD):
            folders[:] = [name for name in folders if name != '.deps']
            place = self.build / Path(folder).relative_to(BUILD)
            place.mkdir(parents=True, exist_ok=True)
            for name in files:
                (place / name).symlink_to(Path(folder, name))

    def read_dependencies(self):
        """{file of the tree: the objects that are made from it}"""
        found = {}
        for path in BUILD.rglob('.deps/*.Po'):
            made = str(path.parent.parent.relative_to(BUILD) / f'{path.stem}.o')
            first = path.read_text().partition('\n\n')[0].replace('\\\n', ' ')
            for word in first.partition(':')[2].split():
                whole = Path(os.path.normpath(BUILD / word))
                if whole.is_relative_to(SOURCE):
                    found.setdefault(str(whole.relative_to(SOURCE)), set()).add(made)
        return found

    def close(self):
        if self.postgres:
            self.postgres.remove()
        shutil.rmtree(self.room, ignore_errors=True)

    # --- a mutation ---

    def make(self, texts):
        """The files get these texts, what they go into is compiled; it is linked when a test wants it."""
        self.restore()
        self.edited = texts
        for name, text in texts.items():
            (self.tree / name).write_text(text)
        self.touches_sql = any(name.startswith('sql/') for name in texts)
        touched = set().union(*(self.dependents.get(name, set()) for name in texts))
        for archive in ARCHIVES:
            target = re.sub(r'\W', '_', archive)
            members = sorted(set(self.makefile.words(f'{target}_OBJECTS') or self.makefile.words(f'am_{target}_OBJECTS')))
            if not touched.intersection(members):
                continue
            for made in touched.intersection(members):
                self.objects[made] = self.compile(made, target)
            self.linked.add(archive)
            (self.build / archive).unlink()
            self.must('ar', 'crT', self.build / archive, *(self.objects.get(made, BUILD / made) for made in members))

    def restore(self):
        for name in self.edited:
            shutil.copy2(SOURCE / name, self.tree / name)
        for made in self.objects.values():
            made.unlink(missing_ok=True)
        for name in self.linked:
            (self.build / name).unlink(missing_ok=True)
            (self.build / name).symlink_to(BUILD / name)
        self.edited, self.objects, self.linked = {}, {}, set()

    def must(self, *command):
        status, output = run(command, 300, cwd=self.build)
        if status != 0:
            lines = [line for line in output.splitlines() if 'error' in line or 'undefined' in line] or output.splitlines() or ['?']
            raise BuildError(lines[0].replace(str(self.tree) + '/', ''))

    def compile(self, made, target):
        """An object of a target, from the tree."""
        makefile = self.makefile
        folder, _, stem = made[:-2].rpartition('/')
        source = self.tree / folder / f'{stem.rpartition("-")[2]}.c'
        if not source.exists():
            source = self.tree / folder / f'{stem}.c'
        place = self.room / made.replace('/', '.')
        compiler = makefile.words('CC')
        if 'ccache' not in compiler[0] and shutil.which('ccache'):
            compiler.insert(0, 'ccache')
        flags = [flag for flag in makefile.words('AM_CFLAGS') if not flag.startswith('-W')]
        self.must(*compiler, '-DHAVE_CONFIG_H', f'-I{BUILD}', *makefile.words(f'{target}_CPPFLAGS', 'AM_CPPFLAGS'), *flags,
                  '-O1', '-w', '-c', source, '-o', place)
        return place

    def link(self, program):
        """Links a program anew when the mutation touches it."""
        target = re.sub(r'\W', '_', program)
        own = self.makefile.words(f'am_{target}_OBJECTS', f'{target}_OBJECTS')
        touched = set().union(*(self.dependents.get(name, set()) for name in self.edited))
        stale = [made for made in own if made in touched or (self.touches_sql and 'scratch' in made)]
        if program in self.linked or not (self.objects or stale):
            return
        for made in stale:
            self.objects[made] = self.compile(made, target)
        self.linked.add(program) # also when it cannot be linked: restore() brings the sound one back
        (self.build / program).unlink()
        libraries = [word for word in self.makefile.words(f'{target}_LDADD', 'LDADD')]
        self.must(*self.makefile.words('CC'), *self.makefile.words(f'{target}_LDFLAGS', 'AM_LDFLAGS'),
                  *(self.objects.get(made, BUILD / made) for made in own), *libraries, '-o', self.build / program)
        (self.build / program).chmod(0o755)

    # --- tests ---

    def notices(self, test):
        """What the test says against what has been made; None when it passes."""
        kind, _, rest = test.partition(' ')
        return getattr(self, f'run_{kind}')(rest)

    def run_unit(self, name):
        program = f'test/unit/test_{name}'
        self.link(program)
        status, output = run([self.build / program], UNIT_MOST_S, cwd=self.build)
        return judge(status, [line for line in output.splitlines() if 'FAILED  ] ' in line or 'failed in child' in line])

    def server(self):
        """A PostgreSQL for the programs that need one."""
        if not self.postgres:
            from stack import Stack
            self.postgres = Stack(f'mutants{self.number}', workers=1).start()
        return {**os.environ, 'STAMPD_TEST_CONNINFO': self.postgres.conninfo_of_server()}

    def run_program(self, rest):
        """A program of test/system, and its arguments."""
        name, *arguments = rest.split()
        program = f'test/system/{name}'
        self.link(program)
        status, output = run([self.build / program, *arguments], PROGRAM_MOST_S, cwd=self.build, env=self.server())
        return judge(status, [line for line in output.splitlines() if 'FAILED  ] ' in line or 'VIOLATION' in line or 'ssert' in line])

    def run_torture(self, seconds):
        words = self.run_program(f'torture --database stampd_mutant --seconds {seconds or 6}')
        return words if words and ('VIOLATION' in words or words == NO_END) else None

    def environment(self):
        place = int(os.environ.get('STAMPD_TEST_PLACE', 0)) + self.number
        return {**os.environ, 'STAMPD_BUILD': str(self.build), 'PYTHONDONTWRITEBYTECODE': '1', 'STAMPD_TEST_PLACE': str(place)}

    def link_all(self):
        for program in MAINS:
            self.link(program)

    def run_system(self, rest):
        """Arguments of pytest, of which the first is a file of test/system."""
        self.link_all()
        if 'test_programs' in rest:
            raise BuildError('"by program NAME" is meant')
        command = ['/usr/bin/python3', '-m', 'pytest', '-q', '-x', '-p', 'no:cacheprovider', '--tb=line', *shlex.split(rest)]
        status, output = run(command, SYSTEM_MOST_S, cwd=self.tree / 'test/system', env=self.environment())
        remove_kept(output)
        if status in (2, 3, 4, 5):
            raise BuildError(f'pytest ended with {status}: {output[-300:]}')
        return judge(status, [line for line in output.splitlines() if line.startswith(('FAILED', 'ERROR'))])

    def run_history(self, rest):
        """A hunt by test/history/hunt, with these arguments."""
        self.link_all()
        status, output = run(['/usr/bin/python3', self.tree / 'test/history/hunt', *shlex.split(rest)], HISTORY_MOST_S,
                             cwd=self.tree, env=self.environment())
        if status not in (0, 1):
            raise BuildError(f'hunt ended with {status}: {output[-300:]}')
        return judge(status, [line for line in output.splitlines() if 'VIOLATION' in line])

    def run_model(self, rest):
        status, output = run(['test/model/run', *rest.split()], PROGRAM_MOST_S, cwd=self.tree)
        return judge(status, [line for line in output.splitlines() if line.startswith('not ok')])


def judge(status, lines):
    if status == 0:
        return None
    return NO_END if status is None else (lines or [f'status {status}'])[0].strip()[:160]


def remove_kept(output):
    """Folders that a failed test leaves for somebody to look at: here nobody will."""
    for path in re.findall(r'kept: (/var/tmp/stampd-\S+)', output):
        shutil.rmtree(path, ignore_errors=True)
