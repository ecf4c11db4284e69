"""One side of a ledger, read only: what bridges and your own rules can see."""

from collections.abc import Sequence

from msgspec import Struct

from greenroom.ledger import questions
from greenroom.ledger.changes import State
from greenroom.ledger.events import Event
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Message, Voice
from greenroom.ledger.questions import CallRecord


class LedgerView(Struct, frozen=True, omit_defaults=True):
    """The events of one voice and the common questions to them."""

    _ledger: Ledger
    voice: Voice = "agent"

    @property
    def events(self) -> Sequence[Event]:
        """The events of this side, in order."""
        return [event for event in self._ledger if event.voice == self.voice]

    @property
    def state(self) -> State:
        """A copy of this side's state by scope."""
        return questions.state(self._ledger, self.voice)

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation as this side had it."""
        return questions.messages(self._ledger, self.voice)

    @property
    def tool_calls(self) -> Sequence[CallRecord]:
        """The tools this side called."""
        return questions.tool_calls(self._ledger, self.voice)

    @property
    def last_said(self) -> str:
        """The last words of this side's agent, or ""."""
        said = [m.text for m in self.messages if m.role == "assistant"]
        return said[-1] if said else ""
