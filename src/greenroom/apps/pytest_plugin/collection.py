"""Eval-set files as pytest sees them: each is a file of tests, and each of its cases is a test."""

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from greenroom.apps.pytest_plugin.attempts import remember
from greenroom.apps.pytest_plugin.settings import KEY, is_usual, place_of_runs
from greenroom.apps.pytest_plugin.tally import baseline_in, tally_of
from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.documents import parsed
from greenroom.cases.files.load import lines_of_cases, read_evalset
from greenroom.cases.files.shapes import recognised
from greenroom.errors import BadFile, BadInput, GreenroomError
from greenroom.ledger.money import money
from greenroom.ledger.redaction import without_secrets
from greenroom.ledger.safe_text import harmless, on_one_line
from greenroom.reports.failure import failure_text
from greenroom.reports.words import printable
from greenroom.results.redaction import redacted
from greenroom.results.report import CasePlace, Report
from greenroom.results.text import reasons

_ADK_CONFIG = "test_config.json"
_TAGS = pytest.StashKey[set[str]]()
_MEANS_SOMETHING_ELSE = ("filterwarnings", "parametrize", "skipif", "usefixtures")
"""Marks that need arguments; a tag has none, so it cannot be one of these."""


def eval_file(
    path: Path, parent: pytest.Collector, *, listed: bool, named: bool
) -> "EvalFile | None":
    """The eval set in a file that the project lists, the command line names, or that is named like one.

    None if it is not an eval set: then it belongs to something else.
    """
    try:
        document = parsed(path)
    except BadFile:
        known = listed or named or _agent_of(path, None, parent.config)
        return EvalFile.of(parent, path, asked=True) if known else None
    try:
        recognised(document.data, path)
    except BadFile:
        if not listed and not (named and is_usual(path)):
            return None
    return EvalFile.of(parent, path, asked=listed or named)


def _agent_of(path: Path, evalset: EvalSet | None, config: pytest.Config) -> str | None:
    """The agent for a file: from the command line, the set, the project, or the file's folder."""
    from greenroom.suite.inputs.references import agent_beside, anchored

    if typed := config.getoption("greenroom_agent", None):
        return anchored(typed, config.invocation_params.dir, config.rootpath)
    if evalset is not None and (own := evalset.metadata.get("agent")) is not None:
        return _own_agent(str(own), path, config.rootpath)
    if agent := config.stash[KEY].agent:
        return anchored(agent, config.rootpath)
    return agent_beside(path, config.rootpath)


def _own_agent(reference: str, path: Path, root: Path) -> str:
    """The agent that a data file names: it may name a Python file of its project, but no other code."""
    from greenroom.suite.inputs.references import anchored, split_reference

    found = anchored(reference, path.parent, root)
    where = Path(split_reference(found)[0]).resolve()
    if not where.exists() or not where.is_relative_to(root.resolve()):
        raise BadFile(
            f"{path} has metadata.agent {reference!r}, which is not a Python file or folder of this "
            f"project. Give its path from the eval set's folder or from {root}."
        )
    return found


class EvalFile(pytest.File):
    """A file of cases, each of which is a test."""

    asked: bool = False

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path, *, asked: bool) -> Self:
        """The collector of a file; `asked` if the project or the command line names it."""
        file: Self = cls.from_parent(parent, path=path)  # pyright: ignore[reportUnknownMemberType]
        file.asked = asked
        return file

    def collect(self) -> Iterator["CaseItem"]:
        """A test for each case; no agent is loaded for that."""
        try:
            evalset = read_evalset(self.path)
            agent = _agent_of(self.path, evalset, self.config)
        except BadInput as error:
            raise self.CollectError(printable(str(error))) from error
        cases = [self._from_hook(case) for case in evalset]
        if agent is None and not all(case.agent for case in cases):
            self._without_agent()
            return
        for case, line in zip(cases, lines_of_cases(self.path, len(cases)), strict=True):
            yield CaseItem.of(self, case, evalset, agent, line)

    def _from_hook(self, case: Case) -> Case:
        found = self.ihook.pytest_greenroom_case(case=case, path=self.path)
        if found is None:
            return case
        if not isinstance(found, Case):
            wrong = f"pytest_greenroom_case returned {found!r}, which is not a Case."
            raise self.CollectError(printable(wrong))
        return replace(found, id=case.id)

    def _without_agent(self) -> None:
        if not self.asked:
            tally_of(self.config).without_agent.append(self.nodeid)
            return
        raise self.CollectError(
            f"no agent is known for {self.nodeid}. Name one: --greenroom-agent "
            f'my_agent.py, agent = "my_agent.py" under [tool.greenroom.pytest] in pyproject.toml, '
            f"`agent` in the set's metadata, or an agent.py next to the file."
        )

    @property
    def criteria(self) -> Path | None:
        """The config by which the cases are judged: the project's, or the one next to them."""
        settings = self.config.stash[KEY]
        if settings.config:
            return self.config.rootpath / settings.config
        beside = self.path.with_name(_ADK_CONFIG)
        return beside if beside.is_file() else None


class NotPassed(Exception):
    """A case was rehearsed and did not pass; `doubt` says why if its pass rate stayed unclear."""

    def __init__(self, report: Report, doubt: str = "") -> None:
        super().__init__(str(report))
        self.report = report
        self.doubt = doubt

    @property
    def why(self) -> str:
        """The reason on one line, for the summary at the end."""
        bad = [result for result in redacted(self.report) if result.status != "passed"]
        why = [line.strip() for result in bad[:1] for line in reasons(result)]
        count = f"{len(bad)} of {len(self.report)} trials: " if len(self.report) > 1 else ""
        words = "; ".join(why) or (bad[0].status if bad else "")
        return printable(on_one_line(self.doubt or f"{count}{words}"))


