#!/usr/bin/python3
"""The checker on histories written by hand: it finds each anomaly, and nothing in what is right.  Run by make check."""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from book import END, PUSH, Book, line, state  # noqa: E402
from graph import Graph  # noqa: E402
from state import change, compact, pack, unpack  # noqa: E402


class Verdicts(unittest.TestCase):
    def right(self, book):
        checker = book.check()
        self.assertEqual([(found.kind, found.words) for found in checker.violations], [])
        self.assertEqual(checker.notes, [])

    def wrong(self, book, kind, *names):
        found = book.check().violations
        self.assertTrue([one for one in found if one.kind.startswith(kind)], [(one.kind, one.words) for one in found])
        if names:
            self.assertIn(set(names), [{operation.name for operation in one.operations} for one in found])


class WhatIsRight(Verdicts):
    def test_nothing(self):
        self.right(Book())

    def test_one_after_the_other(self):
        self.right(Book().add('a', 0, 1, [['x', 0, '']], {'x': True}, 10)
                   .add('b', 2, 3, [['x', 10, state((10, 'a'))]], {'x': True}, 20)
                   .add('c', 4, 5, [['x', 20, state((10, 'a'), (20, 'b'))]]))

    def test_at_the_same_time_in_either_order(self):
        for seen in (0, 10):
            self.right(Book().add('w', 0, 9, (), {'x': True}, 10)
                       .add('r', 1, 2, [['x', seen, state((10, 'w')) if seen else '']]))

    def test_unknown_outcome_may_have_happened_or_not(self):
        for seen in (10, 20):
            known = state((10, 'a')) if seen == 10 else state((10, 'a'), (20, 'u'))
            self.right(Book().add('a', 0, 1, (), {'x': True}, 10).add('u', 2, 3, (), {'x': True}, result='unknown')
                       .add('r', 50, 51, [['x', seen, known]]))

    def test_unknown_outcome_may_happen_late(self):
        self.right(Book().add('a', 0, 1, (), {'x': True}, 10).add('u', 2, 3, (), {'x': True}, result='unknown')
                   .add('r', 50, 51, [['x', 10, state((10, 'a'))]])
                   .add('s', 52, 53, [['x', 20, state((10, 'a'), (20, 'u'))]]))

    def test_what_was_there_before(self):
        self.right(Book(x=[5, state((5, 'old'))]).add('r', 0, 1, [['x', 5, state((5, 'old'))]])
                   .add('a', 2, 3, (), {'x': True}, 10).add('s', 4, 5, [['x', 10, state((5, 'old'), (10, 'a'))]]))

    def test_lives(self):
        self.right(Book().add('a', 0, 1, (), {'x': True}, 10).add('d', 2, 3, [['x', 10, None]], {'x': END}, 11)
                   .add('r', 4, 5, [['x', 0, '']]).add('b', 6, 7, [['x', 0, None]], {'x': PUSH}, 12)
                   .add('s', 8, 9, [['x', 12, state((12, 'b', PUSH))]])
                   .add('n', 10, 11, (), {'x': [['renew'], *line('n')]}, 13)
                   .add('t', 12, 13, [['x', 13, state((13, 'n'))]]))

    def test_an_end_of_unknown_outcome_is_seen_in_the_absence_and_in_the_next_birth(self):
        book = Book().add('a', 0, 1, (), {'x': True}, 10)
        book.add('d', 2, 3, [['x', 10, None]], {'x': END}, result='unknown').add('r', 4, 5, [['x', 0, '']])
        self.right(book)
        self.right(book.add('b', 6, 7, (), {'x': True}, 12).add('s', 8, 9, [['x', 12, state((12, 'b'))]]))

    def test_an_end_of_unknown_outcome_that_did_not_happen(self):
        self.right(Book().add('a', 0, 1, (), {'x': True}, 10)
                   .add('d', 2, 3, [['x', 10, None]], {'x': END}, result='unknown')
                   .add('b', 6, 7, (), {'x': True}, 12).add('s', 8, 9, [['x', 12, state((10, 'a'), (12, 'b'))]]))

    def test_absences_are_laid_where_they_fit(self):
        """The read may lie in three absences by its time; what it saw of y says that it was the second."""
        book = Book().add('a', 0, 1, (), {'x': True}, 10).add('d', 2, 3, [['x', 10, None]], {'x': END}, 11)
        book.add('y', 4, 5, (), {'y': True}, 12).add('b', 6, 7, (), {'x': True}, 13)
        book.add('e', 8, 9, [['x', 13, None]], {'x': END}, 14)
        self.right(book.add('r', 0, 20, [['x', 0, ''], ['y', 12, state((12, 'y'))]]))

    def test_absences_of_two_reads_that_need_different_places(self):
        book = Book().add('a', 0, 1, (), {'x': True}, 10).add('d', 2, 3, [['x', 10, None]], {'x': END}, 11)
        book.add('y', 4, 5, (), {'y': True}, 12)
        book.add('r', 0, 20, [['x', 0, ''], ['y', 0, '']]).add('s', 0, 20, [['x', 0, ''], ['y', 12, state((12, 'y'))]])
        self.right(book)

    def test_versions_seen_without_contents(self):
        self.right(Book().add('u', 0, 1, (), {'x': [['set', 'Last', '"u"']]}, result='unknown').add('l', 2, 3, [['x', 10, None]])
                   .add('a', 4, 5, (), {'x': [['renew'], *line('a')]}, 20))

    def test_refused_operations_leave_nothing(self):
        self.right(Book().add('n', 0, 1, (), {'x': True}, result='no').add('r', 2, 3, [['x', 0, '']]))

    def test_random_serial_executions(self):
        """Operations done one after the other, recorded with times that are longer than they were."""
        for seed in range(30):
            self.right(serial_history(random.Random(seed)))


