"""Many clients change one document: none is refused, nothing is lost, also when workers die."""
import threading

import requests

from stack import Problem

CLIENTS, ROUNDS = 8, 20
STACK = {'workers': CLIENTS + 2}  # one of which stays free: when all others are at commits for two seconds, as on a busy machine, it begins none


class Client(threading.Thread):
    """A connection of its own; `deed(client, round)` again and again.  Keeps what it was told."""

    def __init__(self, stack, number, deed):
        super().__init__(daemon=True)
        self.stack, self.number, self.deed = stack, number, deed
        self.http = requests.Session()
        self.http.trust_env, self.http.verify = False, stack.http.verify
        self.problems, self.error = [], None

    def op(self, name, *documents):
        response = self.http.post(f'{self.stack.url}/lab/op/{name}', json={'param': {'docs': list(documents)}}, timeout=60)
        if response.status_code != 200:
            raise Problem(response)
        return response.json()['out']

    def run(self):
        try:
            for turn in range(1, ROUNDS + 1):
                self.deed(self, turn)
        except Exception as error:  # told by the test
            self.error = error


def run_clients(stack, deed, meanwhile=lambda: None):
    clients = [Client(stack, number, deed) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    meanwhile()
    for client in clients:
        client.join(timeout=120)
        assert not client.is_alive()
        assert client.error is None, client.error
    return clients


def values(stack, name):
    document = stack.get('lab', ('Note', name))
    return document['v'], {entry.get('k'): entry['j'] for entry in document.get('items', [])}


def test_writers_of_one_document_do_not_refuse_each_other(stack):
    versions = []

    def write(client, turn):
        items = [{'c': 'Count', 'k': str(client.number), 'j': turn}]
        versions.append(client.op('put', {'c': 'Note', 'id': 'hot', 'items': items})['v'])

    run_clients(stack, write)
    version, counts = values(stack, 'hot')
    assert counts == {str(number): ROUNDS for number in range(CLIENTS)}
    assert len(set(versions)) == CLIENTS * ROUNDS and max(versions) == version


def test_writers_of_several_documents_in_any_order_do_not_either(stack):
    names = [f'several{i}' for i in range(4)]

    def write(client, turn):
        turned = names[client.number % 4:] + names[:client.number % 4]
        chosen = turned[:1 + turn % 4][::1 if client.number % 2 else -1]
        client.op('put', *({'c': 'Note', 'id': name, 'items': [{'c': 'Count', 'k': str(client.number), 'j': turn}]}
                           for name in chosen))

    run_clients(stack, write)
    for name in names:
        assert set(values(stack, name)[1]) == {str(number) for number in range(CLIENTS)}


def test_what_is_read_and_written_under_a_condition_is_never_lost(stack):
    stack.put('lab', {'c': 'Note', 'id': 'sum', 'items': [{'c': 'Count', 'j': 0}]})

    def add(client, _):
        while True:
            document = client.op('get', {'c': 'Note', 'id': 'sum'})['docs'][0]
            items = [{'c': 'Count', 'j': document['items'][0]['j'] + 1}]
            try:
                client.op('put', {'c': 'Note', 'id': 'sum', 'if': document['v'], 'items': items})
                return
            except Problem as problem:
                if problem.code != 'AVERSION':
                    raise

    run_clients(stack, add)
    assert values(stack, 'sum')[1] == {None: CLIENTS * ROUNDS}


def test_workers_that_die_in_the_middle_stop_nobody(stack):
    acknowledged = {}

    def write(client, turn):
        while True:
            items = [{'c': 'Count', 'k': str(client.number), 'j': turn}]
            try:
                client.op('put', {'c': 'Note', 'id': 'deadly', 'items': items})
            except (Problem, requests.RequestException) as error:
                client.problems.append(error)
                continue
            acknowledged[str(client.number)] = turn
            return

    def kill():
        for pid in stack.worker_pids():
            stack.kill_worker(pid)

    run_clients(stack, write, meanwhile=kill)
    assert values(stack, 'deadly')[1] == acknowledged == {str(number): ROUNDS for number in range(CLIENTS)}
