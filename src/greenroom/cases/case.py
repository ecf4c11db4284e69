"""What is asked of an agent: cases, their turns, what is expected, and when to stop."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, field
from math import inf
from operator import attrgetter
from typing import Any

from greenroom.cases.parts import MetricLike
from greenroom.errors import BadCase
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json
from greenroom.ledger.query import check_query
from greenroom.ledger.records import EMPTY, fill, record

MAX_TURNS = 20
MAX_SECONDS = 300.0


_NOTHING = type(None)
# Whether these fit is a matter of their type alone.
_USUAL = frozenset((str, int, float, bool, tuple, list, dict, _NOTHING))


class _Shapes:
    """What the fields of a part should be, so that a wrong one is refused before it fails far away.

    Abstract classes are slow to ask, so combinations of usual types are asked about once. Parts made
    of the commonest types alone look at those themselves, and do not come here at all.
    """

    def __init__(self, fields: Mapping[str, tuple[tuple[type, ...], str]]) -> None:
        self.fields = fields
        self._values: Callable[[object], tuple[object, ...]] = attrgetter(*fields)
        self._known: set[tuple[type, ...]] = set()

    def check(self, part: object) -> None:
        """Refuse a part with a value of the wrong type."""
        types = tuple(map(type, self._values(part)))
        if types not in self._known:
            self._ask(part)
            if all(kind in _USUAL or kind in (Expect, Stop) for kind in types):
                self._known.add(types)

    def _ask(self, part: object) -> None:
        for name, (kinds, words) in self.fields.items():
            value = getattr(part, name)
            if not isinstance(value, kinds) or (isinstance(value, str) and str not in kinds):
                where = f"case {part.id!r}" if isinstance(part, Case) else _call_of(part)
                raise BadCase(f"{where}: `{name}` is {value!r}, but should be {words}.")


def _call_of(part: object) -> str:
    return f"{type(part).__name__}(...)"


def _check_scopes(query: Mapping[str, Any], where: str) -> None:
    for scope, part in query.items():
        if not isinstance(part, Mapping):
            raise BadCase(
                f'{where} says {scope!r}: {part!r}; group by scope: {{"session": {{"key": ...}}}}.'
            )
    check_query(query, where)


def _refuse_no_query(query: Mapping[str, Mapping[str, Any]], where: str) -> None:
    """What every state matches asks for nothing."""
    if not query or not all(query.values()):
        raise BadCase(
            f"{where} is {dict(query)!r}, which asks for nothing; say what a key should hold, or "
            f"leave it out."
        )


def _says_something(given: str | Sequence[str]) -> bool:
    if isinstance(given, str):
        return bool(given.strip())
    return bool(given) and all(text.strip() for text in given)


_LEAVES = frozenset((str, int, float, bool, _NOTHING))
_NONE: tuple[Any, ...] = ()
# The commonest types of what may be left out.
_A_TEXT = frozenset((str, _NOTHING))
_A_LIST = frozenset((list, tuple, _NOTHING))
_A_MAPPING = frozenset((dict, _NOTHING))
_QUERY = ((Mapping, _NOTHING), 'a query by scope: {"session": {"key": ...}}')
_EXTRA = ((Mapping, _NOTHING), "a mapping")
_EXPECT = _Shapes(
    {
        "tools": ((Sequence, _NOTHING), "a list: ['refund'] or [call('refund', order=7)]"),
        "response": ((str, _NOTHING), "a text"),
        "contains": ((str, Sequence, _NOTHING), "a text or a list of texts"),
        "state": _QUERY,
        "reference": ((str, _NOTHING), "a text"),
        "intermediate": ((Sequence, _NOTHING), "a list of texts"),
        "extra": _EXTRA,
    }
)


@record(kw_only=True)
class Expect:
    """What one turn should bring. None says nothing; `tools=[]` says that no tool may be called.

    `tools` holds calls in order: `call("refund", order=7)`, or a bare name when any arguments will
    do; an argument may be a query such as `{"$gt": 5}`. `response` is the whole text, word for
    word; `reference` one that a good response resembles; `contains` one text or several that it
    holds; `intermediate` what the agent says on the way to it. `state` is a query by scope. `extra`
    keeps what a file said beyond that.
    """

    tools: Sequence[ToolCall | str] | None = None
    response: str | None = None
    contains: str | Sequence[str] | None = None
    state: Mapping[str, Mapping[str, Any]] | None = None
    reference: str | None = None
    intermediate: Sequence[str] | None = None
    extra: Mapping[str, Json] | None = None

    def __post_init__(self) -> None:
        is_usual = (
            type(self.tools) in _A_LIST
            and type(self.response) in _A_TEXT
            and type(self.contains) in _A_TEXT
            and type(self.state) in _A_MAPPING
            and type(self.reference) in _A_TEXT
            and self.intermediate is None
            and type(self.extra) in _A_MAPPING
        )
        if not is_usual:
            _EXPECT.check(self)
        for wanted in self.tools or ():
            if type(wanted) is ToolCall or isinstance(wanted, ToolCall):
                for name, value in wanted.args.items():
                    if type(value) not in _LEAVES:
                        check_query(value, f"Expect(tools=[...]): {name} of {wanted.tool!r}")
            elif not isinstance(wanted, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadCase(
                    f"an expected tool call is {wanted!r}; use call('name', arg=...) or 'name'."
                )
        if not is_usual:
            self._check_texts()
        if self.state is not None:
            _check_scopes(self.state, "Expect(state=...)")
            _refuse_no_query(self.state, "Expect(state=...)")
        self._refuse_nothing()

    def _refuse_nothing(self) -> None:
        """An expectation that every answer meets is a mistake: nothing would be measured."""
        for name in ("response", "reference", "contains", "intermediate"):
            given = getattr(self, name)
            if given is not None and not _says_something(given):
                raise BadCase(
                    f"Expect({name}={given!r}) asks for nothing; write the text, or leave it out."
                )

    def _check_texts(self) -> None:
        for text in () if isinstance(self.contains, str) else self.contains or ():
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadCase(f"Expect(contains=...) holds {text!r}; write it as a text.")
        for text in self.intermediate or ():
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadCase(f"Expect(intermediate=...) holds {text!r}; write it as a text.")


_TURN = _Shapes(
    {
        "says": ((str,), "a text"),
        "expect": ((Expect, _NOTHING), "an Expect(...)"),
        "extra": _EXTRA,
    }
)


@record
class Turn:
    """One thing the user says, and what should come of it."""

    says: str
    expect: Expect | None = None
    extra: Mapping[str, Json] | None = None
    """What a file said of this turn beyond that."""

    def __post_init__(self) -> None:
        is_usual = (
            type(self.says) is str
            and (self.expect is None or type(self.expect) is Expect)
            and self.extra is None
        )
        if not is_usual:
            _TURN.check(self)


_STOP = _Shapes(
    {
        "max_turns": ((int,), "a whole number"),
        "max_seconds": ((int, float), "a number"),
        "state_matches": _QUERY,
    }
)


@record(kw_only=True)
class Stop:
    """When a conversation ends: at a limit (never passed), or at a goal (judged by the metrics)."""

    max_turns: int = MAX_TURNS
    max_seconds: float = MAX_SECONDS
    state_matches: Mapping[str, Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        _STOP.check(self)
        if self.max_turns < 1 or not 0 < self.max_seconds < inf:
            raise BadCase(
                f"Stop(max_turns={self.max_turns!r}, max_seconds={self.max_seconds!r}) would end a "
                f"run before it begins, or never; both must be positive and finite."
            )
        if self.state_matches is not None:
            _check_scopes(self.state_matches, "Stop(state_matches=...)")
            if not self.state_matches or not all(self.state_matches.values()):
                raise BadCase(
                    f"Stop(state_matches={dict(self.state_matches)!r}) would match at once; say "
                    f"what to wait for."
                )


USUAL_STOP = Stop()
_CASE = _Shapes(
    {
        **_TURN.fields,
        "turns": ((Sequence,), "a list"),
        "mocks": ((Mapping,), "a mapping"),
        "allow_tools": ((Sequence,), "a list"),
        "state": ((Mapping,), "a mapping"),
        "stop": ((Stop,), "a Stop(...)"),
        "metrics": ((Sequence,), "a list"),
        "name": ((str,), "a text"),
        "description": ((str,), "a text"),
        "tags": ((Sequence,), "a list"),
        "metadata": ((Mapping,), "a mapping"),
        "now": ((int, float, _NOTHING), "a number of seconds"),
        "target": ((str,), "the name of a node"),
        "implied": ((bool,), "true or false"),
    }
)


@record
class Case:
    """A scene to be played: what the user says, what tools answer, how it is judged.

    Give `says` (with `expect`) or `turns`; without either the agent speaks first. `user` goes on
    when the script is used up. `agent` overrides the agent of the evaluation for this case, and
    `target` plays one node of it alone. What it expects is measured without being asked for, unless
    `implied=False` leaves that to its metrics. `extra` keeps what a file said beyond all this.
    """

    id: str
    says: str = ""
    _: KW_ONLY
    expect: Expect | None = None
    turns: Sequence[Turn] = ()
    mocks: Mapping[str, Any] = field(default_factory=EMPTY)
    allow_tools: Sequence[Any] = ()
    state: Mapping[str, Mapping[str, Json]] = field(default_factory=EMPTY)
    stop: Stop = USUAL_STOP
    metrics: Sequence[MetricLike] = ()
    name: str = ""
    description: str = ""
    now: float | None = None
    user: Any = None
    bridge: Any = None
    agent: Any = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Json] = field(default_factory=EMPTY)
    target: str = ""
    implied: bool = field(default=True, compare=False)
    extra: Mapping[str, Json] | None = None
    script: tuple[Turn, ...] = field(init=False, repr=False, compare=False)
    """The scripted turns, the first message included."""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadCase(f"a case has the id {self.id!r}; give it a name of its own.")
        if not self._is_usual:
            _CASE.check(self)
        if self.turns:
            self._check_turns()
        for scope, content in self.state.items():
            if not isinstance(content, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadCase(
                    f"case {self.id!r}: `state` has {scope!r}: {content!r}; group by scope: "
                    f'state={{"session": {{"key": value}}}}.'
                )
        script = self._script()
        # What was made of a case comes along when it is unpickled; nobody else may bring one.
        if self.script is not None and self.script != script:  # pyright: ignore[reportUnnecessaryComparison]
            raise BadCase(f"case {self.id!r} was given a `script`; give it `says` or `turns`.")
        fill(self, "script", script)

    @property
    def _is_usual(self) -> bool:
        """Whether every field is of its commonest type, or was left out."""
        return (
            type(self.says) is str
            and (type(self.expect) is Expect or self.expect is None)
            and self.extra is None
            and (self.turns is _NONE or type(self.turns) is list)
            and type(self.mocks) is dict
            and self.allow_tools is _NONE
            and type(self.state) is dict
            and type(self.stop) is Stop
            and (self.metrics is _NONE or type(self.metrics) is list)
            and type(self.name) is str
            and type(self.description) is str
            and (self.tags is _NONE or type(self.tags) is list)
            and type(self.metadata) is dict
            and self.now is None
            and type(self.target) is str
            and type(self.implied) is bool
        )

    def _check_turns(self) -> None:
        for turn in self.turns:
            if not isinstance(turn, Turn):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadCase(f"case {self.id!r}: `turns` holds {turn!r}; write Turn({turn!r}).")
        if self.says or self.expect:
            raise BadCase(
                f"case {self.id!r} has both `turns` and `says`/`expect`; put them into the turns."
            )
        if any(not turn.says for turn in self.turns[1:]):
            raise BadCase(
                f"case {self.id!r} has a turn in which the user says nothing; only the first may be "
                f"blank, which lets the agent speak first."
            )

    def _script(self) -> tuple[Turn, ...]:
        if self.turns:
            return tuple(self.turns)
        return (Turn(self.says, self.expect),) if self.says or self.expect else ()

    @property
    def title(self) -> str:
        """What to show a reader."""
        return self.name or self.id
