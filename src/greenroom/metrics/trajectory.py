"""Did the agent make the calls the case expects?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, get_args

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score
from greenroom.ledger.arguments import ArgsMatch, args_match
from greenroom.ledger.events import ModelReplied, ToolCalled
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import ToolCall, call_text
from greenroom.ledger.plain import Json
from greenroom.ledger.query import plain_query
from greenroom.metrics.arguments import (
    ArgsRule,
    Arguments,
    WantedValue,
    arguments,
)
from greenroom.metrics.builtin import (
    BuiltIn,
    checked_choice,
    checked_threshold,
    shown_value,
    written,
)
from greenroom.metrics.comparison import MatchType, Sides, checked_match
from greenroom.metrics.facts import expected_calls
from greenroom.metrics.needs import CALL_NAMES, MODELS, Needs, call_needs
from greenroom.metrics.turns import (
    MeasuredTurn,
    ScriptedTurn,
    mean_score,
    never_reached,
    scripted_turns,
)
from greenroom.world.world import World

Scope = Literal["turn", "all"]


class TrajectoryMatch(BuiltIn, frozen=True, kw_only=True):
    """Compares the calls of each turn, or of the whole trial, with the expected ones."""

    covers: ClassVar[tuple[str, ...]] = ("tools",)
    match: MatchType
    arguments: Arguments
    scope: Scope
    threshold: float

    def needs_for(self, case: Case) -> Needs:
        """Arguments only if some are compared; which calls one reply asked for, only if STRICT."""
        found = CALL_NAMES if self.arguments.ignores_all else call_needs(case)
        return found | MODELS if self.match is MatchType.STRICT else found

    def tools_named(self) -> dict[str, list[str]]:
        """The tools with rules of their own."""
        return self.arguments.named()

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """The mean over the turns that expect calls, or the share over the whole trial."""
        wanted = expected_calls(case)
        if isinstance(wanted, NotApplicable):
            return wanted
        groups = _replies(ledger) if self.match is MatchType.STRICT else {}
        if self.scope == "all":
            found = self._compared(wanted, ledger.index_of().asked, groups)
            return Score(
                found.value,
                threshold=self.threshold,
                name=self.name,
                reason=found.reason,
                evidence=found.lines,
                details=self._details([{"value": found.value, **found.details}]),
            )
        turns = [turn for turn in scripted_turns(case, ledger) if turn.expect.tools is not None]
        measured = [self._turn(turn, groups) for turn in turns]
        lines = [line for turn in measured for line in turn.evidence.splitlines()]
        score = mean_score(measured, self.name, self.threshold)
        return replace(score, evidence=lines, details=self._details(score.details))

    def _turn(self, turn: ScriptedTurn, groups: Mapping[int, int]) -> MeasuredTurn:
        if not turn.reached:
            return never_reached(turn)
        found = self._compared(turn.expect.tools or (), turn.calls, groups)
        lines = [f"turn {turn.number}: {line}" for line in found.lines]
        return MeasuredTurn(turn.number, found.value, found.reason, "\n".join(lines), found.details)

    def _compared(
        self, wanted: Sequence[WantedValue], made: Sequence[ToolCalled], groups: Mapping[int, int]
    ) -> "_Compared":
        together = [groups.get(call.seq, -1 - n) for n, call in enumerate(made)]
        sides = sides_of(wanted, made, self.arguments, together if groups else ())
        value, difference = sides.share(self.match), sides.difference()
        return _Compared(
            value,
            "as expected" if value == 1 else "; ".join(difference.problems(self.match)),
            difference.lines() or ["no calls"],
            {
                "expected": [_wanted_data(want) for want in wanted],
                "actual": [{"tool": call.tool, "args": {**call.args}} for call in made],
                **difference.details,
            },
        )

    def _details(self, parts: Json) -> dict[str, Json]:
        return {"match_type": self.match.name, "scope": self.scope, "compared": parts}


class _Compared(Struct, frozen=True):
    """The result of one comparison."""

    value: float
    reason: str
    lines: list[str]
    details: dict[str, Json]


def tool_trajectory_avg_score(
    match_type: MatchType | str = "EXACT",
    *,
    args: ArgsMatch = "exact",
    tool_args: Mapping[str, ArgsRule | Sequence[str]] | None = None,
    ignore_args: Sequence[str] | Mapping[str, Sequence[str]] = (),
    tolerance: float = 0.0,
    scope: Scope = "turn",
    threshold: float = 1.0,
    name: str = "tool_trajectory_avg_score",
) -> TrajectoryMatch:
    """The calls of each turn match its `Expect(tools=[...])`; the value is the mean share.

    `match_type` is one of EXACT, STRICT, ADK, IN_ORDER, ANY_ORDER, UNORDERED, SUPERSET, SUBSET.
    `args` says how arguments are compared: "exact"; "subset", where the call may have others besides
    the expected ones; "superset", where it may leave some of them out; "ignore". `tool_args` says it
    for one tool, or lists the only arguments that count, or is a predicate of the call's arguments
    (and, if it takes two, of the expected ones). `ignore_args` are left out, for all tools or by
    tool. Numbers may differ by `tolerance`. `scope="all"` compares the whole trial at once.
    """
    return _trajectory(
        "tool_trajectory_avg_score",
        match_type,
        arguments("tool_trajectory_avg_score", args, tool_args, ignore_args, tolerance),
        scope,
        threshold,
        {
            "args": None if args == "exact" else args,
            "tool_args": tool_args or None,
            "ignore_args": ignore_args or None,
            "tolerance": tolerance or None,
        },
        name,
    )


def tool_name_match(
    match_type: MatchType | str = "EXACT",
    *,
    scope: Scope = "turn",
    threshold: float = 1.0,
    name: str = "tool_name_match",
) -> TrajectoryMatch:
    """The tools called in each turn match its `Expect(tools=[...])`, ignoring arguments."""
    by_name = arguments("tool_name_match", "ignore", None, (), 0.0)
    return _trajectory("tool_name_match", match_type, by_name, scope, threshold, {}, name)


def _trajectory(
    factory: str,
    given: MatchType | str,
    compare: Arguments,
    scope: Scope,
    threshold: float,
    options: Mapping[str, object],
    name: str,
) -> TrajectoryMatch:
    match = checked_match(given, factory)
    checked_choice(scope, get_args(Scope), "scope", factory)
    checked_threshold(threshold, f"{factory}(...)")
    return TrajectoryMatch(
        match=match,
        arguments=compare,
        scope=scope,
        threshold=threshold,
        **written(
            factory,
            match.name,
            **options,
            scope=None if scope == "turn" else scope,
            threshold=None if threshold == 1 else threshold,
            name=name,
        ),
    )


_EXACTLY = arguments("expected_tools", "exact", None, (), 0.0)


def sides_of(
    wanted: Sequence[WantedValue],
    made: Sequence[ToolCalled],
    compare: Arguments = _EXACTLY,
    groups: Sequence[int] = (),
) -> Sides[WantedValue, ToolCalled]:
    """The expected and the made calls, ready to be compared."""
    return Sides(wanted, made, compare.fit, _same_tool, wanted_text, _made_text, groups)


def difference_of(wanted: Sequence[WantedValue], made: Sequence[ToolCalled]) -> dict[str, Json]:
    """What is missing, extra, misplaced or called with wrong arguments."""
    if len(wanted) != 1 or len(made) != 1:
        return sides_of(wanted, made).difference().details
    # The usual case, one call instead of another, needs no pairing.
    want, have = wanted_text(wanted[0]), _made_text(made[0])
    if _same_tool(wanted[0], made[0]):
        wrong = f"{have} instead of {want}"
        return {"missing": [], "extra": [], "misplaced": [], "wrong_arguments": [wrong]}
    return {"missing": [want], "extra": [have], "misplaced": [], "wrong_arguments": []}


def share_in_place(wanted: Sequence[WantedValue], made: Sequence[ToolCalled]) -> float:
    """The share of positions that match; 0 if there are more or fewer calls than expected."""
    count = len(wanted)
    if count != len(made):
        return 0.0
    fitting = 0
    for place, want in enumerate(wanted):
        have = made[place]
        if isinstance(want, ToolCall):
            fitting += want.tool == have.tool and args_match(want.args, have.args)
        else:
            fitting += want == have.tool
    return fitting / count if count else 1.0


def wanted_text(want: WantedValue) -> str:
    """An expected call as it would be typed."""
    if isinstance(want, str):
        return want
    return f"{want.tool}({', '.join([f'{k}={shown_value(v)}' for k, v in want.args.items()])})"


def _made_text(made: ToolCalled) -> str:
    return call_text(made.tool, made.args)


def _same_tool(want: WantedValue, made: ToolCalled) -> bool:
    return (want if isinstance(want, str) else want.tool) == made.tool


def _wanted_data(want: WantedValue) -> Json:
    return want if isinstance(want, str) else {"tool": want.tool, "args": plain_query(want.args)}


def _replies(ledger: Ledger) -> dict[int, int]:
    """The position of each call in the ledger, and that of the model reply that asked for it."""
    wanted: dict[tuple[str, str], list[int]] = {}
    for reply in ledger.of(ModelReplied):
        for call in reply.calls:
            wanted.setdefault((call.id, call.tool), []).append(reply.seq)
    found: dict[int, int] = {}
    for call in ledger.index_of().asked:
        # Replies may share an id: the last one before the call asked for it.
        asked = [seq for seq in wanted.get((call.call_id, call.tool), ()) if seq < call.seq]
        if call.call_id and asked:
            found[call.seq] = asked[-1]
    return found
