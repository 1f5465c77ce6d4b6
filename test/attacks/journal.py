#!/usr/bin/env python3
"""Connections of one key of stamp-journal ask for costly patterns without a pause, so that another connection waits.  Bounded: the other one
waits for what one of them may do in a turn, however many they are.  A stamp-journal must run, with a key that may write in `lab`."""
import socket
import struct
import threading
import time

from kit import BOUNDED, hold, Impossible, PATIENCE_S, run, together

SET, GET, PING, AUTH = 2, 3, 64, 65
PATTERN, CURSOR, STRING = 2 << 7, 3 << 7, 2
COSTLY = '^(a|a|a|aa)*(a|aa)*$'


class Journal:
    def __init__(self, path, key):
        self.socket, self.data = socket.socket(socket.AF_UNIX), b''
        self.socket.settimeout(60)
        try:
            self.socket.connect(path)
        except OSError as error:
            raise Impossible(f'{path}: {error}')
        error = self.ask(AUTH, 'lab', key)
        if error:
            raise Impossible(f'the key of the journal: {error}')

    def take(self, size):
        while len(self.data) < size:
            more = self.socket.recv(65536)
            hold(more, 'the connection was ended')
            self.data += more
        found, self.data = self.data[:size], self.data[size:]
        return found

    def number(self, size):
        return int.from_bytes(self.take(size), 'big')

    def ask(self, function, key='', value=None, flags=0):
        """The error of the answer; '' for none (doc/reference/journal-protocol.md)."""
        text = b'FJ' + struct.pack('>HHHHQ', 1, function, 1, flags | 1 | (6 if value is not None else 0), 0)
        if flags & CURSOR:
            text += struct.pack('>H', 0)
        text += struct.pack('>H', len(key)) + key.encode()
        if value is not None:
            text += struct.pack('>IB', len(value) + 1, STRING) + value.encode()
        self.socket.sendall(text)
        return self.answer()

    def answer(self):
        self.take(6)
        flags, _ = self.number(2), self.take(8)
        if flags & 8:
            self.take(8)
        count = self.number(2) if flags & CURSOR else bool(flags & 1 << 10)
        error = self.take(self.number(2)).decode()
        if flags & 1 << 15:
            self.take(8)
        for _ in range(count):
            self.take(self.number(2))
            self.take(self.number(4))
        if flags & 1 << 14:
            self.take(self.number(2))
        return error


def attack(target):
    options = target.options
    path = options.socket or f'{options.state}/run/stampd/journal.sock'
    other, is_over, counts = Journal(path, options.journal_key), threading.Event(), [0] * options.connections
    for number in range(options.keys):
        error = other.ask(SET, 'a' * 30 + f'{number}b', 'x')
        if error not in ('', 'NOT_FREE'):
            raise Impossible(f'keys of records: {error}')

    def ping(number):
        waits, end = [], time.monotonic() + options.seconds
        while time.monotonic() < end or not (waits and sum(counts)) and time.monotonic() < end + PATIENCE_S:
            begun = time.monotonic()
            other.ask(PING)
            waits.append(time.monotonic() - begun)
        is_over.set()
        return sorted(waits)

    def search(number):
        journal = Journal(path, options.journal_key)
        while not is_over.is_set():
            journal.ask(GET, COSTLY, flags=PATTERN)
            counts[number] += 1

    quiet = []
    for _ in range(200):
        begun = time.monotonic()
        other.ask(PING)
        quiet.append(time.monotonic() - begun)
    *_, waits = together(options.connections + 1, lambda number: search(number) if number < options.connections else ping(number))
    hold(sum(counts) > 0, 'no pattern was answered: the others starve')
    hold(waits[-1] < options.longest, f'another connection waited for {waits[-1]:.2f} s')
    return BOUNDED, {'connections': options.connections, 'patterns answered': sum(counts), 'another connection, quiet, ms': round(1000 * sorted(quiet)[100], 3),
                     'beside them, median ms': round(1000 * waits[len(waits) // 2], 2), 'longest ms': round(1000 * waits[-1], 1), 'answers': len(waits)}


run(attack, ('--socket', '', 'of stamp-journal; default: in the folder --state'), ('--connections', 8, 'with patterns'),
    ('--keys', 3000, 'of records'))
