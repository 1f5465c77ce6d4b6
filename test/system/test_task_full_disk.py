"""A full disk: the tables of a namespace lie on a small file system of their own, which is filled while tasks wait, run and are
asked for.  Then tasks wait or fail in words, and when there is room again each has done once what it does."""
import os
import shutil
import subprocess
from pathlib import Path

import psycopg2
import pytest

from kit import Kit
from manager import Manager
from stack import wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 3, 'settings': {}}
TASKS, REFUSALS, WORDS = 200, 12, 'x' * 200  # each task takes room for its document and for its words in the history
MOVE = """
do $$
declare
  one record;
begin
  for one in select c.relname, c.relkind from pg_class c where c.relnamespace = 'stampd'::regnamespace and c.relkind in ('r', 'i') loop
    execute format('alter %s stampd.%I set tablespace {}', case one.relkind when 'r' then 'table' else 'index' end, one.relname);
  end loop;
end $$"""


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    STACK['settings'] = {'modules': kit.build('tasks.c')}
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


def as_root(*command):
    done = subprocess.run([*([] if os.geteuid() == 0 else ['sudo', '-n']), *map(str, command)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout.strip()


class Disk:
    """A file system in memory with a ballast that takes what room there is."""

    def __init__(self, path, owner):
        self.path, self.ballast = path, path / 'ballast'
        path.mkdir()
        self.is_mounted, self.words = as_root('mount', '-t', 'tmpfs', '-o', f'size=16m,mode=1777,uid={owner}', 'tmpfs', path)

    def fill(self):
        with open(self.ballast, 'ab', buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while True:
                        file.write(b'\0' * size)
                except OSError:
                    pass

    def clear(self):
        self.ballast.unlink(missing_ok=True)

    def remove(self):
        self.clear()
        is_gone, _ = as_root('umount', self.path)
        if not is_gone:
            as_root('umount', '-l', self.path)


@pytest.fixture(scope='module')
def disk(stack):
    owner = Path(f'/proc/{stack.pid("postgres")}').stat().st_uid
    disk = Disk(stack.path / 'disk', owner)
    if not disk.is_mounted:
        pytest.skip(f'a file system of its own is needed, which takes root or sudo: {disk.words}')
    place = disk.path / 'tables'
    place.mkdir()
    as_root('chown', owner, place)
    stack.psql(None, f"create tablespace small location '{place}'")
    stack.psql('lab', MOVE.format('small'))
    yield disk
    disk.clear()
    stack.psql('lab', MOVE.format('pg_default'))
    stack.psql(None, 'drop tablespace small')
    disk.remove()


def ask(stack, number):
    """Whether the task was written, by the answer."""
    answer = stack.request('POST', '/lab/op/task', json={'param': {'op': 'Count', 'param': {'id': f'n{number}'}, 'info': f'{number} {WORDS}'}})
    assert answer.status_code == 200 or answer.json()['code'] == 'XFULL', answer.text
    return answer.status_code == 200


def run_while_full(manager):
    """Runs what is due until so many attempts were refused; what they were told."""
    told = []

    def run_some():
        scan = manager.post(param={'scan': {}})
        due = [row['id'] for row in scan.json().get('due', [])]
        for taskid in due[:40]:
            answer = manager.post(taskid).json()
            told.append(answer['code'] if 'code' in answer else answer['tasks'][0]['result'])
        if due:
            for outcome in manager.post(param={'run': due[40:80] or due[:1]}).json().get('tasks', []):
                told.append(outcome.get('code', outcome['result']))
        return told.count('XFULL') >= REFUSALS
    wait_until(run_some, what='refusals')
    return told


def hurry(manager):
    try:
        manager.hurry()
    except psycopg2.Error:
        pass  # it is said again


def test_when_there_is_room_again_each_task_is_done_once(stack, disk):
    manager = Manager(stack, 'lab')
    asked = [number for number in range(TASKS) if ask(stack, number)]
    assert len(asked) == TASKS, 'there is room'
    disk.fill()
    told = run_while_full(manager)
    assert set(told) <= {'XFULL', 'done', 'gone', 'running', 'waiting', 'busy', 'more'}, told
    asked += [number for number in range(TASKS, TASKS + 40) if ask(stack, number)]
    assert len(asked) < TASKS + 40, 'there is none'
    disk.clear()
    manager.work(meanwhile=lambda: hurry(manager))
    assert stack.psql('lab', 'select count(*) from taskqueue') == [(0,)], 'none is parked'
    counted = dict(stack.psql('lab', "select id, (content::json ->> 'n')::int from item where class = 'Counter' and content is not null"))
    assert counted == {f'n{number}': 1 for number in asked}, 'none is lost, none is done twice'
    ends = stack.psql('lab', 'select taskid from task_history where exc is null')
    assert len(ends) == len(set(ends)) == len(asked)
    assert 'PANIC' not in stack.log('postgres')
