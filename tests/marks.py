"""Which parameters of a test are tried in `make test`, and which in `make test-all` alone."""

from typing import Any

import pytest


def heavy(*values: Any) -> Any:
    """A parameter, or a row of them, that `make test-all` tries; others of the same test are tried every time."""
    return pytest.param(*values, marks=pytest.mark.heavy)
