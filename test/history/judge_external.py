"""External workers: what they end happens once, a late one changes nothing, a claim has one holder, a domain one task at a time.

    "labour": [tally, key, domain or null]   of an operation that requests a task; with a domain, in strict order
    "claims": [[key, claim]…]                of a `take`, and of an end that takes: what it was given
    "claim": [key, claim]                    of `keep`, `fail` and `done`; "released": the task was given back untried
    "late": true                             it was sent when the claim had ended for certain
    "repeats": true                          of a `done` that was answered as one that is over already, and so changed nothing; of a
                                             `fail` that was sent again and granted, by which nothing may have changed
    "ended": {tally: {operation: key}}       at the end of the round: which `done` have left their mark, and of which task

A claim that was given was in force until the last request under it that was granted; so two claims are compared by the times
between these, which no clock of a server can move.
"""
from collections import defaultdict


def judge_external(operations):
    """(kind, words, operations) of each violation."""
    operations = list(operations)
    labour = Labour(operations)
    for end in operations:
        if end.ended:
            yield from judge_ended(labour, end)
    yield from judge_repeats(labour)
    yield from judge_failures(labour)
    yield from judge_claims(labour)
    yield from judge_domains(labour)
    for operation in operations:
        if operation.late and operation.result == 'ok':
            yield 'a claim that had ended still counted', ' '.join(operation.claim), [operation]


class Labour:
    """Requests by the key of their task, and claims of each: [take, last request under it that was granted or None]."""

    def __init__(self, operations):
        self.requests = {operation.labour[1]: operation for operation in operations if operation.labour}
        self.by_name = {operation.name: operation for operation in operations if operation.claim}
        self.known = {tally for end in operations for tally in end.ended}
        self.marks = {name: tally for end in operations for tally, marks in end.ended.items() for name in marks}
        self.claims = defaultdict(lambda: defaultdict(list))  # key -> claim -> takes
        self.granted = defaultdict(list)                      # (key, claim) -> requests
        for operation in operations:
            for key, claim in operation.claims:
                self.claims[key][claim].append(operation)
            if operation.claim and operation.result == 'ok':
                self.granted[tuple(operation.claim)].append(operation)

    def times(self, key):
        """(from, to, claim, operations) of each claim that was in force for certain."""
        for claim, takes in self.claims[key].items():
            granted = self.granted[key, claim]
            if len(takes) == 1 and granted:
                last = max(granted, key=lambda operation: operation.start)
                if takes[0].end < last.start:
                    yield takes[0].end, last.start, claim, [takes[0], last]


def judge_ended(labour, end):
    """Every task whose request was acknowledged has ended once, by a request that was not refused."""
    counts = defaultdict(list)
    for tally, marks in end.ended.items():
        for name, key in marks.items():
            done, request = labour.by_name.get(name), labour.requests.get(key)
            counts[key].append(done or end)
            if request is None:
                yield 'a task that nobody requested', f'{key} has ended in {tally}', [end]
            if done is None or done.claim[0] != key:
                yield 'read of what nobody wrote', f'{name} in {tally}', [end]
            elif done.result == 'no':
                yield 'a request without a claim changed something', f'{name}, in {tally}', [done]
    for done in labour.by_name.values():
        request = labour.requests.get(done.claim[0])
        if done.kind == 'done' and done.result == 'ok' and request and request.labour[0] in end.ended and done.name not in labour.marks:
            yield 'the end of a task was lost', done.name, [done]
    for key, request in labour.requests.items():
        if request.labour[0] in end.ended:
            yield from judge_count(key, request, counts[key], end)


def judge_count(key, request, ends, end):
    if len(ends) > 1:
        yield 'a task was done twice', f'{key}, by {len(ends)} requests', ends
    elif ends and request.result == 'no':
        yield 'a task of what was refused', key, [request, *ends]
    elif not ends and request.result == 'ok':
        yield 'a task was not done', key, [request, end]


def judge_repeats(labour):
    """Only what has ended is answered as such, and only to the attempt that ended it."""
    ending = {tuple(labour.by_name[name].claim) for name in labour.marks if name in labour.by_name}
    for operation in labour.by_name.values():
        request = labour.requests.get(operation.claim[0])
        if operation.repeats and operation.kind == 'done' and request and request.labour[0] in labour.known and tuple(operation.claim) not in ending:
            yield 'an end was acknowledged that never was', ' '.join(operation.claim), [operation]


def judge_failures(labour):
    """An attempt that has failed for certain has not done its task."""
    done = {tuple(labour.by_name[name].claim): labour.by_name[name] for name in labour.marks if name in labour.by_name}
    for operation in labour.by_name.values():
        end = done.get(tuple(operation.claim))
        is_granted = operation.result == 'ok' or operation.repeats
        # A claim that was given again in the same millisecond bears the same name (judge_claims).
        if operation.kind == 'fail' and not operation.released and is_granted and end:
            yield 'an attempt has failed, and was done', ' '.join(operation.claim), [operation, end]


def judge_claims(labour):
    for key, claims in labour.claims.items():
        for claim, takes in claims.items():
            # One that was given back may be claimed again in the same millisecond, when clocks step.
            if len(takes) > 1 and not any(operation.released for operation in labour.by_name.values() if operation.claim[0] == key):
                yield 'a claim was given twice', f'{key} {claim}', takes
        yield from overlaps(list(labour.times(key)), 'a task had two holders', key)


def overlaps(times, kind, words):
    times.sort(key=lambda time: time[:2])
    for (_, end, *_, first), (begin, _, *_, second) in zip(times, times[1:]):
        if begin < end:
            yield kind, words, [*first, *second]


def judge_domains(labour):
    domains = defaultdict(list)
    for key, request in labour.requests.items():
        if request.labour[2]:
            domains[request.labour[2]].append((key, request))
    for domain, tasks in domains.items():
        times = [time for key, _ in tasks for time in labour.times(key)]
        yield from overlaps(times, 'two tasks of a domain at a time', domain)
        yield from judge_order(labour, domain, tasks)


def judge_order(labour, domain, tasks):
    """None was claimed before another, requested before it, had ended."""
    ended = {}
    for name in labour.marks:
        done = labour.by_name.get(name)
        if done:
            ended[done.claim[0]] = done
    for key, request in tasks:
        takes = [takes[0] for takes in labour.claims[key].values()]
        first = min(takes, key=lambda take: take.end) if takes else None
        for earlier, other in tasks:
            done = ended.get(earlier)
            if first and done and other.result == 'ok' and other.end < request.start and first.end < done.start:
                yield 'a domain was out of order', f'{key} before {earlier}, in {domain}', [other, request, first, done]
