"""Finds every violation of strict serialisability in a history, and every answer that was not as it should have been.

The order of the versions of a document is known, and each version tells who made it.  So the order in which operations
must have happened is known too, edge by edge:

    ww   one made the version of a document that stands behind the other's
    wr   one read the version that the other made
    rw   one read a version, the other made the next
    rt   one was answered before the other was sent
    po   a synchronisation comes after the operation in whose answer it came

The history is strictly serialisable if and only if this graph has no cycle.  An operation of unknown outcome counts when
somebody saw what it wrote; it has no end, so nothing comes after it by time.  A document that does not exist shows no
version: such a read lies in one of the document's absences; it is laid where it makes no cycle, if there is such a place.
"""
from bisect import bisect_left
from collections import Counter, defaultdict

from graph import Graph
from judge_external import judge_external
from judges import judge_aged, judge_copies, judge_mortals, judge_stands, judge_touched, judge_woken, take_earlier
from members import has_item, judge_members, team_of
from records import Operation, Write
from report import Violation, difference, name_cycle
from state import change, operations_in, unpack
from tallies import judge_tallies

TRIALS_MOST = 2000  # places tried for reads of absences that could be several


class Checker:
    def __init__(self, head, operations, choices=None):
        """`choices`: who made a version of which nobody knows it, by its key in `doubtful`."""
        self.head, self.choices, self.doubtful = head, choices or {}, {}
        self.initial = {document: tuple(known) for document, known in head.get('initial', {}).items()}
        self.operations = {operation.name: operation for operation in operations}
        self.violations, self.notes, self.refuted = [], [], None
        self.chains = {}              # document -> [Write]
        self.places = {}              # document -> version -> place in the chain
        self.seen = defaultdict(dict)  # (document, version) -> state -> an operation that saw it

    def complain(self, kind, words, *operations):
        self.violations.append(Violation(kind, words, operations))

    def check(self):
        self.judge_answers()
        for words, operation in take_earlier(self):
            self.complain('older than was tolerated', words, operation)
        self.violations += [Violation(*found) for found in judge_tallies(self.operations.values())]
        self.violations += [Violation(*found) for found in judge_external(self.operations.values())]
        self.collect_states()
        for state in self.seen.items():
            self.check_names(*state)
        self.build_chains()
        for document in self.chains:
            self.replay(document)
        self.index_places()
        for words, operation in judge_members(self.operations.values(), self.write_of):
            self.complain('copy differs from the source', words, operation)
        for judge in (judge_aged, judge_copies, judge_stands, judge_touched, judge_woken):
            for kind, words, operation in judge(self):
                self.complain(kind, words, operation)
        for kind, words, operations in judge_mortals(self.operations.values()):
            self.complain(kind, words, *operations)
        self.find_absences()
        self.build_graph()
        if not self.report_cycles():
            self.lay_absences()
        return self.violations

    # --- answers ---

    def judge_answers(self):
        for operation in self.operations.values():
            if operation.result == 'wrong':
                self.complain('an answer that may not be', operation.words, operation)
            if len(set(operation.answers)) > 1:
                self.complain('done twice', f'answered with the versions {sorted(set(operation.answers))}', operation)

    # --- who made which version ---

    def collect_states(self):
        self.known_before = set()
        for document, (version, state) in self.initial.items():
            self.seen[document, version].setdefault(state, None)
            if state:
                named, listed = operations_in(state)
                self.known_before.update(name for name, _ in named)
                self.known_before.update(listed)
        for operation in self.operations.values():
            for document, version, state in [*operation.reads, *operation.aged]:
                if operation.result == 'unknown' or state is None or not version:
                    continue
                self.seen[document, version].setdefault(state, operation)

    def check_names(self, where, states):
        document, version = where
        for state, reader in states.items():
            if not state:
                continue
            named, listed = operations_in(state)
            for name, written in named:
                self.check_one(document, name, written, reader)
            for name, count in Counter(listed).items():
                if count > 1:
                    self.complain('done twice', f'{name} stands {count} times in the list of {document}@{version}',
                                  *filter(None, [reader, self.operations.get(name)]))
                if self.is_aborted(name):
                    self.complain_aborted(document, version, name, reader)

    def is_aborted(self, name):
        return name in self.operations and self.operations[name].result == 'no'

    def complain_aborted(self, document, version, name, reader):
        self.complain('G1a: read of what was refused', f'{document}@{version} was seen, of {name}, which was not done',
                      *filter(None, [reader]), self.operations[name])

    def check_one(self, document, name, version, reader):
        operation = self.operations.get(name)
        if operation is None:
            if name not in self.known_before:
                self.complain('read of what nobody wrote', f'{document}@{version} names {name}', *filter(None, [reader]))
        elif self.is_aborted(name):
            self.complain_aborted(document, version, name, reader)
        elif document not in operation.writes:
            self.complain('read of what nobody wrote', f'{document}@{version} names {name}, which did not write it',
                          *filter(None, [reader]), operation)
        elif operation.version is None:
            operation.version, operation.is_sure = version, True
        elif operation.version != version:
            self.complain('done twice', f'{name} stands in {document} at {version}, and was done at {operation.version}',
                          *filter(None, [reader]), operation)

    def build_chains(self):
        documents = set(self.initial) | {document for document, _ in self.seen}
        for operation in self.operations.values():
            documents.update(operation.writes, (document for document, _, _ in [*operation.reads, *operation.aged]))
        versions = {document: {} for document in documents}
        self.pending = defaultdict(list)  # (document, version) -> operations of unknown outcome that would end its life
        unknown_writers = defaultdict(list)
        for operation in self.operations.values():
            if operation.result == 'no':
                continue
            for document, actions in operation.writes.items():
                if operation.version is None:
                    unknown_writers[document].append(operation)
                    if actions[-1][0] == 'end':
                        for read, version, _ in operation.reads:
                            if read == document:
                                self.pending[document, version].append(operation)
                    continue
                other = versions[document].setdefault(operation.version, operation)
                if other is not operation:
                    self.complain('one version made twice', f'{document}@{operation.version}', other, operation)
        for operation in list(self.operations.values()):
            self.note_headers(operation, versions, unknown_writers)
        for document, made in versions.items():
            first, state = self.initial.get(document, (0, ''))
            for version, operation in made.items():
                if version <= first:
                    self.complain('version went back', f'{document} was at {first} before, then {version} was given',
                                  *filter(None, [operation]))
            self.chains[document] = [Write(first, None, state)] + [
                Write(version, made[version]) for version in sorted(made) if version > first]

    def note_headers(self, operation, versions, unknown_writers):
        """Versions that were seen without their contents, and that nobody is known to have made."""
        if not operation.is_sure:
            return
        for document, version, state in [*operation.reads, *operation.aged]:
            if not version or version in versions[document] or version == self.initial.get(document, (0,))[0]:
                continue
            suspects = [other for other in unknown_writers[document] if operation.end is None or other.start <= operation.end]
            chosen = self.choose((document, version), suspects) if state is None else None
            if chosen:
                self.settle(chosen, version, versions, unknown_writers)
            elif state is None and suspects:
                versions[document][version] = self.add_somebody(document, version, suspects)
            else:
                self.complain('read of what nobody wrote', f'{document}@{version}', operation)

    def choose(self, key, suspects):
        """The one who did it; None: nobody can tell, or there is none."""
        if len(suspects) > 1:
            chosen = [one for one in suspects if one.name == self.choices.get(key)]
            if not chosen:
                self.doubtful[key] = [one.name for one in suspects]
            suspects = chosen
        return suspects[0] if suspects else None

    def settle(self, operation, version, versions, unknown_writers):
        """It did happen: nobody else can have made this version."""
        operation.version, operation.is_sure = version, True
        for document in operation.writes:
            versions[document][version] = operation
            unknown_writers[document].remove(operation)
        for suspects in self.pending.values():
            if operation in suspects:
                suspects.remove(operation)

    def add_somebody(self, document, version, suspects):
        """One of the suspects did it; nobody can tell which."""
        somebody = Operation({'id': f'somebody@{document}@{version}', 'kind': 'one of ' + ', '.join(one.name for one in suspects),
                              'result': 'unknown', 'start': min(one.start for one in suspects), 'writes': {document: [['somehow']]}})
        somebody.is_sure, somebody.version = True, version
        self.operations[somebody.name] = somebody
        return somebody

    # --- what each version should look like ---

    def replay(self, document):
        chain, state = [], ''
        for place, write in enumerate(self.chains[document]):
            if place == 0:
                state = write.state
            elif write.operation.writes[document] != [['somehow']]:
                actions = write.operation.writes[document]
                suspects = self.pending.get((document, chain[-1].version), ())
                if chain[-1].state != '' and suspects:
                    begins = self.begins_life(document, place)
                    if begins is not False:
                        chain.append(self.suspected_end(document, place, suspects, is_sure=bool(begins)))
                        state = '' if begins else state
                write.state = state = change(state, actions, write.version, write.operation.name)
            chain.append(write)
            self.compare(document, write)
        suspects = self.pending.get((document, chain[-1].version), ())
        if chain[-1].state != '' and suspects:
            chain.append(self.suspected_end(document, len(chain), suspects, is_sure=False))
        self.chains[document] = chain

    def begins_life(self, document, place):
        """Was the document born anew by this write, though it does not say so itself?  None: nobody saw it."""
        chain = self.chains[document]
        for write in chain[place:]:
            if any(action[0] in ('renew', 'end') for action in write.operation.writes[document]):
                return None
            for state in self.seen.get((document, write.version), ()):
                return unpack(state)[0] == chain[place].version
        return None

    def suspected_end(self, document, place, suspects, is_sure):
        """The life ended here by one of the suspects: for certain, or only if somebody saw the absence."""
        ender = self.choose((document, 'end', place), suspects) or self.add_somebody(document, place, suspects)
        ender.is_sure, ender.is_supposed = is_sure, not is_sure
        return Write(None, ender, '')

    def compare(self, document, write):
        if write.state is None:
            return
        for state, reader in self.seen.get((document, write.version), {}).items():
            if state == write.state or not write.version:
                continue
            kind = 'copy differs from the source' if reader and reader.kind == 'sync' else 'G1b: not as it was written'
            self.complain(kind, f'{document}@{write.version}{difference(write.state, state)}',
                          *filter(None, [reader, write.operation]))

    def index_places(self):
        for document, chain in self.chains.items():
            self.places[document] = {write.version: place for place, write in enumerate(chain) if write.version}

    def write_of(self, document, version):
        place = self.places[document].get(version) if document in self.places else None
        return None if place is None else self.chains[document][place]

    # --- the graph ---

    def build_graph(self):
        self.actors = [operation for operation in self.operations.values()
                       if (operation.is_sure or operation.is_supposed) and operation.result != 'no']
        for node, operation in enumerate(self.actors):
            operation.node = node
        self.graph = Graph(len(self.actors))
        self.readers = defaultdict(list)  # (document, place in the chain) -> operations
        for document, chain in self.chains.items():
            self.add_order(document, chain)
        for operation in self.actors:
            if operation.is_supposed:
                continue
            self.add_reads(operation)
            parent = self.operations.get(operation.parent)
            if parent and parent.node is not None:
                self.graph.add(parent.node, operation.node, 'po')
        self.add_time()
        for absence in self.absences:
            self.add_absence(*absence)

    def add_order(self, document, chain):
        before = None
        for write in chain:
            if is_certain(write):
                if before is not None:
                    self.graph.add(before.node, write.operation.node, 'ww', document)
                before = write.operation

    def maker(self, document, place):
        """Who made this version, or the nearest before it that is known."""
        chain = self.chains[document]
        while place >= 0 and not is_certain(chain[place]):
            place -= 1
        return chain[place].operation if place >= 0 else None

    def successor(self, document, place):
        chain = self.chains[document]
        place += 1
        while place < len(chain) and not is_certain(chain[place]):
            place += 1
        return chain[place].operation if place < len(chain) else None

    def edges_of_read(self, operation, document, place):
        maker, successor = self.maker(document, place), self.successor(document, place)
        if maker is not None and maker is not operation:
            yield maker.node, operation.node, 'wr', document
        if successor is not None and successor is not operation:
            yield operation.node, successor.node, 'rw', document

    def add_reads(self, operation):
        if len({document for document, _, _ in operation.reads}) < len({(document, version) for document, version, _ in operation.reads}):
            self.complain('G-single: read of two instants', 'of one document', operation)
        for document, version, _ in operation.reads:
            if version:
                place = self.places[document].get(version)
                if place is None:
                    continue  # complained of already
                if self.chains[document][place].operation is operation:
                    self.complain('read of its own future', f'{document}@{version}', operation)
                self.readers[document, place].append(operation)
                for edge in self.edges_of_read(operation, document, place):
                    self.graph.add(*edge)

    def find_absences(self):
        """(operation, document, [places in the chain]) of each read of a document that did not exist, or was no member."""
        self.absences = []
        for operation in list(self.operations.values()):
            if not operation.is_sure or operation.result == 'no':
                continue
            absent = [document for document, version, _ in operation.reads if not version]
            for document in absent:
                self.find_absence(operation, document, lambda state: state == '')
            for document in operation.outside:
                self.find_absence(operation, document, lambda state: state is None or team_of(state) != operation.team)
            for document, version in operation.inside:
                self.find_absence(operation, document, lambda state, version=version: has_item(state, operation.team, version))

    def find_absence(self, operation, document, is_possible):
        places = self.possible_absences(operation, document, is_possible)
        self.absences.append((operation, document, places))
        ender = self.chains[document][places[0]].operation if len(places) == 1 else None
        if ender is not None:
            ender.is_sure, ender.is_supposed = True, False

    def possible_absences(self, operation, document, is_possible):
        chain, found = self.chains[document], []
        for place, write in enumerate(chain):
            if write.operation is operation:
                break  # it read before it wrote
            if not is_possible(write.state):
                continue
            successor = self.successor(document, place)
            if write.operation and operation.end is not None and write.operation.start > operation.end:
                continue
            if successor and successor is not operation and successor.end is not None and successor.end < operation.start:
                continue
            found.append(place)
        return found

    def add_absence(self, operation, document, places):
        """What holds wherever the read lies; the rest waits for lay_absences."""
        if not places:
            inside = dict(operation.inside)
            kind = 'a search found what was not there' if document in inside else (
                'a search missed a document' if operation.kind == 'find' else
                'a member is missing' if operation.team else 'read of an absence that never was')
            self.complain(kind, document, operation)
        elif len(places) == 1:
            for edge in self.edges_of_read(operation, document, places[0]):
                self.graph.add(*edge)
        else:
            first, last = list(self.edges_of_read(operation, document, places[0])), list(
                self.edges_of_read(operation, document, places[-1]))
            for edge in [edge for edge in first if edge[2] == 'wr'] + [edge for edge in last if edge[2] == 'rw']:
                self.graph.add(*edge)

    def add_time(self):
        """Who ended before another began comes before it.  Barriers stand in a row between ends and starts."""
        events = []
        for operation in self.actors:
            events.append((operation.start, 0, operation))
            if operation.end is not None:
                events.append((operation.end, 1, operation))
        events.sort(key=lambda event: event[:2])
        barrier, is_open = None, False
        self.begins = [operation.start for operation in self.actors]  # of barriers: their time
        for when, is_end, operation in events:
            if is_end:
                if not is_open:
                    following = self.graph.add_node()
                    self.begins.append(when)
                    if barrier is not None:
                        self.graph.add(barrier, following, 'rt')
                    barrier, is_open = following, True
                self.graph.add(operation.node, barrier, 'rt')
            else:
                is_open = False
                if barrier is not None and operation.is_sure:
                    self.graph.add(barrier, operation.node, 'rt')

    # --- verdict ---

    def report_cycles(self):
        components = self.graph.components()
        for component in components:
            steps = self.graph.shortest_cycle(component)
            edges = [(self.actors[node], kind, document) for node, kind, document in steps]
            self.violations.append(Violation(name_cycle(edges), '', [edge[0] for edge in edges], edges))
        return bool(components)

    def lay_absences(self):
        """Finds a place for each read of an absence that could lie in several, so that no cycle comes of it."""
        waiting = sorted((absence for absence in self.absences if len(absence[2]) > 1), key=lambda absence: absence[0].start)
        self.trials = 0
        verdict = self.lay(waiting)
        if verdict is None:
            self.notes.append(f'{len(waiting)} reads of absences could not be laid out in {TRIALS_MOST} trials')
        elif not verdict:
            self.complain('reads of absences that fit into no order', ', '.join(sorted({document for _, document, _ in waiting})),
                          *(operation for operation, _, _ in waiting))

    def lay(self, waiting):
        """Depth first: True, False, or None when there were too many trials.  The first places serve nearly always."""
        laid = []  # of each that is laid or is being laid: places not yet tried, edges added
        while len(laid) < len(waiting):
            laid.append((list(waiting[len(laid)][2]), []))
            while not self.lay_one(waiting[len(laid) - 1], *laid[-1]):
                laid.pop()
                if not laid:
                    return False
                self.take_up(laid[-1][1])
            if self.trials > TRIALS_MOST + 20 * len(waiting):
                return None
        return True

    def lay_one(self, absence, places, edges):
        operation, document, _ = absence
        while places:
            self.trials += 1
            place = places.pop(0)
            for edge in [*self.edges_of_read(operation, document, place), *self.edges_of_supposed(operation, document, place)]:
                if self.closes_cycle(*edge[:2]):
                    self.take_up(edges)
                    break
                self.graph.add(*edge)
                edges.append(edge)
            else:
                return True
        return False

    def edges_of_supposed(self, operation, document, place):
        """If the read lies here, somebody ended the life: after its request, between the versions beside."""
        ender = self.chains[document][place].operation
        if ender is None or not ender.is_supposed:
            return
        barrier = bisect_left(self.begins, ender.start, len(self.actors)) - 1
        if barrier >= len(self.actors):
            yield barrier, ender.node, 'rt', None
        maker, successor = self.maker(document, place), self.successor(document, place)
        if maker is not None:
            yield maker.node, ender.node, 'ww', document
        if successor is not None:
            yield ender.node, successor.node, 'ww', document
        for reader in self.readers[document, place - 1]:
            yield reader.node, ender.node, 'rw', document
        yield ender.node, operation.node, 'wr', document
        for other, version, _ in ender.reads:
            if other != document and version in self.places[other]:
                yield from self.edges_of_read(ender, other, self.places[other][version])

    def take_up(self, edges):
        for edge in edges:
            self.graph.remove(*edge)
        edges.clear()

    def closes_cycle(self, source, target):
        """Would the edge close one?  Who began after the source's end comes after it, so no way leads there."""
        end = self.actors[source].end if source < len(self.actors) else self.begins[source]

        def may_pass(node):
            return end is None or self.begins[node] <= end

        return self.graph.reaches(target, source, may_pass)


def is_certain(write):
    return write.operation is not None and not write.operation.is_supposed
