"""The sweep for thumbnails: images that were there before the declaration, came by SQL or by an import, or whose task was dropped, are found; what
cannot be decoded is not tried each day."""
import pytest

from schema import Schemas
from stack import wait_until
from test_thumbnails import IMAGE, PHOTO, attach, items, reason, run, sweep

pytestmark = pytest.mark.plain

STACK = {'workers': 2, 'namespaces': {'z': 'closed', 'lab': 'open', 'demo': 'open'},
         'settings': {'limit_client_connections': 0, 'limit_client_requests': 0}}
WHOLE = {'one', 'one~small', 'one~large'}


@pytest.fixture(scope='module', autouse=True)
def early(stack, tmp_path_factory):
    """Photos without a declaration: one with an image, one with a text, one with what is no image, one without files."""
    schemas = Schemas(stack, tmp_path_factory.mktemp('schemas'))
    for id_ in ('image', 'text', 'bad', 'none'):
        stack.put('lab', {'c': 'Photo', 'id': id_, 'items': [{'c': 'Main', 'j': {}}]})
    attach(stack, 'image', 'one')
    attach(stack, 'text', 'one', b'text', 'text/plain')
    attach(stack, 'bad', 'one', b'no image')
    return schemas


def a_day_passes(stack, ns='lab'):
    stack.psql(ns, "update thumbnail_sweep set began = stamp_of(now() - interval '25 hours')")


def test_without_a_declaration_nothing_is_swept(stack):
    assert sweep(stack) is None
    a_day_passes(stack)
    assert sweep(stack) is None


def test_images_from_before_the_declaration(stack, early):
    early.apply('lab', {'Photo': PHOTO})
    assert sweep(stack) == 3, 'those with files'
    assert run(stack) == ['done'] * 3
    assert set(items(stack, 'image')) == WHOLE and set(items(stack, 'text')) == {'one'} and set(items(stack, 'bad')) == {'one'}
    assert reason(stack, b'no image') == 'unsupported format'
    assert sweep(stack) is None, 'it is not due'
    a_day_passes(stack)
    assert sweep(stack) == 0, 'what failed for good is not tried again'


def test_a_dropped_task(stack):
    attach(stack, 'none', 'one')
    stack.psql('lab', "delete from taskqueue where opname = 'thumbnail'")
    assert sweep(stack) is None
    a_day_passes(stack)
    assert sweep(stack) == 1 and run(stack) == ['done'] and set(items(stack, 'none')) == WHOLE


def test_an_image_that_was_removed_by_sql(stack):
    stack.psql('lab', """update item set content = null, vop = 0, version = version_above(version) where (class, id, iclass, key) = ('Photo', 'image', 'P', 'one');
        update doc d set version = (select max(version) from item i where i.class = d.class and i.id = d.id), v2 = v2 - %s
          where d.class = 'Photo' and d.id = 'image'""", (len(IMAGE),))
    wait_until(lambda: set(items(stack, 'image')) == WHOLE - {'one'}, what='psql removes the image alone')
    a_day_passes(stack)
    assert sweep(stack) == 1 and run(stack) == ['done'] and items(stack, 'image') == {}
    attach(stack, 'image', 'one')
    assert run(stack) == ['done'] and set(items(stack, 'image')) == WHOLE


def test_all_again(stack):
    stack.psql('lab', 'select thumbnail_again()')
    assert reason(stack, b'no image') is None
    assert sweep(stack) == 4 and run(stack) == ['done'] * 4 and reason(stack, b'no image') == 'unsupported format'


def test_a_purged_document_is_forgotten(stack):
    stack.put('lab', {'c': 'Photo', 'id': 'none', 'delete': True})
    a_day_passes(stack)
    sweep(stack)
    run(stack)
    stack.psql('lab', 'select purge_zombies(991231000000000)')
    assert stack.psql('lab', "select id from thumbnail_done where id = 'none'") == []


def test_an_import(stack, early, tmp_path):
    early.apply('demo', {'Photo': PHOTO})
    assert sweep(stack, 'demo') == 0
    archive = tmp_path / 'lab.tar'
    stack.admin('export', 'lab', archive)
    stack.admin('import', 'demo', archive, '--merge')
    assert set(items(stack, 'image', 'demo')) == WHOLE, 'thumbnails are carried as all attachments'
    assert sweep(stack, 'demo') == 3 and run(stack, 'demo') == ['done'] * 3
    assert set(items(stack, 'image', 'demo')) == WHOLE


def test_many_are_found_page_by_page(stack):
    for number in range(0, 240, 30):
        stack.put('lab', *({'c': 'Photo', 'id': f'many{number + one:03}', 'items': [
            {'c': 'P', 'k': 'one', 'from': {'c': 'Photo', 'id': 'image', 'k': 'one'}}]} for one in range(30)))
    stack.psql('lab', "delete from taskqueue where opname = 'thumbnail'")
    a_day_passes(stack)
    assert sweep(stack) == 240
    a_day_passes(stack)
    assert sweep(stack) is None, 'not while so many wait'
    stack.psql('lab', "delete from taskqueue where opname = 'thumbnail'")
    assert sweep(stack) == 240
