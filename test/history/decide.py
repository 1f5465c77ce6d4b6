"""The verdict on a history, also where nobody knows which of several unanswered operations made a version."""
import time

from checker import Checker
from records import load

GUESSES_MOST, DECIDED_S = 300, 240  # trials, and their time, when nobody knows who made a version


def decide(lines):
    """A checker that has checked, and whether it is certain of its verdict: of versions that any of several unanswered operations may
    have made, each is tried, until there is an order with nobody unknown."""
    first = Checker(*load(lines))
    first.check()
    if first.violations or not first.doubtful:
        return first, True
    tried, end = 0, time.monotonic() + DECIDED_S
    key, names = next(iter(first.doubtful.items()))
    waiting = [{key: name} for name in reversed(names)]
    while waiting and tried < GUESSES_MOST and time.monotonic() < end:
        choices, tried = waiting.pop(), tried + 1
        checker = Checker(*load(lines), choices)
        checker.check()
        if checker.violations:
            first.refuted = checker
        elif not checker.doubtful:
            return checker, True
        else:
            key, names = next(iter(checker.doubtful.items()))
            waiting += [{**choices, key: name} for name in reversed(names)]
    if not waiting:
        return first.refuted, True  # whoever it was, it cannot have been
    return first, False
