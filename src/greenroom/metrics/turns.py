"""Which events belong to which turn of a case's script."""

from collections.abc import Sequence
from typing import NamedTuple

from greenroom.cases.case import Case, Expect
from greenroom.ledger.events import AgentSaid, Answered, Event, UserSaid
from greenroom.ledger.ledger import Ledger


class PlayedTurn(NamedTuple):
    """A scripted turn that expects something, and the events in which it was played."""

    number: int
    expect: Expect
    events: Sequence[Event]
    """From the user's message up to the next one; nothing if the turn was never reached."""

    @property
    def response(self) -> str:
        """The agent's last words in this turn, or nothing."""
        for event in reversed(self.events):
            if isinstance(event, AgentSaid) and event.voice == "agent":
                return event.text
        return ""


def played_turns(case: Case, ledger: Ledger) -> Sequence[PlayedTurn]:
    """The scripted turns that expect something, each with its events."""
    global _last  # noqa: PLW0603 - several expectations look at one run, one after another
    length = len(ledger)
    run, so_far, played, found = _last
    if run is not ledger or so_far != length or played is not case:
        found = _played_turns(case, ledger)
        _last = (ledger, length, case, found)
    return found


_last: tuple[Ledger | None, int, Case | None, Sequence[PlayedTurn]] = (None, 0, None, ())


def _played_turns(case: Case, ledger: Ledger) -> Sequence[PlayedTurn]:
    spans = _spans(case, ledger)
    return [
        PlayedTurn(index + 1, turn.expect, ledger[spans.get(index, _NOWHERE)])
        for index, turn in enumerate(case.script)
        if turn.expect is not None
    ]


_NOWHERE = slice(0, 0)


def _spans(case: Case, ledger: Ledger) -> dict[int, slice]:
    """Each turn's place in the script and the events it takes up.

    Turn k begins with the user's k-th message, said outright or inside an answer to a waiting
    agent; a round of answers that only answers tools begins nothing.
    """
    heard = 1 if _agent_speaks_first(case, ledger) else 0
    index, begin = 0, 0
    spans: dict[int, slice] = {}
    for event in ledger.trail().rounds:
        if said := messages_in(event):
            if heard:
                spans[index] = slice(begin, event.seq)
            index, begin = heard, event.seq
            heard += said
    if heard:
        spans[index] = slice(begin, len(ledger))
    return spans


def messages_in(event: Event) -> int:
    """How many messages of the user this event brings; answers to tools are none."""
    if isinstance(event, UserSaid):
        return 1
    return sum(not a.tool for a in event.answers) if isinstance(event, Answered) else 0


def _agent_speaks_first(case: Case, ledger: Ledger) -> bool:
    """Whether the first turn is the agent's opening, before any message of the user."""
    if not case.script or case.script[0].says:
        return False
    said = ledger.trail().said
    return not (said and said[0].text == "")
