"""What others notice of those who do as much as they may: probes that read a cached document, beside large writes and large images in another
namespace; and those of stamp-journal beside costly patterns."""
import multiprocessing
import random
import statistics
import sys
import tempfile
import threading
import time

import stack
from figures import Row, sized, started
from generators import BenchError

sys.path.insert(0, str(stack.SOURCE / 'test/system'))
from door_client import Client  # noqa: E402
from images import png  # noqa: E402
from journal_world import GET, PATTERN, PING, SET, STRING, Journal  # noqa: E402
from journal_world import Client as Peer  # noqa: E402
from schema import Schemas  # noqa: E402

WORKERS = (4, 8)
PROBES, RATIO_MOST = 3, 20
WRITERS, DOCUMENTS, ITEMS = 16, 4, 10000  # connections of one address; 1.4 MB in a request
IMAGES, PIXELS = 8, 10000                 # a side
BUSY, KEYS, SLOW = 8, 3000, '^(a|a|a|aa)*(a|aa)*$'
PHOTO = {'Photo': {'items': {'Main': {'singleton': True}}, 'thumbnails': {'small': {'width': 64, 'height': 64}}}}


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def attacked(attack, *arguments):
    """A process that attacks until it is ended: it shares no lock of an interpreter with the probes."""
    process = multiprocessing.get_context('fork').Process(target=attack, args=arguments, daemon=True)
    process.start()
    return process


def ended(process):
    process.kill()
    process.join()


def crowd(one, count):
    threads = [threading.Thread(target=one, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- requests ---

def probe(server, seconds, least):
    """The times of reads of a cached document by other addresses, in ms; at least so many."""
    times, failures, end = [], [], time.monotonic() + seconds

    def one(number):
        with Client(server, f'127.0.0.{200 + number}') as client:
            while time.monotonic() < end or len(times) < least:
                start = time.monotonic()
                status = client.get('demo', 'Cached', 'c').status
                times.append(1000 * (time.monotonic() - start))
                if status != 200:
                    failures.append(status)
                    return
                time.sleep(0.006)  # less than limit_client_requests

    crowd(one, PROBES)
    if failures:
        raise stack.StackError(f'a probe was answered {failures[0]}')
    return times


def write(server):
    """One stranger with one address, in an open namespace."""
    def one(number):
        draw = random.Random(number)
        with Client(server, '127.0.0.2') as client:
            while True:
                docs = [{'c': 'Large', 'id': f'{number}.{draw.random()}', 'items': [{'c': 'I', 'k': str(k), 'j': f'{draw.getrandbits(24):06x}'} for k in range(ITEMS)]}
                        for _ in range(DOCUMENTS)]
                if client.op('lab', 'put', {'docs': docs}).status != 200:
                    time.sleep(0.05)
    crowd(one, WRITERS)


def upload(server, image):
    """Images of one address, each another file, of which the server makes thumbnails."""
    def one(number):
        with Client(server, '127.0.0.3') as client:
            while True:
                content = image + bytes([number]) + str(time.monotonic()).encode()
                client.ask('PUT', f'/lab/doc/Photo/p{number}/file/k', content, Content_Type='image/png')
                time.sleep(0.5)
    crowd(one, IMAGES)


def beside(server, options, name, proof, attack, *arguments):
    """`proof`: how much the attack has got done, in SQL."""
    seconds, least = sized(options, max(5, 3 * options.seconds), 0.2), sized(options, 500, 20)
    quiet = probe(server, seconds, least)
    process = attacked(attack, server, *arguments)
    try:
        time.sleep(sized(options, 2, 0.2))
        busy = probe(server, seconds, least)
    finally:
        ended(process)
    done, = server.psql('lab', proof)[0]
    if not done and not options.moment:
        raise BenchError(f'{name}: they did nothing')
    return row(f'{name}, {server.workers} workers', quiet, busy)


def row(figure, quiet, busy):
    before, after = percentile(quiet, 0.99), percentile(busy, 0.99)
    ratio = after / before
    return Row(figure, value=f'{ratio:.1f} times ({before:.2f} ms, then {after:.2f} ms; medians {statistics.median(quiet):.2f} and {statistics.median(busy):.2f} ms)',
               target=f'below {RATIO_MOST} times', met=ratio < RATIO_MOST)


# --- stamp-journal ---

def match(path):
    def one(_):
        peer = Peer(path)
        while True:
            peer.ask(GET, SLOW, flags=PATTERN)
    crowd(one, BUSY)


def ping(peer, count):
    times = []
    for _ in range(count):
        start = time.monotonic()
        peer.ask(PING)
        times.append(1000 * (time.monotonic() - start))
    return times


def patterns(server, options):
    journal = Journal(server)
    process = journal.start()
    try:
        peer = Peer(journal.socket)
        for number in range(sized(options, KEYS, 50)):
            peer.ask(SET, f'{"a" * 30}{number:05}', (STRING, b'x'))
        count = sized(options, 3000, 20)
        quiet = ping(peer, count)
        attack = attacked(match, journal.socket)
        try:
            time.sleep(0.2)
            busy = ping(peer, count)
        finally:
            ended(attack)
        return row(f'p99 of an empty message to stamp-journal beside {BUSY} connections with costly patterns', quiet, busy)
    finally:
        process.kill()
        process.wait()


def share(options):
    image = png(sized(options, PIXELS, 100), sized(options, PIXELS, 100))
    for workers in WORKERS:
        with started(namespaces={'lab': 'open', 'demo': 'open'}, workers=workers, records_mb=8) as (server,), tempfile.TemporaryDirectory() as folder:
            Schemas(server, folder).apply('lab', PHOTO)
            server.put('demo', {'c': 'Cached', 'id': 'c', 'items': [{'c': 'Line', 'j': 'x' * 200}]})
            server.put('lab', *({'c': 'Photo', 'id': f'p{number}', 'items': [{'c': 'Main', 'j': {}}]} for number in range(IMAGES)))
            yield beside(server, options, f'p99 of cached reads beside {WRITERS} writers of 1.4 MB of one address',
                         "select count(*) from doc where class = 'Large'", write)
            if (stack.BUILD / 'src/stamp-thumbnail').exists():
                server.step('queue', 'start')
                yield beside(server, options, f'p99 of cached reads beside {IMAGES} images of {PIXELS} x {PIXELS} pixels',
                             "select count(starttime) + (select count(*) from task_history) from taskqueue", upload, image)
                server.step('queue', 'stop')
            if workers == WORKERS[0]:
                yield patterns(server, options)
