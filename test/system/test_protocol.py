"""The examples of the reference and of the how-to pages: each request, sent as it stands there, is answered as it stands behind it."""
import re
import shutil

import pytest

from kit import Kit
from replay import Replay, is_printed, learn, read_page
from schema import Schemas
from stack import SERVER_USER, SOURCE, Stack, stampctl

pytestmark = pytest.mark.plain

PAGES = sorted(str(path.relative_to(SOURCE)) for kind in ('reference', 'how-to') for path in (SOURCE / 'doc' / kind).glob('*.md'))
PROTOCOL = 'doc/reference/protocol.md'
ACCOUNTS = 'doc/reference/accounts.md'
PASSKEYS = 'doc/reference/passkeys.md'
MODULES = {'doc/reference/modules.md', 'doc/reference/copies.md'}  # their examples need the module of doc/examples/asso
OWN_MODULE = 'doc/how-to/write-a-module.md'  # whose first code is one
# Pages that promise examples; none may lose them.
WORKERS = 'doc/reference/workers.md'
WITH_EXAMPLES = [PROTOCOL, ACCOUNTS, PASSKEYS, WORKERS, 'doc/reference/collections.md', 'doc/reference/live.md', 'doc/reference/tasks.md',
                 'doc/reference/modules.md', 'doc/reference/schema.md', 'doc/reference/subscriptions.md', 'doc/reference/push.md',
                 'doc/reference/copies.md', 'doc/reference/records.md', 'doc/reference/resources.md', OWN_MODULE]
# What the page of the protocol says of the namespace lab.
SCHEMA = {'Note': {'open': True, 'items': {'Line': {'fields': {'text': 'string'}}}},
          'Post': {'items': {'Main': {'singleton': True, 'fields': {'room': 'string', 'at': 'long', 'text': 'string'}, 'indexes': [['room', '-at']]}}},
          'Guest': {'items': {'Main': {'singleton': True, 'fields': {'name': 'folded'}, 'indexes': [['~name']]}}},
          'Page': {'items': {'Main': {'singleton': True, 'fields': {'words': {'text': ['title', 'body'], 'language': 'english'}}}}},
          'Person': {'items': {'Main': {'singleton': True}}, 'collections': {'team': {'key': ['Main.team'], 'mutable': True}}}}
OWN_TASKS = {'copy', 'push'}  # operations that the server runs for itself
SETTINGS = {PROTOCOL: {'build': 'web-7'}}
PUSH = 'doc/reference/push.md'


def test_what_is_told_is_compared():
    stamps = {}
    assert learn('{"a": 1,\n "b c": "x  y"}', '{"a":1,"b c":"x  y"}', stamps) is None
    assert learn('{"v":100000000000001}', '{"v":261121103112456}', stamps) is None
    assert learn('["100000000000001",100000000000002]', '["261121103112456",261121103112457]', stamps) is None
    assert stamps == {'100000000000001': '261121103112456', '100000000000002': '261121103112457'}
    assert learn('[100000000000002]', '[261121103112456]', stamps)
    assert learn('[100000000000003]', '[26112110311245]', stamps)
    assert learn('{"token":"…","n":…}', '{"token":"a-b","n":17}', stamps) is None
    assert learn('{"token":"…"}', '{"token":"a-b","n":17}', stamps)
    assert learn('[1.0]', '[1]', stamps) and learn('[1]', '[1,2]', stamps) and learn('{"a":1,"b":2}', '{"b":2,"a":1}', stamps)
    assert is_printed('a  b\n261121103000123 …', 'a b\n261121103000999 x y\n')
    assert not is_printed('a', 'a\nb') and is_printed('a', 'x\na\nb', whole=False) and not is_printed('a\nb', 'a\nx\nb', whole=False)


def test_a_request_is_replayed_or_has_a_reason():
    fence = '```'
    assert [one.kind for one in read_page('p', f'{fence}sh\ncurl $URL/ping\n{fence}\n{fence}json\n{{"t":1}}\n{fence}\n')] == ['sh']
    assert not read_page('p', f'*Not replayed: it needs a browser.*\n\n{fence}sh\ncurl $URL/ping\n{fence}\n')
    for wrong in (f'{fence}\nPOST /lab/op/get\n{fence}\n', f'{fence}json\n{{"out":{{}}}}\n{fence}\n',
                  f'*Not replayed:*\n\n{fence}\nGET /lab/live\n{fence}\n'):
        with pytest.raises(AssertionError):
            read_page('p', wrong)


def test_every_operation_has_a_request_and_an_answer():
    listed = stampctl('operations', '-c', '/dev/null').out.splitlines()
    operations = {line.split()[0] for line in listed if line.split()[1] == 'operation'} - OWN_TASKS
    shown = {name for page in (PROTOCOL, ACCOUNTS, PASSKEYS, WORKERS) for example in read_page(page) if example.shown for name in re.findall(r'/op/([a-z]+)', example.request)}
    assert operations <= shown, operations - shown


def build_first_code(kit, page):
    source = kit.path / 'page.c'
    source.write_text(re.search(r'^```c\n(.*?)^```$', (SOURCE / page).read_text(), re.M | re.S)[1])
    return kit.build(str(source))


def push_key(path):
    stampctl('push', 'key', path)
    for user in SERVER_USER.values():
        shutil.chown(path, user)
    return path


@pytest.mark.parametrize('page', PAGES)
def test_examples(page, tmp_path):
    examples = read_page(page)
    compared = sum(1 for example in examples if example.shown)
    assert compared >= 3 or page not in WITH_EXAMPLES
    if not examples:
        pytest.skip('no request is shown')
    settings, kit = dict(SETTINGS.get(page, {})), None
    if page in MODULES or page == OWN_MODULE:
        kit = Kit()
        settings['modules'] = str(kit.build_example() if page in MODULES else build_first_code(kit, page))
    if page == PUSH:
        kit = Kit()
        settings.update(push_key_file=push_key(kit.path / 'push.key'), push_contact='mailto:ops@example.org')
    try:
        with Stack('page', workers=2, settings=settings) as stack:
            if page == PROTOCOL:
                Schemas(stack, None).apply('lab', SCHEMA)
            Replay(stack, tmp_path).play(page, examples)
    finally:
        if kit:
            shutil.rmtree(kit.path, ignore_errors=True)
