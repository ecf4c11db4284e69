"""The native interpreter: it walks the graph from its root, skipping what the ledger knows.

Nothing is kept between two walks but the ledger. A node whose end is recorded gives its recorded
output, a decision that was taken is not asked for again, and an agent node goes on from its last
recorded reply. So a run may be cut at any event and continued anywhere.
"""

import inspect
from dataclasses import dataclass, replace
from typing import Any

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
from greenroom.agents.graph import Graph, Node
from greenroom.agents.signature import output_adapter
from greenroom.backends.backend import Yield
from greenroom.backends.native.history import as_text, conversation
from greenroom.backends.together import together
from greenroom.errors import AgentFailed, BadAgent, GreenroomError, LoopLimit
from greenroom.ledger.changes import Change, unwrapped
from greenroom.ledger.events import (
    AgentSaid,
    BranchCancelled,
    Corrected,
    Decided,
    ModelReplied,
    NodeEnded,
    NodeFailed,
    NodeStarted,
    StateChanged,
    ToolReturned,
    YieldOpened,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import Json, is_object, plain
from greenroom.ledger.query import MISSING, matches_state
from greenroom.ledger.trail import Trail
from greenroom.models.model import ModelRequest, model_name
from greenroom.world.recording import begin_call, described, fail_call, record_conflicts
from greenroom.world.world import Context, Pending, ToolRequest, World


@dataclass(frozen=True, slots=True)
class Done:
    """A node ended with this output."""

    output: Json


@dataclass(frozen=True, slots=True)
class Paused:
    """A node waits for these answers."""

    yields: tuple[Yield, ...]


Walked = Done | Paused

_CORRECTIONS = 2


class Play:
    """One walk over a graph, as far as it can go now."""

    __slots__ = ("graph", "ledger", "root", "world")

    def __init__(self, graph: Graph, ledger: Ledger, world: World, root: str) -> None:
        self.graph = graph
        self.ledger = ledger
        self.world = world
        self.root = root

    @property
    def trail(self) -> Trail:
        """Where the run stands now."""
        return self.ledger.trail(self.world.voice)

    async def walk(self, node: Node, base: str, given: Json) -> Walked:
        """Run a node below `base`, or take its end from the ledger."""
        path, attempt = self._attempt(node, f"{base}/{node.segment}")
        trail = self.trail
        if path in trail.ended:
            return Done(trail.ended[path].output)
        if path in trail.started:
            given = trail.started[path].input
        else:
            given = self.world.record(NodeStarted(path=path, node=node.id, input=given)).input
        try:
            return await self._run(node, path, given)
        except GreenroomError:
            raise
        except Exception as error:
            self.world.record(
                NodeFailed(path=path, node=node.id, attempt=attempt, **described(error))
            )
            if attempt > _retries(node.flow):
                raise AgentFailed(f"{node.segment!r} failed at {path}: {_told(error)}") from error
        return await self.walk(node, base, given)

    def _attempt(self, node: Node, path: str) -> tuple[str, int]:
        """The path of the attempt that is due; recorded failures count."""
        failed, attempt, here = self.trail.failed, 1, path
        while here in failed:
            if attempt > _retries(node.flow):
                raise AgentFailed(f"{node.segment!r} failed at {here}: {failed[here].error}")
            attempt += 1
            here = f"{path}~{attempt}"
        return here, attempt

    async def _run(self, node: Node, path: str, given: Json) -> Walked:
        match node.flow:
            case Agent() as agent:
                return await self._agent(node, agent, path)
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
        output, asks = unwrapped(output)
        output = plain(output, f"the output of {node.segment!r}")
        key = getattr(node.flow, "writes", "")
        written = (*changes, Change("session", (key,), "set", output)) if key else changes
        event = NodeEnded(path=path, node=node.id, output=output, changes=written, asks=asks)
        return Done(self.world.record(event).output)

    # Agents

    async def _agent(self, node: Node, agent: Agent, path: str) -> Walked:
        while True:
            steps = self.trail.steps.get(path, ())
            last = steps[-1] if steps else None
            if isinstance(last, ModelReplied):
                if last.calls:
                    waiting = await self._settle(agent, path, last.calls)
                    if waiting:
                        return Paused(waiting)
                else:
                    done = self._answer(node, agent, path, last)
                    if done is not None:
                        return done
            if sum(isinstance(step, ModelReplied) for step in steps) >= agent.max_steps:
                raise LoopLimit(
                    f"agent {agent.name!r} asked its model {agent.max_steps} times at {path} and "
                    f"is not done. Raise max_steps, or look why it goes round in circles."
                )
            await self.world.call_model(self._request(node, agent, path), agent.model.respond)

    def _request(self, node: Node, agent: Agent, path: str) -> ModelRequest:
        trail = self.trail
        state = self.ledger.fold(self.world.voice, branch_of(path))
        adapter = output_adapter(agent.output)
        return ModelRequest(
            agent=agent.name,
            messages=tuple(conversation(agent, trail, node.id, path, state)),
            instructions=agent.instructions,
            tools=tuple(agent.tools),
            output_schema=adapter.json_schema() if adapter else None,
            model=model_name(agent.model),
            path=path,
            node=node.id,
            n=trail.reply_number(node.id, path),
        )

    def _answer(self, node: Node, agent: Agent, path: str, reply: ModelReplied) -> Done | None:
        """The node's end, or None after telling the model what is wrong with its answer."""
        if not reply.text.strip():
            raise AgentFailed(
                f"agent {agent.name!r} answered with nothing: no text and no tool call."
            )
        adapter = output_adapter(agent.output)
        if adapter is None:
            return self._end(node, path, reply.text)
        try:
            value = adapter.dump_python(adapter.validate_json(reply.text), mode="json")
        except ValueError as error:
            return self._correct(agent, path, error)
        return self._end(node, path, value)

    def _correct(self, agent: Agent, path: str, error: ValueError) -> None:
        told = sum(isinstance(step, Corrected) for step in self.trail.steps.get(path, ()))
        if told >= _CORRECTIONS:
            raise AgentFailed(
                f"agent {agent.name!r} did not answer in its output schema after being told "
                f"{told} times: {error}"
            )
        self.world.record(
            Corrected(path=path, text=f"Your answer does not fit the output schema: {error}")
        )

    async def _settle(
        self, agent: Agent, path: str, calls: tuple[ToolCall, ...]
    ) -> tuple[Yield, ...]:
        """Bring every call of a reply to its end; what waits for the user is returned."""
        trail = self.trail
        for call in calls:
            if call.id in trail.answers and call.id not in trail.results:
                self._take_answer(path, call, trail.answers[call.id].value)
        due = [call for call in calls if call.id not in self.trail.results]
        if not due:
            return ()
        pending = await together([self._call(agent, path, call) for call in due])
        return tuple(item for item in pending if item is not None)

    def _take_answer(self, path: str, call: ToolCall, value: Json) -> None:
        self.world.record(
            ToolReturned(path=path, call_id=call.id, tool=call.tool, value=value, source="user")
        )

    async def _call(self, agent: Agent, path: str, call: ToolCall) -> Yield | None:
        tool = agent.tool(call.tool)
        request = ToolRequest(call.id, call.tool, call.args, path)
        if tool is None:
            known = ", ".join(t.name for t in agent.tools) or "none"
            return self._reject(request, f"there is no tool {call.tool!r}; the tools are: {known}")
        try:
            args = tool.checked(call.args)
        except ValueError as error:
            return self._reject(request, f"wrong arguments: {error}")
        request = replace(
            request,
            yields=tool.yields,
            read_only=tool.read_only,
            origin=tool,
            n=self.trail.call_number(call.tool, call.id, path),
        )
        outcome = await self.world.call_tool(request, lambda context: tool.run(args, context))
        return self._open_tool_yield(request, tool) if isinstance(outcome, Pending) else None

    def _reject(self, request: ToolRequest, why: str) -> None:
        """A call that cannot reach any body; the model is told why."""
        begin_call(self.world, request)
        fail_call(self.world, request, ValueError(why), "refused")

    def _open_tool_yield(self, request: ToolRequest, tool: Any) -> Yield:
        wanted = Yield(
            request.id,
            "tool",
            tool=request.tool,
            call_id=request.id,
            args=dict(request.args),
            invocation=self.root,
            check=lambda value, strict: tool.checked_answer(value, strict=strict),
        )
        self._open(wanted, request.path)
        return wanted

    def _open(self, wanted: Yield, path: str) -> None:
        if wanted.id not in self.trail.yields:
            self.world.record(
                YieldOpened(
                    path=path,
                    yield_id=wanted.id,
                    type=wanted.type,
                    tool=wanted.tool,
                    call_id=wanted.call_id,
                    args=wanted.args,
                    prompt=wanted.prompt,
                )
            )

    # Steps and flow

    async def _step(self, node: Node, step: Step, path: str, given: Json) -> Done:
        context = Context(self.world, path, input=given)
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
        work = [self.walk(child, branches[key], given) for key, child in node.children.items()]
        try:
            walked = await together(work)
        except Exception:
            self._cancel_branches(node, branches)
            raise
        waiting = tuple(y for item in walked if isinstance(item, Paused) for y in item.yields)
        if waiting:
            return Paused(waiting)
        changes = self._merged(path, list(branches.values()))
        outputs = {
            self._branch_name(node, key): item.output
            for key, item in zip(node.children, walked, strict=True)
            if isinstance(item, Done)
        }
        return self._end(node, path, outputs, changes)

    def _branch_name(self, node: Node, key: str) -> str:
        segments = [child.segment for child in node.children.values()]
        segment = node.children[key].segment
        return segment if segments.count(segment) == 1 else f"{segment}.{key}"

    def _cancel_branches(self, node: Node, branches: dict[str, str]) -> None:
        trail = self.trail
        for key, branch in branches.items():
            path = f"{branch}/{node.children[key].segment}"
            if path in trail.started and path not in trail.ended and path not in trail.failed:
                self.world.record(BranchCancelled(path=path))

    def _merged(self, path: str, branches: list[str]) -> tuple[Change, ...]:
        """What the branches did to the state, in declared order; conflicts are written down."""
        writers: dict[str, list[Change]] = {branch: [] for branch in branches}
        for event in self.ledger:
            if isinstance(event, ToolReturned | NodeEnded | StateChanged) and event.changes:
                place = branch_of(event.path)
                if place in writers and event.voice == self.world.voice:
                    writers[place] += event.changes
        record_conflicts(self.world, path, writers.values())
        return tuple(change for branch in branches for change in writers[branch])

    async def _loop(self, node: Node, loop: Loop, path: str, given: Json) -> Walked:
        body = node.children["body"]
        for number in range(1, loop.max_rounds + 1):
            here = f"{path}#{number}"
            walked = await self.walk(body, here, given)
            if isinstance(walked, Paused):
                return walked
            if self._stops(loop, here, walked.output):
                return self._end(node, path, walked.output)
            given = walked.output
            if loop.awaits_input:
                wanted = self._await_message(here, walked.output)
                if wanted is not None:
                    return Paused((wanted,))
                given = self.trail.answers[self.world.new_id(here)].value
        raise LoopLimit(
            f"the loop at {path} went {loop.max_rounds} rounds without ending. Raise max_rounds, or "
            f"look why its `until` never holds."
        )

    def _stops(self, loop: Loop, here: str, output: Json) -> bool:
        if loop.until is None:
            return False
        if here not in self.trail.decided:
            held = self._decide(loop.until, loop.wants, here, output)
            self.world.record(Decided(path=here, choice="stop" if held else "again"))
        return self.trail.decided[here] == "stop"

    def _await_message(self, here: str, output: Json) -> Yield | None:
        """The wait for the user's next message, or None when it is there."""
        key = self.world.new_id(here)
        if key in self.trail.answers:
            return None
        text = as_text(output)
        if here not in self.trail.spoken:
            self.world.record(AgentSaid(path=here, text=text))
        wanted = Yield(key, "message", prompt=text, invocation=self.root)
        self._open(wanted, here)
        return wanted

    async def _route(self, node: Node, route: Route, path: str, given: Json) -> Walked:
        if path not in self.trail.decided:
            choice = self._decide(route.on, route.wants, path, given)
            key = str(choice) if str(choice) in node.children else route.otherwise
            if not key:
                raise AgentFailed(
                    f"the route at {path} chose {choice!r}, but its branches are "
                    f"{sorted(node.children)}. Add that branch, or `otherwise=`."
                )
            self.world.record(Decided(path=path, choice=key))
        key = self.trail.decided[path]
        walked = await self.walk(node.children[key], f"{path}.{key}", given)
        return walked if isinstance(walked, Paused) else self._end(node, path, walked.output)

    def _decide(self, on: Decider, wants: tuple[str, ...], path: str, value: Json) -> Any:
        state = self.ledger.fold(self.world.voice, branch_of(path))
        if isinstance(on, str):
            return _looked_up(state, on)
        if not callable(on):
            return matches_state(state, on)
        context = Context(self.world, path, input=value, output=value)
        choice = on(**named_arguments(wants, context))
        if context.changes():
            raise BadAgent(f"the decision at {path} changed the state; decide only, or use a step.")
        return choice


def _retries(flow: Flow) -> int:
    return flow.retries if isinstance(flow, Agent | Step) else 0


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _looked_up(state: Json, dotted: str) -> Json:
    value = state
    for part in dotted.split("."):
        value = value.get(part, MISSING) if is_object(value) else MISSING
    return value
