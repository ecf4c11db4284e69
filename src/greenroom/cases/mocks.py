"""Mocks: what a case says a tool answers instead of running.

A mock is a constant, a function of the arguments (and of `ctx`, if it asks), answers in succession
(`in_turn`), answers chosen by arguments (`by_args`), a declared `fault`, a `simulated` world for which
a model answers, an object with `execute(args, ctx)`, or a real tool that the case allows by name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import getattr_static
from typing import Any, cast

from msgspec import Struct, field

from greenroom.errors import BadCase
from greenroom.ledger.arguments import args_match
from greenroom.ledger.functions import Anything
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.query import check_query
from greenroom.ledger.simulated import WORLD

NOTHING: Any = object()
"""The mark for a missing answer, since None is an answer too."""


def has_execute(mock: object) -> bool:
    """Whether a mock is an object that answers with its method `execute(args, ctx)`.

    An object that makes up every attribute it is asked for, as `unittest.mock.Mock` does, has not declared one.
    """
    return getattr_static(mock, "execute", None) is not None


class Fault(Exception):
    """A declared failure of a tool; usable as a mock, inside one, or raised by one."""

    def __init__(
        self,
        error: str = "",
        *,
        timeout: float | None = None,
        slow: float | None = None,
        value: Anything = None,
        malformed: str | None = None,
        lost: Anything = NOTHING,
        injected: str | None = None,
    ) -> None:
        super().__init__(error)
        self.error = error
        self.timeout = timeout
        self.slow = slow
        self.value: Any = value
        self.malformed = malformed
        self.lost: Any = lost
        self.injected = injected

    @property
    def given(self) -> dict[str, Any]:
        """What `fault(...)` was given."""
        named = ("error", "timeout", "slow", "value", "malformed", "injected")
        fields = {name: getattr(self, name) for name in named}
        found = {k: v for k, v in fields.items() if v is not None and (k, v) != ("error", "")}
        return found if self.lost is NOTHING else {**found, "lost": self.lost}

    def __repr__(self) -> str:
        return f"fault({', '.join(f'{k}={v!r}' for k, v in self.given.items())})"


def fault(
    error: str = "",
    *,
    timeout: float | None = None,
    slow: float | None = None,
    value: object = None,
    malformed: str | None = None,
    lost: object = NOTHING,
    injected: str | None = None,
) -> Fault:
    """A tool that fails: with an error, a timeout, late (`slow`, then `value`), malformed, or worse.

    `timeout=30` tells the agent that the tool timed out after 30 s, without waiting;
    `slow=2, value=...` really takes two seconds; `malformed='{"cel'` returns that broken string.
    `lost=mock` does what that mock does to the state, and loses its answer; `injected="Ignore your rules."`
    returns `value` with these words in it.
    """
    given = [timeout, slow, malformed, injected, None if lost is NOTHING else True]
    if bool(error) + sum(one is not None for one in given) != 1:
        raise BadCase(
            "fault(...) needs exactly one of: an `error` message, `timeout`, `slow`, `malformed`, `lost`, "
            "`injected`."
        )
    if injected is not None and not (isinstance(injected, str) and injected.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadCase(f"fault(injected={injected!r}) should be a string for the agent to read.")
    for seconds in (timeout, slow):
        if seconds is not None and not (isinstance(seconds, int | float) and seconds >= 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadCase(f"fault(...) got {seconds!r} for `timeout` or `slow`; give seconds.")
    return Fault(
        error,
        timeout=timeout,
        slow=slow,
        value=value,
        malformed=malformed,
        lost=lost,
        injected=injected,
    )


class InTurn(Struct, frozen=True):
    """A mock whose n-th call gets the n-th answer; inside another mock, the n-th that reaches it."""

    answers: Sequence[Any]


def in_turn(*answers: Anything) -> InTurn:
    """Answers in succession; a call after the last answer is an error."""
    if not answers:
        raise BadCase("in_turn() has no answers; give at least one.")
    return InTurn(answers)


class ByArgs(Struct, frozen=True):
    """A mock that answers by arguments: the first pair whose arguments are all among the call's decides."""

    answers: Sequence[tuple[Mapping[str, Any], Any]]
    otherwise: Any = NOTHING

    def place_of(self, args: Mapping[str, Any]) -> int:
        """The number of the pair for these arguments; -1 if there is none."""
        pairs = enumerate(self.answers)
        return next((n for n, (wanted, _) in pairs if args_match(wanted, args, "subset")), -1)

    def answer_at(self, place: int) -> Any:
        """The answer of a pair; NOTHING if there is neither a pair nor an answer for the rest."""
        return self.otherwise if place < 0 else self.answers[place][1]

    @property
    def has_otherwise(self) -> bool:
        """Whether there is an answer for all other arguments."""
        return self.otherwise is not NOTHING