class CaseItem(pytest.Item):
    """One case as a test; its tags are marks."""

    parent: EvalFile

    case: Case
    evalset: EvalSet
    agent: str | None
    line: int

    @classmethod
    def of(cls, file: EvalFile, case: Case, evalset: EvalSet, agent: str | None, line: int) -> Self:
        """The test of a case in a file."""
        # Pytest and its plug-ins print and store names and marks, so these must hold no secrets.
        item: Self = cls.from_parent(file, name=on_one_line(without_secrets(case.id)))  # pyright: ignore[reportUnknownMemberType]
        item.case, item.evalset, item.agent, item.line = case, evalset, agent, line
        item.add_marker("greenroom")
        words = [without_secrets(str(word)) for word in (*case.tags, case.name or case.id)]
        for tag in words[:-1]:
            item._mark(tag)
        item.extra_keyword_matches.update(words)
        return item

    def _mark(self, tag: str) -> None:
        name = re.sub(r"[^\w.+-]", "_", tag).lstrip("_")
        if not name or name in _MEANS_SOMETHING_ELSE:
            return
        known = self.config.stash.setdefault(_TAGS, set())
        if name not in known:
            # A tag is data: it needs no entry in the project's list of marks.
            self.config.addinivalue_line("markers", f"{name}: cases tagged {name}")
            known.add(name)
        self.add_marker(name)

    def runtest(self) -> None:
        """Rehearse the case, as often as asked; every trial has to pass."""
        from greenroom.suite.evaluation import rehearse

        settings = self.config.stash[KEY]
        options: dict[str, Any] = dict(settings.passed_on)
        if settings.is_adaptive:
            options["min_pass_rate"] = settings.min_pass_rate
        if (earlier := baseline_of(self)) is not None:
            options["baseline"] = earlier
        report = rehearse(
            self.agent,
            replace(self.evalset, cases=[self.case]),
            **options,
            config=self.parent.criteria,
            store=place_of_runs(self.config),
        )
        report = replace(report, sources={self.case.id: self._place()})
        shown = redacted(report)
        remember(shown)
        self.user_properties += properties(shown)
        if all(result.status == "skipped" for result in report):
            pytest.skip(printable("; ".join(note for result in report for note in result.notes)))
        self._judge(report)

    def _place(self) -> CasePlace:
        where = os.path.relpath(self.path, self.config.rootpath)
        return CasePlace(self.evalset.id, Path(where).as_posix(), self.line)

    def _judge(self, report: Report) -> None:
        settings = self.config.stash[KEY]
        if settings.is_adaptive:
            from greenroom.results.adaptive import open_minimum

            if doubt := open_minimum(report, settings.min_pass_rate or 0.0):
                raise NotPassed(report, doubt)
        elif not report.passed:
            raise NotPassed(report)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Why it did not pass, what was expected, what was said, and how to run it again."""
        match excinfo.value:
            case NotPassed(report=report) as failed:
                where = os.path.relpath(self.path, self.config.invocation_params.dir)
                again = shlex.join(["pytest", f"{where}::{self.name}"])
                return self._shown(failures_text(report, self.config, again), failed.why)
            case GreenroomError() as error:
                text = printable(f"{type(error).__name__}: {error}")
                return self._shown(text, on_one_line(text))
            case _:
                return _without_secrets(super().repr_failure(excinfo, style))

    def _shown(self, text: str, why: str) -> object:
        """A failure as pytest keeps it, even when sent by a worker; its summary shows why."""
        from _pytest._code.code import (
            ReprEntryNative,
            ReprExceptionInfo,
            ReprFileLocation,
            ReprTraceback,
        )

        where = os.path.relpath(self.path, self.config.invocation_params.dir)
        traceback = ReprTraceback([ReprEntryNative([f"{text}\n"])], None, "native")
        return ReprExceptionInfo(traceback, ReprFileLocation(where, self.line, why))

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the case is defined, and the headline of a failure."""
        return self.path, self.line - 1, f"{self.path.name}: {printable(self.case.title)}"


def baseline_of(item: CaseItem) -> Report | None:
    """What an earlier report says about this case, so that a possible regression runs again; else None."""
    whole = baseline_in(item.config)
    if whole is None:
        return None
    nodeid = without_secrets(item.nodeid)
    known = [replace(r, case_id=item.case.id) for r in whole.results if r.case_id == nodeid]
    return replace(whole, results=known, confirmed=()) if known else None


def _without_secrets(shown: object) -> object:
    """A traceback as pytest shows it, or its bare text if it contains a secret."""
    text = str(shown)
    return shown if (clean := without_secrets(text)) == text else clean


def failures_text(report: Report, config: pytest.Config, again: str = "") -> str:
    """Every result of a report that did not pass, and its notes."""
    whole = config.get_verbosity() > 1
    texts = [
        failure_text(result, again=again, whole=whole)
        for result in report
        if result.status != "passed"
    ]
    return "\n".join([*texts, *(printable(f"note: {note}") for note in report.notes)])


def properties(report: Report) -> list[tuple[str, object]]:
    """What a JUnit file says about a case."""
    report = redacted(report)
    [*results] = report
    found: list[tuple[str, object]] = [("greenroom.case", harmless(results[0].case_id))]
    found.append(("greenroom.status", " ".join(result.status for result in results)))
    for result in results:
        for name, score in result.measured.items():
            found.append((f"greenroom.score.{harmless(name)}", f"{score.value:.4f}"))
    cost = "unknown" if report.cost is None else money(report.cost)
    found.append(("greenroom.cost_usd", cost))
    found.append(("greenroom.models", harmless(", ".join(report.models))))
    return found
