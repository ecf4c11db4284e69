"""Agents whose models do not answer themselves: another one does in place of all of them."""

from typing import Any

from greenroom.backends.backend import Advance, Backend
from greenroom.backends.native import NativeBackend
from greenroom.errors import BadAgent
from greenroom.ledger.identity import digest_of
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, is_object
from greenroom.models.model import Model, model_name
from greenroom.models.named import as_model
from greenroom.world.world import World


class AnsweredBackend:
    """Runs an agent of any backend; the World asks `model` in place of every model of the agent."""

    def __init__(self, inner: Backend, model: Model) -> None:
        self.inner = inner
        self.answered_by = model

    @property
    def snapshot(self) -> Json:
        """The agent as JSON, with the model that answers for it."""
        known, model = self.inner.snapshot, model_name(self.answered_by)
        return {**known, "answered_by": model} if is_object(known) else known

    @property
    def digest(self) -> str:
        """Changes whenever the agent does, or what answers for it as far as that can be known."""
        parts = (getattr(self.answered_by, part, "") for part in ("identity", "options"))
        return digest_of([self.inner.digest, model_name(self.answered_by), *map(str, parts)])

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Run the agent as far as it can go."""
        return await self.inner.advance(ledger, world)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # of a copy that is only being made
            raise AttributeError(name)
        return getattr(self.inner, name)


def with_model(backend: Any, model: Model | str) -> Backend:
    """The agent, with another model that answers in place of all its own; BadAgent if none can."""
    if isinstance(backend, AnsweredBackend):
        backend = backend.inner
    model = as_model(model, "`model`")
    if isinstance(backend, NativeBackend):
        return backend.with_model(model)
    if backend.models == "opaque":
        raise BadAgent(
            f"an agent run by {backend.name!r} asks its models where no gate can see it, so no other "
            f"model can answer in their place. Leave `model` out, and change it where the agent is made."
        )
    return AnsweredBackend(backend, model)  # pyright: ignore[reportReturnType]