def serial_history(dice):
    book, states, version = Book(), {name: (0, '') for name in 'xyz'}, 100
    for number in range(120):
        name, documents = f'o{number}', dice.sample('xyz', dice.randint(1, 3))
        reads = [[document, *states[document]] for document in documents]
        writes, result = {}, dice.choice(['ok', 'ok', 'ok', 'unknown', 'no'])
        if dice.random() < 0.5:
            for document in dice.sample('xyz', dice.randint(1, 2)):
                is_there = states[document][0]
                if is_there and dice.random() < 0.3:
                    writes[document] = END
                    reads = [read for read in reads if read[0] != document] + [[document, is_there, None]]
                else:
                    writes[document] = dice.choice([line(name), PUSH, [['renew'], *line(name)]])
        version += 1
        if writes and result != 'no' and (result == 'ok' or dice.random() < 0.5):
            for document, actions in writes.items():
                text = change(states[document][1], actions, version, name)
                states[document] = (version if text else 0, text)
        if result == 'unknown':
            reads = [[document, seen, None] for document, seen, _ in reads if writes.get(document) == END]
        elif result == 'no':
            reads = []
        book.add(name, number * 10 - dice.randint(0, 60), number * 10 + dice.randint(1, 60), reads, writes,
                 version if writes and result == 'ok' else None, result)
    return book


ASKED = [['t', 'a.0', 1], ['t', 'a.1', 2]]


def tallied(result='ok', left=0, **counts):
    """One asks for two tasks; at the end they were counted so."""
    return Book().add('a', 0, 1, kind='Ask', result=result, tasks=ASKED).add(
        'end', 2, 3, kind='tallies', left=left, tallies={'t': {f'a.{number[1:]}': count for number, count in counts.items()}})


def join(name, team):
    """What an operation does that makes the document a member."""
    return [*line(name), ['set', 'Team', compact({'team': team})]]


