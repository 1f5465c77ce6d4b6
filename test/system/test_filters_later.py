"""Filters of modules (modules/filters.c) beside requests: push messages, and a module that is replaced by its next version."""
import secrets
import shutil

import pytest

from kit import Kit
from listener import Listener
from push_key import CONTACT, PushKey
from push_service import PushService
from schema import Schemas
from test_filters import MARK, SCHEMA, fill, main, names, sync
from test_rules_push import Sleeper

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'pub': 'open', 'plain': 'open'}, 'settings': {}}


@pytest.fixture(scope='module', autouse=True)
def kit():
    kit = Kit()
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module', autouse=True)
def key(kit):
    with PushKey() as key:
        STACK['settings'] = {**key.settings, 'push_ttl_s': 600, 'modules': kit.build('filters.c')}
        yield key


@pytest.fixture(scope='module')
def service(stack, key, tmp_path_factory):
    service = PushService(CONTACT)
    for ns in ('pub', 'plain'):
        Schemas(stack, tmp_path_factory.mktemp('schemas')).apply(ns, {**SCHEMA, 'Free': SCHEMA['Cut']})
        key.enable(stack, service, ns)
        fill(stack, ns)
    yield service
    service.close()


def sleeping(stack, service, *definitions, ns='pub'):
    return Sleeper(stack, service, 'nobody', *definitions, ns=ns, headers={})


def line(name, ident, text=''):
    return {'c': name, 'id': ident, 'items': [{'c': 'Line', 'k': '1', 'j': text + secrets.token_hex(4)}]}


def write(stack, *documents, ns='pub'):
    return stack.put(ns, *documents, admin=True)


def test_what_a_filter_hides_wakes_nobody(stack, service):
    """Hidden documents, items of a hidden class, excluded contents; where no filter applies, all of them do."""
    changes = [line('Veil', 'hidden'), {'c': 'Cut', 'id': 'a', 'items': [{'c': 'Secret', 'j': secrets.token_hex(4)}]}, line('Pick', 'a', MARK)]
    definitions = ['Cut', 'Cut/a', 'Pick', 'Pick/a', 'Veil', 'Veil/hidden']
    hidden, shown = (sleeping(stack, service, *definitions, ns=ns) for ns in ('pub', 'plain'))
    version = write(stack, *changes, ns='plain')
    assert shown.woken() == [(definition, version) for definition in definitions]
    write(stack, *changes)
    assert hidden.woken() == []
    write(stack, {'c': 'Veil', 'id': 'hidden', 'delete': True})
    assert hidden.woken() == []
    fill(stack, 'pub')
    assert hidden.woken() == [], 'nothing that is shown has changed'


def test_deletions_wake_where_the_class_has_no_filter(stack, service):
    """There everybody may know of them; so it is for members that leave a collection."""
    definitions = ['Cut', 'Cut/gone', 'Cut/all@red', 'Free', 'Free/gone', 'Free/all@red']
    write(stack, *({'c': name, 'id': 'gone', 'items': [main()]} for name in ('Cut', 'Free')))
    filtered, plain = sleeping(stack, service, *definitions), sleeping(stack, service, 'Free/all@red', 'Free/all@blue')
    version = write(stack, *({'c': name, 'id': 'gone', 'delete': True} for name in ('Cut', 'Free')))
    assert filtered.woken() == [(definition, version) for definition in ('Free', 'Free/all@red', 'Free/gone')]
    assert plain.woken() == [('Free/all@red', version)]


def test_a_collection_wakes_by_the_members_and_properties_that_are_shown(stack, service):
    sleeper = sleeping(stack, service, 'Cut/secret@red', 'Mask/all@red', 'Veil/all@red')
    version = write(stack, line('Veil', 'a'), line('Cut', 'a'), line('Mask', 'a'))
    assert sleeper.woken() == [('Veil/all@red', version)]
    write(stack, line('Veil', 'hidden'))
    assert sleeper.woken() == []


def test_what_a_filter_shows_wakes_with_the_version_that_is_seen(stack, service):
    sleeper = sleeping(stack, service, 'Cut', 'Cut/a', 'Mask/a', 'Veil')
    version = write(stack, line('Cut', 'a'), line('Mask', 'a'), line('Veil', 'a'), {'c': 'Veil', 'id': 'hidden', 'items': [main(veil=True)]})
    write(stack, {'c': 'Cut', 'id': 'a', 'items': [{'c': 'Secret', 'j': secrets.token_hex(4)}]})
    assert sleeper.woken() == [(definition, version) for definition in ('Cut', 'Cut/a', 'Mask/a', 'Veil')]


def test_one_shown_document_among_many_hidden_ones_wakes(stack, service):
    """More than are noted with the match: the class is read, and judged."""
    sleeper = sleeping(stack, service, 'Veil')
    veiled = [{'c': 'Veil', 'id': f'z{place:02}', 'items': [main(veil=True)]} for place in range(30)]
    write(stack, *veiled)
    assert sleeper.woken() == []
    version = write(stack, *({**one, 'items': [main(veil=True, n=1)]} for one in veiled[:-1]), {'c': 'Veil', 'id': 'z29', 'items': [main()]})
    assert sleeper.woken() == [('Veil', version)]
    write(stack, *({'c': 'Veil', 'id': one['id'], 'delete': True} for one in veiled))
    sleeper.woken()


def come_again(stack, *definitions, last):
    listener = Listener(stack, *definitions, ns='pub', last=last)
    try:
        return listener.opened()
    finally:
        listener.close()


def test_the_next_version_of_a_module_replaces_the_copies_of_clients(stack, service, kit):
    """Nothing of the document has changed, so this is how they learn that the filter may show it otherwise."""
    listener = Listener(stack, 'Cut/a', ns='pub')
    last = listener.wait_for_id()
    listener.close()
    first = stack.get('pub', ('Cut', 'a'))
    tag = stack.request('GET', '/pub/doc/Cut/a').headers['ETag']
    def asked():
        (copy,) = sync(stack, 'pub', first)
        return copy, stack.request('GET', '/pub/doc/Cut/a', headers={'If-None-Match': tag}).status_code
    stack.restart_stampd()
    copy, status = asked()
    assert (copy['w'], copy['items'], status) == (first['w'], [], 304) and come_again(stack, 'Cut/a', last=last)
    kit.build('filters.c', 'filters', '-DVERSION="1.1"')
    stack.restart_stampd()
    copy, status = asked()
    assert copy['w'] != first['w'] and names(copy) == names(first) and copy['clkeys'] == [] and status == 200
    assert not come_again(stack, 'Cut/a', last=last), 'and listeners read everything'
