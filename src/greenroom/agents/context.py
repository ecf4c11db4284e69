"""Context rules: what an agent's model is shown besides the present exchange."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from greenroom.ledger.changes import State
from greenroom.ledger.messages import Message

Exchange = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """What a context rule can draw on: earlier exchanges of this agent, and the state."""

    earlier: Sequence[Exchange]
    state: State


ContextRule = Callable[[Scene], Sequence[Message]]
"""What a model is shown of the conversation, made from the scene it is asked in."""


@dataclass(frozen=True, slots=True)
class Persona:
    """Who the agent is, as a system message."""

    text: str

    def __call__(self, _: Scene) -> Sequence[Message]:
        """The persona, whatever happened."""
        return (Message("system", self.text.strip()),)

    def __repr__(self) -> str:
        return f"persona({self.text!r})"


@dataclass(frozen=True, slots=True)
class History:
    """Earlier exchanges, oldest first."""

    last: int | None = None

    def __call__(self, scene: Scene) -> Sequence[Message]:
        """The last exchanges, or all of them."""
        kept = (
            scene.earlier
            if self.last is None
            else scene.earlier[-self.last or len(scene.earlier) :]
        )
        return [message for exchange in kept for message in exchange]

    def __repr__(self) -> str:
        return "history()" if self.last is None else f"history(last={self.last})"


def persona(text: str) -> Persona:
    """Tell the model who it is."""
    return Persona(text)


def history(last: int | None = None) -> History:
    """Show the model earlier exchanges: all, or the last few."""
    return _ALL if last is None else History(last)


_ALL = History()
