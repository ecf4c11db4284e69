"""The append-only ledger of a run: the only record of what happened."""

from collections.abc import Callable, Collection, Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import TypeVar, overload

from greenroom.errors import BadLedger, BadValue
from greenroom.ledger.changes import State, apply_changes
from greenroom.ledger.events import (
    Answered,
    Event,
    NodeEnded,
    NodeFailed,
    RunStarted,
    StateChanged,
    ToolReturned,
    UserSaid,
)
from greenroom.ledger.messages import Voice
from greenroom.ledger.paths import branch_of, parent_branch
from greenroom.ledger.plain import plain
from greenroom.ledger.trail import TAKERS, Trail

E = TypeVar("E", bound=Event)

_stamp = object.__setattr__
# The slots' own setters: events are frozen for everybody but the ledger that stamps them.
_put_seq: Callable[[Event, int], None] = vars(Event)["seq"].__set__
_put_at: Callable[[Event, float], None] = vars(Event)["at"].__set__
_FOLDED = frozenset(
    (RunStarted, ToolReturned, StateChanged, NodeEnded, NodeFailed, Answered, UserSaid)
)


class Ledger:
    """Events in the order they happened. Nothing is ever edited; everything else is computed."""

    __slots__ = ("_events", "_folds", "_trails")

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events: list[Event] = []
        self._folds: dict[tuple[Voice, str], State] = {}
        self._trails: dict[Voice, Trail] = {}
        for event in events:
            self.append(event, at=event.at)

    def append(self, event: E, at: float) -> E:
        """Write `event` down at time `at`; its values become plain JSON copies."""
        events = self._events
        seq = len(events)
        if event.seq != seq and event.seq != -1:
            raise BadLedger(
                f"event {event.seq} ({type(event).__name__}) cannot follow event {seq - 1}; "
                f"append new events, or load a whole ledger."
            )
        try:
            for name in event.VALUES:
                value = getattr(event, name)
                if type(value) is not str:
                    _stamp(event, name, plain(value, name))
        except BadValue as error:
            raise BadValue(f"{type(event).__name__}.{error}") from None
        _put_seq(event, seq)
        _put_at(event, at)
        events.append(event)
        kind = type(event)
        taker = TAKERS.get(kind)
        if taker is not None:
            taker(self._trails.get(event.voice) or self.trail(event.voice), event)
        if kind in _FOLDED:
            self._fold(event)
        return event

    def _fold(self, event: Event) -> None:
        match event:
            case ToolReturned() | StateChanged() | NodeEnded() | NodeFailed():
                if not isinstance(event, NodeFailed) and event.changes:
                    apply_changes(self.fold(event.voice, branch_of(event.path)), event.changes)
                self._join(event)
            case Answered() | UserSaid() if event.changes:
                # The user's changes reach the whole run: open branches see them too.
                self.fold(event.voice)
                for (voice, _), state in self._folds.items():
                    if voice == event.voice:
                        apply_changes(state, event.changes)
            case RunStarted() if event.state:
                self._folds[event.voice, ""] = deepcopy(event.state)
            case _:
                pass

    def fold(self, voice: Voice = "agent", branch: str = "") -> State:
        """The live fold of one voice and branch. Read it, never write to it: see `state`."""
        state = self._folds.get((voice, branch))
        if state is None:
            state = deepcopy(self.fold(voice, parent_branch(branch))) if branch else {}
            self._folds[voice, branch] = state
        return state

    def _join(self, event: Event) -> None:
        """Forget the states of a fork's branches, once it has merged or failed."""
        if event.path.endswith("/par"):
            for key in [k for k in self._folds if k[1].startswith(f"{event.path}.")]:
                if key[0] == event.voice:
                    del self._folds[key]

    def trail(self, voice: Voice = "agent") -> Trail:
        """Where a voice stands: an index over its events."""
        trail = self._trails.get(voice)
        if trail is None:
            trail = self._trails[voice] = Trail(voice)
        return trail

    @property
    def voices(self) -> Collection[Voice]:
        """The sides that have been heard so far."""
        return self._trails.keys()

    def of(self, *kinds: type[E], voice: Voice | None = "agent") -> list[E]:
        """The events of these kinds on one side; `voice=None` takes both."""
        found = [event for event in self._events if isinstance(event, kinds)]
        return found if voice is None else [event for event in found if event.voice == voice]

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, both voices."""
        return tuple(self._events)

    def copy(self) -> "Ledger":
        """A ledger with the same events that can go its own way."""
        return Ledger(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        return self._events[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self._events == other._events

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        last = type(self._events[-1]).__name__ if self._events else "nothing yet"
        return f"<Ledger of {len(self._events)} events, last {last}>"

    def dumps(self) -> str:
        """The ledger as JSON lines."""
        from greenroom.ledger.codec import encode

        return "".join(f"{line}\n" for line in encode(self._events))

    @classmethod
    def loads(cls, text: str, source: str = "ledger") -> "Ledger":
        """The ledger written as JSON lines in `text`."""
        from greenroom.ledger.codec import decode

        return cls(decode(text.split("\n"), source))

    def save(self, path: str | Path) -> None:
        """Write the ledger to a file, whole or not at all."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        part.write_text(self.dumps(), encoding="utf-8")
        part.replace(target)

    @classmethod
    def load(cls, path: str | Path) -> "Ledger":
        """The ledger saved in a file."""
        source = Path(path)
        try:
            whole, newline, last = source.read_bytes().rpartition(b"\n")
            # A cut may fall inside a character of the last line.
            text = (whole + newline).decode() + last.decode(errors="replace")
        except (OSError, UnicodeDecodeError) as error:
            raise BadLedger(f"cannot read the ledger {str(source)!r}: {error}.") from error
        return cls.loads(text, str(source))
