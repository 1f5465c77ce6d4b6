#!/usr/bin/env python3
"""A stranger writes documents of thousands of items, on several connections of one address, so that no worker is left for readers of another
namespace.  Bounded: such writes have a share of the workers, and large bodies go to one half of them."""
import random
import time

from kit import BOUNDED, hold, Neighbours, PATIENCE_S, run, together


def body():
    return {'docs': [{'c': 'Attack', 'id': f'w{random.getrandbits(40):x}',
                      'items': [{'c': 'I', 'k': str(number), 'j': f'{random.getrandbits(24):06x}'} for number in range(10000)]} for _ in range(2)]}


def attack(target):
    address, begun = target.address(), time.monotonic()
    answers = []

    def goes_on():
        """For the time, and until there are figures."""
        has_all = any(answer.code == 'XBUSY' for answer in answers) and neighbours.are_served()
        return time.monotonic() < begun + (target.options.seconds if has_all else target.options.seconds + PATIENCE_S)

    def write(_):
        with target.client(address) as client:
            while goes_on():
                answers.append(client.op('lab', 'put', body()))
    with Neighbours(target) as neighbours:
        together(target.options.connections, write)
    done, busy = [answer for answer in answers if answer.status == 200], [answer for answer in answers if answer.code == 'XBUSY']
    others = [answer for answer in answers if answer not in done + busy]
    hold(not others or all(answer.code in ('XTIME', 'ALIMIT') for answer in others), f'another answer: {others[:1]}')
    hold(busy, 'no write was refused')
    neighbours.hold(target.options.longest)
    return BOUNDED, {'writes done': len(done), 'refused': len(busy), 'by': ', '.join(sorted({answer.args[0] for answer in busy})), **neighbours.figures()}


run(attack, ('--connections', 12, 'at the same time'))
