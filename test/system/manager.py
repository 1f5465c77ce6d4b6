"""A queue manager for tests: the requests of one, and a loop of them in threads."""
import threading

import requests

from stack import PATIENCE_S, Problem, wait_until

PARKED = 991231235959999


class Manager:
    def __init__(self, stack, ns='demo'):
        self.stack = stack
        self.ns = ns

    def post(self, taskid='', param=None, key=None, **more):
        key = self.stack.queue_key if key is None else key
        body = {'key': key} if param is None else {'key': key, 'param': param}
        return self.stack.request('POST', f'/{self.ns}/od' + (f'/{taskid}' if taskid else ''), json=body, **more)

    def run(self, taskid, status=200):
        """The outcome of one task."""
        answer = self.post(taskid)
        assert answer.status_code == status, answer.text
        (outcome,) = answer.json()['tasks']
        assert outcome['id'] == taskid
        return outcome

    def run_together(self, taskids):
        """The outcomes of one request, in order."""
        answer = self.post(param={'run': taskids})
        if answer.status_code != 200:
            raise Problem(answer)
        outcomes = answer.json()['tasks']
        assert [outcome['id'] for outcome in outcomes] == taskids
        return outcomes

    def run_many(self, taskids):
        """The outcomes, by name; those that have waited too long for the others are run once more."""
        found = {}
        while taskids:
            found |= {outcome['id']: outcome for outcome in self.run_together(taskids)}
            taskids = [taskid for taskid in taskids if found[taskid]['result'] == 'more']
        return found

    def scan(self, **wish):
        answer = self.post(param={'scan': wish})
        if answer.status_code != 200:
            raise Problem(answer)
        return answer.json()

    def due(self, **wish):
        return [row['id'] for row in self.scan(**wish)['due']]

    def is_empty(self):
        """Does nothing wait that is not parked, and nothing run?"""
        return self.stack.psql(self.ns, 'select count(*) from taskqueue where startat < %s', (PARKED,)) == [(0,)]

    def hurry(self):
        """What waits for a later time may start now."""
        self.stack.psql(self.ns, 'update taskqueue set startat = stamp_now() where starttime is null and startat < %s', (PARKED,))

    def work(self, threads=4, until=None, seconds=PATIENCE_S, meanwhile=lambda: None):
        """Scans and runs until nothing is left (or `until` says so), whatever fails, with requests doubled now and then, some for
        several tasks; does `meanwhile` again and again."""
        over, key = threading.Event(), self.stack.queue_key

        def serve(number):
            own = requests.Session()
            own.trust_env, own.verify = False, self.stack.http.verify
            while not over.is_set():
                try:
                    found = own.post(f'{self.stack.url}/{self.ns}/od', json={'key': key, 'param': {'scan': {}}}, timeout=30)
                    ids = [row['id'] for row in found.json()['due']] if found.status_code == 200 else []
                    if number == 0 and ids:
                        own.post(f'{self.stack.url}/{self.ns}/od', json={'key': key, 'param': {'run': ids[::threads]}}, timeout=60)
                        continue
                    for taskid in ids[number::threads] + ids[:1]:
                        own.post(f'{self.stack.url}/{self.ns}/od/{taskid}', json={'key': key}, timeout=60)
                except (requests.RequestException, ValueError):
                    pass
                over.wait(0.01)
            own.close()

        servers = [threading.Thread(target=serve, args=(number,)) for number in range(threads)]
        for server in servers:
            server.start()
        try:
            wait_until(lambda: meanwhile() or (until or self.is_empty)(), seconds=seconds, what='an empty queue')
        finally:
            over.set()
            for server in servers:
                server.join()
