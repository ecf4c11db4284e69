"""Expected calls held against the calls that were made."""

from collections.abc import Callable, Mapping, Sequence

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
    return want.tool == made.tool and _same_args(want.args, made.args)


def _same_args(wanted: Mapping[str, Json], args: Mapping[str, Json]) -> bool:
    for name, value in wanted.items():
        if type(name) is not str or type(value) is not str:
            # A ledger holds JSON, so what the author wrote is compared as JSON too.
            return args_match(plain(wanted), args, "exact")
    # Texts are JSON already, and equal in Python when they are equal in JSON.
    return args == wanted


def _same_tool(want: Wanted, made: ToolCalled) -> bool:
    return (want if isinstance(want, str) else want.tool) == made.tool
