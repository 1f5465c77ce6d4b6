"""Values that are unique in all namespaces: two databases agree, whoever dies between them; nobody has one twice, none is locked
for ever."""
import json
import random
import threading

import psycopg2
import pytest

from fastcgi import Connection
from schema import Schemas
from stack import PATIENCE_S, Problem, wait_until

pytestmark = pytest.mark.plain

STACK = {'workers': 4, 'namespaces': {'z': 'closed', 'lab': 'open', 'den': 'open'},
         'settings': {'restart_young_ms': 0, 'segment_slots': 1024}}
SPACES = ('lab', 'den')

PERSON = {'items': {'Main': {'singleton': True}}, 'maxLife': 'Main.until',
          'unique': {'mail': {'key': ['Main.mail'], 'global': True}, 'name': {'key': ['Main.first', 'Main.last'], 'global': True},
                     'room': {'key': ['Main.room']}}}


@pytest.fixture(scope='module')
def schemas(stack, tmp_path_factory):
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    for ns in ('lab', 'den', 'z'):
        schemas.apply(ns, {'Person': PERSON})
    return schemas


@pytest.fixture
def both(stack, schemas):
    return stack


def put(stack, ns, id_, **main):
    return stack.put(ns, {'c': 'Person', 'id': id_, 'items': [{'c': 'Main', 'j': main}]}, admin=ns == 'z')


def is_refused(stack, ns, id_, **main):
    try:
        put(stack, ns, id_, **main)
    except Problem as problem:
        assert problem.code == 'AUNIQUE', problem
        return True
    return False


def drop(stack, ns, id_):
    stack.put(ns, {'c': 'Person', 'id': id_, 'delete': True}, admin=ns == 'z')


def claims(stack, value):
    """Databases that z names for a mail."""
    return [database for database, in stack.psql('z', "select database from global_value where name = 'mail' and value = %s", (value,))]


def holders(stack, value):
    """Who has a mail, by the documents themselves."""
    return [(ns, id_) for ns in (*SPACES, 'z') for id_, in stack.psql(
        ns, "select id from item where class = 'Person' and iclass = 'Main' and content::json ->> 'mail' = %s", (value,))]


def test_a_value_belongs_to_one_document_of_all_namespaces(both):
    put(both, 'lab', 'one', mail='a@x', room='1')
    assert is_refused(both, 'lab', 'two', mail='a@x')
    assert is_refused(both, 'den', 'one', mail='a@x') and is_refused(both, 'z', 'one', mail='a@x')
    put(both, 'den', 'one', mail='b@x', room='1')
    assert is_refused(both, 'lab', 'one', mail='b@x')
    assert claims(both, 'a@x') == ['stampd_lab'] and claims(both, 'b@x') == ['stampd_den']
    drop(both, 'lab', 'one')
    assert claims(both, 'a@x') == []
    put(both, 'z', 'one', mail='a@x')
    assert is_refused(both, 'lab', 'one', mail='a@x')
    put(both, 'z', 'one', mail='c@x')
    put(both, 'lab', 'one', mail='a@x')
    assert holders(both, 'a@x') == [('lab', 'one')]


def test_the_refusal_names_the_document_that_wants_the_value_and_no_other(both):
    """As within one namespace; whose the value is, is nobody's business elsewhere."""
    both.put('den', {'c': 'Person', 'id': 'secret-holder', 'items': [{'c': 'Main', 'j': {'mail': 'named@x', 'first': 'Eve', 'last': 'Fox'}}]})
    put(both, 'lab', 'own-holder', mail='own@x')
    for main, own in (({'mail': 'named@x'}, 'mail'), ({'mail': 'beside@x', 'first': 'Eve', 'last': 'Fox'}, None), ({'mail': 'own@x'}, 'mail')):
        with pytest.raises(Problem) as caught:
            both.put('lab', *({'c': 'Person', 'id': id_, 'items': [{'c': 'Main', 'j': content}]} for id_, content in (
                ('a-other', {'mail': 'free@x'}), ('wants-it', main), ('z-other', {'mail': 'free-too@x'}))))
        problem = caught.value.body
        assert problem['code'] == 'AUNIQUE' and problem['args'][1:] == ['Person', 'wants-it'], problem
        assert problem['args'][0] == own or not own
        assert 'secret-holder' not in json.dumps(problem) and 'den' not in json.dumps(problem)


