"""Writes a ledger from what another tool recorded; both logs and spans become events here."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from msgspec import structs

from greenroom.errors import BadTrace, BadValue
from greenroom.ledger.events import (
    IMPORTED,
    AgentSaid,
    EndReason,
    Event,
    InvocationEnded,
    InvocationStarted,
    ModelCalled,
    ModelFailed,
    ModelReplied,
    Noted,
    Question,
    RunEnded,
    RunStarted,
    Source,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    Unseen,
    UserSaid,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import ToolCall, Usage
from greenroom.ledger.plain import Json, number_in, plain
from greenroom.traces.records import Imported

VERDICTS = "greenroom:recorded-verdicts"
"""The note with another tool's verdicts on a conversation."""
ALWAYS_UNSEEN: tuple[Unseen, ...] = ("state", "nodes")
"""What no other format records."""
_MOST = 10**12
"""More tokens, or USD, than one reply can take."""


class LedgerWriter:
    """Takes events in order. A message of the user begins a turn; the rest belongs to it.

    Ids of calls that repeat are made unique: `id~2`.
    """

    def __init__(self, conversation: str, *, agent: str = "") -> None:
        self.conversation = conversation
        self._agent = agent
        self._events: list[Event] = []
        self._unseen: set[Unseen] = set()
        self._path = ""
        self._turns = 0
        self._questions: list[ModelCalled] = []
        self._counts: dict[str, int] = {}
        self._ids: dict[str, int] = {}
        self._open: list[tuple[str, ToolCalled]] = []
        self._failed: tuple[str, str] | None = None

    def miss(self, *what: Unseen) -> None:
        """Record that the source does not contain this."""
        self._unseen.update(what)

    def user(self, text: str | None, at: float = 0.0) -> None:
        """The user said something, which begins a turn; None if it is unknown what."""
        self._close(at)
        if text is None:
            self.miss("user")
        self._events.append(UserSaid(text=text or "", at=at))
        self._begin(at)

    def asked(
        self, at: float = 0.0, *, model: str = "", agent: str = "", question: Question | None = None
    ) -> int:
        """A model is asked; returns the number of its reply."""
        self._begin(at)
        number = len(self._questions)
        made = ModelCalled(
            path=f"{self._path}/{agent or self._agent or 'agent'}",
            node=agent or self._agent,
            agent=agent or self._agent,
            model=model,
            n=number,
            at=at,
            question=question,
        )
        self._questions.append(made)
        self._events.append(made)
        return number

    def path_of(self, number: int | None) -> str:
        """Where a question was asked."""
        return "" if number is None else self._questions[number].path

    def replied(
        self,
        number: int,
        text: str = "",
        calls: Iterable[ToolCall] = (),
        at: float = 0.0,
        **more: Any,
    ) -> None:
        """A model answered; `more` are fields of ModelReplied, such as its usage."""
        asked = self._questions[number]
        self._events.append(
            ModelReplied(
                path=asked.path,
                node=asked.node,
                agent=asked.agent,
                model=more.pop("model", "") or asked.model or "unnamed",
                n=number,
                text=text,
                calls=tuple(calls),
                at=at,
                **more,
            )
        )

    def model_failed(self, number: int, error: str, error_type: str = "", at: float = 0.0) -> None:
        """A model did not answer."""
        asked = self._questions[number]
        self._events.append(
            ModelFailed(
                path=asked.path,
                node=asked.node,
                agent=asked.agent,
                model=asked.model,
                n=number,
                error=error,
                error_type=error_type,
                at=at,
            )
        )

    def called(
        self, tool: str, args: Mapping[str, Json] | None, call_id: str = "", at: float = 0.0
    ) -> ToolCalled:
        """A tool is called; None as arguments means that they are unknown."""
        self._begin(at)
        if args is None:
            self.miss("args")
        made = ToolCalled(
            path=self._path,
            call_id=self._unique(call_id or f"{tool}-{self._counts.get(tool, 0) + 1}"),
            tool=tool,
            args=_plain(args or {}, f"the arguments of {tool}"),
            n=self._counts.get(tool, 0),
            at=at,
        )
        self._counts[tool] = made.n + 1
        self._events.append(made)
        self._open.append((call_id, made))
        return made

    def returned(
        self,
        call: ToolCalled,
        value: Json,
        at: float = 0.0,
        *,
        known: bool = True,
        source: Source = "live",
    ) -> None:
        """A call ended with a value; it is unknown if not `known`, or if no JSON can hold it."""
        try:
            value = _plain(value, f"the result of {call.tool}")
        except BadTrace:
            value, known = None, False
        if not known:
            self.miss("results")
        self._end(call, ToolReturned, at, source=source, value=value)

    def failed(
        self,
        call: ToolCalled,
        error: str,
        error_type: str = "",
        at: float = 0.0,
        *,
        source: Source = "live",
    ) -> None:
        """A call ended with an error."""
        self._end(call, ToolFailed, at, source=source, error=error, error_type=error_type)

    def _end(
        self, call: ToolCalled, kind: type[ToolReturned | ToolFailed], at: float, **how: Any
    ) -> None:
        self._open = [(known, one) for known, one in self._open if one is not call]
        place = {"path": call.path, "call_id": call.call_id, "tool": call.tool}
        self._events.append(kind(**place, seconds=max(at - call.at, 0.0), at=at, **how))

    def open_call(self, call_id: str, tool: str = "") -> ToolCalled | None:
        """The oldest matching call without an end: by its id; without an id by its name, or any."""
        for known, one in self._open:
            if known == call_id if call_id else tool in ("", one.tool):
                return one
        return None

    def said(self, text: str | None, at: float = 0.0) -> None:
        """The agent said something to its user; None if it is unknown what."""
        self._begin(at)
        if text is None:
            self.miss("words")
        else:
            self._events.append(AgentSaid(path=self._path, text=text, at=at))

    def broke(self, error: str, error_type: str = "") -> None:
        """The agent failed, which ends the conversation."""
        self._failed = (error or error_type or "the agent failed", error_type)

    def note(self, name: str, data: Json, at: float = 0.0) -> None:
        """Keep a named fact."""
        self._events.append(Noted(name=name, data=_plain(data, name), at=at))

    def imported(
        self,
        format: str,
        source: str = "",
        *,
        at: float = 0.0,
        reason: EndReason | None = "completed",
        case_id: str = "",
        trial: int = 1,
        verdicts: Mapping[str, Json] | None = None,
        notes: Sequence[str] = (),
    ) -> Imported:
        """The whole conversation, ended at `at`; an unfinished one has no `reason`.

        A conversation that ends with an open call is unfinished too, and so is one in which the agent has not
        done anything yet.
        """
        has_begun = any(
            isinstance(one, AgentSaid | ModelCalled | ToolCalled) for one in self._events
        )
        if self._failed is None and (not has_begun or (self._open and self._is_waiting())):
            reason = None
        if self._open:
            self.miss("results")
        lacks = {*self._unseen, *ALWAYS_UNSEEN}
        unseen: tuple[Unseen, ...] = tuple(name for name in get_args(Unseen) if name in lacks)
        began = min((event.at for event in self._events), default=at)
        origin: dict[str, Json] = {"format": format, "conversation": self.conversation}
        begun: tuple[Event, Event] = (
            RunStarted(
                run_id=self.conversation,
                case={"id": case_id or self.conversation},
                agent={"name": self._agent} if self._agent else None,
                opaque=unseen,
                trial=trial,
                at=began,
            ),
            Noted(name=IMPORTED, data=origin, at=began),
        )
        if verdicts:
            data: dict[str, Json] = {name: plain(value) for name, value in verdicts.items()}
            self.note(VERDICTS, data, at)
        if reason is not None:
            self._close(at)
            self._events.append(self._ended(reason, at))
        return Imported(
            conversation=self.conversation,
            ledger=Ledger([*begun, *self._events]),
            format=format,
            source=source,
            case_id=case_id,
            trial=trial,
            verdicts=dict(verdicts or {}),
            notes=tuple(notes),
        )

    def _is_waiting(self) -> bool:
        """Whether nothing was said or asked since the last call that is still open."""
        _, last = self._open[-1]
        since = self._events[self._events.index(last) :]
        return not any(isinstance(one, AgentSaid | ModelCalled | UserSaid) for one in since)

    def _ended(self, reason: EndReason, at: float) -> RunEnded:
        if self._failed is None:
            return RunEnded(reason=reason, at=at)
        error, kind = self._failed
        return RunEnded(reason="error", phase="agent", error=error, error_type=kind, at=at)

    def _begin(self, at: float) -> None:
        if not self._path:
            self._turns += 1
            self._path = f"@{self._turns}"
            self._events.append(InvocationStarted(path=self._path, at=at))

    def _close(self, at: float) -> None:
        if not self._path:
            return
        made = InvocationEnded(path=self._path, outcome="turn_over", at=at)
        if self._failed is not None:
            error, kind = self._failed
            made = structs.replace(made, outcome="failed", error=error, error_type=kind)
        self._events.append(made)
        self._path = ""

    def _unique(self, call_id: str) -> str:
        self._ids[call_id] = count = self._ids.get(call_id, 0) + 1
        return call_id if count == 1 else f"{call_id}~{count}"


def _plain(value: object, where: str) -> Any:
    try:
        return plain(value, where)
    except BadValue as error:
        raise BadTrace(f"{error}") from error


def usage_of(input: object, output: object, thoughts: object = 0) -> Usage | None:
    """Tokens, if all are known as numbers or as strings of them; thoughts are counted beside the output."""
    read, wrote, thought = whole_number(input), whole_number(output), whole_number(thoughts)
    if read is None or wrote is None or thought is None:
        return None
    return Usage(read, wrote + thought)


def whole_number(given: object) -> int | None:
    """A count; None if the value is not one."""
    if isinstance(given, bool):
        return None
    if isinstance(given, str):
        given = number_in(given.strip())
    if isinstance(given, int | float) and 0 <= given <= _MOST and given == int(given):
        return int(given)
    return None


def price_of(given: object) -> float | None:
    """What a reply cost in USD; None if the value is no amount that a reply can cost."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= _MOST:
        return None
    return float(given)
