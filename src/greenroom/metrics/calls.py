"""Did the agent call a tool, with these arguments, often enough and not too often?"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import ClassVar, Literal, cast, get_args

from greenroom.cases.case import Case
from greenroom.cases.scores import Score
from greenroom.errors import BadMetric
from greenroom.ledger.arguments import args_match
from greenroom.ledger.choices import choice_problem
from greenroom.ledger.events import ToolCalled
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import call_text
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.query import Predicate, check_query, holds
from greenroom.metrics.builtin import (
    BuiltIn,
    checked_predicate,
    checked_switch,
    checked_texts,
    written,
)
from greenroom.metrics.counts import Bounds, bounds, times
from greenroom.metrics.needs import CALL_ARGS, CALL_NAMES, Needs
from greenroom.world.world import World

Match = Literal["subset", "exact"]


class Called(BuiltIn, frozen=True, kw_only=True):
    """Counts the calls of one tool whose arguments match."""

    tool: str
    args: Mapping[str, Json] | None
    match: Match
    where: Predicate | None
    bounds: Bounds

    @property
    def needs(self) -> Needs:
        """Arguments only if some are compared."""
        return CALL_NAMES if self.args is None and self.where is None else CALL_ARGS

    def needs_guard(self, case: Case) -> bool:
        """Whether it does more than count: a query may be slow, and a predicate is user code."""
        return self.args is not None or self.where is not None

    def tools_named(self) -> dict[str, list[str]]:
        """Its tool."""
        return {self.tool: [*(self.args or ())]}

    def measure(self, case: Case, ledger: Ledger, world: World) -> Score:
        """1 if the number of matching calls is within the bounds."""
        made = ledger.index_of().asked
        of_tool = [call for call in made if call.tool == self.tool]
        matching = [call for call in of_tool if self._matches(call.args)]
        passed = self.bounds.hold(len(matching))
        return Score(
            float(passed),
            passed,
            name=self.name,
            reason=self._reason(passed, len(matching), of_tool, made),
            evidence=[call_text(call.tool, call.args) for call in matching or of_tool],
            measured=len(matching),
        )

    def _matches(self, args: Mapping[str, Json]) -> bool:
        if self.args is not None and not args_match(self.args, args, self.match):
            return False
        return self.where is None or holds(self.where, plain(args))

    def _reason(
        self, passed: bool, count: int, of_tool: Sequence[ToolCalled], made: Iterable[ToolCalled]
    ) -> str:
        condition = ""
        if self.args is not None:
            condition = f" with {'exactly ' if self.match == 'exact' else ''}{dict(self.args)!r}"
        elif self.where is not None:
            condition = " with arguments that pass the predicate"
        if not of_tool:
            found = f"{self.tool} was never called"
        elif not count:
            found = f"{self.tool} was called, but never{condition}"
        else:
            found = f"{self.tool} was called {times(count)}{condition}"
        if passed:
            return found
        others = ", ".join(dict.fromkeys(call.tool for call in made)) or "nothing"
        seen = "" if of_tool else f"; the agent called {others}"
        return f"{found}; expected {self.bounds}{seen}"


def called(
    tool: str,
    args: Mapping[str, object] | None = None,
    *,
    match: Match = "subset",
    where: Predicate | None = None,
    at_least: int | None = None,
    at_most: int | None = None,
    never: bool = False,
    name: str | None = None,
) -> Called:
    """The agent called `tool`, at least once unless a bound says otherwise.

    `args` must be among the call's arguments (`match="exact"`: be all of them); it may hold operators
    such as `{"order": {"$gt": 5}}`. `where` is called with the dict of arguments. `at_most` alone
    also allows no call at all; `never=True` demands that.
    """
    here = f"called({tool!r}, ...)"
    if not isinstance(tool, str) or not tool:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadMetric(f"{here} needs the tool's name as a string.")
    if problem := choice_problem(match, get_args(Match)):
        raise BadMetric(f"{here}: match={problem} For anything else use where=.")
    checked_predicate(where, "where", "called")
    checked_switch(never, "never", "called")
    wanted = _checked_args(args, here)
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


def _checked_args(args: object, here: str) -> dict[str, Json] | None:
    if args is None:
        return None
    if not isinstance(args, Mapping):
        raise BadMetric(f"{here} needs arguments as a dict, but got {args!r}; predicates: where=.")
    wanted = cast("dict[str, Json]", plain(cast("Mapping[str, Json]", args), here))
    for key, value in wanted.items():
        check_query(value, f"{here}: {key}")
    return wanted


def _limits(here: str, at_least: int | None, at_most: int | None, never: bool) -> Bounds:
    if not never:
        unbounded = at_least is None and at_most is None
        return bounds(here, 1 if unbounded else at_least, at_most)
    if at_least is not None or at_most is not None:
        raise BadMetric(
            f"{here} has never=True together with at_least or at_most; give one of them."
        )
    return Bounds(at_most=0)


class ForbiddenCalls(BuiltIn, frozen=True, kw_only=True):
    """Looks for calls of tools that must not be called."""

    needs: ClassVar[Needs] = CALL_NAMES
    tools: tuple[str, ...]

    def tools_named(self) -> dict[str, list[str]]:
        """The tools that are not patterns."""
        return {name: [] for name in self.tools if not _is_pattern(name)}

    def idle_patterns(self, offered: Collection[str]) -> list[str]:
        """The patterns that fit none of the offered tools."""
        return [
            pattern
            for pattern in filter(_is_pattern, self.tools)
            if not any(fnmatchcase(tool, pattern) for tool in offered)
        ]

    def measure(self, case: Case, ledger: Ledger, world: World) -> Score:
        """1 if there are none; `measured` is how many there are."""
        made = ledger.index_of().asked
        found = [
            call_text(call.tool, call.args)
            for call in made
            if any(fnmatchcase(call.tool, pattern) for pattern in self.tools)
        ]
        return Score(
            float(not found),
            not found,
            name=self.name,
            reason=f"forbidden: {', '.join(found)}" if found else "no forbidden call",
            evidence=found,
            measured=len(found),
        )


def _is_pattern(name: str) -> bool:
    return not {*"*?["}.isdisjoint(name)


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
