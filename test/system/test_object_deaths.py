"""The mover of files to and from object stores is killed at each of its steps."""
import pytest

from object_places import STACK, all_places, places
from stack import PATIENCE_S, wait_until
from test_attachment_files import LONG_AGO
from test_attachment_http import checked, send

pytestmark = pytest.mark.plain

POINTS = ['mover-begun', 'mover-written', 'mover-noted', 'mover-leaving', 'mover-dropped', 'mover-brought', 'mover-removed', 'mover-released']


# --- death ---

@pytest.mark.parametrize('point', POINTS)
def test_wherever_the_mover_is_killed_no_file_is_lost(places, point):
    stack = places.stack
    deaths = stack.log().count(f'died at {point},')
    for number in range(3):
        places.add(f'f{number}', f'{point} {number}'.encode())
    if point in ('mover-brought', 'mover-released', 'mover-removed'):
        places.settle('own')
    stack.set(debug_die_at=point)
    if point == 'mover-released':
        checked(send(stack, 'DELETE', 'Note/n/file/f0'), 200)
        stack.psql('lab', f'delete from blob_claim; delete from blob_ref where ended is not null; update blob set touched = {LONG_AGO}')
        places.contents.pop('f0')
    else:
        places.place('directory' if point in ('mover-brought', 'mover-removed') else 'own')
    wait_until(lambda: places.age() or stack.log().count(f'died at {point},') > deaths, PATIENCE_S, point)
    places.check()
    places.place('other' if point == 'mover-released' else 'directory')
    wait_until(lambda: places.age() or places.is_in('other' if point == 'mover-released' else None), PATIENCE_S, 'they are moved')
    places.check()
    places.settle('own')
    places.check()
