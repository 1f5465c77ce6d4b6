#!/usr/bin/python3
"""What is judged beside the order of operations, on histories written by hand.  Run by make check."""
import os
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from book import Book, line, state  # noqa: E402
from judge_external import judge_external  # noqa: E402
from judges import judge_claims  # noqa: E402
from records import load  # noqa: E402
from state import change, compact  # noqa: E402


class Extras(unittest.TestCase):
    """Tolerance, searches, unique values, documents that end, copies, subscriptions: what is right passes, what is not is found."""

    def kinds(self, book):
        return [one.kind for one in book.check().violations]

    def aged(self, version, start, age=1):
        book = Book(x=[5, state((5, 'o'))]).add('w', 0, 10, (), {'x': True}, 10)
        seen = state((5, 'o')) if version == 5 else state((5, 'o'), (10, 'w'))
        return book.add('r', start, start + 1, age=age, aged=[['x', version, seen]])

    def test_a_read_with_a_tolerance(self):
        second = 10 ** 9
        self.assertEqual(self.kinds(self.aged(5, second)), [])
        self.assertEqual(self.kinds(self.aged(10, second)), [])
        self.assertEqual(self.kinds(self.aged(5, second + 11)), ['older than was tolerated'])
        self.assertEqual(self.kinds(self.aged(5, 2 * second, age=3)), [])
        self.assertIn('read of what nobody wrote', self.kinds(self.aged(7, second)))

    def test_a_tolerated_read_of_what_was_before(self):
        def read(start, **head):
            book = Book(x=[10, state((10, 'w'))])
            book.lines[0].update(head)
            return self.kinds(book.add('r', start, start + 1, age=1, aged=[['x', 5, state((5, 'o'))]]))
        self.assertEqual(read(10 ** 9 + 6, since=5), ['older than was tolerated'])
        self.assertEqual(read(10 ** 9, since=5 * 10 ** 8), [])
        self.assertEqual(read(5 * 10 ** 9, since=5 * 10 ** 8), ['older than was tolerated'])

    def test_an_absence_with_a_tolerance(self):
        def read(start):
            return Book(x=[0, '']).add('w', 0, 10, (), {'x': True}, 10).add('r', start, start + 1, age=1, aged=[['x', 0, '']])
        self.assertEqual(self.kinds(read(10 ** 9)), [])
        self.assertEqual(self.kinds(read(10 ** 9 + 11)), ['older than was tolerated'])

    def team(self, name, team, version):
        return change('', [*line(name), ['set', 'Team', compact({'team': team})]], version, name)

    def test_a_search(self):
        red = self.team('o', 'red', 5)
        def find(**what):
            return self.kinds(Book(x=[5, red]).add('f', 10, 11, kind='find', team='red', **what))
        self.assertEqual(find(inside=[['x', 5]]), [])
        self.assertEqual(find(inside=[['x', 4]]), ['a search found what was not there'])
        self.assertEqual(find(outside=['x']), ['a search missed a document'])
        gone = Book(x=[5, red]).add('w', 0, 1, (), {'x': [*line('w'), ['set', 'Team', compact({'team': 'blue'})]]}, 10)
        self.assertEqual(self.kinds(gone.add('f', 2, 3, kind='find', team='red', inside=[['x', 5]])), ['a search found what was not there'])

    def reservations(self, *books):
        loaded = [load(book.text().splitlines()) for book in books]
        return [kind for kind, _, _ in judge_claims([head for head, _ in loaded], [one for _, some in loaded for one in some])]

    def test_unique_values(self):
        def book():
            return Book().add('a', 0, 1, reservations=[['lab/u', 'v']], version=10)
        self.assertEqual(self.reservations(book()), [])
        other = Book().add('b', 2, 3, reservations=[['den/u', 'v']], version=9)
        self.assertEqual(self.reservations(book(), other), ['two have one value'])
        released = Book().add('a', 0, 1, reservations=[['lab/u', 'v']], version=10).add('c', 1, 3, reservations=[['lab/u', None]], version=11)
        self.assertEqual(self.reservations(released, other), [])
        self.assertEqual(self.reservations(book().add('r', 2, 3, held={'lab/u': [10, 'v'], 'lab/w': [9, 'v']})), ['two have one value'])
        self.assertEqual(self.reservations(book().add('r', 2, 3, held={'lab/u': [10, 'x']})), ['G1b: not as it was written'])

    def test_who_is_refused_a_value(self):
        def refused(book):
            return book.add('n', 5, 6, reservations=[['lab/w', 'v']], taken='lab/w', result='no')
        self.assertEqual(self.reservations(refused(Book().add('a', 0, 1, reservations=[['lab/u', 'v']], version=10))), [])
        self.assertEqual(self.reservations(refused(Book())), ['a value is taken by nobody'])
        given_up = Book().add('a', 0, 1, reservations=[['lab/u', 'v']], version=10).add('c', 1, 3, reservations=[['lab/u', None]], version=11)
        self.assertEqual(self.reservations(refused(given_up)), ['a value is taken by nobody'])
        unknown = Book().add('a', 0, 1, reservations=[['lab/u', 'v']], result='unknown')
        self.assertEqual(self.reservations(refused(unknown)), [])

    def test_documents_that_end(self):
        def look(begin, end, alive, low=0.0, age=0):
            book = Book().add('m', 0, 1, mortal=['m', 2])
            return self.kinds(book.add('l', 2, 3, requested=[['m', 2]], alive=['m'] if alive else [], wall=[begin, end], low=low, age=age))
        self.assertEqual(look(100, 101, True), [])
        self.assertEqual(look(125, 126, False), [])
        self.assertEqual(look(119, 125, False), [])
        self.assertEqual(look(100, 101, False), ['a document ended before its end'])
        self.assertEqual(look(100, 101, False, age=3), [], 'a copy from before its birth is within the tolerance')
        self.assertEqual(look(125, 126, True), ['a document outlived its end'])
        self.assertEqual(look(125, 126, True, low=-20.0), [])

    def copies(self, copy, copied=True, *writes):
        source = change('', [*line('o'), ['set', 'Src', '{"n":"o"}']], 5, 'o')
        book = Book(x=[5, source])
        for number, actions in enumerate(writes):
            book.add(f'w{number}', number, number + 1, (), {'x': [*line(f'w{number}'), *actions]}, 10 + number)
        held = {'x': copy} if copy else {}
        return self.kinds(book.add('c', 10, 11, kind='copies', copies={'f': held}, sources={'f': ['x']}, copied=copied))

    def test_copies(self):
        fresh = [['set', 'Src', '{"n":"new"}']]
        self.assertEqual(self.copies('{"n":"o"}'), [])
        self.assertEqual(self.copies('{"n":"o"}', True, fresh), ['a copy stayed old'])
        self.assertEqual(self.copies('{"n":"new"}', True, fresh), [])
        self.assertEqual(self.copies(None), ['a copy was lost'])
        self.assertEqual(self.copies(None, False), [])
        self.assertEqual(self.copies('{"n":"o"}', True, [['del', 'Src']]), ['a copy stayed old'])
        self.assertEqual(self.copies(None, True, [['del', 'Src']], fresh), [])

    def match(self, sent, **more):
        red = self.team('o', 'red', 5)
        book = Book(x=[5, red]).add('w', 0, 1, (), {'x': True}, 10, matched=[[one, 10] for one in sent], is_named=True,
                                    definitions=['Hot', 'Hot/x', 'Hot/team@red', 'Hot/team@blue'], **more)
        return self.kinds(book)

    def test_what_a_session_is_told(self):
        self.assertEqual(self.match(['Hot', 'Hot/team@red', 'Hot/x']), [])
        self.assertEqual(self.match(['Hot', 'Hot/team@red']), ['a session got the wrong definitions'])
        self.assertEqual(self.match(['Hot', 'Hot/team@blue', 'Hot/team@red', 'Hot/x']), ['a session got the wrong definitions'])
        self.assertEqual(self.match(['Hot', 'Hot/team@red', 'Hot/x'], lost='gone'), ['a session was forgotten'])

    def test_what_a_write_says_where_documents_stand(self):
        def wrote(*stands):
            book = Book(x=[5, state((5, 'o'))], y=[6, state((6, 'o'))])
            return self.kinds(book.add('w', 0, 1, [['y', 6, None]], {'x': True}, 10, stands=stands))
        self.assertEqual(wrote(['x', 10], ['y', 6]), [])
        self.assertEqual(wrote(['x', 10], ['y', 10]), ['a wrong version was returned'])
        self.assertEqual(wrote(['x', 5], ['y', 6]), ['a wrong version was returned'])

    def test_who_is_woken(self):
        def woken(when):
            return self.kinds(Book(x=[5, state((5, 'o'))]).add('w', 10, 11, (), {'x': True}, 10).add('e', 50, 51, kind='push', woken={'x': when}))
        self.assertEqual(woken(20), [])
        self.assertEqual(woken(5), ['a session was not woken'])

    def test_who_listens(self):
        self.assertEqual(self.kinds(Book().add('e', 0, 1, kind='live', missed='x is at 10')), ['a listener missed a change'])


