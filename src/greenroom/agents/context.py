"""Context rules: what an agent's model is shown besides the present exchange."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from greenroom.errors import BadAgent
from greenroom.ledger.changes import State
from greenroom.ledger.messages import Message
from greenroom.models.model import Model, model_name
from greenroom.models.named import as_model

Exchange = tuple[Message, ...]


class Scene(Struct, frozen=True):
    """The material for context rules: earlier exchanges of this agent, and the state."""

    earlier: Sequence[Exchange]
    state: State
    summary: str = ""
    """A summary of the exchanges before `earlier`, if a rule has them summarised."""


ContextRule = Callable[[Scene], Sequence[Message]]
"""A rule that chooses the messages a model is shown, from the scene it is asked in."""


class Persona(Struct, frozen=True):
    """Who the agent is, as a system message."""

    text: str

    def __call__(self, _: Scene) -> Sequence[Message]:
        """The persona, in every scene."""
        return (Message("system", self.text.strip()),)

    def __repr__(self) -> str:
        return f"persona({self.text!r})"


class History(Struct, frozen=True):
    """Earlier exchanges, oldest first; what came before them as a summary, if a model makes one."""

    last: int | None = None
    summarise: Model | None = None

    def __call__(self, scene: Scene) -> Sequence[Message]:
        """The last exchanges, or all of them."""
        kept = scene.earlier
        if self.last is not None and self.summarise is None:
            kept = kept[-self.last or len(kept) :]
        shown = [message for exchange in kept for message in exchange]
        if self.summarise is None or not scene.summary:
            return shown
        return [Message("user", f"{_SUMMARY}\n{scene.summary}"), *shown]

    def __repr__(self) -> str:
        if self.summarise is not None:
            return f"history(last={self.last}, summarise={model_name(self.summarise)!r})"
        return "history()" if self.last is None else f"history(last={self.last})"


_SUMMARY = "[A summary of the conversation before this point]"


def persona(text: str) -> Persona:
    """Tell the model who it is."""
    return Persona(text)


def history(last: int | None = None, *, summarise: Model | str | None = None) -> History:
    """Show the model earlier exchanges: all, or the last few.

    With `summarise`, a model or its name, older exchanges are not dropped but summarised by that model,
    `last` at a time: between `last` and twice as many are shown in full. The summary is kept in the
    ledger, and a conversation that continues does not ask for it again.
    """
    if last is not None and last < (0 if summarise is None else 1):
        raise BadAgent(f"history(last={last}) should be 1 or more.")
    if summarise is None:
        return _ALL if last is None else History(last)
    if last is None:
        raise BadAgent("history(summarise=…) needs last=…, how many exchanges stay as they are.")
    return History(last, as_model(summarise, "history(summarise=…)"))


_ALL = History()
