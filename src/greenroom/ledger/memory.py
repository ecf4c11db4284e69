"""How much an agent kept in mind: what its models were shown at once, what was summarised, what it stored."""

from msgspec import Struct

from greenroom.ledger.interactions import model_inputs
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.questions import state


class MemoryUse(Struct, frozen=True):
    """The memory use of a trial in numbers; None where the ledger does not say."""

    most_messages: int | None
    """The most messages that a model was shown at once."""
    most_tokens: int | None
    """The most tokens that a model read at once."""
    summaries: int
    """How often earlier exchanges were summarised."""
    state_keys: int
    """How many values the final state holds, over all scopes."""


def memory_use(ledger: Ledger) -> MemoryUse:
    """Measure how much the agent kept in mind."""
    asked = [len(put.messages) for _, put in model_inputs(ledger) if put is not None]
    replied = ledger.index_of().replied
    read = [reply.usage.input for reply in replied if reply.usage is not None]
    return MemoryUse(
        most_messages=max(asked, default=None),
        most_tokens=max(read, default=None),
        summaries=sum("/summary:" in reply.path for reply in replied),
        state_keys=sum(len(held) for held in state(ledger).values()),
    )
