"""Agents with one substitute model that answers instead of all their own."""

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
    """Runs an agent of any backend; the World asks `model` instead of the agent's own models."""

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
        """Changes whenever the agent or, as far as can be known, the substitute model does."""
        parts = (getattr(self.answered_by, part, "") for part in ("identity", "options"))
        return digest_of([self.inner.digest, model_name(self.answered_by), *map(str, parts)])

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Run the agent as far as it can go."""
        return await self.inner.advance(ledger, world)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # a copy that is not initialised yet would recurse here
            raise AttributeError(name)
        return getattr(self.inner, name)


def with_model(backend: Any, model: Model | str) -> Backend:
    """The agent with another model in place of all its own; BadAgent if its models cannot be replaced."""
    model = as_model(model, "`model`")
    if getattr(backend, "answered_by", None) is model:
        return backend  # a run replaces its agent's models once, and every trial asks for the same
    if isinstance(backend, AnsweredBackend):
        backend = backend.inner
    if isinstance(backend, NativeBackend):
        return backend.with_model(model)
    if backend.models == "opaque":
        raise BadAgent(
            f"an agent run by {backend.name!r} asks its models where the tool gate cannot see it, so no "
            f"other model can replace them. Leave `model` out, and change it where the agent is created."
        )
    return AnsweredBackend(backend, model)  # pyright: ignore[reportReturnType]
