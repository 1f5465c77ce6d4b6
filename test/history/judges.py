"""What must hold beside the order of operations: reads with a tolerance, unique values, documents that end, copies, subscriptions.

    "age": s, "aged": [[document, version, state]…]            read with this tolerance
    "reservations": [[document, value or null]…]                      of an operation that reserves or gives up unique values
    "held": {document: [version, value or null]…}               all of them, read at one instant; of the head too
    "mortal": [id, minute]                                      of one that makes a document that ends
    "requested": [[id, minute]…], "alive": [id…], "wall": [from, to], "low": s    which there were; how far clocks may lag
    "copies": {follower: {document: content}}, "sources": {follower: [document…]}     at the end, when all tasks were done
    "stands": [[document, version]…]                            what a put says that each document it named is at
    "matched": [[definition, version]…], "definitions": […]     the session's own definitions in the answer to a write
    "missed": words                                             at the end: what a listener does not have, or got too early
    "woken": {document: when}                                   at the end: when a session was sent its last match
"""
from collections import Counter, defaultdict

from members import team_of
from state import operations_in, unpack

CLASS = 'Hot'
MARGIN_S = 0.2  # a clock that is read now and then


def is_sure(operation):
    return operation.is_sure and operation.result != 'no'


# --- tolerance ---

def may_be_before(checker, operation):
    return operation.start - operation.age * 10 ** 9 <= checker.head.get('since', 0)


def take_earlier(checker):
    """Takes off what was read of before this history, of which nothing is known but that it is old.  (words, operation) of what is too old."""
    for operation in checker.operations.values():
        here = []
        for read in operation.aged:
            document, version, state = read
            is_ours = not state or any(name in checker.operations for name, _ in operations_in(state)[0])
            if is_ours or version >= checker.initial.get(document, (0,))[0] > 0:
                here.append(read)
            elif not may_be_before(checker, operation):
                yield f'{document}@{version}, which is of before', operation
        operation.aged = here


def judge_aged(checker):
    for operation in list(checker.operations.values()):
        bound = operation.start - operation.age * 10 ** 9
        for document, version, _ in operation.aged:
            chain = checker.chains[document]
            places = [place for place, write in enumerate(chain) if (write.version == version if version else write.state == '')]
            if version and not places:
                continue  # complained of already
            if not version and may_be_before(checker, operation):
                continue
            if not any(may_be_tolerated(checker, operation, document, place, bound) for place in places):
                yield 'older than was tolerated', f'{document}@{version} by more than {operation.age} s', operation


def may_be_tolerated(checker, operation, document, place, bound):
    maker, successor = checker.chains[document][place].operation, checker.successor(document, place)
    if maker and maker.start > operation.end:
        return False
    return successor is None or successor.end is None or successor.end >= bound


# --- unique values ---

class Tenures:
    """Who has had which values.  `reservations`: document -> [(version, value, operation or None)] in the order of versions; `releases`:
    document -> operations that gave up what it may have had, whose version need not be its own; `unknown`: nobody knows."""

    def __init__(self, heads, operations):
        self.reservations, self.releases, self.unknown = defaultdict(list), defaultdict(list), defaultdict(list)
        for head in heads:
            for document, (version, value) in head.get('held', {}).items():
                if value:
                    self.reservations[document].append((version, value, None))
        for operation in operations:
            for document, value in operation.reservations:
                if operation.result == 'unknown':
                    self.unknown[document].append((value, operation))
                elif operation.result == 'ok' and not value:
                    self.releases[document].append(operation)
                elif operation.result == 'ok' and operation.version:
                    self.reservations[document].append((operation.version, value, operation))
        for rows in self.reservations.values():
            rows.sort(key=lambda row: row[0])

    def all(self):
        """(document, value, operation, the operation that claimed the next value of the document)"""
        for document, rows in self.reservations.items():
            for (_, value, operation), following in zip(rows, [*rows, None][1:], strict=True):
                yield document, value, operation, following[2] if following else None

    def surely(self, document, operation, following):
        """From when until when it had the value for certain: from the answer until something else may have been sent."""
        others = [other for _, other in self.unknown[document]] + [
            other for other in self.releases[document] if operation is None or other.end >= operation.start]
        return operation.end if operation else 0, min([other.start for other in others] + [following.start if following else float('inf')])

    def perhaps(self, document, operation, following):
        """From when until when it may have had it: until something else was answered that came behind for certain."""
        others = [other for other in self.releases[document] if operation is None or other.start >= operation.end]
        return operation.start if operation else 0, min([other.end for other in others] + [following.end if following else float('inf')])


def judge_claims(heads, operations):
    """`heads` and `operations` of all namespaces together."""
    operations = list(operations)
    tenures = Tenures(heads, operations)
    yield from judge_reads(operations, tenures)
    yield from judge_overlaps(tenures)
    yield from judge_refusals(operations, tenures)


def judge_reads(operations, tenures):
    made = {(document, version): value for document, rows in tenures.reservations.items() for version, value, _ in rows}
    for operation in operations:
        values = Counter(value for _, value in operation.held.values() if value)
        for value, count in values.items():
            if count > 1:
                yield 'two have one value', f'{value} at one instant', [operation]
        for document, (version, value) in operation.held.items():
            if value and made.get((document, version), value) != value:
                yield 'G1b: not as it was written', f'{document}@{version} is {value}, not {made[document, version]}', [operation]
            elif value and (document, version) not in made and tenures.reservations.get(document) and not tenures.unknown.get(document):
                yield 'read of what nobody wrote', f'{document}@{version}', [operation]


