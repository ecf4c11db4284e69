"""An approval: the user is asked once, and only a yes runs what it guards."""

from typing import NoReturn

from greenroom.agents.approvals import Approved
from greenroom.agents.deciders import DECIDER_NAMES
from greenroom.agents.graph import Node
from greenroom.agents.signature import wanted_names
from greenroom.backends.backend import Yield
from greenroom.backends.native.agent_node import open_yield
from greenroom.backends.native.approval_answers import check_approved
from greenroom.backends.native.walk import GraphWalk, Paused, Walked
from greenroom.errors import AgentFailed, MockBroke, UserAgentFailed
from greenroom.ledger.events import Decided, ToolFailed, ToolReturned
from greenroom.ledger.plain import Json, is_object, plain
from greenroom.ledger.query import MISSING
from greenroom.world.world import Context, Pending, SealedBody, ToolRequest

_UNASKED, _ASKED, _APPROVED, _DENIED = "unasked", "asked", "approved", "denied"


async def run_approved(walk: GraphWalk, node: Node, path: str, given: Json) -> Walked:
    """Ask if necessary; then run what is guarded, or what happens instead."""
    settled = await decide_approval(walk, node, path, given)
    if isinstance(settled, Yield):
        return Paused((settled,))
    key, given = settled
    walked = await walk.walk(node.children[key], f"{path}.{key}", given)
    return walked if isinstance(walked, Paused) else walk.end(node, path, walked.output)


async def decide_approval(
    walk: GraphWalk, node: Node, path: str, given: Json
) -> Yield | tuple[str, Json]:
    """The wait for the user's answer; or the part to run, and its input."""
    flow, decided = node.flow, walk.index.decided
    assert isinstance(flow, Approved)
    if path not in decided:
        is_asked = True
        if flow.when is not None:
            held = await walk.decide(flow.when, flow.wants, path, given)
            # It is asked unless `when` says that it need not be.
            is_asked = held is MISSING or bool(held)
        walk.world.record(Decided(path=path, choice=_ASKED if is_asked else _UNASKED))
    if decided[path] == _ASKED:
        wait = await _ask(walk, flow, path, given)
        if wait is not None:
            return wait
        is_approved, _ = _answer(walk, flow, path)
        walk.world.record(Decided(path=path, choice=_APPROVED if is_approved else _DENIED))
    key = "otherwise" if decided[path] == _DENIED else "body"
    if key == "otherwise":
        _, reason = _answer(walk, flow, path)
        if flow.otherwise is None:
            because = f": {reason}" if reason else ""
            raise AgentFailed(
                f"{flow.body!r} was not approved at {path}{because}. Give otherwise=... to say what "
                f"happens then."
            )
        given = {"input": given, "reason": reason}
    return key, given


def _call_id(walk: GraphWalk, path: str) -> str:
    return walk.world.new_id(path, "approval")


async def _ask(walk: GraphWalk, flow: Approved, path: str, given: Json) -> Yield | None:
    """Open the wait with a call that a mock may answer; None if the answer is there."""
    world, index, key = walk.world, walk.index, _call_id(walk, path)
    if key in index.answers and key not in index.results:
        value = index.answers[key].value
        world.record(
            ToolReturned(path=path, call_id=key, tool=flow.tool, value=value, source="user")
        )
    if key in index.results:
        return None
    if key in index.called:
        args = index.called[key].args
    else:
        asked = await _question(walk, flow, path, given)
        args = {"question": asked, "input": given}
    n = index.call_number(flow.tool, key, path)
    request = ToolRequest(key, flow.tool, args, path, yields=True, n=n)
    outcome = await world.call_tool(request, SealedBody(_has_no_body))
    if not isinstance(outcome, Pending):
        return None
    wait = Yield(
        key, "tool", flow.tool, key, dict(args), str(args["question"]), walk.root, check_approved
    )
    open_yield(world, wait, path)
    return wait


async def _question(walk: GraphWalk, flow: Approved, path: str, given: Json) -> str:
    context = Context(walk.world, path, input=plain(given), output=plain(given))
    if walk.far is None or isinstance(flow.question, str):
        return flow.asks(context)
    wants = wanted_names(flow.question, DECIDER_NAMES, "question")
    return str(await walk.far.call(flow.question, context, path, wants=wants))


def _has_no_body(_: Context) -> NoReturn:
    raise AssertionError("an approval is the user's to give")


def _answer(walk: GraphWalk, flow: Approved, path: str) -> tuple[bool, str]:
    """Whether it was approved, and the reason given; an answer that is neither yes nor no ends the run."""
    end = walk.index.results[_call_id(walk, path)]
    if isinstance(end, ToolFailed):
        raise AgentFailed(f"{flow.tool!r} could not be asked at {path}: {end.error}")
    try:
        said = check_approved(end.value, False)
    except ValueError as error:
        wrong = UserAgentFailed if end.source == "user" else MockBroke
        raise wrong(f"the answer {end.value!r} to {flow.tool!r} does not fit: {error}") from None
    if is_object(said):
        return bool(said["approved"]), str(said.get("reason", ""))
    return bool(said), ""
