"""The append-only ledger of a trial: the only record of what happened."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeVar, overload

from msgspec.structs import replace

from greenroom.errors import BadFile, BadLedger, BadValue
from greenroom.ledger.attachments import MARK
from greenroom.ledger.changes import State
from greenroom.ledger.events import Event
from greenroom.ledger.index import VoiceIndex, VoiceIndexes
from greenroom.ledger.indexers import INDEXERS
from greenroom.ledger.messages import Voice
from greenroom.ledger.plain import Json, OwnedJson, plain
from greenroom.ledger.text_files import MAX_KEPT, bytes_of
from greenroom.ledger.whole_files import put_whole

E = TypeVar("E", bound=Event)


class Ledger:
    """Events in the order they happened. Nothing is ever edited; everything else is computed."""

    __slots__ = ("_events", "indexes", "loaded_count")

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events: list[Event] = []
        self.indexes = VoiceIndexes()
        for event in events:
            self.append(event, at=event.at)
        self.loaded_count = len(self._events)
        """How many events it was created with; a resumed trial continues after them."""

    def append(self, event: E, at: float) -> E:
        """Record `event` at time `at`, its values as plain JSON; return what was written."""
        place = len(self._events)
        if event.seq == -1:
            copies: dict[str, Json] = {}
            for name in event.VALUES:
                value = getattr(event, name)
                try:
                    copy = value.value if type(value) is OwnedJson else plain(value, name)
                except BadValue as error:
                    raise BadValue(f"{type(event).__name__}.{error}") from None
                if copy is not value:
                    copies[name] = copy
            if copies:
                event = replace(event, **copies)
            event = replace(event, seq=place, at=at)
        elif event.seq != place:
            raise BadLedger(
                f"event {event.seq} ({type(event).__name__}) cannot follow event "
                f"{place - 1}; append new events, or load a whole ledger."
            )
        elif event.at != at:
            event = replace(event, at=at)
        self._events.append(event)
        index = INDEXERS.get(type(event))
        if index is not None:
            index(self.indexes[event.voice], event)
        return event

    def fold(self, voice: Voice = "agent", branch: str = "") -> State:
        """The live state of one voice and branch. Only read it; `state` gives a copy."""
        return self.index_of(voice).fold(branch)

    def index_of(self, voice: Voice = "agent") -> VoiceIndex:
        """The index over a voice's events, which says how far it has got."""
        return self.indexes[voice]

    @property
    def voices(self) -> Collection[Voice]:
        """The sides that have events so far."""
        return list(dict.fromkeys(event.voice for event in self._events))

    def of(self, *kinds: type[E], voice: Voice | None = "agent") -> list[E]:
        """The events of these kinds on one side; `voice=None` takes both."""
        found = [event for event in self._events if isinstance(event, kinds)]
        return found if voice is None else [event for event in found if event.voice == voice]

    @property
    def first(self) -> Event | None:
        """The first event, if it has one."""
        return self._events[0] if self._events else None

    @property
    def last(self) -> Event | None:
        """The last event, if it has one."""
        return self._events[-1] if self._events else None

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, both voices."""
        return tuple(self._events)

    def copy(self) -> "Ledger":
        """A copy that can be continued on its own."""
        return Ledger(self._events)

    def __reduce__(self) -> tuple[type["Ledger"], tuple[list[Event]]]:
        return type(self), (self._events,)  # the index is computed from the events

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
        from greenroom.ledger.codec import encoded

        return b"".join(map(encoded, self._events)).decode()

    @classmethod
    def loads(cls, text: str, source: str = "ledger") -> "Ledger":
        """The ledger written as JSON lines in `text`."""
        from greenroom.ledger.codec import decode

        return cls(decode(text.split("\n"), source))

    def save(self, path: str | Path, *, redact: bool = False) -> None:
        """Write the ledger to a file atomically.

        A trial can continue from its ledger, so it is saved unchanged; `redact=True` replaces the
        secrets, for a copy to share. Attachments are kept next to it, in a folder `attachments`.
        """
        target = Path(path)
        text = (self.redacted() if redact else self).dumps()
        if MARK in text:
            from greenroom.ledger.blobs import keep_beside  # most ledgers have no attachments

            keep_beside(target, text)
        # Another process may save the same trial at the same time: the last one wins.
        put_whole([text.encode()], target)

    def redacted(self) -> "Ledger":
        """The ledger without the secrets that this process knows of; itself if it holds none."""
        from greenroom.ledger.redaction import redactor

        return redactor().ledger(self)

    @classmethod
    def load(cls, path: str | Path) -> "Ledger":
        """The ledger saved in a file."""
        source = Path(path)
        try:
            whole, newline, last = bytes_of(source, MAX_KEPT).rpartition(b"\n")
            # An interrupted write may end inside a character of the last line.
            text = (whole + newline).decode() + last.decode(errors="replace")
        except BadFile as error:
            raise BadLedger(f"there is no ledger to read. {error}") from error
        except UnicodeDecodeError as error:
            raise BadLedger(f"cannot read the ledger {str(source)!r}: {error}.") from error
        if MARK in text:
            from greenroom.ledger.blobs import look_beside

            look_beside(source)
        return cls.loads(text, str(source))
