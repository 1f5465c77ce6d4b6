"""A collection of which nothing has changed since a token is answered without the database, and whatever changes it ends that at once."""
import itertools
import json
import random

import pytest

from schema import Schemas
from stack import wait_until

STACK = {'workers': 2}
PERSON = {'open': True, 'items': {'Main': {'singleton': True}, 'Note': {}, 'End': {'singleton': True}},
          'collections': {'team': {'key': ['Main.team'], 'mutable': True}}}
ROUNDS = 12  # of the same request: every worker gets some


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    schemas.apply('lab', {'Person': PERSON, 'Brief': {**PERSON, 'maxLife': 'End.minute'}, 'Other': PERSON})
    return schemas


@pytest.fixture
def lab(stack, schemas):
    return stack


NUMBERS = itertools.count()


def put(stack, id_, team, class_='Person'):
    return stack.put('lab', {'c': class_, 'id': id_, 'items': [{'c': 'Main', 'j': {'team': team, 'number': next(NUMBERS)}}]})


def ask(stack, team, token=None, class_='Person', want='ids'):
    return stack.op('lab', 'collection', {'c': class_, 'collection': 'team', 'value': team, 'want': want, **({'token': token} if token else {})})['out']


def quiet_token(stack, team):
    """A token since which nothing is told: where an older transaction is open in the cluster, changes are told twice."""
    tokens = [ask(stack, team)['token']]

    def is_quiet():
        out = ask(stack, team, tokens[-1])
        tokens.append(out['token'])
        return not out['ids'] and not out['left']
    wait_until(is_quiet, what='the end of older transactions')
    return tokens[-2]


def since(stack, team, token, **more):
    """What each of many requests with the same token is told; all alike."""
    outs = [ask(stack, team, token, **more) for _ in range(ROUNDS)]
    told = {(out['complete'], json.dumps(sorted(map(tuple, out['ids']))), json.dumps(sorted(map(tuple, out['left'])))) for out in outs}
    assert len(told) == 1, told
    (is_complete, ids, left), = told
    return is_complete, json.loads(ids), json.loads(left), outs[-1]['token']


def queries(stack):
    """The last query about a collection of each session, and when it began."""
    return set(stack.psql(None, "select pid, query_start from pg_stat_activity where usename = 'stampd' and query like '%from namespace s left join collection c%'"))


def warm(stack, team, token):
    """Until every worker knows that nothing has changed; returns the queries so far."""
    def is_known():
        before = queries(stack)
        since(stack, team, token)
        return queries(stack) <= before
    wait_until(is_known, what='all workers')
    return queries(stack)


def until_quiet(stack, team, token, act):
    """Acts until no session has asked meanwhile: the relay, which may just connect, ends what is known.  Returns the queries so far."""
    def is_quiet():
        before = warm(stack, team, token)
        act()
        return queries(stack) <= before
    wait_until(is_quiet, what='no queries')
    return queries(stack)


def test_it_asks_no_database(lab):
    put(lab, 'still', 'still')
    token = quiet_token(lab, 'still')
    answers = [token]

    def ask_again():
        for want in ('ids', 'docs') * 10:
            out = ask(lab, 'still', answers[-1], want=want)
            assert out[want] == out['left'] == [] and not out['complete'] and out['first']
            answers.append(out['token'])
    before, again = until_quiet(lab, 'still', token, ask_again), answers[-1]
    version = put(lab, 'still', 'still')
    for one in (token, again):
        assert since(lab, 'still', one)[:3] == (False, [['still', version]], [])
    assert not queries(lab) <= before


def test_an_older_token_is_told_what_a_newer_one_knows(lab):
    old = ask(lab, 'old')['token']
    version = put(lab, 'aged', 'old')
    warm(lab, 'old', quiet_token(lab, 'old'))
    assert since(lab, 'old', old)[:3] == (False, [['aged', version]], [])


def test_another_class_does_not_end_it(lab):
    token = quiet_token(lab, 'calm')
    others = itertools.cycle(['Other', 'Brief'])  # one of them, or a document, may share its slot of 65536 with the class of the collection

    def change_another():
        put(lab, f'x{next(NUMBERS)}', 'calm', class_=next(others))
        assert since(lab, 'calm', token)[:3] == (False, [], [])
    until_quiet(lab, 'calm', token, change_another)


def member(stack, act, id_):
    """Does something with a document; returns whether it is a member of the team `busy` afterwards."""
    if act == 'delete':
        stack.put('lab', {'c': 'Person', 'id': id_, 'delete': True})
    elif act == 'note':
        stack.put('lab', {'c': 'Person', 'id': id_, 'items': [{'c': 'Note', 'k': 'a', 'j': random.random()}]})
    else:
        put(stack, id_, act)


def test_every_change_is_told_at_once(lab):
    """By whatever worker, to clients with tokens of any age."""
    tokens = [ask(lab, 'busy')['token']]
    known = {}  # the members by the first token
    for number in range(120):
        act, id_ = random.choice(['busy', 'busy', 'calm2', 'delete', 'note']), f'd{random.randrange(4)}'
        member(lab, act, id_)
        truth = dict(lab.psql('lab', "select id, m.version from stampd.member m join stampd.collection c on c.number = m.collection"
                                     " where c.class = 'Person' and m.value = 'busy' and not has_left"))
        for token in {tokens[0], tokens[-1], random.choice(tokens)}:
            for _ in range(4):
                out = ask(lab, 'busy', token)
            if token == tokens[0]:
                known = {} if out['complete'] else known
                known.update(out['ids'])
                for one, _ in out['left']:
                    known.pop(one, None)
                assert known == truth, (number, act, id_)
        tokens.append(out['token'])


def test_a_change_by_another_program_ends_it(lab):
    put(lab, 'outside', 'wild')
    token = quiet_token(lab, 'wild')
    warm(lab, 'wild', token)
    lab.psql('lab', "select put_item('Person', 'outside', 'Main', '', '{\"team\":\"tame\"}')")
    wait_until(lambda: [id_ for id_, _ in ask(lab, 'wild', token)['left']] == ['outside'], what='the departure')


def test_a_collection_that_is_gone_is_unknown(lab, schemas):
    token = quiet_token(lab, 'gone')
    warm(lab, 'gone', token)
    schemas.apply('lab', {'Person': {**PERSON, 'collections': {}}, 'Brief': {**PERSON, 'maxLife': 'End.minute'}, 'Other': PERSON})
    try:
        wait_until(lambda: lab.request('POST', '/lab/op/collection', json={'param': {'c': 'Person', 'collection': 'team', 'value': 'gone', 'token': token}}
                                       ).json().get('code') == 'NCOLLECTION', what='the refusal')
    finally:
        schemas.apply('lab', {'Person': PERSON, 'Brief': {**PERSON, 'maxLife': 'End.minute'}, 'Other': PERSON})


def test_a_class_whose_documents_expire_asks_the_database(lab):
    token = ask(lab, 'short', class_='Brief')['token']
    since(lab, 'short', token, class_='Brief')
    before = queries(lab)
    since(lab, 'short', token, class_='Brief')
    assert not queries(lab) <= before
