import os
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

# Tests of the store say where theirs is; the others leave nothing behind.
os.environ["GREENROOM_STORE"] = "off"

# A busy machine is not a bug: properties are about behaviour, deadlines are the benchmarks' business.
# The gate tries the same examples on every machine; torture looks for new ones.
settings.register_profile("greenroom", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("thorough", settings.get_profile("greenroom"), max_examples=200)
# For the tests marked `deep`, in `make test-all`.
settings.register_profile("deep", settings.get_profile("greenroom"), max_examples=1000)
settings.load_profile("greenroom")


def pytest_configure() -> None:
    """Stop if pyproject.toml declares plug-ins that the installed package does not know of."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    for group, points in project["entry-points"].items():
        installed = {(point.name, point.value) for point in entry_points(group=group)}
        if not points.items() <= installed:
            raise pytest.UsageError(
                f"pyproject.toml has changed the entry points of {group} since Greenroom was "
                f"installed here. Run: .venv/bin/python -m pip install --no-deps -e ."
            )
