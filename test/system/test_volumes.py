"""The sums of documents and bytes of each class: kept by commits, folded by the keeper, equal to what the documents have at each instant."""
import random
import threading

import pytest

from stack import PATIENCE_S, wait_until
from test_attachments import attachment, note, registered

pytestmark = pytest.mark.plain

STACK = {'workers': 4, 'namespaces': {'z': 'closed', 'lab': 'open'}, 'settings': {'keep_interval_s': 1, 'limit_client_connections': 0}}
KEPT, COUNTED = 'select * from volumes() order by 1', 'select * from volumes_counted() order by 1'


def differences(stack):
    """In one snapshot."""
    return stack.psql('lab', 'with kept as (select * from volumes()), counted as (select * from volumes_counted())'
                             ' (table kept except table counted) union all (table counted except table kept)')


def item(size):
    return {'c': 'Main', 'j': 'x' * size}


@pytest.mark.plain
def test_each_way_to_change_a_document_counts(stack):
    sha = registered(stack, 'lab', 1000)
    for change in [
        lambda: stack.put('lab', note('a', item(10)), note('b', item(20)), note('c', item(5), class_='Other')),
        lambda: stack.put('lab', note('a', item(100))),
        lambda: stack.put('lab', note('a', attachment('f', sha)), note('b', attachment('f', sha), attachment('g', sha))),
        lambda: stack.put('lab', note('b', {'c': 'P', 'k': 'f', 'del': True})),
        lambda: stack.put('lab', {'c': 'Note', 'id': 'a', 'delete': True}),
        lambda: stack.put('lab', note('a', item(7))),
        lambda: stack.psql('lab', "update doc set v1 = v1 + 5 where class = 'Note'"),
        lambda: stack.psql('lab', "update doc set v1 = v1 - 5 where class = 'Note'"),
        lambda: stack.psql('lab', "insert into doc (class, id, version, ctime, dtime, v1, v2) select 'Sql', 'n' || n, 1, 1, 1, n, 2 * n from generate_series(1, 500) n"),
        lambda: stack.psql('lab', "delete from doc where class = 'Sql' and v1 % 2 = 0"),
        lambda: stack.psql('lab', "update doc set ctime = 0 where class = 'Sql' and v1 % 3 = 0"),
        lambda: stack.psql('lab', "delete from doc where class = 'Sql'"),
    ]:
        before = stack.psql('lab', KEPT)
        change()
        assert not differences(stack) and stack.psql('lab', KEPT) != before
    assert stack.op('lab', 'volumes', admin=True)['out']['docs'] == stack.psql('lab', 'select count(*) from doc where ctime <> 0')[0][0]


@pytest.mark.plain
def test_the_keeper_folds_and_nobody_sees_it(stack):
    stack.put('lab', note('folded', item(10)))
    wait_until(lambda: not stack.psql('lab', 'select 1 from volume_change'), PATIENCE_S, 'the changes are folded')
    assert not differences(stack) and stack.psql('lab', "select v1 from volume where class = 'Note'")
    stack.psql('lab', 'select volumes_fold(1)')
    assert not differences(stack)


@pytest.mark.plain
def test_sums_are_exact_while_many_write_and_the_keeper_folds(stack):
    ending, wrong = threading.Event(), []

    def write(number):
        chance = random.Random(number)
        while not ending.is_set():
            name = f'w{number}-{chance.randrange(4)}'
            stack.put('lab', {'c': 'Busy', 'id': name, 'delete': True} if chance.random() < .3 else note(name, item(chance.randrange(200)), class_='Busy'))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        before = stack.metrics()['stampd_purge_rounds_total']
        while stack.metrics()['stampd_purge_rounds_total'] < before + 3:
            wrong += differences(stack)
    finally:
        ending.set()
        for thread in threads:
            thread.join()
    assert not wrong and not differences(stack)


@pytest.mark.plain
def test_a_wrong_sum_is_found(stack):
    assert 'its volumes' not in stack.admin('verify', '--ns', 'lab', status=1).error  # the file is registered only
    stack.psql('lab', "insert into volume_change values ('Note', 0, 1, 0)")
    assert 'class Note: its volumes are not those of its documents' in stack.admin('verify', '--ns', 'lab', status=1).error
    stack.psql('lab', "insert into volume_change values ('Note', 0, -1, 0)")


@pytest.mark.plain
def test_no_documents_no_volumes(stack):
    stack.psql('lab', 'truncate doc, item cascade')
    assert stack.psql('lab', KEPT) == [(None, 0, 0, 0)]