class Members(Verdicts):
    """Of a collection: x joins red with a, goes to blue with b."""

    def book(self):
        return Book().add('a', 0, 1, (), {'x': join('a', 'red')}, 10).add('b', 4, 7, (), {'x': join('b', 'blue')}, 20)

    def team_copy(self, start, end, team, **members):
        return self.book().add('h', start, end, [[document, version, None] for document, version in members.items()], kind='collection',
                               team=team, outside=[] if members else ['x'])

    def test_right(self):
        self.right(self.team_copy(2, 3, 'red', x=10))
        self.right(self.team_copy(2, 3, 'blue'))
        for team in ('red', 'blue'):  # while it goes
            self.right(self.team_copy(5, 6, team))
            self.right(self.team_copy(5, 6, team, x={'red': 10, 'blue': 20}[team]))
        self.right(self.team_copy(8, 9, 'red'))
        self.right(self.team_copy(8, 9, 'blue', x=20))

    def test_before_and_after_all(self):
        self.right(self.book().add('h', -2, -1, [], kind='collection', team='red', outside=['x']))
        self.right(self.book().add('d', 8, 9, [['x', 20, None]], {'x': END}, 30)
                   .add('h', 10, 11, [], kind='collection', team='blue', outside=['x']))

    def test_a_departure_that_was_missed(self):
        self.wrong(self.team_copy(8, 9, 'red', x=10), 'stale read', 'b', 'h')

    def test_an_arrival_that_was_missed(self):
        self.wrong(self.team_copy(8, 9, 'blue'), 'a member is missing', 'h')
        self.wrong(self.team_copy(2, 3, 'red'), 'a member is missing', 'h')

    def test_a_member_of_another_value(self):
        self.wrong(self.team_copy(8, 9, 'red', x=20), 'copy differs', 'h')

    def test_of_no_instant(self):
        """x and y change places in one operation; whoever misses both has seen no instant."""
        book = (Book().add('a', 0, 1, (), {'x': join('a', 'red'), 'y': join('a', 'blue')}, 10)
                .add('b', 4, 7, (), {'x': join('b', 'blue'), 'y': join('b', 'red')}, 20))
        for holds in ([], ['x', 'y']):
            reads = [[document, {'x': 10, 'y': 20}[document], None] for document in holds]
            found = Book()
            found.lines = [*book.lines]
            found.add('h', 5, 6, reads, kind='collection', team='red', outside=[document for document in 'xy' if document not in holds])
            self.assertTrue(found.check().violations)


class Tasks(Verdicts):
    def test_each_is_done_as_often_as_it_counts(self):
        self.right(tallied(_0=1, _1=2))

    def test_what_is_unknown_may_be_done_or_not(self):
        for counts in ({}, {'_0': 1}, {'_0': 1, '_1': 1}, {'_0': 1, '_1': 2}):
            self.right(tallied('unknown', **counts))

    def test_what_was_refused_is_not_done(self):
        self.right(tallied('no'))
        self.wrong(tallied('no', _0=1), 'a task of what was refused', 'a', 'end')

    def test_one_that_is_missing(self):
        self.wrong(tallied(_1=2), 'a task was not done', 'a', 'end')
        self.wrong(tallied(_0=1, _1=1), 'a task was not done', 'a', 'end')

    def test_one_that_was_done_twice(self):
        for result in ('ok', 'unknown', 'no'):
            self.wrong(tallied(result, _0=2, _1=2), 'a task was done twice', 'a', 'end')

    def test_one_that_nobody_asked_for(self):
        self.wrong(tallied(_0=1, _1=2, _7=1), 'a task that nobody requested', 'end')

    def test_what_is_left(self):
        self.wrong(tallied(_0=1, _1=2, left=3), 'tasks came to no end', 'end')

    def test_tasks_of_another_round_and_histories_without_an_end(self):
        self.right(Book().add('a', 0, 1, kind='Ask', result='unknown', tasks=ASKED).add('end', 2, 3, kind='tallies', tallies={'u': {}}))
        self.right(Book().add('a', 0, 1, kind='Ask', tasks=ASKED))


