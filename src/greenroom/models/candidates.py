"""A model that may be chosen: how good it is, what it costs, and for which requests it is meant."""

import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from math import isfinite

from msgspec.structs import replace

from greenroom.errors import AgentFailed, BadAgent
from greenroom.ledger.identity import code_identity
from greenroom.ledger.plain import Json
from greenroom.models.chooser import Chooser
from greenroom.models.model import Model, ModelReply, ModelRequest, OnDelta, model_name
from greenroom.models.named import as_model
from greenroom.models.prices import Price, price_of
from greenroom.models.replies import checked_reply

When = Callable[[ModelRequest], bool]
"""Whether a candidate is meant for a request."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of the models of a choice, as `candidate(...)` makes it."""

    model: Model
    _: KW_ONLY
    quality: float | None = None
    when: When | None = None
    own_price: Price | None = None

    @property
    def name(self) -> str:
        """The model's name, which the ledger shows when it is chosen."""
        return model_name(self.model)

    @property
    def price(self) -> Price | None:
        """The price it was given, else the model's known price; None if there is none."""
        return self.own_price or price_of(self.model)

    def holds(self, request: ModelRequest) -> bool:
        """Whether it is meant for this request."""
        if self.when is None:
            return True
        try:
            answer: object = self.when(request)
        except Exception as error:
            raise AgentFailed(
                f"`when` of the candidate {self.name!r} raised {type(error).__name__}: {error}"
            ) from error
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise BadAgent(
                f"`when` of the candidate {self.name!r} is async; give a plain function."
            )
        return bool(answer)

    def facts(self, price: Price | None) -> dict[str, Json]:
        """The candidate as the snapshot of an agent shows it."""
        found: dict[str, Json] = {"model": self.name}
        if self.quality is not None:
            found["quality"] = self.quality
        if self.when is not None:
            found["when"] = code_identity(self.when)
        if price is not None:
            million = {"input": price.input * 1e6, "output": price.output * 1e6}
            found["usd_per_million"] = {kind: round(usd, 9) for kind, usd in million.items()}
        return found

    def __repr__(self) -> str:
        shown = [repr(self.name)]
        if self.quality is not None:
            shown.append(f"quality={self.quality:g}")
        if self.when is not None:
            shown.append(f"when={getattr(self.when, '__name__', self.when)!s}")
        return f"candidate({', '.join(shown)})"


def candidate(
    model: Model | str,
    *,
    quality: float | None = None,
    when: When | None = None,
    price: Price | None = None,
) -> Candidate:
    """A model for `choose(...)`, or the name of one.

    `quality` orders the candidates; the best has the highest. `when` says whether this candidate is meant
    for a request. `price` is for models whose price is not known, or is different for you:
    `Price.per_million(0.15, 0.60)`.
    """
    found = as_model(model, "a candidate")
    where = f"candidate({model_name(found)!r})"
    if isinstance(found, Chooser):
        raise BadAgent(f"{where} is a choice itself; give its candidates to one choose(...).")
    is_number = isinstance(quality, int | float) and not isinstance(quality, bool)
    if quality is not None and not (is_number and isfinite(quality)):
        raise BadAgent(f"{where} has quality={quality!r}; give a number; the best has the highest.")
    if when is not None and (not callable(when) or inspect.iscoroutinefunction(when)):
        raise BadAgent(f"{where} has when={when!r}; give a plain function of the request.")
    if price is not None and not isinstance(price, Price):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadAgent(
            f"{where} has price={price!r}; say for how many tokens that is: "
            f"Price.per_million(0.15, 0.60), read and written."
        )
    return Candidate(found, quality=quality, when=when, own_price=price)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A candidate that was chosen, about to be asked for the `n`-th time by its node."""

    candidate: Candidate
    n: int

    @property
    def name(self) -> str:
        """The name of the chosen model."""
        return self.candidate.name

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """The model's answer, with the candidate's price."""
        # A script counts its own answers, not those of the candidates next to it.
        given = await self.candidate.model.respond(replace(request, n=self.n), on_delta)
        reply = checked_reply(given, self.name)
        price, used = self.candidate.own_price, reply.usage
        if price is None or used is None:
            return reply
        return replace(reply, cost=price.cost(used.input, used.output), prices=price.table)

    async def get_ready(self) -> None:
        """Load and open whatever is needed to ask the model."""
        get_ready = getattr(self.candidate.model, "get_ready", None)
        if get_ready is not None:
            await get_ready()
