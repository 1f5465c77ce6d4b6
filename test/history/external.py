"""External workers in a campaign: clients request tasks of theirs, processes of their own (external_worker.py) take and end them."""
import hashlib
import json
import secrets
import subprocess
import sys
from pathlib import Path

from external_worker import ITEM, TALLY, Worker
from stack import wait_until

QUEUE, OPERATION = 16, 'Labour'
KEY = secrets.token_hex(16)  # of all workers of this process
DECLARED_S = 60
DOMAINS = 'xyz'


def declare_workers(stacks, namespaces):
    """Until every instance has read it."""
    queue = {'qn': QUEUE, 'ops': [OPERATION], 'key': hashlib.sha256(KEY.encode()).hexdigest(), 'request': 'anybody', 'claim_s': 1, 'retries': '1s 1s..1sx30'}
    for ns in namespaces:
        stacks[0].op('z', 'ns', {'set': {'ns': ns, 'workers': [queue]}}, admin=True)
    for stack in stacks:
        for ns in namespaces:
            wait_until(lambda stack=stack, ns=ns: stack.request('POST', f'/{ns}/op/take', json={'param': {'qn': QUEUE}}, headers={
                'Authorization': f'Bearer {KEY}'}).status_code == 200, DECLARED_S, 'declared workers')


class External:
    """What the process that leads does with them."""

    def __init__(self, campaign, workers):
        self.campaign = campaign
        self.plan = {'servers': campaign.servers, 'ns': campaign.ns, 'key': KEY, 'qn': QUEUE, 'seed': campaign.seed, 'label': campaign.label,
                     'folder': str(campaign.folder), 'documents': campaign.documents, 'clocks': [str(clock.low) for clock in campaign.clocks],
                     'workers': workers}
        self.parent = subprocess.Popen([sys.executable, Path(__file__).with_name('external_worker.py'), json.dumps(self.plan)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, words):
        self.parent.stdin.write(words + '\n')
        self.parent.stdin.flush()
        if not self.parent.stdout.readline():
            raise RuntimeError('the parent of the external workers has ended')

    def begin(self):
        self.tell(f'begin {self.campaign.round.value}')

    def rest(self):
        self.tell('rest')

    def close(self):
        self.parent.stdin.close()
        self.parent.stdout.close()
        self.parent.wait(30)

    def finisher(self):
        """A worker that does no harm, to end what is left."""
        return Worker(self.plan, f'{self.campaign.label}-wlast.{self.campaign.round.value}', self.campaign.leader.file, left_open={})


def finish_some(worker):
    tasks = worker.take(most=20, wait=0)
    while tasks:
        for task in tasks:
            worker.done(task)
        tasks, worker.following = worker.following, []


def request_task(client):
    """A task, perhaps one of a domain in strict order."""
    dice, campaign, name = client.dice, client.campaign, client.next_name()
    tally = dice.choice(campaign.endings())
    domain = dice.choice(DOMAINS) if dice.random() < 0.4 else None
    param = {'op': OPERATION, 'param': {'tally': tally, 'key': name}, **({'domain': domain, 'order': 'strict'} if domain else {})}
    client.synced = []
    client.write(name, 'task', lambda headers, more: client.operate('task', {'param': param}, headers, **more), [], {}, labour=[tally, name, domain])


def read_ended(campaign):
    """tally -> {name of the request that ended a task: key of the task}; None: no answer."""
    client = campaign.leader
    answer = client.operate('get', {'param': {'docs': [{'c': TALLY, 'id': name} for name in campaign.endings()]}})
    if answer.result == 'wrong' or client.trouble(answer):
        return None
    return {one['id']: {item['k']: item['j'] for item in one.get('items', ()) if item['c'] == ITEM} for one in answer.body['out']['docs']}
