"""The pytest plug-in: eval-set files as tests, fixtures that rehearse, and a summary of both.

Every pytest run where Greenroom is installed imports this, so it loads the rest only when there is
something to rehearse.
"""

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from greenroom.apps.pytest_plugin.attempts import count
from greenroom.apps.pytest_plugin.settings import (
    BASELINE_INI,
    add_options,
    is_listed,
    is_usual,
    read_settings,
)
from greenroom.apps.pytest_plugin.tally import Tally
from greenroom.lazy import lazy

if TYPE_CHECKING:
    from greenroom.apps.pytest_plugin.collection import EvalFile
    from greenroom.apps.pytest_plugin.fixtures import Rehearsal
    from greenroom.apps.pytest_plugin.runner import EvalResult, EvalRunner, load_test_file

__all__ = ["EvalResult", "EvalRunner", "load_test_file"]

_READABLE = (".json", ".yaml", ".yml", ".jsonl", ".ndjson", ".csv", ".tsv")


class Hooks:
    """The hook with which a conftest adds code to cases that are data."""

    @pytest.hookspec(firstresult=True)
    def pytest_greenroom_case(self, case: Any, path: Path) -> Any:
        """The case to run in place of `case` from the file `path`, or None to run it as it is.

        `dataclasses.replace(case, mocks=..., metrics=..., agent=..., user=...)` makes one.
        """


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the options."""
    add_options(parser.getgroup("greenroom", "rehearsals of agents"))
    parser.addini(BASELINE_INI, "An earlier report with which eval sets are compared.", default="")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let a conftest change cases."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings, and begin to count results."""
    config.addinivalue_line(
        "markers",
        "greenroom(agent, cases, min_pass_rate, **options): what `rehearse` and `evaluate` use "
        "where a call does not say; every case of an eval-set file carries it too.",
    )
    config.pluginmanager.register(Tally(config, read_settings(config)), Tally.NAME)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "EvalFile | None":
    """Collect eval sets, and no other files."""
    if file_path.suffix not in _READABLE:
        return None
    listed = is_listed(file_path, parent.config)
    named = parent.session.isinitpath(file_path)
    if not (listed or named or is_usual(file_path)):
        return None
    from greenroom.apps.pytest_plugin.collection import eval_file

    return eval_file(file_path, parent, listed=listed, named=named)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach what was rehearsed in a test to its report, and show it if the test failed."""
    report = yield
    count(item, report)
    return report


@pytest.fixture(name="rehearse")
def rehearse_fixture(request: pytest.FixtureRequest) -> "Rehearsal":
    """Rehearse an agent on cases: `rehearse(agent, "refund.yaml", trials=3)` gives a report."""
    from greenroom.apps.pytest_plugin.fixtures import Rehearsal

    return Rehearsal(request)


@pytest.fixture(name="evaluate")
def evaluate_fixture(request: pytest.FixtureRequest) -> Generator[Any]:
    """Rehearse in an async test: `await evaluate(agent, "refund.yaml", trials=3)` gives a report."""
    from greenroom.apps.pytest_plugin.fixtures import Rehearsal

    rehearsal = Rehearsal(request)
    yield rehearsal.evaluate
    rehearsal.end()


# Without its `__dir__`: pytest looks at everything that is listed there, which would load it.
__getattr__, _ = lazy(__name__, {"runner": "EvalResult EvalRunner load_test_file"})
