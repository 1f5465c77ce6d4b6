#!/usr/bin/python3
"""What a history of rights is judged by: planted violations are found, and what is right passes.  Run by make check."""
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from decisions import RULES, may, outcomes  # noqa: E402
from judge_rights import judge_rights  # noqa: E402

FACTS = {'rules': 0, 'roles:ann': [], 'off:ann': False, 'session:1': True, 'roles:bob': [], 'off:bob': False, 'session:2': True,
         'main:Own/1': {'owner': 'ann', 'n': 0}, 'main:Duty/1': {'crew': 'red', 'n': 0}, 'member:Club/1:ann': 'writer', 'member:Crew/red:ann': 'chief',
         'main:Club/1': {'n': 0}, 'main:Desk/1': {'n': 0}, 'secret:Own/1': {'secret': 0}, 'secret:Club/1': None}


class History:
    """Changes last from `start` to `start + 10`; requests too, unless said otherwise."""

    def __init__(self, **facts):
        self.head, self.lines = {'facts': {**FACTS, **facts}, 'since': 0, 'accounts': ['ann', 'bob']}, []

    def add(self, kind, start, end=None, **more):
        self.lines.append({'id': str(len(self.lines)), 'kind': kind, 'start': start, 'end': end or start + 10, 'result': 'ok', **more})
        return self

    def change(self, fact, value, start, **more):
        self.add('change', start, fact=fact, value=value, **more)
        return self

    def unknown(self, fact, value, start):
        self.change(fact, value, start)
        self.lines[-1]['end'] = None
        return self

    def read(self, start, account='ann', right='read', kind='get', **more):
        session = {'ann': '1', 'bob': '2', None: None}[account]
        return self.add(kind, start, **{'account': account, 'session': session, 'right': right, **more})

    def shows(self, document, start, shown=None, **more):
        return self.read(start, seen={document: shown if shown is not None else {'v': 1}}, **more)

    def live(self, start, end, event, since=None):
        return self.add('live', start, end, account='ann', session='1', since=start if since is None else since, events=[event])

    def hides(self, document, start, **more):
        return self.read(start, seen={document: None}, **more)

    def kinds(self):
        return [one.kind for one in judge_rights(self.head, self.lines).violations]


# Each takes the right to read a document from ann: (document, fact, value that ends it).
ENDS = [('Own/1', 'main:Own/1', {'owner': 'bob', 'n': 1}), ('Club/1', 'member:Club/1:ann', None), ('Duty/1', 'member:Crew/red:ann', None),
        ('Duty/1', 'main:Duty/1', {'crew': 'blue', 'n': 1})]
DISCLOSED, MISSING = ['a right that had ended disclosed'], ['a grant was missing']


