"""What is asked of an agent: cases, their turns, what is expected, and when to stop."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, cast

from greenroom.cases.field_types import BY_SCOPE, FieldTypes, checked_scopes
from greenroom.cases.parts import MetricLike
from greenroom.errors import BadCase
from greenroom.ledger.attachments import Attachment, message_value
from greenroom.ledger.functions import Anything
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.places import by_scope
from greenroom.ledger.plain import JSON_TYPES, Json, without_addresses
from greenroom.ledger.query import check_query

if TYPE_CHECKING:
    from greenroom.ledger.ledger import Ledger

MAX_TURNS = 20
MAX_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What is expected of one turn. None expects nothing; `tools=[]` expects that no tool is called.

    `tools` holds calls in order: `call("refund", order=7)`, or a bare name if any arguments will do; an
    argument may be a query such as `{"$gt": 5}`. `response` is the whole response, word for word;
    `reference` is one that a good response resembles; `contains` is one string, or several, that it
    contains; `intermediate` is what the agent says before it. `state` is a query by scope, with schema
    fields as keys if you like; `state_after` has such queries for the state when a node, by its name,
    had ended. `stopped_by` is "guardrail", or the name of one: the agent should be stopped, and give
    no answer. `extra` keeps anything else that a file said.
    """

    tools: Sequence[ToolCall | str] | None = None
    response: str | None = None
    contains: str | Sequence[str] | None = None
    state: Mapping[Any, Any] | None = None
    state_after: Mapping[str, Mapping[Any, Any]] | None = None
    reference: str | None = None
    intermediate: Sequence[str] | None = None
    stopped_by: str | None = None
    extra: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _EXPECT.check(self, "Expect(...)")
        for wanted in self.tools or ():
            if isinstance(wanted, ToolCall):
                for name, value in wanted.args.items():
                    check_query(value, f"Expect(tools=[...]): {name} of {wanted.tool!r}")
            elif not isinstance(wanted, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadCase(
                    f"an expected tool call is {wanted!r}; use call('name', arg=...) or 'name'."
                )
        for name in ("response", "reference", "contains", "intermediate", "stopped_by"):
            given: str | Sequence[str] | None = getattr(self, name)
            if given is None:
                continue
            texts = [given] if isinstance(given, str) else given
            for text in texts:
                if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                    raise BadCase(f"Expect({name}=...) holds {text!r}; write it as a string.")
            # An expectation that every answer meets is a mistake: nothing would be measured.
            if not texts or not all(map(str.strip, texts)):
                raise BadCase(
                    f"Expect({name}={given!r}) checks nothing; write a string, or leave it out."
                )
        if self.state is not None:
            where = "Expect(state=...)"
            nothing = f"{where} is {dict(self.state)!r}, which checks nothing; say what a key "
            found = checked_scopes(self.state, where, f"{nothing}should hold, or leave it out.")
            object.__setattr__(self, "state", found)
        if self.state_after is not None:
            object.__setattr__(self, "state_after", _checked_by_node(self.state_after))


def _checked_by_node(given: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The state that is expected after each node, its queries checked."""
    found: dict[str, Mapping[str, Any]] = {}
    for node, query in given.items():
        where = f"Expect(state_after={{{node!r}: ...}})"
        if not isinstance(node, str) or not node.strip() or not isinstance(query, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadCase(
                f"{where} is {query!r}; give a query by scope for each node, by its name: "
                f'{{"clerk": {{"session": {{"key": ...}}}}}}.'
            )
        asked = cast("Mapping[Any, Any]", query)
        nothing = f"{where} checks nothing; say what a key should hold, or leave it out."
        found[node] = checked_scopes(asked, where, nothing)
    if not found:
        raise BadCase("Expect(state_after={}) checks nothing; name a node, or leave it out.")
    return found


EXPECTATIONS = tuple(one.name for one in fields(Expect) if one.name != "extra")
"""The fields of `Expect` that each say something expected."""
_EXPECT = FieldTypes(
    Expect,
    tools="a list: ['refund'] or [call('refund', order=7)]",
    contains="a string or a list of strings",
    state=BY_SCOPE,
    state_after='queries by scope, by node: {"clerk": {"session": {"key": ...}}}',
    intermediate="a list of strings",
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the user, and what is expected of the agent's turn."""

    says: str
    expect: Expect | None = None
    extra: Mapping[str, Any] | None = None
    """Anything else that a file said about this turn."""
    attachments: Sequence[Attachment] = ()
    """The attachments of the message: `attach("cup.png")`."""

    def __post_init__(self) -> None:
        _TURN.check(self, "Turn(...)")
        _check_attachments(self.attachments, "Turn(...)")

    @property
    def is_blank(self) -> bool:
        """Whether the user says and sends nothing, which lets the agent speak first."""
        return not self.says and not self.attachments

    @property
    def message(self) -> Json:
        """What the agent receives: the text, or a list of the text and the attachments."""
        return message_value(self.says, self.attachments)


def _check_attachments(attachments: Sequence[Any], where: str) -> None:
    for one in attachments:
        if not isinstance(one, Attachment):
            raise BadCase(f"{where}: `attachments` holds {one!r}; write attach({one!r}).")


_TURN = FieldTypes(Turn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """When a conversation ends: at a limit (the trial cannot pass), or at a goal (the metrics decide)."""

    max_turns: int = MAX_TURNS
    max_seconds: float = MAX_SECONDS
    state_matches: Mapping[Any, Any] | None = None

    def __post_init__(self) -> None:
        _STOP.check(self, "Stop(...)")
        if self.max_turns < 1 or not 0 < self.max_seconds < inf:
            raise BadCase(
                f"Stop(max_turns={self.max_turns!r}, max_seconds={self.max_seconds!r}) would end a "
                f"trial before it begins, or never; both must be positive and finite."
            )
        if self.state_matches is not None:
            nothing = (
                f"Stop(state_matches={dict(self.state_matches)!r}) would match at once; say what "
            )
            where = "Stop(state_matches=...)"
            found = checked_scopes(self.state_matches, where, f"{nothing}to wait for.")
            object.__setattr__(self, "state_matches", found)


_STOP = FieldTypes(Stop, state_matches=BY_SCOPE)
USUAL_STOP = Stop()


@dataclass(frozen=True, slots=True)
class CaseOrigin:
    """The file that a case was read from, its number there, and the shape of that file."""

    file: str
    index: int
    shape: str


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation to rehearse: what the user says, what tools answer, how it is judged.

    Give `says` (with `expect`) or `turns`; without either, the agent speaks first. `user` continues
    when the script is used up. `now` is what the clock shows, in seconds since the epoch. `seed` is
    passed to models that take one, and is one higher in each further trial.

    `agent` overrides the agent of the evaluation for this case, `model` answers in place of its
    models, and `target` runs only one node of it. What the case expects is measured automatically;
    `implied=False` leaves that to its metrics. `extra` keeps anything else that a file said.
    """

    id: str
    says: str = ""
    _: KW_ONLY
    expect: Expect | None = None
    turns: Sequence[Turn] = ()
    mocks: Mapping[str, Anything] = field(default_factory=dict[str, Anything])
    allow_tools: Sequence[Any] = ()
    state: Mapping[Any, Any] = field(default_factory=dict[str, Mapping[str, Any]])
    stop: Stop = USUAL_STOP
    metrics: Sequence[MetricLike] = ()
    name: str = ""
    description: str = ""
    now: float | None = None
    seed: int | None = None
    user: Any = None
    bridge: Any = None
    agent: Any = None
    model: Any = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    target: str = ""
    history: Sequence[Mapping[str, Any]] = ()
    """The events recorded before it begins: the conversation continues from there."""
    implied: bool = field(default=True, compare=False)
    attachments: Sequence[Attachment] = ()
    extra: Mapping[str, Any] | None = None
    origin: CaseOrigin | None = field(default=None, repr=False, compare=False)
    """Where it was read from, so that a problem can be shown there."""
    script: tuple[Turn, ...] = field(init=False, repr=False, compare=False)
    """The scripted turns, the first message included."""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            has = (
                f"the id {self.id!r}; give it one that is text" if self.id else "no id; give it one"
            )
            raise BadCase(f"a case has {has}, such as 'late-order'.")
        where = f"case {self.id!r}"
        _CASE.check(self, where)
        _check_attachments(self.attachments, where)
        if self.model is not None:
            self._check_model()
        for name, words in _LIVE.items():
            given = getattr(self, name)
            if given is not None and type(given) in JSON_TYPES:
                raise BadCase(f"{where}: `{name}` is {given!r}, but should be {words}.")
        if self.now is not None and not isfinite(self.now):
            raise BadCase(f"{where}: `now` is {self.now!r}, but should be a number of seconds.")
        if self.state:
            object.__setattr__(self, "state", by_scope(self.state))
            for scope, content in self.state.items():
                if not isinstance(content, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
                    raise BadCase(
                        f"{where}: `state` has {scope!r}: {content!r}; group by scope: "
                        f'state={{"session": {{"key": value}}}}.'
                    )
        script = tuple(self.turns)
        if script:
            self._check_turns()
        elif self.says or self.expect or self.attachments:
            script = (Turn(self.says, self.expect, attachments=self.attachments),)
        object.__setattr__(self, "script", script)

    def _check_turns(self) -> None:
        for turn in self.turns:
            if not isinstance(turn, Turn):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise BadCase(f"case {self.id!r}: `turns` holds {turn!r}; write Turn({turn!r}).")
        if self.says or self.expect or self.attachments:
            raise BadCase(
                f"case {self.id!r} has both `turns` and `says`/`expect`/`attachments`; put them into "
                f"the turns."
            )
        if any(turn.is_blank for turn in self.turns[1:]):
            raise BadCase(
                f"case {self.id!r} has a turn in which the user says nothing; only the first may be "
                f"blank, which lets the agent speak first."
            )

    @classmethod
    def from_ledger(
        cls,
        ledger: "Ledger",
        *,
        turn: int,
        id: str = "",
        expect: Expect | None = None,
        metrics: Sequence[MetricLike] = (),
    ) -> "Case":
        """A test of one turn: the recorded session is kept up to `turn`, and the next turn is run again.

        Only that turn has expectations: what `expect` says, else the calls and the words that
        were recorded. Tools answer as they did.
        """
        # Imported here: from_runs imports this module.
        from greenroom.cases.from_runs import next_turn

        return next_turn(ledger, turn, id, expect, metrics)

    def _check_model(self) -> None:
        given = self.model
        if isinstance(given, str) and given.strip():
            return
        if isinstance(given, str | type) or not hasattr(given, "respond"):
            shown = without_addresses(repr(given))
            raise BadCase(
                f"case {self.id!r}: `model` is {shown}, which cannot respond; give Scripted(...), a "
                f"name such as 'openai:gpt-4o-mini', or models.py:name."
            )

    @property
    def title(self) -> str:
        """The name to show: `name`, or else the id."""
        return self.name or self.id


_LIVE = {
    "user": "Lines(...), SimulatedUser(...), UserAgents(...), an Agent, a step or a function",
    "bridge": "a Bridge(...)",
}
"""The fields that hold objects of any type, but no data."""
_CASE = FieldTypes(
    Case, now="a number of seconds", seed="a whole number", target="the name of a node"
)
