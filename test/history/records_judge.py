"""What may be answered about a record that several hosts hold.

A deed: (kind, key, value, ttl, start, end, result, host): times in seconds; `end` and `ttl` as the client knows them.  Kinds: insert (SET NX), change (SET XX),
touch (PEXPIRE), remove (DEL), read (GET).  Results: done; found (read: `value`; insert: there is another one); absent; full; unknown: it may have happened, or
happen until `end` + LATE_S.  No two insertions and changes have the same value."""
from bisect import bisect_left, bisect_right
from collections import defaultdict

LATE_S = 4.5  # a question lives so long, and its host a little longer
NEAR_S = 40.0  # what began so long before has ended, but for touches
EARLY_S = 3.0  # a record may end so much earlier: by the delays of its way through several hosts


class Deed:
    __slots__ = ('kind', 'key', 'value', 'ttl', 'start', 'end', 'result', 'host', 'is_apart')

    def __init__(self, kind, key, value, ttl, start, end, result, host, is_apart=False):
        self.kind, self.key, self.value, self.ttl, self.start, self.end, self.result, self.host, self.is_apart = kind, key, value, ttl, start, end, result, host, is_apart

    @property
    def last(self):
        """It happens by then, if it does."""
        return self.end + LATE_S if self.result == 'unknown' else self.end

    def may_write(self):
        return self.kind in ('insert', 'change') and self.result in ('done', 'unknown')

    def may_touch(self):
        return self.kind == 'touch' and self.result in ('done', 'unknown')

    def may_remove(self):
        return self.kind == 'remove' and self.result in ('done', 'unknown')

    def __repr__(self):
        return f'{self.kind} {self.key} {self.value or ""} {self.result} {self.start:.3f}-{self.end:.3f} ttl {self.ttl} at {self.host}'


def judge(deeds):
    """Yields (kind, words, deeds) of what may not be.  `stale` is of hosts that were cut off, or stood still, and may read what others have changed."""
    of_key = defaultdict(list)
    for deed in deeds:
        of_key[deed.key].append(deed)
    for found in of_key.values():
        found.sort(key=lambda deed: deed.start)
        yield from judge_key(found)


class Line:
    """Deeds by their begin."""

    def __init__(self, deeds):
        self.deeds, self.starts = deeds, [deed.start for deed in deeds]

    def near(self, deed):
        return self.deeds[bisect_left(self.starts, deed.start - NEAR_S):bisect_right(self.starts, deed.end)]


def latest_end(write, deeds):
    """No record with this value is there later."""
    touches = [deed.last + deed.ttl for deed in deeds if deed.may_touch() and deed.last >= write.start]
    return max([write.last + write.ttl, *touches])


def earliest_end(write, deeds, by):
    """The record is there until then, for certain, unless it is removed: a touch or a change that may have happened may have made it shorter."""
    ends = [deed.start + deed.ttl for deed in deeds if (deed.may_touch() or (deed.may_write() and deed is not write)) and deed.last >= write.start and deed.start <= by]
    return min([write.start + write.ttl, *ends]) - EARLY_S


def judge_key(deeds):
    """Sorted by their begin."""
    writes = {deed.value: deed for deed in deeds if deed.may_write()}
    all_removals, all_sure = Line([deed for deed in deeds if deed.may_remove()]), Line([deed for deed in deeds if deed.may_write() and deed.result == 'done'])
    movers = Line([deed for deed in deeds if deed.may_touch() or deed.may_write()])
    for deed in deeds:
        if deed.result not in ('found', 'absent') and not (deed.kind == 'insert' and deed.result == 'done'):
            continue
        removals, sure, near = all_removals.near(deed), all_sure.near(deed), movers.near(deed)
        says_found = deed.result == 'found'
        says_absent = deed.result == 'absent' or (deed.kind == 'insert' and deed.result == 'done')
        if says_found:
            write = writes.get(deed.value)
            if not write or write.start > deed.end:
                yield 'from nowhere', 'nobody has written this before', [deed]
                continue
            if deed.start > latest_end(write, near):
                yield 'after its end', '', [write, deed]
            later = [one for one in [*sure, *removals] if one.result == 'done' and one is not write and one.start > write.last and one.end < deed.start]
            if later:
                yield 'stale' if deed.is_apart else 'old value', '', [write, later[0], deed]
        if says_absent:
            for write in sure:
                if write is deed or write.end > deed.start:
                    continue
                if any(one.last >= write.start and one.start <= deed.end for one in removals):
                    continue
                if deed.end < earliest_end(write, near, deed.end):
                    yield 'false absence', '', [write, deed]
                    break
