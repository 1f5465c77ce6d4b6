"""An external worker as tests play it: the declaration of its queues, its requests, and what the table has then."""
import hashlib
import secrets

from stack import Problem

KEY, OTHER_KEY = secrets.token_hex(16), secrets.token_hex(16)


def queue(qn, *ops, key=KEY, **more):
    """The declaration of a queue that whoever has the key serves."""
    return {'qn': qn, 'ops': ops, 'key': hashlib.sha256(key.encode()).hexdigest(), **more}


QUEUES = [queue(16, 'resize', 'shout', request='anybody'), queue(17, 'secret', key=OTHER_KEY)]


def declare(stack, queues):
    stack.op('z', 'ns', {'set': {'ns': 'lab', 'workers': queues}}, admin=True)


def empty(stack):
    stack.psql('lab', 'truncate taskqueue, task_history, task_limit, task_debt, task_paused')
    stack.clear('lab', 'Note')


# --- requests ---

def call(stack, name, key=KEY, headers=None, **param):
    answer = stack.request('POST', f'/lab/op/{name}', json={'param': param}, headers={'Authorization': f'Bearer {key}', **(headers or {})})
    if answer.status_code != 200:
        raise Problem(answer)
    return answer.json()['out']


def ask(stack, op='resize', param=None, **more):
    return stack.op('lab', 'task', {'op': op, 'param': param or {}, **more})['out']['id']


def take(stack, n=1, qn=16, **more):
    return call(stack, 'take', qn=qn, n=n, **more)['tasks']


def claim(task):
    return {name: task[name] for name in ('id', 'starttime', 'retry')}


def note(text, ident='a', **more):
    return [{'c': 'Note', 'id': ident, 'items': [{'c': 'Text', 'j': text}], **more}]


def names(tasks):
    return [task['id'] for task in tasks]


# --- the table ---

def history(stack, columns='exc, result'):
    return stack.psql('lab', f'select {columns} from task_history order by number')


def row(stack, taskid, columns):
    found = stack.psql('lab', f'select {columns} from taskqueue where taskid = %s', (taskid,))
    return found[0] if found else None


def claimed(stack):
    return {taskid for taskid, in stack.psql('lab', 'select taskid from taskqueue where starttime is not null')}


def overdue(stack):
    """Every claim ends now."""
    stack.psql('lab', 'update taskqueue set expires = stamp_now() - 1 where expires is not null')