def test_several_properties_and_several_values_at_once(both):
    put(both, 'lab', 'first', mail='m1@x', first='Ann', last='Lee')
    assert is_refused(both, 'den', 'first', mail='m2@x', first='Ann', last='Lee')
    assert claims(both, 'm2@x') == [], 'what was claimed beside it is free again'
    with pytest.raises(Problem):
        both.put('den', *({'c': 'Person', 'id': f's{number}', 'items': [{'c': 'Main', 'j': {'mail': f'm{number}@x'}}]} for number in (3, 1, 2)))
    assert holders(both, 'm2@x') == holders(both, 'm3@x') == [] == claims(both, 'm2@x')
    # Values change places within one namespace in one commit.
    put(both, 'lab', 'second', mail='m4@x')
    both.put('lab', {'c': 'Person', 'id': 'first', 'items': [{'c': 'Main', 'j': {'mail': 'm4@x'}}]},
             {'c': 'Person', 'id': 'second', 'items': [{'c': 'Main', 'j': {'mail': 'm1@x'}}]})
    assert holders(both, 'm1@x') == [('lab', 'second')] and is_refused(both, 'den', 'any', mail='m1@x')
    put(both, 'den', 'freed', first='Ann', last='Lee')


def test_a_refused_commit_leaves_no_claim(both):
    put(both, 'lab', 'kept', mail='kept@x', room='kept')
    put(both, 'lab', 'other', room='taken')
    assert is_refused(both, 'lab', 'kept', mail='wanted@x', room='taken')
    assert claims(both, 'wanted@x') == [] and claims(both, 'kept@x') == ['stampd_lab']
    put(both, 'den', 'kept', mail='wanted@x')
    assert is_refused(both, 'den', 'kept', mail='kept@x')


def test_a_claim_with_nothing_behind_it_is_found_out(both):
    for database in ('stampd_lab', 'stampd_den'):
        both.psql('z', "insert into global_value values ('Person', 'mail', 'ghost@x', %s, nextval('global_reservation_number'))", (database,))
        put(both, 'den', 'ghost', mail='ghost@x')
        assert claims(both, 'ghost@x') == ['stampd_den']
        drop(both, 'den', 'ghost')
    both.psql('z', "insert into global_value values ('Person', 'mail', 'lost@x', 'stampd_nowhere', 0)")
    assert is_refused(both, 'den', 'ghost', mail='lost@x'), 'a database that cannot be asked may have it'
    assert both.psql('z', "select release_database('stampd_nowhere')") == [(1,)]
    put(both, 'den', 'ghost', mail='lost@x')


def test_who_gives_up_a_value_leaves_what_was_claimed_later(both):
    claim = "select number from global_reserve('{Person}', '{mail}', '{later@x}', 'stampd_lab') where ordinal is null"
    (first,), = both.psql('z', claim)
    (second,), = both.psql('z', claim)
    for number, left in ((first, ['stampd_lab']), (second, [])):
        both.psql('z', "select global_drop('{Person}', '{mail}', '{later@x}', 'stampd_lab', %s)", (number,))
        assert claims(both, 'later@x') == left


def test_who_has_ended_has_no_value(both):
    put(both, 'lab', 'ends', mail='end@x', until=1)
    put(both, 'den', 'recovery process', mail='end@x')
    put(both, 'lab', 'alive', mail='ending@x')
    both.psql('lab', "insert into expiry values ('Person', 'alive', 1)")  # as time does
    put(both, 'den', 'second', mail='ending@x')
    assert claims(both, 'ending@x') == ['stampd_den']
    drop(both, 'den', 'second')


def test_by_sql_values_are_given_up_and_never_taken(both):
    with pytest.raises(psycopg2.Error) as error:
        both.psql('lab', "select put_item('Person', 'sql', 'Main', '', '{\"mail\": \"sql@x\"}')")
    assert error.value.pgcode == 'ST006'
    put(both, 'lab', 'sql', mail='sql@x')
    both.psql('lab', "select put_item('Person', 'sql', 'Main', '', '{\"mail\": \"sql@x\", \"age\": 3}')")
    assert is_refused(both, 'den', 'sql', mail='sql@x')
    both.psql('lab', "select put_item('Person', 'sql', 'Main', '', '{}')")
    assert claims(both, 'sql@x') == ['stampd_lab']
    put(both, 'den', 'sql', mail='sql@x')
    assert claims(both, 'sql@x') == ['stampd_den']


