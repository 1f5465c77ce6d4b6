"""The guard of hot paths (test/bench/count --check): it notices a loop that somebody has added."""
import sys

import pytest

from stack import SOURCE

sys.path.insert(0, str(SOURCE / 'test/bench'))
import costs  # noqa: E402

pytestmark = [pytest.mark.plain, pytest.mark.skipif(bool(costs.missing()), reason='valgrind and strace are wanted')]
PATH = ('worker', 'read, GET')


def test_a_small_loop_is_noticed(tmp_path):
    former, dearer = (costs.instructions('worker', tmp_path, [PATH[1]], program=program)[PATH[1]] for program in ('lone', 'dear'))
    again = costs.instructions('worker', tmp_path, [PATH[1]])[PATH[1]]

    def lines(now):
        return costs.compare({PATH: (*former[:2], 2, '')}, {PATH: (*now[:2], 2, '')})
    assert lines(again) == []
    assert len(lines(dearer)) == 1 and 'dearer than' in lines(dearer)[0]
    assert 'cheaper than' in costs.compare({PATH: (*dearer[:2], 2, '')}, {PATH: (*former[:2], 2, '')})[0]


def test_traces_of_one_request_of_a_hundred_cost_little(tmp_path):
    """A cached read costs less than 3 % more."""
    share, (plain, drawn, traced) = costs.share_of_traces(tmp_path, PATH[1])
    assert drawn < traced and share < 0.03, (plain, drawn, traced)


def test_figures_are_compared():
    former = {PATH: (10000, 200, 2, 'read 1, writev 1')}
    assert costs.compare(former, {PATH: (10299, 203, 2, '')}) == []
    assert costs.compare(former, {PATH: (9701, 197, 2, '')}) == []
    assert costs.compare(former, {PATH: (10301, 200, 2, '')}) == ['worker read, GET: 10,301 instructions, dearer than 10,000']
    assert len(costs.compare(former, {PATH: (9699, 207, 3, '')})) == 3
    assert len(costs.compare(former, {('nginx', 'read, GET'): (10000, 200, 2, '')})) == 2


def test_figures_are_written_as_they_are_read():
    found = {('worker', 'read, GET'): (12345, 67, 2, 'read 1, writev 1'), ('nginx', 'read of 32'): (1, 2, 0, '')}
    assert costs.read_figures(costs.write_figures(costs.FIGURES.read_text(), found)) == found
    every = {(side, case) for side, cases in costs.GUARDED.items() for case in cases}
    assert set(costs.read_figures(costs.FIGURES.read_text())) == every
