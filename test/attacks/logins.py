#!/usr/bin/env python3
"""Three addresses guess at passwords without a pause, so that somebody with the right password is refused.  Refused: as soon as each of them has
failed once, the right password gets in, and no attempt of its owner is used up."""
import random
import threading
import time

from kit import hold, PATIENCE_S, REFUSED, run, together

PASSWORD = 'correct horse battery staple'


def attack(target):
    name = f'owner{random.getrandbits(40):x}'
    with target.client() as client:
        target.account(client, name=name, password=PASSWORD)
    guessers, places, is_over = target.several(3), [[] for _ in range(6)], threading.Event()

    def guess(number):
        with target.client(guessers[number % 3]) as client:
            while not is_over.is_set():
                answer = client.op('team', 'login', {'name': f'guess{random.getrandbits(40):x}', 'password': 'not the password'})
                places[number].append(answer)
                if 'limit_client_attempts' in answer.args:
                    return

    def are_known():
        """Each address has failed, and what it began before has ended: from then on others come first."""
        return all(any(answer.code == 'SKEY' for answer in places[number] + places[number + 3]) for number in range(3)) and all(len(some) > 2 for some in places)

    def log_in(_):
        begun, answers = time.monotonic(), []
        while not are_known() and time.monotonic() - begun < PATIENCE_S:
            time.sleep(0.05)
        end = time.monotonic() + target.options.seconds
        while time.monotonic() < end or len(answers) < 5:
            with target.client() as client:
                answers.append(client.op('team', 'login', {'name': name, 'password': PASSWORD}))
        is_over.set()
        return answers

    *_, answers = together(7, lambda number: guess(number) if number < 6 else log_in(number))
    guesses = sum(places, [])
    refused = [answer for answer in answers if answer.status != 200]
    hold(not refused, f'{len(refused)} of {len(answers)} logins with the right password were refused: {refused[:1]}')
    hold(all(answer.status != 200 for answer in guesses), 'a guess was right')
    busy = [answer for answer in guesses if answer.code == 'XBUSY']
    return REFUSED, {'guesses': len(guesses), 'of these refused without a look': len(busy), 'by': ', '.join(sorted({answer.args[0] for answer in busy})) or 'none',
                     'logins with the right password': len(answers), 'of these refused': 0}


run(attack)