def test_a_value_that_somebody_is_about_to_take_or_to_give_up(both):
    """His transaction has not ended: nobody else gets the value, and nobody is told that it is taken for good."""
    both.set(lock_timeout_ms=300)
    put(both, 'lab', 'slow', mail='slow@x')
    slow = psycopg2.connect(both.conninfo('lab'), options='-c search_path=stampd')
    with slow.cursor() as cursor:
        cursor.execute("set local stampd.reservations = '[]'")
        cursor.execute("select put_item('Person', 'slow', 'Main', '', '{}')")
        cursor.execute('select * from global_changes()')
        assert cursor.fetchall() == [('Person', 'mail', 'slow@x', None)]
        with pytest.raises(Problem) as problem:
            put(both, 'den', 'quick', mail='slow@x')
        assert problem.value.code == 'CONTENTION'
        slow.commit()
    slow.close()
    both.set(lock_timeout_ms=5000)
    put(both, 'den', 'quick', mail='slow@x')


def test_documents_that_are_there_before_the_declaration(both, schemas):
    team = {'items': {'Main': {'singleton': True}}}
    for ns in SPACES:
        schemas.apply(ns, {'Person': PERSON, 'Team': team})
        both.put(ns, *({'c': 'Team', 'id': name, 'items': [{'c': 'Main', 'j': {'name': name + ns}}]} for name in ('a', 'b')))
    both.put('den', {'c': 'Team', 'id': 'twin', 'items': [{'c': 'Main', 'j': {'name': 'alab'}}]})
    team = {**team, 'unique': {'name': {'key': ['Main.name'], 'global': True}}}
    schemas.apply('lab', {'Person': PERSON, 'Team': team})
    schemas.set('den', {'Person': PERSON, 'Team': team})
    assert 'a document of another namespace has Team name alab, in stampd_lab' in schemas.run('apply', 'den', status=1)
    both.put('den', {'c': 'Team', 'id': 'twin', 'delete': True})
    schemas.apply('den', {'Person': PERSON, 'Team': team})
    assert both.psql('z', "select count(*) from global_value where class = 'Team'") == [(4,)]
    for ns in SPACES:  # it is withdrawn: nothing holds the values any more
        schemas.apply(ns, {'Person': PERSON})


def test_after_a_restore_values_are_taken_again(both, schemas):
    put(both, 'lab', 'restored', mail='restored@x')
    both.psql('lab', 'select after_restore()')
    assert is_refused(both, 'den', 'again', mail='restored@x'), 'nor meanwhile'
    both.psql('z', "delete from global_value where value = 'restored@x'")  # another backup, of z
    put(both, 'den', 'again', mail='restored@x')
    assert 'has Person mail restored@x, in stampd_den' in schemas.run('apply', 'lab', status=1)
    drop(both, 'den', 'again')
    schemas.apply('lab', {'Person': PERSON})
    assert is_refused(both, 'lab', 'again', mail='restored@x') and is_refused(both, 'den', 'again', mail='restored@x')


def test_nobody_has_a_value_twice(both):
    """Writers in all namespaces want a few values, while workers die and sessions end."""
    values = [f'v{number}@x' for number in range(4)]
    ending, wrong = threading.Event(), []
    done = dict.fromkeys((*SPACES, 'z'), 0)

    def work(ns, number):
        dice = random.Random(f'{ns}{number}')
        while not ending.is_set():
            try:
                if dice.random() < 0.3:
                    drop(both, ns, f'w{number}')
                else:
                    put(both, ns, f'w{number}', mail=dice.choice(values))
                done[ns] += 1
            except Problem as problem:
                if problem.code not in ('AUNIQUE', 'CONTENTION', 'XAWAY', 'XCRASH', 'XUNKNOWN', 'XDATABASE', 'XTIME'):
                    wrong.append(problem)
            except ValueError:
                pass  # nginx's own answer, of a worker that died
    threads = [threading.Thread(target=work, args=(ns, number)) for ns in done for number in range(2)]
    for thread in threads:
        thread.start()
    for turn in range(12):
        before = dict(done)
        wait_until(lambda: all(done[ns] > before[ns] for ns in done))
        if turn % 3 == 0:
            both.kill_worker()
        elif turn % 3 == 1:
            both.psql(None, "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'stampd' and random() < 0.4")
        for value in values:
            found = both.psql('z', "select database from global_value where name = 'mail' and value = %s", (value,))
            assert len(found) <= 1
    ending.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not wrong, wrong
    for value in values:
        assert len(holders(both, value)) <= 1, value
    # And none is locked for ever.
    for ns in done:
        for number in range(2):
            wait_until(lambda: is_done(lambda: drop(both, ns, f'w{number}')))
    for value in values:
        wait_until(lambda: is_done(lambda: put(both, 'den', 'last', mail=value)))


