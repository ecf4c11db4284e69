"""The native interpreter: it walks the graph from its root, skipping what the ledger knows.

Nothing is kept between two walks but the ledger. A node whose end is recorded gives its recorded
output, a decision that was taken is not asked for again, and an agent node goes on from its last
recorded reply. So a run may be cut at any event and continued anywhere.
"""

import inspect
from itertools import count
from typing import Any

from msgspec import Struct

from greenroom.agents.agent import Agent
from greenroom.agents.flow import (
    Decider,
    Flow,
    Loop,
    Parallel,
    Route,
    Sequence,
    Step,
    named_arguments,
)
from greenroom.agents.graph import Node
from greenroom.backends.backend import Yield
from greenroom.backends.native.agent_node import AgentRun, open_yield
from greenroom.backends.native.history import as_text
from greenroom.backends.native.outputs import declared_changes
from greenroom.backends.together import together
from greenroom.errors import AgentFailed, BadAgent, GreenroomError, LoopLimit, Refusal
from greenroom.ledger.changes import Change, check_appends, unwrapped
from greenroom.ledger.events import (
    AgentSaid,
    Answered,
    BranchCancelled,
    Decided,
    NodeEnded,
    NodeFailed,
    NodeStarted,
    StateChanged,
    ToolReturned,
    changes_by,
)
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.origin import place_of
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import Json, is_object, plain
from greenroom.ledger.query import MISSING, matches_state
from greenroom.world.presence import placed
from greenroom.world.records import (
    ErrorFields,
    RecordedFailure,
    describe_error,
    raised_before,
    record_conflicts,
)
from greenroom.world.world import Context, World


class Done(Struct, frozen=True):
    """A node ended with this output."""

    output: Json


class Paused(Struct, frozen=True):
    """A node waits for these answers."""

    yields: tuple[Yield, ...]


Walked = Done | Paused

MAX_ROUNDS = 100


