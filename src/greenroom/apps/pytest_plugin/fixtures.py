"""The fixtures: an agent rehearsed inside a test, with the options of its mark and its project."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from greenroom.apps.pytest_plugin.attempts import remember
from greenroom.apps.pytest_plugin.settings import KEY, place_of_runs
from greenroom.errors import BadInput
from greenroom.reports.words import printable
from greenroom.results.gate import Gate
from greenroom.results.report import Report
from greenroom.suite import evaluation
from greenroom.suite.inputs.references import anchored
from greenroom.suite.option_types import nearest
from greenroom.suite.options import OPTIONS


class Rehearsal:
    """Rehearses in one test; what is not given comes from the test's mark, then from the project."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._config = request.config
        self._folders = (request.path.parent, request.config.rootpath)
        self._marked = _marked(request.node)
        self._unawaited = 0

    def __call__(self, agent: Any = None, cases: Any = None, **options: Any) -> Report:
        """Rehearse `agent` on `cases` and return the report; options are `evaluate`'s.

        A path is looked for next to the test, then in the project's folder. With `min_pass_rate` the
        test fails at once when fewer pass or something broke; with `baseline` when something got
        significantly worse.
        """
        agent, cases, minimum, options = self._completed(agent, cases, options)
        report = evaluation.rehearse(agent, cases, **options)
        return self._judged(report, minimum, options.get("baseline"))

    def evaluate(
        self, agent: Any = None, cases: object = None, **options: object
    ) -> Coroutine[Any, Any, Report]:
        """Rehearse `agent` on `cases` in async code; returns an awaitable report."""
        self._unawaited += 1
        return self._evaluate(agent, cases, options)

    def end(self) -> None:
        """Fail a test that called `evaluate` but never awaited it."""
        if self._unawaited:
            pytest.fail("evaluate(...) was called, but not awaited: nothing ran", pytrace=False)

    async def _evaluate(self, agent: Any, cases: Any, options: dict[str, Any]) -> Report:
        self._unawaited -= 1
        agent, cases, minimum, options = self._completed(agent, cases, options)
        report = await evaluation.evaluate(agent, cases, **options)
        return self._judged(report, minimum, options.get("baseline"))

    def _completed(self, agent: Any, cases: object, options: dict[str, Any]) -> Any:
        settings = self._config.stash[KEY]
        usual = {"agent": settings.agent or None, "cases": None, "min_pass_rate": None}
        usual |= {**settings.passed_on, "store": place_of_runs(self._config)}
        given = {**usual, **self._marked, **options}
        marked = given.pop("agent"), given.pop("cases")
        agent = marked[0] if agent is None else agent
        cases = marked[1] if cases is None else cases
        if cases is None:
            raise BadInput(
                "there is nothing to rehearse; call rehearse(agent, cases), or mark the test: "
                '@pytest.mark.greenroom(agent="agent.py", cases="refund.yaml").'
            )
        minimum = given["min_pass_rate"]
        if minimum is not None and (problem := OPTIONS["min_pass_rate"].problem(minimum)):
            raise BadInput(f"min_pass_rate={problem}")
        if minimum is None or given.get("trials") != "auto":
            del given["min_pass_rate"]  # only the gate looks at it
        return self._found(agent), self._found(cases), minimum, given

    def _found(self, given: object) -> object:
        return anchored(str(given), *self._folders) if isinstance(given, str | Path) else given

    def _judged(self, report: Report, minimum: float | None, baseline: Any) -> Report:
        remember(report)
        if minimum is None and baseline is None:
            return report
        decision = Gate(min_pass_rate=minimum).decide(report, baseline)
        if not decision.passed:
            pytest.fail(printable(str(decision)), pytrace=False)
        return report


_OPTIONS = {*OPTIONS, "agent", "cases"}


def _marked(node: pytest.Item) -> dict[str, object]:
    """The options in the marks of a test; the nearest mark wins."""
    found: dict[str, object] = {}
    for mark in node.iter_markers("greenroom"):
        unknown = set(mark.kwargs) - _OPTIONS
        if mark.args or unknown:
            wrong = mark.args[0] if mark.args else min(unknown)
            near = nearest(wrong, _OPTIONS)
            meant = f"Did you mean {near}? " if near and not mark.args else ""
            raise BadInput(
                f"@pytest.mark.greenroom(...) was given {wrong!r}. {meant}It takes, by name: "
                f"{', '.join(sorted(_OPTIONS))}."
            )
        found = {**mark.kwargs, **found}
    return found