def by_args(
    *answers: tuple[Mapping[str, object], Anything], otherwise: Anything = NOTHING
) -> ByArgs:
    """Answers chosen by arguments: `by_args(({"city": "Oslo"}, 3), otherwise=21)`.

    The arguments of a pair may hold operators, such as `{"city": {"$in": ["Oslo", "Bergen"]}}`, and functions
    that get the actual value and say whether it matches.
    """
    for pair in answers:
        if len(pair) != 2 or not isinstance(pair[0], Mapping):  # pyright: ignore[reportUnnecessaryComparison,reportUnnecessaryIsInstance]
            raise BadCase(f"by_args(...) takes pairs of arguments and an answer, but got {pair!r}.")
        for name, value in pair[0].items():
            check_query(value, f"by_args(...): {name}")
    return ByArgs(answers, otherwise)


class Simulated(Struct, frozen=True):
    """A world in which a model answers for the tools, and keeps what they change."""

    world: str
    model: Any
    state: Mapping[str, Json] = field(default_factory=dict[str, Json])
    name: str = WORLD


def simulated(
    world: str, *, model: Anything, state: Mapping[str, Anything] | None = None, name: str = WORLD
) -> Simulated:
    """Let a model answer for tools without mocks of their own: `simulated("A shop.", model=...)`.

    `world` describes what the tools work on, `state` is its initial state. All tools of a case
    with equal worlds share one memory, which is new in every trial. Different worlds need names.
    """
    for what, text in (("world", world), ("name", name)):
        if not isinstance(text, str) or not text.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadCase(f"simulated(...): `{what}` is {text!r}, but should be a string.")
    if not isinstance(model, str) and not hasattr(model, "respond"):
        raise BadCase(
            f"simulated(...): `model` is {model!r}; give a model, or the name of one such as "
            f"'openai:gpt-5-mini'."
        )
    if state is not None and not isinstance(state, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadCase(f"simulated(...): `state` is {state!r}, but should be a mapping.")
    kept = cast("dict[str, Json]", plain(dict(state or {}), "the state of simulated(...)"))
    return Simulated(world, model, kept, name)


def answers_in(mocks: Iterable[object]) -> Iterator[object]:
    """Whatever answers in these mocks: they themselves, or what is inside them."""
    for mock in mocks:
        match mock:
            case InTurn():
                yield from answers_in(mock.answers)
            case ByArgs():
                yield from answers_in((*(answer for _, answer in mock.answers), mock.otherwise))
            case Fault():
                yield from answers_in([mock.lost])
            case _:
                yield mock


def simulated_in(mocks: Iterable[object]) -> Iterator[Simulated]:
    """Every simulated world in these mocks and inside them."""
    return (answer for answer in answers_in(mocks) if isinstance(answer, Simulated))


class Live(Struct, frozen=True):
    """A real tool that may run, and reach these hosts."""

    tool: Any
    hosts: Sequence[str] = ()


def live(tool: object, *, hosts: Sequence[str] = ()) -> Live:
    """Let a real tool run in a rehearsal, with the fence open to `hosts` while it does."""
    if isinstance(hosts, str):
        raise BadCase(f"live(..., hosts={hosts!r}) needs a list of hosts: [{hosts!r}].")
    return Live(tool, tuple(hosts))