class WhatIsWrong(Verdicts):
    def test_g0(self):
        self.wrong(Book().add('a', 0, 9, (), {'x': True, 'y': True}, 10)
                   .add('b', 0, 9, (), {'x': True}, 5, answers=[]).add('c', 0, 9, (), {'x': True}, 5), 'one version made twice')
        book = Book().add('a', 0, 99, (), {'x': True}, 10).add('b', 20, 30, (), {'x': True}, 20)
        book.add('a2', 40, 50, (), {'x': True}, 15)
        self.wrong(book, 'version went back', 'b', 'a2')

    def test_g0_pure(self):
        """Two writers in both orders: possible only where their versions differ from document to document."""
        graph = Graph(2)
        graph.add(0, 1, 'ww', 'x')
        graph.add(1, 0, 'ww', 'y')
        self.assertEqual(graph.shortest_cycle(graph.components()[0]), [(0, 'ww', 'x'), (1, 'ww', 'y')])

    def test_g1a(self):
        self.wrong(Book().add('n', 0, 1, (), {'x': True}, result='no').add('r', 2, 3, [['x', 10, state((10, 'n'))]]), 'G1a')

    def test_g1a_in_a_list(self):
        pushed = state((10, 'n', PUSH), (20, 'a', PUSH))
        self.wrong(Book().add('n', 0, 1, (), {'x': PUSH}, result='no').add('a', 2, 3, (), {'x': PUSH}, 20)
                   .add('r', 4, 5, [['x', 20, pushed]]), 'G1a')

    def test_g1b(self):
        half = pack(10, {'Last': (10, '"a"')})
        self.wrong(Book().add('a', 0, 1, (), {'x': True}, 10).add('r', 2, 3, [['x', 10, half]]), 'G1b')

    def test_g1c(self):
        self.wrong(Book().add('a', 0, 9, [['y', 11, state((11, 'b'))]], {'x': True}, 10)
                   .add('b', 0, 9, [['x', 10, state((10, 'a'))]], {'y': True}, 11), 'G1c', 'a', 'b')

    def test_g_single_two_instants(self):
        self.wrong(Book().add('w', 0, 9, (), {'x': True, 'y': True}, 10)
                   .add('r', 0, 9, [['x', 10, state((10, 'w'))], ['y', 0, '']]), 'G-single', 'w', 'r')

    def test_g2_write_skew(self):
        self.wrong(Book(x=[5, state((5, 'o'))], y=[6, state((6, 'p'))])
                   .add('a', 0, 9, [['x', 5, None], ['y', 6, None]], {'x': True}, 10)
                   .add('b', 0, 9, [['x', 5, None], ['y', 6, None]], {'y': True}, 11), 'G2', 'a', 'b')

    def test_g2_of_absences(self):
        self.wrong(Book().add('a', 0, 9, [['y', 0, '']], {'x': True}, 10).add('b', 0, 9, [['x', 0, '']], {'y': True}, 11),
                   'G2', 'a', 'b')

    def test_lost_update(self):
        self.wrong(Book(x=[5, state((5, 'o'))]).add('a', 0, 9, [['x', 5, None]], {'x': True}, 10)
                   .add('b', 0, 9, [['x', 5, None]], {'x': True}, 11), 'lost update', 'a', 'b')

    def test_lost_creation(self):
        self.wrong(Book().add('a', 0, 9, [['x', 0, '']], {'x': True}, 10).add('b', 0, 9, [['x', 0, '']], {'x': True}, 11),
                   'lost update', 'a', 'b')

    def test_stale_read(self):
        self.wrong(Book(x=[5, state((5, 'o'))]).add('w', 0, 1, (), {'x': True}, 10)
                   .add('r', 2, 3, [['x', 5, state((5, 'o'))]]), 'stale read', 'w', 'r')

    def test_stale_absence(self):
        self.wrong(Book().add('w', 0, 1, (), {'x': True}, 10).add('r', 2, 3, [['x', 0, '']]), 'read of an absence that never was')

    def test_an_absence_between_lives_that_comes_too_late(self):
        book = Book().add('a', 0, 1, (), {'x': True}, 10).add('d', 2, 3, [['x', 10, None]], {'x': END}, 11)
        book.add('b', 4, 5, (), {'x': True}, 12).add('e', 30, 31, [['x', 12, None]], {'x': END}, 13)
        self.wrong(book.add('r', 6, 7, [['x', 0, '']]), 'read of an absence that never was')

    def test_reads_that_go_back(self):
        """Neither is stale by the writer's answer, which never came; but one after the other they are."""
        self.wrong(Book(x=[5, state((5, 'o'))]).add('u', 0, 1, (), {'x': True}, result='unknown')
                   .add('r', 2, 3, [['x', 10, state((5, 'o'), (10, 'u'))]]).add('s', 4, 5, [['x', 5, state((5, 'o'))]]),
                   'against the order of time', 'u', 'r', 's')

    def test_absences_that_fit_nowhere(self):
        """Before y was written, and behind the end of x's first life, which came after y."""
        book = Book().add('a', 0, 1, (), {'x': True}, 10).add('y', 2, 3, (), {'y': True}, 12)
        book.add('d', 4, 5, [['x', 10, None]], {'x': END}, 13)
        self.wrong(book.add('r', 2, 20, [['x', 0, ''], ['y', 0, '']]), '')

    def test_absences_of_which_each_alone_would_fit(self):
        """Both see x absent; r before z was written, in the first absence, is sent after s, in the second."""
        book = Book().add('a', 10, 11, (), {'x': True}, 10).add('d', 12, 13, [['x', 10, None]], {'x': END}, 11)
        book.add('y', 14, 15, (), {'y': True}, 12)
        book.add('s', 0, 20, [['x', 0, ''], ['y', 12, state((12, 'y'))]], {'q': True}, 30)
        self.wrong(book.add('r', 0, 99, [['x', 0, ''], ['q', 30, state((30, 's'))], ['y', 0, '']]), '')

    def test_lost_acknowledged_write(self):
        self.wrong(Book().add('a', 0, 1, (), {'x': True}, 10).add('b', 2, 3, (), {'x': True}, 20)
                   .add('r', 4, 5, [['x', 20, state((20, 'b'))]]), 'G1b')

    def test_done_twice(self):
        twice = state((10, 'a', PUSH), (20, 'a', PUSH))
        self.wrong(Book().add('a', 0, 1, (), {'x': PUSH}, 10).add('r', 4, 5, [['x', 20, twice]]), 'done twice')
        self.wrong(Book().add('a', 0, 1, (), {'x': PUSH}, 10, answers=[10, 20]), 'done twice', 'a')

    def test_read_of_what_nobody_wrote(self):
        self.wrong(Book().add('r', 0, 1, [['x', 10, state((10, 'ghost'))]]), 'read of what nobody wrote')
        self.wrong(Book().add('r', 0, 1, [['x', 10, None]]), 'read of what nobody wrote')
        self.wrong(Book().add('a', 0, 1, (), {'y': True}, 10).add('r', 2, 3, [['x', 10, state((10, 'a'))]]),
                   'read of what nobody wrote')

    def test_half_of_an_operation_of_unknown_outcome(self):
        self.wrong(Book(y=[5, state((5, 'o'))]).add('u', 0, 1, (), {'x': True, 'y': True}, result='unknown')
                   .add('r', 2, 3, [['x', 10, state((10, 'u'))], ['y', 5, state((5, 'o'))]]), 'G-single', 'u', 'r')

    def test_copy_differs(self):
        self.wrong(Book().add('a', 0, 1, (), {'x': True}, 10).add('b', 2, 3, (), {'x': [['del', 'Line.a'], *line('b')]}, 20)
                   .add('h', 4, 5, [['x', 20, state((10, 'a'), (20, 'b'))]], kind='sync'), 'copy differs')

    def test_a_synchronisation_comes_after_its_operation(self):
        self.wrong(Book(x=[5, state((5, 'o'))]).add('a', 0, 9, (), {'x': True}, 10)
                   .add('a.s', 0, 9, [['x', 5, state((5, 'o'))]], kind='sync', parent='a'), '', 'a', 'a.s')

    def test_versions_below_what_was_there(self):
        self.wrong(Book(x=[50, state((50, 'o'))]).add('a', 0, 1, (), {'x': True}, 10), 'version went back')

    def test_answers_that_may_not_be(self):
        self.wrong(Book().add('a', 0, 1, result='wrong', words='500'), 'an answer that may not be')

    def test_the_smallest_cycle_is_told(self):
        book = Book().add('w', 0, 9, (), {'x': True, 'y': True}, 10).add('r', 0, 9, [['x', 10, state((10, 'w'))], ['y', 0, '']])
        for number in range(30):  # others in between, by time and by what they read
            book.add(f'p{number}', 0, 9, [['x', 10, state((10, 'w'))]], {f'z{number}': True}, 11)
            book.add(f'q{number}', 0, 9, [[f'z{number}', 11, state((11, f'p{number}'))], ['y', 0, '']])
        found = book.check().violations
        self.assertEqual({operation.name for operation in found[0].operations}, {'w', 'r'})

    def test_each_planted_fault_in_a_long_history_is_found(self):
        """A read among 120 operations is made to tell the version before, when that was replaced and answered earlier."""
        planted = 0
        for seed in range(60):
            dice = random.Random(seed)
            book = serial_history(dice)
            planted += self.plant_stale_read(book, dice)
        self.assertGreater(planted, 20)

    def plant_stale_read(self, book, dice):
        states = {}
        for one in book.lines[1:]:
            for document, version, text in one['reads']:
                if text:
                    states[document, version] = text
        reads = [(one, number) for one in book.lines[1:] for number, read in enumerate(one['reads']) if one['result'] == 'ok' and read[2]]
        dice.shuffle(reads)
        for one, number in reads:
            document, version, text = one['reads'][number]
            older = [made for name, made in states if name == document and made < version]
            made_by = [other for other in book.lines[1:] if other['version'] and document in other['writes']
                       and older and max(older) < other['version'] <= version and other['end'] < one['start']
                       and other['result'] == 'ok']
            if made_by:
                one['reads'][number] = [document, max(older), states[document, max(older)]]
                self.assertTrue(book.check().violations)
                return True
        return False


