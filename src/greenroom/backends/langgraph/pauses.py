"""Interrupts of a graph: what its user is asked, and the answers that let it continue."""

from collections.abc import Sequence
from typing import Any, Literal, cast

from langgraph.types import Interrupt
from msgspec import Struct

from greenroom.backends.backend import Yield
from greenroom.backends.foreign import jsonable
from greenroom.backends.invocation import Invocation, approval, check_confirmed
from greenroom.errors import UserAgentFailed
from greenroom.ledger.events import ModelReplied, ToolReturned
from greenroom.ledger.plain import Json, as_array, as_object, as_text, is_object, plain

_DECISIONS = frozenset({"approve", "edit", "reject", "respond"})

Kind = Literal["message", "value", "decision", "result"]


class Pause(Struct, frozen=True):
    """One question to the user, and the interrupt that its answer belongs to."""

    yield_id: str
    interrupt: str
    kind: Kind
    tool: str = ""
    batched: bool = False
    """Whether the interrupt asked several questions at once, and takes all answers as a list."""


async def waits_for(
    invocation: Invocation, found: Sequence[Interrupt[Any]], nodes: dict[str, str]
) -> tuple[list[Pause], list[Yield]]:
    """What each interrupt asks; `nodes` names the node that an interrupt comes from.

    A question that the World answers itself needs no user: it has a pause, but no wait.
    """
    asker = _Asker(invocation)
    for one in found:
        value = plain(jsonable(one.value), "the interrupt's value")
        if is_object(value) and {"action_requests", "review_configs"} <= value.keys():
            configs = map(as_object, as_array(value["review_configs"]))
            reviews = {str(review["action_name"]): review for review in configs}
            for action in map(as_object, as_array(value["action_requests"])):
                allowed = reviews.get(str(action["name"]), {}).get("allowed_decisions")
                await asker.ask_about(one, action, allowed == ["respond"], batched=True)
        elif is_object(value) and value.get("type") == "tool_approval":
            schema: Any = one.response_schema
            wanted: Any = schema.get("properties", {}) if is_object(schema) else {}
            only_responds = wanted.get("type", {}).get("const") == "respond"
            await asker.ask_about(one, value, only_responds, batched=False)
        elif isinstance(value, str):
            asker.ask_user(one, value)
        else:
            asker.ask_value(one, nodes.get(one.id, ""), value)
    return asker.pauses, asker.yields


def resumption(invocation: Invocation, pauses: Sequence[Pause]) -> dict[str, Any]:
    """The answer to each interrupt, in the framework's form."""
    given = {answer.yield_id: answer.value for answer in invocation.answers()}
    answers: dict[str, Any] = {}
    for pause in pauses:
        said = _said(invocation, pause, given)
        if pause.batched:
            answers.setdefault(pause.interrupt, {"decisions": []})["decisions"].append(said)
        else:
            answers[pause.interrupt] = said
    return answers


def checked_decision(value: Json, strict: bool) -> Json:
    """A decision in the shape it was given, or an approval; ValueError if it is neither."""
    return value if _is_decision(value) else check_confirmed(value, strict)


def _is_decision(value: Json) -> bool:
    return is_object(value) and value.get("type") in _DECISIONS


class _Asker:
    """Turns interrupts into waits, each with its own id."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._claimed: set[str] = set()
        self.pauses: list[Pause] = []
        self.yields: list[Yield] = []

    async def ask_about(
        self, one: Interrupt[Any], action: dict[str, Json], answers_it: bool, *, batched: bool
    ) -> None:
        """Ask whether a tool may run, or what it returns if that is the only decision allowed."""
        tool, args = str(action["name"]), cast("dict[str, Json]", action["args"])
        call_id = str(action.get("tool_call_id") or self._call_of(tool, args))
        invocation = self._invocation
        if not (answers_it and call_id):
            wanted = invocation.approval_wanted(self._new_id(one, call_id), call_id, tool, args)
            self._add(Pause(wanted.id, one.id, "decision", tool, batched), wanted)
            return
        why = "only the user can answer this question; there is nothing to run."
        wanted = await invocation.ask_for_result(
            call_id, tool, args, self._path_of(call_id), no_body=why
        )
        self._add(Pause(call_id, one.id, "result", tool, batched), wanted)

    def ask_user(self, one: Interrupt[Any], prompt: str) -> None:
        """Ask for the user's next message."""
        wanted = self._invocation.message_wanted(self._new_id(one), prompt)
        self._add(Pause(wanted.id, one.id, "message"), wanted)

    def ask_value(self, one: Interrupt[Any], node: str, value: Json) -> None:
        """Ask for a value, by the name of the node that needs it."""
        wanted = self._invocation.result_wanted(self._new_id(one), node, value)
        self._add(Pause(wanted.id, one.id, "value", node), wanted)

    def _add(self, pause: Pause, wanted: Yield | None) -> None:
        self.pauses.append(pause)
        if wanted is not None:
            self.yields.append(wanted)

    def _new_id(self, one: Interrupt[Any], *parts: str) -> str:
        # An interrupt is named after its node, so a second one of the same node has the same name.
        invocation = self._invocation
        asked = len(invocation.index.yields) + len(self.yields)
        return invocation.world.new_id(invocation.root, "interrupt", one.id, asked, *parts)

    def _path_of(self, call_id: str) -> str:
        """The path of the model request whose reply made this call."""
        for path, steps in self._invocation.index.steps.items():
            replies = [step for step in steps if isinstance(step, ModelReplied)]
            if any(call.id == call_id for reply in replies for call in reply.calls):
                return path
        return self._invocation.root

    def _call_of(self, tool: str, args: dict[str, Json]) -> str:
        """The id of the call behind an action; the framework does not give it."""
        for reply in reversed(self._invocation.index.replied):
            for call in reply.calls:
                fits = call.tool == tool and dict(call.args) == args
                if fits and call.id not in self._claimed:
                    self._claimed.add(call.id)
                    return call.id
        return ""


def _said(invocation: Invocation, pause: Pause, given: dict[str, Json]) -> Any:
    if pause.kind == "result" and pause.yield_id in invocation.index.results:
        end = invocation.index.results[pause.yield_id]
        value = plain(end.value) if isinstance(end, ToolReturned) else end.error
        return {"type": "respond", "message": as_text(value)}
    if pause.yield_id not in given:
        raise UserAgentFailed(f"the wait {pause.yield_id!r} of {pause.tool!r} was not answered.")
    value = given[pause.yield_id]
    match pause.kind:
        case "result":
            invocation.record_result(pause.yield_id, value)
            return {"type": "respond", "message": as_text(value)}
        case "decision" if not _is_decision(value):
            said = approval(value)
            if said["confirmed"]:
                return {"type": "approve"}
            why = said.get("message") or said.get("reason")
            return {"type": "reject", "message": why} if why else {"type": "reject"}
        case _:
            return value
