import faulthandler
import gc
import os
import sys
import tomllib
from collections.abc import Generator, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from time import monotonic

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.internal.constants_ast import Constants

from greenroom.simulation.fence import patches
from greenroom.suite.workers import local
from warm_python import WarmPython

pytest_plugins = ["pytester", "ray_clusters"]

# Tests of the store say where theirs is; the others leave nothing behind.
os.environ["GREENROOM_STORE"] = "off"

# A client of a provider reads every authority that it trusts, 150 of them, as it is made. No test asks
# beyond this machine, and one authority is read in no time.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("one_authority.pem"))

# A busy machine is not a bug: properties are about behaviour, deadlines are the benchmarks' business.
# The gate tries the same examples on every machine; torture looks for new ones.
settings.register_profile("greenroom", deadline=None, derandomize=True, max_examples=16)
settings.register_profile("thorough", settings.get_profile("greenroom"), max_examples=200)
# For the tests marked `deep`, in `make test-all`.
settings.register_profile("deep", settings.get_profile("greenroom"), max_examples=1000)
settings.load_profile("greenroom")


class Alarm:
    """Says where a test hangs.

    pytest can do it too, but sets and clears an alarm for each test, for which it waits 2 ms each time.
    """

    SECONDS = 300

    def __init__(self) -> None:
        self._stderr = os.dup(2)  # while a test runs, 2 is a file of pytest's
        self._set_at = 0.0

    def postpone(self) -> None:
        if monotonic() > self._set_at + self.SECONDS / 30:
            faulthandler.dump_traceback_later(self.SECONDS, file=self._stderr)
            self._set_at = monotonic()


ALARM = pytest.StashKey[Alarm]()


def pytest_configure(config: pytest.Config) -> None:
    """Stop if pyproject.toml declares plug-ins that the installed package does not know of."""
    if not config.getoption("--hypothesis-profile"):
        # Hypothesis also tries what it reads in the modules that are loaded: other examples in every
        # order of the tests, and three seconds of reading in every worker.
        setattr(HypothesisProvider, "_local_constants", Constants())  # noqa: B010
    config.stash[ALARM] = Alarm()
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    for group, points in project["entry-points"].items():
        installed = {(point.name, point.value) for point in entry_points(group=group)}
        if not points.items() <= installed:
            raise pytest.UsageError(
                f"pyproject.toml has changed the entry points of {group} since Greenroom was "
                f"installed here. Run: .venv/bin/python -m pip install --no-deps -e ."
            )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.config.stash[ALARM].postpone()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: the garbage collector need not look through it."""
    gc.disable()
    found = yield
    gc.freeze()
    gc.enable()
    return found


@pytest.fixture(autouse=True)
def libraries_of_this_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Reports note libraries with sockets of their own; what another test has loaded is no news.

    Not for the tests of the fence itself, which ask for just that.
    """
    every = patches._OWN_SOCKETS
    if not request.path.stem.startswith(("test_fence", "test_ray")):
        unloaded = {module: name for module, name in every.items() if module not in sys.modules}
        setattr(patches, "_OWN_SOCKETS", unloaded)  # noqa: B010 - it is final for everyone else
    yield
    setattr(patches, "_OWN_SOCKETS", every)  # noqa: B010


@pytest.fixture
def warm_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes have Greenroom imported already, which is half of what a small run takes."""
    monkeypatch.setattr(local, "Popen", WarmPython)