class EveryOrder(unittest.TestCase):
    """The verdict is the same as that of a search through all orders."""

    def test_small_random_histories(self):
        verdicts, doubts = [0, 0], 0  # doubts: where it had to try who made a version
        for seed in range(int(os.environ.get('SEEDS', 2000))):
            dice = random.Random(seed)
            book = small_history(dice)
            for _ in range(dice.randint(0, 2)):
                spoil(book, dice)
            if not is_founded(book.lines[1:]):
                continue
            is_possible = search(book.lines[1:])
            checker = book.check()
            doubts += bool(checker.choices or checker.refuted)
            self.assertEqual(not checker.violations, is_possible,
                             f'seed {seed}: {[(one.kind, one.words) for one in checker.violations]}\n{book.text()}')
            verdicts[is_possible] += 1
        self.assertGreater(min(verdicts), 100, verdicts)
        self.assertGreater(doubts, 0)


def small_history(dice):
    """Few operations on x and y, recorded with times that let them overlap; absences often."""
    book, states, version = Book(), {'x': (0, ''), 'y': (0, '')}, 100
    for number in range(dice.randint(3, 6)):
        name, reads, writes = f'o{number}', [], {}
        result = dice.choice(('ok', 'ok', 'ok', 'unknown'))
        if result == 'ok':
            reads = [[document, *states[document]] for document in 'xy' if dice.random() < 0.6]
        for document in 'xy':
            if dice.random() < 0.35:
                is_there = states[document][0]
                writes[document] = dice.choice((line(name), PUSH, [['renew'], *line(name)], *([END] * 3 if is_there else [])))
                if writes[document] == END:  # and nothing else
                    writes = {document: END}
                    reads.append([document, is_there, None])
                    other = 'xy'['yx'.index(document)]
                    if states[other][0] and dice.random() < 0.3:
                        reads.append([other, states[other][0], None])
                    break
        version += 100
        is_done = writes and (result == 'ok' or dice.random() < 0.5)
        for document, actions in writes.items() if is_done else ():
            text = change(states[document][1], actions, version, name)
            states[document] = (version if text else 0, text)
        start = number * 10 - dice.randint(0, 40)
        book.add(name, start, max(start + 1, number * 10 + dice.randint(0, 30)), reads, writes,
                 version if writes and result == 'ok' else None, result)
    return book


