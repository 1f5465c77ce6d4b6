"""Values that are tried at night only."""
import pytest


def again(*values):
    """Parameters of a test that show what its others show, with other values: `scripts/check all` runs them, `scripts/check` does not."""
    return [pytest.param(value, marks=pytest.mark.again) for value in values]
