"""Which model is asked: the agent's own, one that its choice picks by the ledger, or the one that replaces all."""

from collections import Counter
from collections.abc import Iterator
from math import fsum

from msgspec.structs import replace

from greenroom.ledger.events import Corrected, ModelCalled, ModelReplied, RunStarted
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.paths import branch_of, branches_of, fork_of
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.models.chooser import ChoiceContext, Chooser
from greenroom.models.model import ModelBody, ModelRequest, model_name
from greenroom.world.in_place import in_place
from greenroom.world.world import World


def chosen(world: World, request: ModelRequest, body: ModelBody) -> tuple[ModelRequest, ModelBody]:
    """The request and its body: as given, or those of the model that a choice picks or that replaces all models."""
    instead = getattr(world, "model", None)
    if instead is not None:
        request, body = replace(request, model=model_name(instead)), instead.respond
    chooser = getattr(body, "__self__", None)
    if isinstance(chooser, Chooser):
        model = chooser.pick(request, context_at(world, request))
        request, body = replace(request, model=model.name), model.respond
    return request, body if instead is None else in_place(world, request, body)


def context_at(world: World, request: ModelRequest) -> ChoiceContext:
    """The context of the run as known at the place of a request, before it is asked."""
    ledger, path, node = world.ledger, request.path, request.node
    index = ledger.indexes[world.voice]
    replies = [reply for reply in index.replied if index.is_known(reply.path, path)]
    runs = index.earlier_runs(node, path) if path in index.started else []
    places = {path, *(run.path for run in runs)}
    steps = [step for place in places for step in index.steps.get(place, ())]
    called = {
        (call.path, call.n): call.model
        for call in ledger.of(ModelCalled, voice=world.voice)
        # After an interruption the open question was asked before, and is asked again.
        if call.path in places and call.node == node and call.n < request.n
    }
    return ChoiceContext(
        spending=_spending(ledger, index, path, replies),
        unpriced=frozenset(reply.model for reply in replies if reply.cost is None),
        corrections=sum(isinstance(step, Corrected) for step in steps),
        failures=sum(place in index.failed for place in places),
        asked=Counter(called.values()),
        state=ledger.fold(world.voice, branch_of(path)),
    )


def _spending(
    ledger: Ledger, index: VoiceIndex, path: str, replies: list[ModelReplied]
) -> tuple[tuple[int, float], ...]:
    """What was spent outside of all forks and in each branch here, and how many share the rest."""
    branches = ["", *reversed(branches_of(path))]
    spent: dict[str, list[float]] = {branch: [] for branch in branches}
    for reply in replies:
        inside = (b for b in reversed(branches) if not b or reply.path.startswith(f"{b}/"))
        spent[next(inside)].append(reply.cost or 0.0)
    # An exact sum: its last digit must not depend on the order in which branches were answered.
    return tuple((_siblings(ledger, index, b), fsum(usd)) for b, usd in spent.items())


def _siblings(ledger: Ledger, index: VoiceIndex, branch: str) -> int:
    """How many branches the fork of a branch has, including itself; 1 if that is not known."""
    fork = index.started.get(fork_of(branch)) if branch else None
    if fork is None:
        return 1
    first = ledger.first
    snapshot = first.agent if isinstance(first, RunStarted) else None
    facts = next(
        (facts for facts in _facts_in(snapshot) if facts.get("id") == fork.node), dict[str, Json]()
    )
    found = facts.get("parts")
    if facts.get("kind") == "map_over":
        found = fork.input if fork.items is None else fork.items
    return max(len(found), 1) if is_object(found) or is_array(found) else 1


def _facts_in(snapshot: Json) -> Iterator[dict[str, Json]]:
    """The facts of all nodes in a snapshot."""
    if is_object(snapshot):
        yield snapshot
        parts = snapshot.get("parts")
        for part in parts.values() if is_object(parts) else ():
            yield from _facts_in(part)
