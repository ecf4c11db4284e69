"""An agent at work, as middleware sees it."""

from msgspec import Struct

from greenroom.ledger.plain import Json


class AgentTurn(Struct, frozen=True):
    """An agent that is about to work, or has worked."""

    name: str
    path: str
    input: Json = None
