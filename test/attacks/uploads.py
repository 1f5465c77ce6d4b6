#!/usr/bin/env python3
"""A stranger announces large files, sends a part of each and then nothing, so that nginx's folder of bodies fills.  Bounded: what is too large
is refused before its body, and an address sends so many bodies at the same time."""
import contextlib
import socket
import threading
import time

from kit import Answer, BOUNDED, hold, PATIENCE_S, run, together

GIB, BEGUN = 1 << 30, 200_000


def attack(target):
    address, id_ = target.address(), target.document()
    connections = []

    def begin(number, size):
        """The answer that comes before the body; None: the server waits for it all the time."""
        with target.client(address) as client:
            connection = client.connect()
        connections.append(connection)
        connection.putrequest('PUT', f'/lab/doc/Attack/{id_}/file/f{number}')
        connection.putheader('Content-Length', str(size))
        connection.putheader('Content-Type', 'application/octet-stream')
        try:
            connection.endheaders(bytes(BEGUN))
        except OSError:
            pass  # it is answered, and closed
        connection.sock.settimeout(PATIENCE_S)
        try:
            return Answer(connection.getresponse())
        except TimeoutError:
            return None
        except OSError:
            return 'closed'
    try:
        large = together(3, lambda number: begin(number, GIB))
        hold(None not in large, '1 GiB is awaited')
        limits = [int(answer.args[1]) for answer in large if getattr(answer, 'args', None) and answer.args[0] in ('limit_upload_bytes', 'limit_blob_bytes')]
        hold(limits, f'the answer to 1 GiB is another: {large[:1]}')
        begun, answers = time.monotonic(), [None] * target.options.connections
        for number in range(len(answers)):
            threading.Thread(target=lambda number=number: answers.__setitem__(number, begin(number, limits[0])), daemon=True).start()

        def most():
            return [int(answer.args[1]) for answer in answers if getattr(answer, 'args', None) and answer.args[0] == 'limit_client_bodies']
        while (not most() or answers.count(None) > most()[0]) and time.monotonic() < begun + PATIENCE_S / 2:  # the refusals come by and by
            time.sleep(0.05)
        time.sleep(target.options.seconds)
        waiting = answers.count(None)
        hold(most(), 'no connection of the address was refused')
        hold(waiting <= most()[0], f'{waiting} bodies are awaited')
        seconds = time.monotonic() - begun
    finally:
        for connection in connections:
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()
    return BOUNDED, {'limit_upload_bytes': limits[0], 'bodies awaited': waiting, 'refused': len(answers) - waiting,
                     'most bytes on the disk of nginx': waiting * limits[0], 'seconds': round(seconds, 1)}


run(attack, ('--connections', 20, 'at the same time'))