class GraphWalk(Struct, frozen=True, eq=False):
    """One walk over a graph, as far as it can go now."""

    ledger: Ledger
    world: World
    index: VoiceIndex
    root: str

    async def walk(self, node: Node, base: str, given: Json) -> Walked:
        """Run a node below `base`, or take its end from the ledger."""
        path, attempt, index = f"{base}/{node.segment}", 1, self.index
        if index.failed:
            path, attempt = self._attempt(node, path)
        if path in index.ended:
            return Done(index.ended[path].output)
        if path in index.started:
            given = index.started[path].input
        else:
            given = self.world.record(NodeStarted(path=path, node=node.id, input=given)).input
        try:
            if isinstance(node.flow, Agent):
                asking = AgentRun(node.flow, node.id, path, self.world, index)
                waits = await asking.run()
                return Paused(waits) if waits else self._end(node, path, asking.output)
            return await self._run(node, path, given)
        except GreenroomError:
            raise
        except Exception as error:
            self.world.record(
                NodeFailed(path=path, node=node.id, attempt=attempt, **_failure(error))
            )
            if attempt > _retries(node.flow):
                raise AgentFailed(
                    f"{node.segment!r} failed at {path}: {_describe(error)}"
                ) from error
        return await self.walk(node, base, given)

    def _attempt(self, node: Node, path: str) -> tuple[str, int]:
        """The path of the attempt that is due; recorded failures count."""
        failed, attempt, here = self.index.failed, 1, path
        while here in failed:
            if isinstance(node.flow, Parallel):
                self._cancel_branches(node, here)
                raise raised_before(failed[here].error, failed[here].error_type)
            if attempt > _retries(node.flow):
                again = RecordedFailure(failed[here].error, failed[here].error_type)
                raise AgentFailed(f"{node.segment!r} failed at {here}: {_describe(again)}")
            attempt += 1
            here = f"{path}~{attempt}"
        return here, attempt

    async def _run(self, node: Node, path: str, given: Json) -> Walked:
        match node.flow:
            case Step() as step:
                return await self._step(node, step, path, given)
            case Sequence():
                return await self._sequence(node, path, given)
            case Parallel():
                return await self._parallel(node, path, given)
            case Loop() as loop:
                return await self._loop(node, loop, path, given)
            case Route() as route:
                return await self._route(node, route, path, given)
            case other:
                raise BadAgent(f"{other!r} cannot be run.")

    def _end(self, node: Node, path: str, output: Any, changes: tuple[Change, ...] = ()) -> Done:
        asks: tuple[Change, ...] = ()
        if type(output) is not str:
            output, asks = unwrapped(output)
            if asks and self.world.voice == "agent":
                changes, asks = (*changes, *asks), ()
            output = plain(output, f"the output of {node.segment!r}")
        written = changes
        if isinstance(node.flow, Agent | Step) and node.flow.writes:
            written = (*changes, *declared_changes(node.flow, output, changes))
        if written:
            held = self.ledger.fold(self.world.voice, branch_of(path))
            check_appends(held, written, f"{node.segment!r}")
        event = NodeEnded(path=path, node=node.id, output=output, changes=written, asks=asks)
        return Done(self.world.record(event).output)

    async def _step(self, node: Node, step: Step, path: str, given: Json) -> Done:
        # A copy: what the step does to its input must not be done to the ledger.
        context = Context(self.world, path, input=plain(given))
        with placed(path):
            output = step.fn(**step.arguments(context))
            if inspect.isawaitable(output):
                output = await output
        return self._end(node, path, output, context.changes())

    async def _sequence(self, node: Node, path: str, given: Json) -> Walked:
        for key, child in node.children.items():
            walked = await self.walk(child, f"{path}.{key}", given)
            if isinstance(walked, Paused):
                return walked
            given = walked.output
        return self._end(node, path, given)

    async def _parallel(self, node: Node, path: str, given: Json) -> Walked:
        branches = {key: f"{path}.{key}" for key in node.children}
        work = [
            self.walk(child, branches[key], given)
            for key, child in node.children.items()
            if f"{branches[key]}/{child.segment}" not in self.index.cancelled
        ]
        try:
            walked = await together(work)
        except Refusal:
            raise
        except Exception as error:
            # First why, then whom it stopped: a run cut in between knows the reason.
            self.world.record(
                NodeFailed(path=path, node=node.id, attempt=1, **describe_error(error))
            )
            self._cancel_branches(node, path)
            raise
        waiting = tuple(y for item in walked if isinstance(item, Paused) for y in item.yields)
        if waiting:
            return Paused(waiting)
        changes = self._merged(path, list(branches.values()))
        names = [child.segment for child in node.children.values()]
        outputs: dict[str, Json] = {}
        for (key, child), item in zip(node.children.items(), walked, strict=True):
            assert isinstance(item, Done)
            is_only = names.count(child.segment) == 1
            outputs[child.segment if is_only else f"{child.segment}.{key}"] = item.output
        return self._end(node, path, outputs, changes)

    def _cancel_branches(self, node: Node, fork: str) -> None:
        index = self.index
        for key, child in node.children.items():
            path = f"{fork}.{key}/{child.segment}"
            over = path in index.ended or path in index.failed or path in index.cancelled
            # A flow's parts go on where its own path ends: `seq.1/...`, `loop#2/...`.
            inside = (f"{path}.", f"{path}#", f"{path}~")
            broke = any(failed.startswith(inside) for failed in index.failed)
            if path in index.started and not over and not broke:
                self.world.record(BranchCancelled(path=path))

    def _merged(self, path: str, branches: list[str]) -> tuple[Change, ...]:
        """What the branches did to the state, in declared order; conflicts are written down."""
        writers: dict[str, list[Change]] = {branch: [] for branch in branches}
        for event in self.ledger:
            if event.voice != self.world.voice:
                continue
            if isinstance(event, ToolReturned | NodeEnded | StateChanged) and event.changes:
                if (place := branch_of(event.path)) in writers:
                    writers[place] += changes_by(event)
            elif isinstance(event, Answered):
                # What the user changed after a branch had written there must outlast the merge.
                for written in writers.values():
                    written += [c for c in event.changes if any(c.meets(w) for w in written)]
        record_conflicts(self.world, path, writers.values())
        return tuple(change for branch in branches for change in writers[branch])

    async def _loop(self, node: Node, loop: Loop, path: str, given: Json) -> Walked:
        body = node.children["body"]
        for number in count(1):
            here = f"{path}#{number}"
            walked = await self.walk(body, here, given)
            if isinstance(walked, Paused):
                return walked
            given = walked.output
            if self._stops(loop, here, given) or self._is_last(loop, number, path):
                return self._end(node, path, given)
            if loop.awaits_input:
                wanted = self._await_message(here, given)
                if wanted is not None:
                    return Paused((wanted,))
                given = self.index.answers[self.world.new_id(here)].value
        raise AssertionError("a loop ends by its own decision")

    def _is_last(self, loop: Loop, number: int, path: str) -> bool:
        """Whether a loop without `until` has gone its rounds; one with it has gone too far."""
        limit = loop.max_rounds or (None if loop.awaits_input else MAX_ROUNDS)
        if limit is None or number < limit:
            return False
        if loop.until is None:
            return True
        raise LoopLimit(
            f"the loop at {path} went {limit} rounds without ending. Raise max_rounds, or look why "
            f"its `until` never holds."
        )

    def _stops(self, loop: Loop, here: str, output: Json) -> bool:
        if loop.until is None:
            return False
        if here not in self.index.decided:
            held = self._decide(loop.until, loop.wants, here, output)
            self.world.record(Decided(path=here, choice="stop" if held else "again"))
        return self.index.decided[here] == "stop"

    def _await_message(self, here: str, output: Json) -> Yield | None:
        """The wait for the user's next message, or None when it is there."""
        key = self.world.new_id(here)
        if key in self.index.answers:
            return None
        text = as_text(output)
        if here not in self.index.spoken:
            self.world.record(AgentSaid(path=here, text=text))
        wanted = Yield(key, "message", prompt=text, invocation=self.root)
        open_yield(self.world, wanted, here)
        return wanted

    async def _route(self, node: Node, route: Route, path: str, given: Json) -> Walked:
        if path not in self.index.decided:
            choice = self._decide(route.on, route.wants, path, given)
            key = str(choice) if str(choice) in node.children else route.otherwise
            if not key:
                raise AgentFailed(
                    f"the route at {path} chose {choice!r}, but its branches are "
                    f"{sorted(node.children)}. Add that branch, or `otherwise=`."
                )
            self.world.record(Decided(path=path, choice=key))
        key = self.index.decided[path]
        walked = await self.walk(node.children[key], f"{path}.{key}", given)
        return walked if isinstance(walked, Paused) else self._end(node, path, walked.output)

    def _decide(self, on: Decider, wants: tuple[str, ...], path: str, value: Json) -> Any:
        state = self.ledger.fold(self.world.voice, branch_of(path))
        if isinstance(on, str):
            found: Any = state
            for part in on.split("."):
                found = found.get(part, MISSING) if is_object(found) else MISSING
            return found
        if not callable(on):
            return matches_state(state, on)
        context = Context(self.world, path, input=plain(value), output=plain(value))
        choice = on(**named_arguments(wants, context))
        if context.changes():
            raise BadAgent(f"the decision at {path} changed the state; decide only, or use a step.")
        return choice


def _retries(flow: Flow) -> int:
    return flow.retries if isinstance(flow, Agent | Step) else 0


def _failure(error: Exception) -> ErrorFields:
    """An error as the ledger has it, with the place in the author's code where it arose."""
    found, place = describe_error(error), place_of(error)
    return {**found, "error": f"{found['error']} ({place})"} if place else found


def _describe(error: Exception) -> str:
    found = _failure(error)
    name, words = found["error_type"], found["error"]
    # One that says nothing is called by its name alone.
    return words if words.split(" (", 1)[0] == name else f"{name}: {words}"
