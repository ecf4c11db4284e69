"""An agent node: its model is asked, its tools are called, until there is an answer or a wait."""

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from greenroom.agents.agent import Agent
from greenroom.agents.handoffs import transfer_tools, transfers
from greenroom.agents.instructions import filled
from greenroom.agents.signature import output_adapter, output_schema
from greenroom.backends.backend import Yield
from greenroom.backends.native.approval_answers import check_approved
from greenroom.backends.native.history import conversation, handed_over
from greenroom.backends.task_group import together
from greenroom.backends.turn_ends import wait_opened
from greenroom.errors import AgentFailed, LoopLimit
from greenroom.ledger.attachments import message_value
from greenroom.ledger.events import (
    Corrected,
    ModelFailed,
    ModelReplied,
    ToolReturned,
)
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.messages import ToolCall, is_blank
from greenroom.ledger.paths import branch_of, root_of
from greenroom.ledger.plain import Json
from greenroom.models.model import Model, ModelRequest, model_name
from greenroom.world.records import (
    begin_call,
    fail_call,
    failing_as_recorded,
    raised_before,
)
from greenroom.world.world import Pending, SealedBody, ToolRequest, World

if TYPE_CHECKING:
    from greenroom.backends.native.listeners import Outlet

_CORRECTIONS = 2

Waits = tuple[Yield, ...]


