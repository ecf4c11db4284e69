"""Remote agents, reached over the A2A protocol: as parts of a flow, as agents to rehearse, and their cards."""

from greenroom.backends.a2a.backend import A2ABackend, a2a_agent
from greenroom.backends.a2a.cards import Discovery, card_of, discover

__all__ = ["A2ABackend", "Discovery", "a2a_agent", "card_of", "discover"]
