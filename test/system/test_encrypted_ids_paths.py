"""Encrypted ids on every path.  Two namespaces with the same rules and documents, one with encrypted ids: whatever a caller requests by the matrix
of test_rules_paths.py, which names each operation, method and address of the server, both answer alike, and no answer has an id as it is stored."""
import json
import re
import shutil

import pytest

import test_rules_paths as paths
from kit import Kit
from schema import Schemas
from stack import comparable
from test_encrypted_ids import everything_stored
from test_encrypted_ids_script import STORED, texts_of
from test_sealed_move import furnish
from vault import create

pytestmark = pytest.mark.plain

WORLDS = ('vault', 'clear')
STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'clear': 'rules'}, 'postgres': {'log_statement': 'all', 'log_parameter_max_length': -1},
         'settings': {'limit_anonymous_body_bytes': 65536}}
CALLERS = ('anybody', 'ann', 'bot')
STAMP = re.compile(r'\b\d{15}\b')
DRAWN = re.compile(r'[\w-]{22,}|\b[0-9a-f]{16}\b')
OF_SIZE = ('content-length', 'content-encoding', 'transfer-encoding', 'vary')  # headers that a larger answer has, or has others of
# What an encrypted namespace refuses, and searches of modules that select contents, which are as they are stored: by the end of the name of the request.
REFUSED = ('list, prefix', 'find by id', 'a listener to a collection that is not declared', 'a listener with an id')
WITH_CONTENTS = 'search of a module, Items'
SCHEMA = {name: {**declared, 'encryptedIds': True,
                 'items': {item: {**one, 'clear': True, 'fields': {'team': 'string'}} if 'fields' in one else one for item, one in declared['items'].items()}}
          for name, declared in paths.SCHEMA.items()}


@pytest.fixture(scope='module', autouse=True)
def kit(request):
    kit = Kit()
    request.module.STACK['settings']['modules'] = str(kit.build('filters.c'))
    yield kit
    shutil.rmtree(kit.path, ignore_errors=True)


@pytest.fixture(scope='module')
def worlds(stack, tmp_path_factory):
    furnish(stack)
    create(stack, 'vault', 'rules', ids=','.join([*SCHEMA, 'Login']))
    for ns in WORLDS:
        conf = stack.get('z', ('Namespace', ns), admin=True)['items'][0]['j']
        stack.put('z', {'c': 'Namespace', 'id': ns, 'items': [{'c': 'Conf', 'j': {**conf, 'accounts': {'registration': 'open'}, 'workers': paths.QUEUES}}, {'c': 'Rules', 'j': paths.RULES}]},
                  admin=True)
        stack.put(ns, *(paths.account(name, ['staff'] if name in ('eve', 'bot') else ()) for name in paths.IDS), admin=True)
        schema = SCHEMA if ns == 'vault' else {name: {**one, 'encryptedIds': False} for name, one in SCHEMA.items()}
        Schemas(stack, tmp_path_factory.mktemp('schemas')).apply(ns, schema)
        for one, _ in paths.DOCUMENTS:
            stack.put(ns, one, admin=True)
        for ident in ('p', 'q'):
            stack.put(ns, paths.document('Part', ident), admin=True)
        for name, (items, _) in paths.COVERED.items():
            for ident in 'bd':
                stack.put(ns, {'c': name, 'id': ident, 'items': items}, admin=True)
        stack.put(ns, *paths.SECRET_ITEMS, admin=True)
    return stack


# --- comparing ---

