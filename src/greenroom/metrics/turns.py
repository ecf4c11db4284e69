"""Which events belong to which turn of a case's script."""

from collections.abc import Sequence

from greenroom.cases.case import Case, Expect
from greenroom.ledger.events import AgentSaid, Answered, Event, UserSaid
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.records import record


@record
class PlayedTurn:
    """A scripted turn that expects something, and the events in which it was played."""

    number: int
    expect: Expect
    events: Sequence[Event]
    """From the user's message up to the next one; nothing if the turn was never reached."""

    @property
    def reached(self) -> bool:
        """Whether the run came to this turn."""
        return bool(self.events)

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
    if _last[0] is ledger and _last[1] == len(ledger) and _last[2] is case:
        return _last[3]
    found = _played_turns(case, ledger)
    _last = (ledger, len(ledger), case, found)
    return found


_last: tuple[Ledger | None, int, Case | None, Sequence[PlayedTurn]] = (None, 0, None, ())


def _played_turns(case: Case, ledger: Ledger) -> Sequence[PlayedTurn]:
    starts = _starts(case, ledger)
    ends = [*starts.values(), len(ledger)][1:]
    played = {index: (seq, end) for (index, seq), end in zip(starts.items(), ends, strict=True)}
    return [
        PlayedTurn(index + 1, turn.expect, ledger[slice(*played.get(index, (0, 0)))])
        for index, turn in enumerate(case.script)
        if turn.expect is not None
    ]


def _starts(case: Case, ledger: Ledger) -> dict[int, int]:
    """Each turn's place in the script and the event it begins with.

    Turn k begins with the user's k-th message, said outright or inside an answer to a waiting
    agent; a round of answers that only answers tools begins nothing.
    """
    heard = 1 if _agent_speaks_first(case, ledger) else 0
    starts = {0: 0} if heard else {}
    for event in ledger.trail().rounds:
        if said := messages_in(event):
            starts[heard] = event.seq
            heard += said
    return starts


def messages_in(event: Event) -> int:
    """How many messages of the user this event brings; answers to tools are none."""
    if isinstance(event, Answered):
        return sum(not answer.tool for answer in event.answers)
    return 1 if isinstance(event, UserSaid) else 0


def _agent_speaks_first(case: Case, ledger: Ledger) -> bool:
    """Whether the first turn is the agent's opening, before any message of the user."""
    if not case.script or case.script[0].says:
        return False
    said = ledger.trail().said
    return not (said and said[0].text == "")