def spoil(book, dice):
    """One read tells another state that was somewhere; or an operation has other times."""
    operations = book.lines[1:]
    known = {(read[0], read[1], read[2]) for one in operations for read in one['reads'] if read[2] is not None}
    one = dice.choice(operations)
    if dice.random() < 0.4:
        one['start'] = dice.randint(-20, 60)
        one['end'] = one['start'] + dice.randint(1, 20)
    elif one['result'] == 'ok' and one['reads']:
        number = dice.randrange(len(one['reads']))
        others = [state for state in sorted(known) + [('x', 0, ''), ('y', 0, '')] if state[0] == one['reads'][number][0]]
        if one['reads'][number][2] is not None:
            one['reads'][number] = list(dice.choice(others))


def is_founded(operations):
    """Clients name in conditions only what they have seen."""
    seen = {tuple(read[:2]) for one in operations if one['result'] == 'ok' for read in one['reads']}
    seen |= {(document, one['version']) for one in operations for document in one['writes']}
    return all(tuple(read[:2]) in seen for one in operations if one['result'] == 'unknown' for read in one['reads'])


def search(operations):
    """Is there an order that agrees with time and with all that was seen?  Operations of unknown outcome may be left out."""
    versions = {}  # of operations of unknown outcome, as somebody saw them
    for one in operations:
        for read in one['reads']:
            for name, (version, content) in unpack(read[2])[1].items() if read[2] else ():
                if name.startswith(('Last', 'Line')):
                    versions.setdefault(json.loads(content), version)
    headers = {read[1] for one in operations for read in one['reads'] if read[1] and read[2] is None}

    def fits(one, states):
        return all(states[read[0]][1:2 if read[2] is None else 3] == tuple(read[1:2 if read[2] is None else 3]) for read in one['reads'])

    def go_on(left, states):
        if all(one['result'] == 'unknown' for one in left):
            return True
        earliest = min((one['end'] for one in left if one['result'] == 'ok'))
        return any(take(one, left, states) for one in left if one['start'] <= earliest and fits(one, states))

    def take(one, left, states):
        """Its version: that of its answer, or what somebody saw of it, or else any that was seen without contents, or a new one."""
        rest = [other for other in left if other is not one]
        made = one['version'] or versions.get(one['id'])
        fresh = max((states[document][0] for document in one['writes']), default=0) + 1
        for version in [made] if made else [*headers, fresh]:
            if all(states[document][0] < version for document in one['writes']):
                after = dict(states)
                for document, actions in one['writes'].items():
                    text = change(states[document][2], actions, version, one['id'])
                    after[document] = (version, version if text else 0, text)
                if go_on(rest, after):
                    return True
        return False

    return go_on(operations, {'x': (0, 0, ''), 'y': (0, 0, '')})  # highest version, version, state


