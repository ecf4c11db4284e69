"""A flow run by Greenroom and, compiled, by google-adk: what each asked, called, answered and left."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.genai import types

from greenroom.agents import Agent, Flow
from greenroom.backends.adk import to_adk
from greenroom.backends.adk.compiled.past import _deleted, ledger_of, scopes_of
from greenroom.backends.backend import Failed, Waiting
from greenroom.backends.native import NativeBackend
from greenroom.ledger import (
    Answer,
    Answered,
    Ledger,
    ModelReplied,
    NodeEnded,
    RunStarted,
    ToolFailed,
    ToolReturned,
    UserSaid,
)
from greenroom.ledger.paths import branches_of, fork_of
from greenroom.models import ModelRequest, Scripted
from greenroom.world.live import LiveWorld

Answers = Callable[[str, dict[str, Any]], Any]


@dataclass
class Heard:
    """All that a run did, to be compared; what happened side by side is kept by its place."""

    questions: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    facts: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    answers: list[Any] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)


class Recorded:
    """A model that notes what it is asked."""

    def __init__(self, model: Any, heard: Heard) -> None:
        self.name, self._model, self._heard = model.name, model, heard

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> Any:
        asked = [
            request.agent,
            request.instructions,
            [[m.role, m.text, [(c.tool, c.args) for c in m.calls]] for m in request.messages],
            [(tool.name, tool.description, tool.parameters) for tool in request.tools],
            request.output_schema,
            request.n,
        ]
        self._heard.questions[request.path].append(asked)
        return await self._model.respond(request, on_delta)


def noted(flow: Flow, heard: Heard, tools: Sequence[Any] | None = None) -> Flow:
    """The flow with models that note what they are asked, and perhaps with other tools."""
    parts = {key: noted(part, heard, tools) for key, part in flow.children().items()}
    made = flow.with_children(parts) if parts else flow
    if not isinstance(made, Agent):
        return made
    if isinstance(made.model, Scripted):
        made = replace(made, model=Recorded(made.model, heard))
    return replace(made, tools=tools) if made.tools and tools is not None else made


async def natively(
    flow: Flow, says: Sequence[str], answer: Answers, state: Any = None, tools: Any = None
) -> Heard:
    heard, ledger = Heard(), Ledger()
    backend, world = NativeBackend(noted(flow, heard, tools)), LiveWorld(ledger)
    world.record(RunStarted(run_id="run", state=state or {}))
    for message in says:
        world.record(UserSaid(text=message))
        outcome = await backend.advance(ledger, world)
        while isinstance(outcome, Waiting):
            given = [
                Answer(yield_id=w.id, value=answer(w.tool or "next_message", dict(w.args or {})))
                for w in outcome.yields
            ]
            world.record(Answered(answers=tuple(given)))
            outcome = await backend.advance(ledger, world)
        heard.answers.append(
            ("failed", type(outcome.error).__name__)
            if isinstance(outcome, Failed)
            else outcome.output
        )
    _note(heard, ledger)
    heard.state = _kept(ledger.fold())
    return heard


async def compiled(
    flow: Flow, says: Sequence[str], answer: Answers, state: Any = None, tools: Any = None
) -> Heard:
    heard, service = Heard(), InMemorySessionService()
    app = to_adk(noted(flow, heard, tools), name="desk")
    runner = Runner(app=app, session_service=service)
    flat = {
        key if scope == "session" else f"{scope}:{key}": value
        for scope, held in (state or {}).items()
        for key, value in held.items()
    }
    session = await service.create_session(app_name="desk", user_id="u", state=flat)

    async def now() -> Session:
        found = await service.get_session(app_name="desk", user_id="u", session_id=session.id)
        assert found is not None
        return found

    for text in says:
        parts, came = [types.Part(text=text)], None
        while parts:
            message = types.Content(role="user", parts=parts)
            try:
                events = runner.run_async(user_id="u", session_id=session.id, new_message=message)
                async for event in events:
                    came = event
            except Exception as error:
                came = ("failed", type(error).__name__)
                break
            parts = [_reply(call, answer) for call in _pending(await now())]
        is_failed = isinstance(came, tuple)
        heard.answers.append(came if is_failed else _output((await now()).events[-1].output))
    last = await now()
    _note(heard, ledger_of(last))
    heard.state = _kept(scopes_of(last.state, _deleted(last.events)))
    return heard


def _output(value: Any) -> Any:
    return None if value == {"greenroom": "nothing"} else value


def _pending(session: Session) -> list[types.FunctionCall]:
    waiting: dict[str, types.FunctionCall] = {}
    for event in session.events:
        for call in event.get_function_calls():
            if call.id in (event.long_running_tool_ids or ()):
                waiting[call.id or ""] = call
        for response in event.get_function_responses():
            waiting.pop(response.id or "", None)
    return list(waiting.values())


def _reply(call: types.FunctionCall, answer: Answers) -> types.Part:
    response = {"result": answer(call.name or "", dict(call.args or {}))}
    return types.Part(
        function_response=types.FunctionResponse(id=call.id, name=call.name, response=response)
    )


def _note(heard: Heard, ledger: Ledger) -> None:
    """What happened at each place; how far the branches of a fork that failed got is an accident of time."""
    index = ledger.index_of()

    def is_left_out(path: str) -> bool:
        forks = [fork_of(branch) for branch in branches_of(path)]
        return index.is_closed(path) or any(fork not in index.ended for fork in forks)

    flows = {"seq", "route", "loop", "try", "within", "approval"}
    for event in ledger:
        if is_left_out(event.path):
            continue
        noted = heard.facts[event.path]
        if isinstance(event, ModelReplied):
            noted.append(("said", event.text, [(c.tool, c.args) for c in event.calls]))
        elif isinstance(event, ToolReturned) and "approve_" not in event.tool:
            noted.append(("returned", event.tool, event.value))
        elif isinstance(event, ToolFailed):
            noted.append(("failed", event.tool, event.error))
        elif isinstance(event, NodeEnded) and event.path.rpartition("/")[2] not in flows:
            noted.append(("ended", event.output))
    for path in [p for p in heard.questions if is_left_out(p)]:
        del heard.questions[path]
    heard.facts = {path: sorted(map(repr, facts)) for path, facts in heard.facts.items() if facts}


def _kept(state: Any) -> Any:
    return {scope: dict(held) for scope, held in state.items() if held and scope != "temp"}


async def check(
    flow: Flow | Callable[[], Flow],
    says: Sequence[str] = ("begin",),
    answer: Answers = lambda tool, args: "yes",
    *,
    state: Any = None,
    tools: Any = None,
) -> Heard:
    """Run the flow both ways, and compare all that can be seen of it."""
    made = flow if isinstance(flow, Flow) else flow()
    mine = await natively(made, says, answer, state, tools)
    theirs = await compiled(made, says, answer, state, tools)
    assert theirs.answers == mine.answers
    assert theirs.facts == mine.facts
    assert dict(theirs.questions) == dict(mine.questions)
    assert theirs.state == mine.state
    return mine
