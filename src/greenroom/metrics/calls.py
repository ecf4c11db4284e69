"""Did the agent call a tool, with these arguments, often enough and not too often?"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal, cast, get_args

from greenroom.cases.case import Case
from greenroom.cases.scores import Score
from greenroom.errors import BadMetric
from greenroom.ledger.choices import choice_problem
from greenroom.ledger.events import ToolCalled
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.query import Predicate, check_query, holds
from greenroom.metrics.arguments import args_match
from greenroom.metrics.builtin import BuiltIn, written
from greenroom.metrics.matching import Bounds, bounds, times
from greenroom.metrics.options import checked_texts

Match = Literal["subset", "exact"]


class Called(BuiltIn, frozen=True, kw_only=True):
    """Counts the calls of one tool whose arguments match."""

    counts_calls: ClassVar[bool] = True
    tool: str
    args: Mapping[str, Json] | None
    match: Match
    where: Predicate | None
    bounds: Bounds

    def measure(self, case: Case, ledger: Ledger, world: Any) -> Score:  # noqa: ARG002
        """1 if as many calls match as there should be."""
        made = ledger.index_of().asked
        of_tool = [call for call in made if call.tool == self.tool]
        matching = self._matching(of_tool)
        passed = self.bounds.hold(len(matching))
        return Score(
            float(passed),
            passed,
            name=self.name,
            reason=self._reason(passed, len(matching), of_tool, made),
            evidence=[call_text(call.tool, call.args) for call in matching or of_tool],
            measured=len(matching),
        )

    def _matching(self, calls: list[ToolCalled]) -> list[ToolCalled]:
        if self.args is None and self.where is None:
            return calls
        return [call for call in calls if self._matches(call.args)]

    def _matches(self, args: Mapping[str, Json]) -> bool:
        if self.args is not None and not args_match(self.args, args, self.match):
            return False
        return self.where is None or holds(self.where, plain(args))

    def _reason(
        self, passed: bool, count: int, of_tool: Sequence[ToolCalled], made: Iterable[ToolCalled]
    ) -> str:
        if not of_tool:
            found = f"{self.tool} was never called"
        elif not count:
            found = f"{self.tool} was called, but never{self._condition}"
        else:
            found = f"{self.tool} was called {times(count)}{self._condition}"
        if passed:
            return found
        others = ", ".join(dict.fromkeys(call.tool for call in made)) or "nothing"
        seen = "" if of_tool else f"; the agent called {others}"
        return f"{found}; expected {self.bounds}{seen}"

    @property
    def _condition(self) -> str:
        if self.args is not None:
            return f" with {'exactly ' if self.match == 'exact' else ''}{dict(self.args)!r}"
        return " with arguments that pass the predicate" if self.where is not None else ""


def called(
    tool: str,
    args: Mapping[str, Any] | None = None,
    *,
    match: Match = "subset",
    where: Predicate | None = None,
    at_least: int | None = None,
    at_most: int | None = None,
    never: bool = False,
    name: str | None = None,
) -> Called:
    """The agent called `tool`, at least once unless a bound says otherwise.

    `args` must be among the call's arguments (`match="exact"`: be all of them); operators such as
    `{"order": {"$gt": 5}}` may stand in it. `where` must hold for their dict. `at_most` alone allows no call at all; `never=True` demands that.
    """
    here = f"called({tool!r}, ...)"
    if not isinstance(tool, str) or not tool:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadMetric(f"{here} wants the tool's name as a text.")
    if args is not None and not isinstance(args, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadMetric(f"{here} wants arguments as a dict, but got {args!r}; predicates: where=.")
    if told := choice_problem(match, get_args(Match)):
        raise BadMetric(f"{here}: match={told} For anything else use where=.")
    wanted = None if args is None else cast("dict[str, Json]", plain(args, here))
    for key, value in (wanted or {}).items():
        check_query(value, f"{here}: {key}")
    return Called(
        tool=tool,
        args=wanted,
        match=match,
        where=where,
        bounds=_limits(here, at_least, at_most, never),
        **written(
            "called",
            tool,
            *(() if wanted is None else (wanted,)),
            match="exact" if match == "exact" else None,
            where=where,
            at_least=at_least,
            at_most=at_most,
            never=never or None,
            name=name,
        ),
    )


def _limits(here: str, at_least: int | None, at_most: int | None, never: bool) -> Bounds:
    if not never:
        unbounded = at_least is None and at_most is None
        return bounds(here, 1 if unbounded else at_least, at_most)
    if at_least is not None or at_most is not None:
        raise BadMetric(f"{here} says never=True beside at_least or at_most; give one of them.")
    return Bounds(at_most=0)


class ForbiddenCalls(BuiltIn, frozen=True, kw_only=True):
    """Looks for calls of tools that must not be called."""

    counts_calls: ClassVar[bool] = True
    tools: tuple[str, ...]

    def measure(self, case: Case, ledger: Ledger, world: Any) -> Score:  # noqa: ARG002
        """1 if there are none; `measured` is how many there are."""
        made = ledger.index_of().asked
        found = [call_text(c.tool, c.args) for c in made if self._forbids(c.tool)]
        reason = f"forbidden: {', '.join(found)}" if found else "no forbidden call"
        passed = not found
        return Score(
            float(passed),
            passed,
            name=self.name,
            reason=reason,
            evidence=found,
            measured=len(found),
        )

    def _forbids(self, tool: str) -> bool:
        return any(fnmatchcase(tool, pattern) for pattern in self.tools)


def forbidden_calls(
    *given: str, tools: Sequence[str] = (), name: str | None = None
) -> ForbiddenCalls:
    """The agent called none of these tools, which may be patterns: `delete_*`.

    `forbidden_calls("a", "b")` and `forbidden_calls(tools=["a", "b"])` are the same.
    """
    named = checked_texts(given, "tools", "forbidden_calls")
    forbidden = (*named, *checked_texts(tools, "tools", "forbidden_calls"))
    if not forbidden:
        raise BadMetric(
            "forbidden_calls() forbids nothing; name tools, or patterns like 'delete_*'."
        )
    return ForbiddenCalls(tools=forbidden, **written("forbidden_calls", *forbidden, name=name))


def call_text(tool: str, args: Mapping[str, Json]) -> str:
    """A call as one would type it."""
    given = ""
    for name, value in args.items():
        given = f"{given}, {name}={value!r}" if given else f"{name}={value!r}"
    return f"{tool}({given})"
