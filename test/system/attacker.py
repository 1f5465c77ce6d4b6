"""Attacks by clients of one address, beside an ordinary client of another one who is never refused."""
import contextlib
import threading

from door_client import Client
from holder import Copy

ATTACKER, ORDINARY = '127.0.0.2', '127.0.0.3'


class Ordinary(threading.Thread):
    """A client that does what clients do, until it is told to stop; `served` counts, `refused` has what was not."""

    def __init__(self, stack, ns='lab'):
        super().__init__(daemon=True)
        self.stack, self.ns, self.served, self.refused = stack, ns, 0, []
        self.is_over = threading.Event()

    def run(self):
        copy = Copy('Usual', 'mine')
        with Client(self.stack, ORDINARY) as client:
            while not self.is_over.is_set():
                try:
                    self.once(client, copy)
                except Exception as error:  # whatever it is, the test is told
                    self.refused.append(error)
                    return

    def once(self, client, copy):
        number = self.served
        for reply in (client.op(self.ns, 'put', {'docs': [{'c': 'Usual', 'id': 'mine', 'items': [{'c': 'Number', 'j': number}]}]}),
                      client.get(self.ns, 'Usual', 'mine'), client.op(self.ns, 'sync', syncs=[copy.request()])):
            if reply.status != 200:
                self.refused.append(reply)
                return
        copy.apply(reply.json['syncs'][0])
        assert copy.items == {('Number', None): number}
        self.served += 1


@contextlib.contextmanager
def beside(stack, ns='lab', least=5):
    """An ordinary client while the block runs: it is served at least so often, and no worker dies."""
    workers = stack.worker_pids()
    ordinary = Ordinary(stack, ns)
    ordinary.start()
    try:
        yield ordinary
        while ordinary.served < least and not ordinary.refused and ordinary.is_alive():
            ordinary.is_over.wait(0.05)
    finally:
        ordinary.is_over.set()
        ordinary.join(60)
    assert ordinary.refused == [] and ordinary.served >= least, (ordinary.served, [getattr(one, 'json', one) for one in ordinary.refused])
    assert stack.worker_pids() == workers, 'a worker has died'


def attack(stack, do, times, clients=4):
    """What `do(client, number)` returns, by several connections at once of one address."""
    results, numbers, lock = [], iter(range(times)), threading.Lock()

    def run():
        with Client(stack, ATTACKER) as client:
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                result = do(client, number)
                with lock:
                    results.append(result)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(results) == times, 'an attack has failed to be answered'
    return results