class Program(unittest.TestCase):
    def run_check(self, book):
        with tempfile.NamedTemporaryFile('w', suffix='.jsonl') as file:
            file.write(book.text())
            file.flush()
            return subprocess.run([sys.executable, HERE / 'check', file.name], capture_output=True, text=True, timeout=60)

    def test_it_tells_and_ends_with_1(self):
        book = Book(x=[5, state((5, 'o'))]).add('w', 0, 1, (), {'x': True}, 10).add('r', 2, 3, [['x', 5, state((5, 'o'))]])
        done = self.run_check(book)
        self.assertEqual(done.returncode, 1, done.stderr)
        for word in ('stale read', '-rw-> x', '-rt->', 'w put', 'r put'):
            self.assertIn(word, done.stdout)

    def test_it_ends_with_0(self):
        done = self.run_check(Book().add('w', 0, 1, (), {'x': True}, 10))
        self.assertEqual((done.returncode, done.stderr), (0, ''))


class States(unittest.TestCase):
    def test_pack_and_unpack(self):
        items = {'Last': (10, '"a"'), 'Line.a': (10, '"a"'), 'List': (11, '["a","b"]')}
        self.assertEqual(unpack(pack(7, items)), (7, items))

    def test_a_list_keeps_its_end(self):
        text = state(*[(number, f'o{number}', PUSH) for number in range(1, 21)])
        items = unpack(text)[1]
        self.assertEqual(json.loads(items['List'][1]), [f'o{number}' for number in range(5, 21)])
        self.assertEqual(items['Count'], (20, '20'))


if __name__ == '__main__':
    os.chdir('/')
    unittest.main(verbosity=0)