class Rights(unittest.TestCase):
    def test_a_right_that_ends(self):
        for document, fact, value in ENDS:
            def history(document=document, fact=fact, value=value):
                return History().change(fact, value, 100)
            for kind, right in (('get', 'read'), ('sync', 'read'), ('list', 'list'), ('stream', 'list')):
                self.assertEqual(history().shows(document, 111, right=right, kind=kind).kinds(), DISCLOSED, (document, kind))
                self.assertEqual(history().hides(document, 111, right=right, kind=kind).kinds(), [])
                self.assertEqual(history().shows(document, 80, right=right, kind=kind).kinds(), [])
                self.assertEqual(history().hides(document, 80, right=right, kind=kind).kinds(), MISSING)
                for start in (95, 100, 105):  # while it is being changed, either may be
                    self.assertEqual(history().shows(document, start, right=right, kind=kind).hides(document, start, right=right, kind=kind).kinds(), [])

    def test_a_tolerance_is_no_excuse(self):
        self.assertEqual(History().change('member:Club/1:ann', None, 100).shows('Club/1', 111, age=3600).kinds(), DISCLOSED)

    def test_a_right_that_begins(self):
        history = History().change('main:Own/1', {'owner': 'bob', 'n': 1}, 100)
        self.assertEqual(history.hides('Own/1', 111, account='bob').kinds(), MISSING)
        self.assertEqual(History().change('roles:bob', ['editor'], 100).hides('Desk/1', 111, account='bob').kinds(), MISSING)
        self.assertEqual(History().change('roles:bob', ['editor'], 100).shows('Desk/1', 111, account='bob').kinds(), [])
        self.assertEqual(History().change('roles:bob', ['editor'], 100).shows('Desk/1', 80, account='bob').kinds(), DISCLOSED)

    def test_an_end_and_a_beginning(self):
        """Taken away and given back: only between the two it is hidden for certain."""
        history = History().change('member:Club/1:ann', None, 100).change('member:Club/1:ann', 'reader', 200)
        for start, expected in ((111, DISCLOSED), (150, DISCLOSED), (195, []), (211, [])):
            self.assertEqual(History.kinds(history.shows('Club/1', start)), expected, start)
            history.lines.pop()
        self.assertEqual(history.hides('Club/1', 211).kinds(), MISSING)

    def test_a_long_request(self):
        """It may be judged at any time of its own."""
        history = History().change('member:Club/1:ann', None, 100).change('member:Club/1:ann', 'reader', 200)
        self.assertEqual(history.shows('Club/1', 120, end=190).kinds(), DISCLOSED)
        self.assertEqual(history.hides('Club/1', 90, end=300).kinds(), DISCLOSED)

    def test_what_is_not_known(self):
        history = History().unknown('roles:bob', ['editor'], 100)
        self.assertEqual(history.shows('Desk/1', 5000, account='bob').hides('Desk/1', 6000, account='bob').kinds(), [])
        self.assertEqual(history.shows('Desk/1', 50, account='bob').kinds(), DISCLOSED)

    def test_other_rules(self):
        history = History().change('rules', 1, 100)  # editors lose Desk, whoever has signed in gains it
        self.assertEqual(history.hides('Desk/1', 111, account='bob').kinds(), MISSING)
        self.assertEqual(History().change('rules', 1, 100).shows('Desk/1', 80, account='bob').kinds(), DISCLOSED)
        self.assertEqual(History(rules=1).shows('Desk/1', 10, account=None).kinds(), DISCLOSED)
        self.assertEqual(History(rules=1).change('rules', 0, 100).shows('Desk/1', 111, account='bob').kinds(), DISCLOSED)

    def test_sessions(self):
        for fact, value in (('session:1', False), ('off:ann', True)):
            history = History().change(fact, value, 100).read(111, seen={'Own/1': {'v': 1}})
            self.assertEqual(history.kinds(), ['a credential was taken that had ended'])
            self.assertEqual(History().change(fact, value, 100).read(111, seen={}).kinds(), ['a credential was taken that had ended'])
            self.assertEqual(History().change(fact, value, 100).read(111, refused='SKEY').kinds(), [])
            self.assertEqual(History().change(fact, value, 100).read(80, refused='SKEY').kinds(), ['a credential was refused that is valid'])
        self.assertEqual(History().change('session:3', True, 100).add('get', 111, account='ann', session='3', refused='SKEY').kinds(),
                         ['a credential was refused that is valid'])

    def test_what_is_shown_must_be_new(self):
        history = History().change('main:Own/1', {'owner': 'ann', 'n': 1}, 100)
        self.assertEqual(history.shows('Own/1', 111, {'v': 1, 'main': {'owner': 'ann', 'n': 0}}).kinds(), ['stale read'])
        history.lines.pop()
        self.assertEqual(history.shows('Own/1', 111, {'v': 1, 'main': {'owner': 'ann', 'n': 1}}).kinds(), [])

    def test_what_is_shown_must_grant_itself(self):
        """While the owner changes, the new document may not be shown to the former one."""
        history = History().change('main:Own/1', {'owner': 'bob', 'n': 1}, 100)
        self.assertEqual(history.shows('Own/1', 105, {'v': 2, 'main': {'owner': 'bob', 'n': 1}}).kinds(), DISCLOSED)
        self.assertEqual(History().change('member:Club/1:ann', None, 100).shows('Club/1', 105, {'v': 2, 'members': {}}).kinds(), DISCLOSED)

    def test_a_hidden_item(self):
        history = History(**{'roles:ann': ['boss']})
        seen, unseen = {'v': 1, 'secret': {'secret': 0}}, {'v': 1, 'secret': None}
        self.assertEqual(history.shows('Own/1', 10, seen).kinds(), [])
        self.assertEqual(History().shows('Own/1', 10, unseen).kinds(), [])
        self.assertEqual(History().shows('Own/1', 10, seen).kinds(), ['an item was shown that may not be seen'])
        self.assertEqual(History(**{'roles:ann': ['boss']}).shows('Own/1', 10, unseen).kinds(), ['an item was missing that may be seen'])
        self.assertEqual(History(**{'roles:ann': ['boss']}).change('roles:ann', [], 100).shows('Own/1', 111, seen).kinds(),
                         ['an item was shown that may not be seen'])
        self.assertEqual(History(**{'roles:ann': ['boss']}).shows('Club/1', 10, unseen).kinds(), [])  # there is none

    def test_a_version_of_what_is_hidden(self):
        def history(version, **facts):
            return History(**facts).change('secret:Own/1', {'secret': 1}, 100, document='Own/1', version=7).shows('Own/1', 111, {'v': version}).kinds()
        self.assertEqual(history(7), ['a version was disclosed'])
        self.assertEqual(history(6), [])
        self.assertEqual(history(7, **{'roles:ann': ['boss']}), [])

    def test_writes(self):
        def history(start, allowed):
            return History().change('member:Club/1:ann', 'reader', 100).read(start, kind='write', right='update', document='Club/1', allowed=allowed).kinds()
        self.assertEqual(history(80, True), [])
        self.assertEqual(history(111, False), [])
        self.assertEqual(history(111, True), ['a right that had ended allowed a write'])
        self.assertEqual(history(80, False), MISSING)

    def test_live_events(self):
        def history(arrives, began=120, fact='member:Club/1:ann', **change):
            return History().change(fact, change.get('value'), 100).change('main:Club/1', {'n': 1}, began, document='Club/1', version=7).live(
                50, arrives, ['Club/1', 7]).kinds()
        self.assertEqual(history(200), ['an event was sent that disclosed'])
        self.assertEqual(history(200, fact='session:1', value=False), ['an event was sent that disclosed'])
        self.assertEqual(history(200, began=85), [])   # it may have been sent before
        self.assertEqual(history(200, began=105), [])  # at the same time
        self.assertEqual(History().change('secret:Own/1', {'secret': 1}, 100, document='Own/1', version=7).live(
            50, 200, ['Own/1', 7]).kinds(), ['an event was sent that disclosed'])
        self.assertEqual(History().add('missed', 10, words='Own/1').kinds(), ['a listener missed a change'])

    def test_an_event_of_an_unknown_commit(self):
        """It was judged at some time of the connection."""
        def history(arrives):
            return History().change('member:Club/1:ann', None, 100).live(111, arrives, ['Club/1', 0]).kinds()
        self.assertEqual(history(150), ['an event was sent that disclosed'])
        self.assertEqual(History().change('member:Club/1:ann', None, 100).live(90, 150, ['Club/1', 0]).kinds(), [])

    def test_an_event_of_an_earlier_history(self):
        """A listener that goes on learns that it has lost sight of a document by a commit of which this history does not have the former state."""
        def history(since, version=7):
            return History(**{'main:Duty/1': {'crew': 'blue', 'n': 1}}).live(50, 60, ['Duty/1', version], since=since).kinds()
        self.assertEqual(history(-5), [])
        self.assertEqual(history(50), ['an event was sent that disclosed'])
        self.assertEqual(history(-5, version=0), ['an event was sent that disclosed'])

    def test_an_event_of_a_team(self):
        """Who joins or leaves a team gets one for each document that may depend on it; nobody else does."""
        def history(fact, document='Duty/9', start=50, since=50):
            return History().change(fact, 'hand', 100).live(start, 200, [document, 0], since=since).kinds()
        self.assertEqual(history('member:Crew/1:ann'), [])
        self.assertEqual(history('member:Crew/1:ann', start=150), [])  # the client has connected again
        self.assertEqual(history('member:Crew/1:ann', start=150, since=150), ['an event was sent that disclosed'])
        self.assertEqual(history('member:Crew/1:bob'), ['an event was sent that disclosed'])
        self.assertEqual(history('member:Crew/1:ann', 'Desk/1'), ['an event was sent that disclosed'])

    def test_those_of_whom_facts_are_not_known(self):
        history = History().shows('Desk/1', 10, account='bob')
        history.head['lost'] = ['bob']
        self.assertEqual(history.kinds(), [])

    def test_an_answer_that_may_not_be(self):
        history = History().read(10, words='500')
        history.lines[0]['result'] = 'wrong'
        self.assertEqual(history.kinds(), ['an answer that may not be'])

    def test_a_history_in_which_nothing_is_certain(self):
        history = History().unknown('roles:bob', ['editor'], 5)
        for start in range(300):
            history.shows('Desk/1', start + 10, account='bob')
        checker = judge_rights(history.head, history.lines)
        self.assertEqual((checker.violations, len(checker.notes)), ([], 1))

    def test_all_values_together(self):
        """The outcomes of decisions over facts with several values are those of all combinations."""
        facts = {'rules': [0, 1, 2], 'roles:ann': [[], ['editor'], ['boss']], 'main:Duty/1': [{'crew': 'red'}, {'crew': 'blue'}],
                 'member:Crew/red:ann': [None, 'chief'], 'member:Crew/blue:ann': ['hand']}
        found = outcomes(lambda value: (value('rules'), may('read', 'Duty/1', 'ann', value)), facts.__getitem__)
        self.assertEqual(found, {(0, True), (0, False), (1, True), (1, False), (2, True), (2, False)})
        self.assertIsNone(outcomes(lambda value: tuple(value(str(number)) for number in range(20)), lambda _: [0, 1]))

    def test_each_grant(self):
        """Of each set of rules, whom `Own` is for."""
        def readers(rules, **facts):
            values = {**FACTS, 'rules': rules, 'roles:bob': facts.get('roles', [])}
            return [account for account in ('ann', 'bob', None) if may('read', 'Own/1', account, values.get)]
        self.assertEqual([readers(number) for number in range(len(RULES))], [['ann']] * 3)
        self.assertEqual(readers(0, roles=['boss']), ['ann', 'bob'])
        self.assertEqual(readers(1, roles=['boss']), ['ann'])
        self.assertEqual(readers(2, roles=['editor']), ['ann', 'bob'])


if __name__ == '__main__':
    unittest.main()