def is_done(act):
    try:
        act()
    except (Problem, ValueError):
        return False
    return True


@pytest.mark.parametrize('point', ['commit-queued', 'reservations-collected', 'reservations-taken', 'reservations-committed', 'commit-answered'])
def test_who_dies_at_a_step(both, point):
    """Taking one value and giving up another: afterwards each is had by one, or is free for all."""
    old, new = f'old-{point}@x', f'new-{point}@x'
    put(both, 'lab', 'dies', mail=old)
    both.set(debug_die_at=f'{point}:1:1')  # one death in all
    with pytest.raises((Problem, ValueError)):
        put(both, 'lab', 'dies', mail=new)
    wait_until(lambda: is_done(lambda: both.get('lab', ('Person', 'dies'))))
    mail = both.get('lab', ('Person', 'dies'))['items'][0]['j']['mail']
    assert mail in (old, new)
    if point in ('reservations-collected', 'reservations-taken'):
        assert mail == old
    if point in ('reservations-committed', 'commit-answered'):
        assert mail == new
    free = old if mail == new else new
    wait_until(lambda: is_done(lambda: put(both, 'den', 'takes', mail=free)))
    assert is_refused(both, 'den', 'takes too', mail=mail)
    assert holders(both, old) + holders(both, new) in ([('lab', 'dies'), ('den', 'takes')], [('den', 'takes'), ('lab', 'dies')])
    drop(both, 'den', 'takes')


def test_sessions_that_ended_are_opened_again(both):
    """Those to z and to the other namespace, which only claims use: a commit never fails for them twice."""
    put(both, 'lab', 'lasting', mail='lasting@x')
    path = sorted((both.path / 'run/stampd').glob('worker-*.sock'))[0]

    def ask(number):
        body = json.dumps({'param': {'docs': [{'c': 'Person', 'id': 'ends', 'items': [{'c': 'Main', 'j': {'mail': 'lasting@x', 'n': number}}]}]}})
        with Connection(path) as worker:
            worker.send('/den/op/put', body.encode(), method='POST', CONTENT_TYPE='application/json', STAMPD_NS='den', STAMPD_DATABASE='stampd_den')
            return json.loads(worker.receive().body)['code']
    assert ask(0) == 'AUNIQUE'
    for databases in (['stampd_z', 'stampd_lab'], ['stampd_lab'], ['stampd_z']):
        assert both.psql(None, "select count(pg_terminate_backend(pid, 60000)) from pg_stat_activity where usename = 'stampd' and datname = any(%s)",
                         (databases,))[0][0] > 0
        codes = [ask(number) for number in range(3)]
        assert codes[1:] == ['AUNIQUE', 'AUNIQUE'] and codes[0] in ('AUNIQUE', 'XAWAY'), codes


def test_with_one_connection_a_worker_asks_others_too(both):
    put(both, 'lab', 'single', mail='single@x')
    both.set(connections=1, debug_die_at='')
    workers = both.worker_pids()
    for _ in range(3):
        assert is_refused(both, 'den', 'single', mail='single@x') and is_refused(both, 'z', 'single', mail='single@x')
        put(both, 'den', 'single', mail='other@x')
    drop(both, 'lab', 'single')
    put(both, 'den', 'single', mail='single@x')
    assert both.worker_pids() == workers, 'none has died'
    both.set(connections=8)


def test_a_namespace_that_is_dropped_frees_its_values(both):
    put(both, 'den', 'gone', mail='gone@x')
    assert is_refused(both, 'lab', 'comes', mail='gone@x')
    both.close()
    both.admin('ns', 'drop', 'den', '--yes')
    assert both.psql('z', "select count(*) from global_value where database = 'stampd_den'") == [(0,)]
    put(both, 'lab', 'comes', mail='gone@x')