def without_order(value):
    """Without the order of lists, stamps, and the texts of cursors and tokens; an encrypted namespace is in the order of the stored ids."""
    if isinstance(value, dict):
        return {name: '' if name in ('cursor', 'token') else without_order(one) for name, one in value.items()}
    if isinstance(value, list):
        return sorted((without_order(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
    return STAMP.sub('stamp', json.dumps(value))


def parts(answer, ns):
    """Its body: JSON texts, or a text; of the rows of a search without what is encrypted."""
    found = texts_of(answer.text.replace(f'/{ns}', '/NS').replace(f'"title":"{ns}"', '"title":"NS"'))
    for row in (row for one in found for row in members(one).get('rows', ())):
        row.pop('key', None)
        row.pop('content', None)
    return found


def members(part):
    out = part.get('out') if isinstance(part, dict) else None
    return out if isinstance(out, dict) else {'': part}


def gathered(answers, ns):
    """All pages as one: status, headers, and what they list, in no order."""
    found = {}
    for part in (part for answer in answers for part in parts(answer, ns)):
        for name, value in members(part).items():
            found.setdefault(name, []).extend(value if isinstance(value, list) else [value] if name not in ('cursor', 'token') else [])
        if isinstance(part, dict) and 'syncs' in part:
            found['syncs'] = part['syncs']
    headers = {name.lower(): STAMP.sub('stamp', value) for name, value in comparable(answers[0].headers, *OF_SIZE).items()}
    return answers[-1].status_code, headers, without_order(found)


def compare(worlds, caller, what):
    """What is wrong, or None."""
    request = paths.REQUESTS[what]
    vault, clear = (paths.pages(worlds, ns, request, caller) for ns in WORLDS)
    leaked = [answer.text for answer in vault if STORED.search(answer.text + str(answer.headers))]
    if leaked and not what.endswith(WITH_CONTENTS):
        return what, leaked
    if what.endswith(REFUSED):
        return None if vault[0].json().get('code') in ('OENCRYPTED', clear[0].json().get('code')) else (what, vault[0].text)
    found = [gathered(answers, ns) for answers, ns in ((vault, 'vault'), (clear, 'clear'))]
    return None if found[0] == found[1] else (what, [answer.text for answer in vault], [answer.text for answer in clear])


@pytest.mark.parametrize('group', paths.GROUPS)
@pytest.mark.parametrize('caller', CALLERS)
def test_both_answer_alike(worlds, caller, group):
    assert not [wrong for wrong in (compare(worlds, caller, what) for what in paths.GROUPS[group]) if wrong]


def test_documents_are_found(worlds):
    """The comparison would hold if nothing were found."""
    for ns in WORLDS:
        assert sorted(one['id'] for one in worlds.op(ns, 'list', {'c': 'Own'}, admin=True)['out']['docs']) == sorted([*'bdf', *(f'hidden-{ident}' for ident in 'ace')])
        rows = worlds.op(ns, paths.SEARCH, {'c': 'Open', 'search': 'Documents'}, admin=True)['out']['rows']
        assert sorted(row['id'] for row in rows) == ['b', 'd']
        assert sorted(paths.seek(worlds, 'Documents', 'Open', ns)) == [('b', None), ('d', None)]
        assert sorted(paths.seek(worlds, 'Items', 'Own', ns, 'ann')) == [(ident, item) for ident in 'bdf' for item in ('Main', 'Member')]


def test_accounts_are_answered_alike(worlds):
    """A name is the id of a document Login: made, found, taken, changed and given up."""
    word = {'password': 'correct horse battery staple'}

    def script(ns):
        def ask(operation, param, key=None, admin=False):
            answer = worlds.request('POST', f'/{ns}/op/{operation}', json={'param': param}, admin=admin, headers={'Authorization': f'Bearer {key}'} if key else {})
            assert not STORED.search(answer.text), answer.text
            text = DRAWN.sub('drawn', answer.text.replace(account, 'the account').replace(f'"{ns}"', '"NS"'))
            seen.append((operation, answer.status_code, json.dumps(without_order(json.loads(text)), sort_keys=True)))
            return answer.json().get('out') or {}
        seen, account = [], 'none yet'
        account = ask('register', {'name': 'hidden-c@example.org', **word})['account']
        ask('register', {'name': 'hidden-c@example.org', **word})
        ask('login', {'name': 'hidden-e@example.org', **word})
        key = ask('login', {'name': 'hidden-c@example.org', **word})['token']
        for operation, param in (('account', {}), ('sessions', {}), ('account', {'set': {'name': 'hidden-e@example.org', **word}}), ('logout', {}), ('account', {})):
            ask(operation, param, key)
        for param in ({'find': 'hidden-c@example.org'}, {'find': 'hidden-e@example.org'}, {'get': account}, {'delete': account}, {'find': 'hidden-e@example.org'}):
            ask('accounts', param, admin=True)
        ask('register', {'name': 'hidden-e@example.org', **word})
        return seen
    vault, clear = (script(ns) for ns in WORLDS)
    assert vault == clear and {one[1] for one in vault} >= {200, 401, 409}, (vault, clear)


def test_invitations_are_answered_alike(worlds):
    """The document that an invitation leads to is found again, and its id is stored in no other way than the document itself."""
    def script(ns):
        def ask(param, key=None):
            answer = worlds.request('POST', f'/{ns}/op/membership', json={'param': param}, admin=key is None, headers={'Authorization': f'Bearer {key}'} if key else {})
            assert not STORED.search(answer.text), answer.text
            return answer.status_code, answer.json().get('out') or answer.json().get('code')
        name = {'c': 'Club', 'id': 'hidden-c of invitations'}
        worlds.put(ns, {**name, 'items': [{'c': 'Member', 'k': 'nobody', 'j': {}}]}, admin=True)
        sent = ask({'invite': {**name, 'content': {'role': 'reader'}}})[1]
        guest = worlds.request('POST', f'/{ns}/op/register', json={'param': {'name': 'guest', 'password': 'correct horse battery staple'}}).json()['out']['token']
        looked, listed, joined = ask({'look': sent['invitation']}), ask({'list': name}), ask({'join': sent['invitation']}, guest)
        return [{**looked[1], 'expires': 0}, len(listed[1]['invitations']), joined, ask({'list': name}), ask({'look': sent['invitation']}, guest)]
    vault, clear = (script(ns) for ns in WORLDS)
    assert vault == clear and vault[2][1] == {'c': 'Club', 'id': 'hidden-c of invitations', 'joined': True}, (vault, clear)


def test_no_id_is_stored_in_clear(worlds):
    """Those of accounts, keys of idempotency, which begin with a class here, and names of files are."""
    ids = re.compile(rb'(?<![A-Za-z])(hidden-[ce]|of-ann|of-bob)')
    logged = everything_stored(worlds)
    assert not ids.search(logged['dump']), ids.search(logged['dump'])
    lines = [line for line in logged['log of statements'].splitlines() if ids.search(line)]
    assert not [line for line in lines if b'@stampd_vault ' in line]
    assert [line for line in lines if b'@stampd_clear ' in line], 'those of the other namespace are'