class AgentRun(Struct, eq=False):
    """One run of an agent node, continued from its last recorded reply."""

    agent: Agent
    node: str
    path: str
    world: World
    index: VoiceIndex
    team: Mapping[str, Agent] = {}
    """All agents that may take over the conversation here, by their static ids."""
    output: Json = None
    """The agent's answer, in its output type."""
    handed_to: str = ""
    """The agent that it handed the conversation to, if it did."""
    outlet: "Outlet | None" = None
    """Where the pieces of its replies go, if anyone takes them."""

    async def run(self) -> Waits:
        """Continue until the agent has answered; returns what it waits for, if anything."""
        agent, path, index, world = self.agent, self.path, self.index, self.world
        while True:
            steps = index.steps.get(path)
            if steps:
                last = steps[-1]
                if isinstance(last, ModelReplied):
                    if not last.calls:
                        if self.has_answered(last):
                            return ()
                    elif waits := await self._settle(last.calls):
                        return waits
                    elif self.team and (to := handed_over(last.calls, self.transfers)):
                        self.handed_to = to
                        return ()
                elif isinstance(last, ModelFailed):
                    raise raised_before(last.error, last.error_type, last.ours)
            # An agent resolves a model's name when it is created.
            model: Model = agent.model  # pyright: ignore[reportAssignmentType]
            on_delta = None if self.outlet is None else self.outlet.open(path)
            with failing_as_recorded():
                reply = await world.call_model(await self.request(), model.respond, on_delta)
            if self.outlet is not None and reply.calls:
                self.outlet.close_reply()

    async def request(self) -> ModelRequest:
        """The next request to the model; LoopLimit if `max_steps` allows no more."""
        agent, index, node, path = self.agent, self.index, self.node, self.path
        asked = index.replies.get(path, 0)
        if asked >= agent.max_steps:
            raise LoopLimit(
                f"agent {agent.name!r} asked its model {asked} times at {path} and is not done. Raise "
                f"max_steps, or find out why it keeps going in circles."
            )
        is_only_run = len(index.runs.get(node, ())) < 2
        messages = await conversation(self)
        if agent.accepts:
            agent.check_modalities([a for m in messages for a in m.attachments], "accepts")
        instructions = agent.instructions
        if agent.reads:
            # Read from the branch's own state, which is the same in a resumed run.
            state = self.world.ledger.fold(self.world.voice, branch_of(path))
            instructions = filled(instructions, agent.reads, state, f"agent {agent.name!r}")
        return ModelRequest(
            agent=agent.name,
            messages=messages,
            instructions=instructions,
            tools=(*agent.toolbox, *transfer_tools(agent, self._by_name))
            if self.team
            else agent.toolbox,
            output_schema=None if agent.output is None else output_schema(agent.output),
            model=model_name(agent.model),
            path=path,
            node=node,
            n=asked if is_only_run else index.reply_number(node, path),
        )

    @property
    def _by_name(self) -> dict[str, Agent]:
        return {agent.name: agent for agent in self.team.values()}

    @property
    def transfers(self) -> Mapping[str, str]:
        """The tools by which its model hands over, and the agent that each leads to."""
        return transfers(self.agent, self._by_name) if self.team else {}

    def has_answered(self, reply: ModelReplied) -> bool:
        """Accept the model's answer, or record for the model what is wrong with it."""
        text = reply.text
        self.agent.check_modalities(reply.attachments, "gives")
        if is_blank(text) and not reply.attachments:
            raise AgentFailed(
                f"agent {self.agent.name!r} answered with nothing: no text and no tool call."
            )
        if self.agent.output is None:
            self.output = message_value(text, reply.attachments)
            return True
        adapter = output_adapter(self.agent.output)
        try:
            self.output = adapter.dump_python(adapter.validate_json(text), mode="json")
        except ValueError as error:
            corrected = sum(isinstance(step, Corrected) for step in self.index.steps[self.path])
            if corrected >= _CORRECTIONS:
                raise AgentFailed(
                    f"agent {self.agent.name!r} did not answer in its output schema after being "
                    f"corrected {corrected} times: {error}"
                ) from error
            text = f"Your answer does not fit the output schema: {error}"
            self.world.record(Corrected(path=self.path, text=text))
            return False
        return True

    async def _settle(self, calls: tuple[ToolCall, ...]) -> Waits:
        """Complete every call of a reply; returns the calls that wait for the user."""
        if self.team:
            # A handoff is not a tool call: it waits until the other calls of the reply have ended.
            calls = tuple(call for call in calls if call.tool not in self.transfers)
        if self.index.answers:
            self.take_answers(calls)
        due = [self.call(call) for call in calls if call.id not in self.index.results]
        return tuple(chain.from_iterable(await together(due)))

    def take_answers(self, calls: tuple[ToolCall, ...]) -> None:
        """Record what the user has answered to calls that only they can answer."""
        index, path = self.index, self.path
        for call in calls:
            if call.id in index.answers and call.id not in index.results:
                value = index.answers[call.id].value
                self.world.record(
                    ToolReturned(
                        path=path, call_id=call.id, tool=call.tool, value=value, source="user"
                    )
                )

    async def call(self, call: ToolCall) -> Waits:
        """Complete one call, so that the index has its end; or return what it waits for."""
        tool = self.agent.tool(call.tool)
        if tool is None:
            names = (*(tool.name for tool in self.agent.toolbox), *self.transfers)
            known = ", ".join(names) or "none"
            return self._reject(call, f"there is no tool {call.tool!r}; the tools are: {known}")
        try:
            args = tool.checked(call.args)
        except ValueError as error:
            return self._reject(call, f"wrong arguments: {error}")
        n = self.index.call_number(call.tool, call.id, self.path)
        request = ToolRequest(
            call.id, call.tool, call.args, self.path, tool.yields, tool.read_only, tool, n
        )
        body = SealedBody(lambda context: tool.run(args, context))
        outcome = await self.world.call_tool(request, body)
        if not isinstance(outcome, Pending):
            return ()

        def check(value: Json, strict: bool) -> Json:
            return tool.checked_answer(value, strict=strict)

        if outcome.approval:
            return (ask_approval(self.world, request, outcome.approval),)
        asked, root = dict(request.args), root_of(self.path)
        wait = Yield(call.id, "tool", call.tool, call.id, asked, "", root, check)
        open_yield(self.world, wait, self.path)
        return (wait,)

    def _reject(self, call: ToolCall, why: str) -> Waits:
        """Refuse a call that no tool body can take, and tell the model why."""
        request = ToolRequest(call.id, call.tool, call.args, self.path)
        begin_call(self.world, request)
        fail_call(self.world, request, ValueError(why), "refused")
        return ()


def ask_approval(world: World, request: ToolRequest, yield_id: str) -> Yield:
    """The wait for whether a call may be made, recorded."""
    wait = Yield(
        yield_id,
        "tool",
        request.tool,
        request.id,
        dict(request.args),
        f"May {request.tool} be called?",
        root_of(request.path),
        check_approved,
    )
    open_yield(world, wait, request.path)
    return wait


def open_yield(world: World, wait: Yield, path: str) -> None:
    """Record that the agent waits; once, however often the run is resumed."""
    if wait.id not in world.ledger.index_of(world.voice).yields:
        world.record(wait_opened(wait, path))
