"""scripts/cell: a whole cell on one machine, where there can be network namespaces."""
import pytest

from stack import BUILD, SOURCE, run_program

CANNOT_RUN = 77
TRY = ('set -e; '
       'curl -sS --fail --cacert "$CELL_CERTIFICATE" "$CELL_URL/lab/op/put" -H "Content-Type: application/json" '
       '-d \'{"param":{"docs":[{"c":"Note","id":"a","items":[{"c":"Main","j":"hello"}]}]}}\'; echo; '
       f'{BUILD}/src/stampctl cell status --config "$CELL_CONFIG" --admin-conninfo "$CELL_ADMIN"')


@pytest.mark.plain
@pytest.mark.again  # scripts/check runs the campaign of failovers, which has the same parts
@pytest.mark.timeout(600)
def test_a_cell_begins_serves_and_leaves_nothing():
    done = run_program(SOURCE / 'scripts/cell', '--nodes', 2, '--hosts', 'one', '--run', TRY, status=None, timeout=590, environment={'STAMPD_BUILD': str(BUILD)})
    if done.status == CANNOT_RUN:
        pytest.skip(done.out)
    assert done.status == 0, done.text
    assert '"v"' in done.out or '"out"' in done.out, done.text
    row = done.out.splitlines()[-1].split()
    assert row[:3] == ['-', 'up', '2'] and row[4:6] == ['1', '1'], done.out  # a standby, and commits wait for it
    assert 'Traceback' not in done.error
