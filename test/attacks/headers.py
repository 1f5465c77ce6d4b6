#!/usr/bin/env python3
"""A stranger opens connections and sends no request: half a header, or nothing at all.  Bounded: each has its place for a while only, and
others are served meanwhile.  How many there are at the same time is for the firewall."""
import time

from kit import BOUNDED, hold, Neighbours, run


def is_closed(connection):
    try:
        return connection.sock.recv(1000) == b'' or is_closed(connection)
    except TimeoutError:
        return False
    except OSError:
        return True


def attack(target):
    connections, begun = [], time.monotonic()
    try:
        with Neighbours(target) as neighbours, target.client() as client:
            for number in range(target.options.connections):
                connections.append(client.connect())
                connections[-1].connect()
                if number % 2:
                    connections[-1].sock.sendall(b'GET /demo/ping HTTP/1.1\r\nHost: localhost\r\nX-Slow: ')
                connections[-1].sock.settimeout(0.001)
            held = [connection for number, connection in enumerate(connections) if number % 2]
            last = time.monotonic()
            while held and time.monotonic() - last < target.options.awaited:
                for connection in held:
                    try:
                        connection.sock.sendall(b'x')
                    except OSError:
                        pass
                held = [connection for connection in held if not is_closed(connection)]
                time.sleep(0.5)
        hold(not held, f'{len(held)} connections with half a header are still there')
        neighbours.hold(target.options.longest)
    finally:
        for connection in connections:
            connection.close()
    return BOUNDED, {'connections': len(connections), 'seconds until the last half header is sent away': round(time.monotonic() - begun, 1), **neighbours.figures()}


run(attack, ('--connections', 300, 'in all'), ('--awaited', 60.0, 'seconds in which those with half a header must end'))
