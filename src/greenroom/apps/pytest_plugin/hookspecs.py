"""The hook with which a conftest adds code to cases that are data."""

from pathlib import Path
from typing import Any

import pytest


@pytest.hookspec(firstresult=True)
def pytest_greenroom_case(case: Any, path: Path) -> Any:
    """The case to run in place of `case` from the file `path`, or None to run it as it is.

    `dataclasses.replace(case, mocks=..., metrics=..., agent=..., user=...)` makes one.
    """