class External(unittest.TestCase):
    """External workers: what is right passes, what is not is found."""

    def book(self, *ends, marks=('d',), result='ok', **more):
        """A task `k` that was requested, claimed as `c` and ended by `d`, whose mark is there; `ends`: operations in place of that."""
        book = Book().add('r', 0, 1, kind='task', labour=['t', 'k', None], result=result)
        book.add('take', 2, 3, kind='take', claims=[['k', 'c']])
        for one in ends or (dict(name='d', start=4, end=5),):
            one = {'kind': 'done', 'claim': ['k', 'c'], **one}
            book.add(one.pop('name'), one.pop('start'), one.pop('end'), **one)
        return book.add('end', 90, 91, kind='tallies', tallies={'t': {}}, ended={'t': {name: 'k' for name in marks}}, **more)

    def kinds(self, book):
        return sorted({kind for kind, _, _ in judge_external(load(book.text().splitlines())[1])})

    def test_a_task_ends_once(self):
        self.assertEqual(self.kinds(self.book()), [])
        self.assertEqual(self.kinds(self.book(marks=())), ['a task was not done', 'the end of a task was lost'])
        self.assertEqual(self.kinds(self.book(marks=('d',), result='no')), ['a task of what was refused'])
        self.assertEqual(self.kinds(self.book(marks=(), result='unknown')), ['the end of a task was lost'])
        unknown = dict(name='d', start=4, end=5, result='unknown')
        again = dict(name='e', start=6, end=7)
        self.assertEqual(self.kinds(self.book(unknown, again, marks=('d', 'e'))), ['a task was done twice'])
        self.assertEqual(self.kinds(self.book(unknown, again, marks=('e',))), [])
        self.assertEqual(self.kinds(self.book(unknown, marks=('x', 'd'))), ['a task was done twice', 'read of what nobody wrote'])

    def test_a_task_that_nobody_requested(self):
        book = Book().add('d', 4, 5, kind='done', claim=['k', 'c'], result='unknown')
        book.add('end', 90, 91, kind='tallies', tallies={'t': {}}, ended={'t': {'d': 'k'}})
        self.assertEqual(self.kinds(book), ['a task that nobody requested'])

    def test_who_has_no_claim_changes_nothing(self):
        ended, refused = dict(name='d', start=4, end=5), dict(name='e', start=6, end=7, result='no')
        self.assertEqual(self.kinds(self.book(ended, refused)), [])
        self.assertEqual(self.kinds(self.book(ended, refused, marks=('e',))), ['a request without a claim changed something', 'the end of a task was lost'])

    def test_an_end_that_is_repeated(self):
        repeated = dict(name='e', start=6, end=7, result='no', repeats=True)
        self.assertEqual(self.kinds(self.book(dict(name='d', start=4, end=5, result='unknown'), repeated)), [])
        self.assertEqual(self.kinds(self.book(dict(name='d', start=4, end=5, claim=['k', 'other']), repeated)), ['an end was acknowledged that never was'])

    def test_an_attempt_that_has_failed(self):
        failed, again = dict(name='f', kind='fail', start=4, end=5), dict(name='g', kind='fail', start=6, end=7, result='no', repeats=True)
        other = dict(name='d', start=8, end=9, claim=['k', 'other'])
        self.assertEqual(self.kinds(self.book(failed, again, other)), [])
        refused = dict(name='e', start=6, end=7, result='no')
        self.assertEqual(self.kinds(self.book(failed, refused, other)), [])
        done = dict(name='d', start=8, end=9, result='unknown')
        self.assertEqual(self.kinds(self.book(failed, done)), ['an attempt has failed, and was done'])
        self.assertEqual(self.kinds(self.book({**failed, 'result': 'unknown'}, again, done)), ['an attempt has failed, and was done'])
        self.assertEqual(self.kinds(self.book({**failed, 'result': 'unknown'}, done)), [])
        self.assertEqual(self.kinds(self.book({**failed, 'result': 'no'}, done)), [])

    def test_a_late_claim(self):
        self.assertEqual(self.kinds(self.book(dict(name='d', start=4, end=5, late=True))), ['a claim that had ended still counted'])
        self.assertEqual(self.kinds(self.book(dict(name='d', start=4, end=5), dict(name='e', start=6, end=7, late=True, result='no'))), [])

    def test_a_claim_has_one_holder(self):
        def held(end):
            kept, other = dict(name='a', kind='keep', start=30, end=31), dict(name='d', start=end, end=end + 1, claim=['k', 'other'])
            return self.book(kept, other).add('second', 20, 21, kind='take', claims=[['k', 'other']])
        self.assertEqual(self.kinds(held(40)), ['a task had two holders'])
        lapsed = self.book(dict(name='a', kind='keep', start=10, end=11), dict(name='d', start=40, end=41, claim=['k', 'other']))
        self.assertEqual(self.kinds(lapsed.add('second', 20, 21, kind='take', claims=[['k', 'other']])), [])
        self.assertEqual(self.kinds(self.book().add('second', 6, 7, kind='take', claims=[['k', 'c']])), ['a claim was given twice'])
        released = self.book(dict(name='a', kind='fail', start=4, end=5, released=True), dict(name='d', start=8, end=9))
        self.assertEqual(self.kinds(released.add('second', 6, 7, kind='take', claims=[['k', 'c']])), [])

    def domain(self, first, second):
        """Two tasks of one domain, the second requested when the first was; each (claimed, ended)."""
        book = Book()
        for number, (claimed, ended) in enumerate((first, second)):
            book.add(f'r{number}', number * 2, number * 2 + 1, kind='task', labour=['t', f'k{number}', 'x'])
            book.add(f'take{number}', claimed, claimed + 1, kind='take', claims=[[f'k{number}', 'c']])
            book.add(f'd{number}', ended, ended + 1, kind='done', claim=[f'k{number}', 'c'])
        return self.kinds(book.add('end', 90, 91, kind='tallies', tallies={'t': {}}, ended={'t': {'d0': 'k0', 'd1': 'k1'}}))

    def test_the_order_of_a_domain(self):
        self.assertEqual(self.domain((10, 12), (14, 16)), [])
        self.assertEqual(self.domain((14, 16), (10, 12)), ['a domain was out of order'])
        self.assertEqual(self.domain((10, 20), (12, 22)), ['a domain was out of order', 'two tasks of a domain at a time'])


if __name__ == '__main__':
    os.chdir('/')
    unittest.main(verbosity=0)
