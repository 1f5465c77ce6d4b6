"""What the attacks of this folder share: a stranger's client, a neighbour who reads meanwhile, the verdict and the exit status.

An attack is a function of a Target that returns its verdict, `refused` or `bounded`, and its figures; it raises Succeeded with what it got
when the server lets it through.  `run` makes a program of it: exit status 0 for a verdict, 1 for an attack that succeeded, 2 for one
that could not be tried."""
import argparse
import http.client
import json
import random
import socket
import ssl
import sys
import threading
import time
import urllib.parse

REFUSED, BOUNDED = 'refused', 'bounded'
PATIENCE_S = 60
LEAST = 10  # requests of neighbours


class Succeeded(Exception):
    """The attack; the words are what it got."""


class Impossible(Exception):
    """The attack cannot be tried here; the words are what is missing."""


def hold(condition, words):
    if not condition:
        raise Succeeded(words)


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        is_fault = self.headers.get('content-type') == 'application/problem+json'
        fault = json.loads(self.body) if is_fault and self.body else {}
        self.code, self.args = fault.get('code', ''), fault.get('args', [])

    @property
    def out(self):
        return json.loads(self.body)['out']

    def __repr__(self):
        return f'{self.status} {self.body[:200]!r}'


class Client:
    """Keeps one connection; `address` is that from which it comes, '' for whichever the kernel chooses."""

    def __init__(self, target, address):
        self.target, self.address, self.connection = target, address, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def connect(self):
        """A connection of its own, for a request that is not finished."""
        source = (self.address, 0) if self.address else None
        return http.client.HTTPSConnection(self.target.host, self.target.port, timeout=PATIENCE_S, context=self.target.context, source_address=source)

    def ask(self, method, path, body=None, headers=None):
        if body is not None and not isinstance(body, bytes):
            body, headers = json.dumps(body).encode(), {'Content-Type': 'application/json', **(headers or {})}
        for is_last in (False, True):
            self.connection = self.connection or self.connect()
            try:
                self.connection.request(method, path, body, headers or {})
                return Answer(self.connection.getresponse())
            except (ConnectionError, ssl.SSLEOFError):
                self.close()
                if is_last:
                    raise

    def op(self, ns, name, param, token=None):
        return self.ask('POST', f'/{ns}/op/{name}', {'param': param}, {'Authorization': f'Bearer {token}'} if token else {})


class Target:
    def __init__(self, options):
        parts = urllib.parse.urlsplit(options.url)
        self.host, self.port, self.options = parts.hostname, parts.port or 443, options
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE  # the server under attack is one's own
        self.is_local = ipv4(self.host).startswith('127.')
        self.key = open(options.key_file).read().strip() if options.key_file else ''

    def address(self):
        """One that no limit knows: on the loopback each address is a client, and 127.0.0.1 is exempt from limits in a demonstration."""
        return f'127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(2, 254)}' if self.is_local else ''

    def client(self, address=None):
        return Client(self, self.address() if address is None else address)

    def several(self, count):
        """Addresses of so many clients; from another host there is one."""
        if not self.is_local:
            raise Impossible('several addresses are needed: attack a server at a loopback address')
        return [self.address() for _ in range(count)]

    def administer(self, ns, name, param):
        if not self.key:
            raise Impossible('the administrator\'s key is needed: --key-file')
        with Client(self, '') as client:
            answer = client.op(ns, name, param, self.key)
        if answer.status != 200:
            raise Impossible(f'{name} in {ns} by the administrator: {answer}')
        return answer.out

    def document(self, class_='Attack'):
        """A document of `lab` with no content, to which files can be attached: its id."""
        id_ = f'a{random.getrandbits(40):x}'
        with self.client() as client:
            answer = client.op('lab', 'put', {'docs': [{'c': class_, 'id': id_, 'items': [{'c': 'Main', 'j': {}}]}]})
        if answer.status != 200:
            raise Impossible(f'a document of lab, which must be open: {answer}')
        return id_

    def account(self, client, **param):
        """An account of `team`: its number and token."""
        answer = client.op('team', 'register', param)
        if answer.status != 200:
            raise Impossible(f'an account of team, where everybody must be able to make one: {answer}')
        return answer.out['account'], answer.out['token']


def ipv4(host):
    return socket.getaddrinfo(host, None, socket.AF_INET)[0][4][0]


def together(count, do):
    """What `do(number)` returns, of threads that run at the same time."""
    results = [None] * count

    def run(number):
        try:
            results[number] = do(number)
        except Exception as error:
            results[number] = error
    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5 * PATIENCE_S)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


class Neighbours:
    """Three clients with addresses of their own who read a document of `demo`, one after another, while the block runs."""

    def __init__(self, target):
        self.target, self.is_over, self.waits, self.others = target, threading.Event(), [], []
        self.threads = [threading.Thread(target=self.read, daemon=True) for _ in range(3)]

    def read(self):
        with self.target.client() as client:
            while not self.is_over.is_set():
                begun = time.monotonic()
                try:
                    answer = client.ask('GET', '/demo/doc/Attack/none')
                except OSError as error:
                    answer = error
                self.waits.append(time.monotonic() - begun)
                if getattr(answer, 'status', 0) not in (200, 404):
                    self.others.append(answer)
                self.is_over.wait(0.02)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)

    def are_served(self):
        """So often that it says something."""
        return len(self.waits) >= LEAST

    def hold(self, longest_s):
        """They were served, all of them, and none waited for longer."""
        hold(not self.others, f'a neighbour was not served: {self.others[:1]}')
        hold(self.are_served(), f'neighbours were served {len(self.waits)} times only')
        hold(max(self.waits) < longest_s, f'a neighbour waited for {max(self.waits):.1f} s')

    def figures(self):
        waits = sorted(self.waits)
        return {'neighbours served': len(waits), 'median ms': round(1000 * waits[len(waits) // 2], 1), 'longest ms': round(1000 * waits[-1])}


def run(attack, *more):
    """`more`: (name, default, help) of options of this program alone."""
    parser = argparse.ArgumentParser(description=sys.modules[attack.__module__].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--url', default='https://localhost:8443', help='the server, of a demonstration')
    parser.add_argument('--key-file', default='', help='the administrator\'s key, which prepares what strangers attack')
    parser.add_argument('--journal-key', default='', help='a key of stamp-journal, which may write in lab')
    parser.add_argument('--state', default='', help='the folder `state` of the demonstration, where logs and files are')
    parser.add_argument('--seconds', type=float, default=5, help='how long what can go on goes on')
    parser.add_argument('--longest', type=float, default=3, help='seconds that a neighbour may wait')
    for name, default, text in more:
        parser.add_argument(name, type=type(default), default=default, help=text)
    try:
        verdict, figures = attack(Target(parser.parse_args()))
    except Succeeded as error:
        print(f'succeeded: {error}')
        sys.exit(1)
    except Impossible as error:
        print(f'not tried: {error}')
        sys.exit(2)
    print('\n'.join(f'{name}: {value}' for name, value in figures.items()))
    print(verdict)
