"""Which parameters of a test are tried in `make test`, and which in `make test-all` alone."""

from typing import Any

import pytest


def heavy(value: Any) -> Any:
    """A parameter that `make test-all` tries; others of the same test are tried every time."""
    return pytest.param(value, marks=pytest.mark.heavy)