def judge_overlaps(tenures):
    sure = defaultdict(list)
    for document, value, operation, following in tenures.all():
        begin, end = tenures.surely(document, operation, following)
        if begin < end:
            sure[value].append((begin, end, document, operation))
    for value, rows in sure.items():
        for place, (begin, end, document, operation) in enumerate(rows):
            for other_begin, other_end, other, second in rows[:place]:
                if other != document and max(begin, other_begin) < min(end, other_end):
                    yield 'two have one value', f'{value}: {document} and {other}', [one for one in (operation, second) if one]


def judge_refusals(operations, tenures):
    """Who was refused a value was refused it because of somebody."""
    for operation in operations:
        if not operation.taken:
            continue
        wanted = dict(operation.reservations).get(operation.taken)
        if not any(may_hold(tenures, row, wanted, operation) for row in tenures.all() if row[0] != operation.taken) \
                and not any(value == wanted and other.start < operation.end for document, rows in tenures.unknown.items()
                            for value, other in rows if document != operation.taken) \
                and not any(other.result == 'no' and other is not operation and wanted in dict(other.reservations).values() and
                            other.start < operation.end and operation.start < other.end for other in operations):
            yield 'a value is taken by nobody', f'{wanted}, which {operation.taken} wanted', [operation]


def may_hold(tenures, row, wanted, operation):
    document, value, other, following = row
    begin, end = tenures.perhaps(document, other, following)
    return value == wanted and begin < operation.end and end > operation.start


# --- documents that end ---

def judge_mortals(operations):
    operations = list(operations)
    born = {operation.mortal[0]: operation for operation in operations if operation.mortal}
    for operation in operations:
        if not operation.requested:
            continue
        begin, end = operation.wall
        for id_, minute in operation.requested:
            birth = born.get(id_)
            if id_ in operation.alive:
                if begin + operation.low > minute * 60 + MARGIN_S:
                    yield 'a document outlived its end', f'{id_}, by {begin + operation.low - minute * 60:.1f} s', [operation]
                if birth and birth.result == 'no':
                    yield 'G1a: read of what was refused', id_, [operation, birth]
            elif birth and birth.result == 'ok' and birth.end < operation.start - operation.age * 10 ** 9 and end < minute * 60 - MARGIN_S:
                yield 'a document ended before its end', f'{id_}, {minute * 60 - end:.1f} s', [operation, birth]


# --- copies ---

def source_of(state):
    """The content that is copied; None: there is none."""
    item = unpack(state)[1].get('Src') if state else None
    return item[1] if item else None


def judge_copies(checker):
    for operation in list(checker.operations.values()):
        for follower, sources in operation.sources.items():
            copies = operation.copies[follower]
            for extra in copies.keys() - set(sources):
                yield 'a copy of nothing', f'{extra} in {follower}', operation
            for document in sources:
                chain = checker.chains.get(document)
                if not chain or any(write.state is None for write in chain) or not all(map(is_decided, chain)):
                    continue
                known = [source_of(write.state) for write in chain]
                copy = copies.get(document)
                if copy is None and None not in known and operation.copied:
                    yield 'a copy was lost', f'{document} in {follower}', operation
                elif copy is not None and copy != known[-1]:
                    yield 'a copy stayed old', f'{document} in {follower}: {copy}, not {known[-1]}', operation


def is_decided(write):
    return write.operation is None or not write.operation.is_supposed


# --- versions that a write tells ---

def judge_stands(checker):
    """Of what it wrote its own, 0 where it ended the life; of what it named for a condition, the version of the condition."""
    for operation in list(checker.operations.values()):
        if operation.result != 'ok' or not operation.version:
            continue
        conditions = {document: version for document, version, _ in operation.reads}
        for document, version in operation.stands:
            actions = operation.writes.get(document)
            expected = conditions.get(document) if actions is None else 0 if actions[-1][0] == 'end' else operation.version
            if version != expected:
                yield 'a wrong version was returned', f'{document} stands at {expected}, not {version}', operation


# --- subscriptions ---

def judge_touched(checker):
    """The definitions of a session that its own commit matches, no more and no less."""
    for operation in list(checker.operations.values()):
        if operation.lost:
            yield 'a session was forgotten', operation.lost, operation
        if not operation.is_named or operation.result != 'ok' or not operation.version:
            continue
        expected = expect_touched(checker, operation)
        sent = [definition for definition, _ in operation.matched]
        if any(version != operation.version for _, version in operation.matched):
            yield 'a wrong version was returned', str(operation.matched), operation
        if expected is not None and sorted(sent) != sorted(expected & set(operation.definitions)):
            yield 'a session got the wrong definitions', f'{sorted(sent)}, not {sorted(expected & set(operation.definitions))}', operation


def expect_touched(checker, operation):
    """None: it is not known what was there before."""
    expected = {CLASS} if operation.writes else set()
    for document in operation.writes:
        place = checker.places[document].get(operation.version)
        if place is None or not place or not is_decided(checker.chains[document][place - 1]):
            return None
        before, after = checker.chains[document][place - 1].state, checker.chains[document][place].state
        if before is None or after is None:
            return None
        expected.add(f'{CLASS}/{document}')
        expected.update(f'{CLASS}/team@{team}' for team in (team_of(before), team_of(after)) if team)
    return expected


def judge_woken(checker):
    """A commit that began after the last message was sent to no session; a listener holds other versions than there are."""
    for end in list(checker.operations.values()):
        if end.missed:
            yield 'a listener missed a change', end.missed, end
        for document, sent in end.woken.items():
            for write in checker.chains.get(document, ()):
                if write.operation and write.operation.result == 'ok' and write.operation.start > sent:
                    yield 'a session was not woken', f'{document}@{write.version}', write.operation
                    break
