"""Expected calls held against the calls that were made."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from greenroom.ledger.events import ToolCalled
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.records import record
from greenroom.metrics.calls import args_match, call_text

Wanted = ToolCall | str
"""A call with exactly these arguments, or a tool's name when any arguments will do."""


def share_in_place(wanted: Sequence[Wanted], made: Sequence[ToolCalled]) -> float:
    """The share of positions that match; 0 if there are more or fewer calls than expected."""
    if len(wanted) != len(made):
        return 0.0
    return sum(map(_fits, wanted, made)) / len(wanted) if wanted else 1.0


@record
class Compared:
    """Expected and made calls, taken apart."""

    missing: list[str]
    extra: list[str]
    wrong_arguments: list[str]

    @property
    def details(self) -> dict[str, Json]:
        """All three kinds, as JSON."""
        return {
            "missing": self.missing,
            "extra": self.extra,
            "wrong_arguments": self.wrong_arguments,
        }

    @property
    def problems(self) -> list[str]:
        """What is wrong, kind by kind; nothing if only the order differs."""
        kinds = {
            "missing": self.missing,
            "extra": self.extra,
            "wrong arguments": self.wrong_arguments,
        }
        return [f"{kind} {', '.join(calls)}" for kind, calls in kinds.items() if calls]


def compared(wanted: Sequence[Wanted], made: Sequence[ToolCalled]) -> Compared:
    """Which expected calls are missing, which are extra, and which differ in their arguments."""
    left = list(made)
    unmet = [want for want in wanted if _take(left, want, _fits) is None]
    missing: list[str] = []
    wrong: list[str] = []
    for want in unmet:
        other = _take(left, want, _same_tool)
        if other is None:
            missing.append(wanted_text(want))
        else:
            wrong.append(f"{call_text(other.tool, other.args)} instead of {wanted_text(want)}")
    return Compared(missing, [call_text(call.tool, call.args) for call in left], wrong)


def wanted_text(want: Wanted) -> str:
    """An expected call as one would type it."""
    return want if isinstance(want, str) else call_text(want.tool, want.args)


def _take(
    left: list[ToolCalled], want: Wanted, fits: Callable[[Wanted, ToolCalled], bool]
) -> ToolCalled | None:
    """The first call left that fits, taken out."""
    for index, call in enumerate(left):
        if fits(want, call):
            return left.pop(index)
    return None


def _fits(want: Wanted, made: ToolCalled) -> bool:
    if isinstance(want, str):
        return want == made.tool
    if want.tool != made.tool:
        return False
    # A ledger holds JSON, so what the author wrote is compared as JSON too.
    return _simply_equal(want.args, made.args) or args_match(plain(want.args), made.args, "exact")


_SIMPLE = frozenset((int, bool, type(None)))


def _simply_equal(wanted: Mapping[str, Json], args: Mapping[str, Json]) -> bool:
    """Whether these are equal at a glance: simple values that need no copy to be compared."""
    if wanted != args:
        return False
    for name, value in wanted.items():
        kind: type[Any] = type(value)
        # Equal values of one type: True is not 1 here either. Only a text equals a text.
        if kind is not str and (kind not in _SIMPLE or kind is not type(args[name])):
            return False
    return True


def _same_tool(want: Wanted, made: ToolCalled) -> bool:
    return (want if isinstance(want, str) else want.tool) == made.tool
