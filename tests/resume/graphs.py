"""Nested graphs from plain data, built again wherever they are needed.

A spec is JSON, so that another interpreter can build the same agent, case and user from it.
"""

import asyncio
import json
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from greenroom import (
    Agent,
    Case,
    Scripted,
    StateSchema,
    Stop,
    UserAgents,
    call,
    fault,
    loop,
    route,
    step,
    tool,
    with_state_change,
)
from greenroom.agents import (
    Flow,
    apart,
    approved,
    by,
    default,
    drop,
    fallback,
    keep,
    map_over,
    merge,
    put,
    race,
    remote,
    rename,
    tap,
    timeout,
)
from greenroom.agents.flow import Parallel
from greenroom.cases import by_args, in_turn
from greenroom.errors import GarbledReply
from greenroom.ledger import Ledger, NodeFailed, Usage, append
from greenroom.models import ModelReply, ModelRequest, Price, candidate, choose

Spec = dict[str, Any]


@tool
def look(key: str) -> str:
    """Look something up."""
    raise AssertionError("a tool body ran in a rehearsal")


@tool
def note(key: str) -> int:
    """Write something down."""
    raise AssertionError("a tool body ran in a rehearsal")


@tool
def shaky(key: str) -> str:
    """Fail for some keys."""
    raise AssertionError("a tool body ran in a rehearsal")


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""
    raise AssertionError("a yielding tool has no body to run")


TOOLS = [look, note, shaky, ask]


def down(n: int) -> Any:
    """A model that fails as anybody's may."""
    raise ConnectionError(f"down at {n}")


def broken(n: int) -> Any:
    """A model that fails as one of ours does, which no retry fixes."""
    raise GarbledReply(f"no words at {n}")


REPLIES = {
    "down": down,
    "broken": broken,
    "look": lambda n: call("look", key="a"),
    "note": lambda n: call("note", key=f"k{n % 2}"),
    "shaky": lambda n: call("shaky", key="bad" if n % 2 else "good"),
    "ask": lambda n: call("ask", question=f"q{n}"),
    "two": lambda n: [call("ask", question=f"a{n}"), "and", call("ask", question=f"b{n}")],
    "mixed": lambda n: [
        call("note", key="m"),
        call("ask", question=f"m{n}"),
        call("look", key="z"),
    ],
    "unknown": lambda n: call("nowhere", x=1),
    "wrong": lambda n: call("look", nonsense=1),
}


def seen(request: ModelRequest) -> str:
    """A short mark of everything the model was shown; a wrong history changes it."""
    text = json.dumps([[m.role, m.text, [c.tool for c in m.calls]] for m in request.messages])
    return blake2b(text.encode(), digest_size=3).hexdigest()


def scripted(name: str, plan: list[str], replies: Any = REPLIES) -> Scripted:
    """A model that goes through `plan` in every run of its node and then speaks."""

    def reply(request: ModelRequest) -> Any:
        at = request.n % (len(plan) + 1)
        if at < len(plan):
            return replies[plan[at]](request.n)
        return f"{name}:{request.n}:{seen(request)}"

    return Scripted(then=reply)


def build(spec: Spec, name: str = "r") -> Flow:
    """The flow that a spec describes; names come from the place in it."""
    spec = spec.get("agent_side", spec)
    kind, given = next(iter(spec.items()))
    match kind:
        case "agent":
            return Agent(name, model=scripted(name, given), tools=TOOLS, retries=1)
        case "choice":
            return choosing(given, name)
        case "team":
            return team(given, name)
        case "step":
            return counting_step(name, given)
        case "seq" | "par":
            parts = [build(part, f"{name}{i}") for i, part in enumerate(given)]
            flow = parts[0]
            for part in parts[1:]:
                flow = flow >> part if kind == "seq" else flow | part
            return flow
        case "race":
            return race(*[build(part, f"{name}{i}") for i, part in enumerate(given)])
        case "try":
            return fallback(*[build(part, f"{name}{i}") for i, part in enumerate(given)])
        case "map":
            return mapped(given, name)
        case "apart":
            return apart(build(given, f"{name}a"))
        case "far":
            return FAR[given]
        case "within":
            return timeout(build(given, f"{name}w"), 60)
        case "heard":
            return listened_to(given, name)
        case "tap":
            return tap(looker(given), name=name)
        case "loop":
            return looped(given, name)
        case "route":
            flows = {f"b{i}": build(part, f"{name}{i}") for i, part in enumerate(given)}
            return route(chooser(len(given)), **flows)
        case "approval":
            return guarded(given, name)
        case "change":
            return CHANGES[given]
        case "typed":
            return typed(name)
        case "remote":
            return remote(given, "http://far.internal", receives=given)
        case _:
            raise AssertionError(kind)


def choosing(by: str, name: str) -> Flow:
    """An agent that asks one of three models, by their prices, its failures or the state.

    It has no budget: what the losers of a race have spent counts, and hangs on where it was cut.
    """

    def paid(kind: str) -> Scripted:
        def reply(request: ModelRequest) -> ModelReply:
            if kind == "low" and request.n % 3 == 1:
                raise ConnectionError(f"down at {request.n}")
            text = f"{name}:{kind}:{request.n}:{seen(request)}"
            return ModelReply(text, usage=Usage(1, 1), cost=0.01, prices="test")

        return Scripted(then=reply, name=kind)

    model = choose(
        candidate(paid("low"), quality=1, price=Price.per_million(1, 1)),
        candidate(paid("middle"), quality=2, when=lambda request: len(request.messages) > 1),
        candidate(paid("high"), quality=3, price=Price.per_million(2, 2)),
        by=by,  # pyright: ignore[reportArgumentType]
        promote={"session": {"steps": {"$exists": True}}} if by == "adaptive" else None,
    )
    return Agent(name, model=model, retries=1)


class Book(StateSchema):
    """What typed nodes keep, next to the others."""

    count: int = 0
    mark: str = ""
    log: list[str] = []  # noqa: RUF012 - a default, copied for each reader


def typed(name: str) -> Flow:
    """An agent that is told the state, and a step that keeps what it said, typed."""

    def reply(request: ModelRequest) -> str:
        text = f"{request.instructions} {seen(request)}"
        return f"{name}:{blake2b(text.encode(), digest_size=3).hexdigest()}"

    speaks = Agent(
        name,
        model=Scripted(then=reply),
        instructions="At {count}, after {mark}.",
        reads=[Book.count, Book.mark],
        writes=Book.mark,
    )

    @step(name=f"{name}_kept", reads=Book.mark, writes=[Book.count, Book.log])
    def kept(state: Book) -> str:
        state.count += 1
        state.log.append(state.mark)
        return f"kept {state.mark}"

    return speaks >> kept


def team(plans: list[list[str]], name: str) -> Agent:
    """Agents of which each hands over to the next where its plan says `over`, and to two for `both`."""
    names = [f"{name}t{i}" for i in range(len(plans))]

    def member(i: int) -> Agent:
        following, another = (f"transfer_to_{names[(i + k) % len(names)]}" for k in (1, 2))
        over = {
            "over": lambda _: call(following),
            "both": lambda n: [call(following), call("note", key=f"o{n % 2}"), call(another)],
        }
        others = [other for other in names if other != names[i]]
        model = scripted(names[i], plans[i], {**REPLIES, **over})
        return Agent(names[i], model=model, tools=TOOLS, retries=1, handoffs=others)

    leader, *others = [member(i) for i in range(len(plans))]
    return replace(leader, handoffs=others)


def guarded(given: Spec, name: str) -> Flow:
    """What begins only if the user says yes."""

    @step(name=f"{name}_no")
    def instead(input: Any) -> str:
        return f"not {str(input)[:40]}"

    return approved(
        build(given["body"], f"{name}b"),
        "Let {input} go on?",
        when=chooser_of(given["when"]),
        otherwise=instead if given["otherwise"] else None,
        name="it",
    )


def chooser_of(when: int) -> Any:
    """Asked always, never, or as the input has it."""
    return [None, lambda: False, is_odd][when]


def is_odd(input: Any) -> bool:
    return len(str(input)) % 2 == 1


def judge(input: str) -> Any:
    """A user who approves of some things and gives reasons for others."""
    return [True, {"approved": False, "reason": input[-5:]}, False][len(input) % 3]


@step(name="far_count", retries=1)
def far_count(input: Any, ctx: Any) -> Any:
    """Counts its runs in the state, and says so."""
    ctx.state.session["far"] = [*ctx.state.session.get("far", []), len(str(input))]
    ctx.note("counted", ctx.state.session["far"])
    return f"far({str(input)[:30]}) at {ctx.now()}"


@step(name="far_fails", retries=1)
async def far_fails(input: Any, state: Any) -> Any:
    state.session["lost"] = True
    await asyncio.sleep(0)
    raise RuntimeError(f"far away {len(str(input))}")


@step(name="far_typed", reads=Book.mark, writes=[Book.count, Book.log])
def far_typed(state: Book) -> Any:
    state.count += 1
    state.log.append(state.mark)
    return with_state_change(f"kept {state.count}", {"session": {"asked": state.count}})


@step(name="far_loud")
async def far_loud(chunks: Any) -> Any:
    async for piece in chunks:
        yield piece.upper() if isinstance(piece, str) else piece[1]


@step(name="far_look")
def far_look(input: Any) -> Any:
    """Calls a tool itself, which the case answers."""
    return look(key=str(len(str(input))))


@tap
def far_tap(input: Any, state: Any) -> None:
    raise RuntimeError(f"cannot look at {len(str(input))} and {len(state.session)}")


def far_choice(input: Any, state: Any) -> str:
    return f"b{(len(str(input)) + len(state['session'])) % 2}"


def far_over(output: Any, state: Any) -> bool:
    return len(state["session"].get("far", [])) % 2 == 0


far_put = put({"user.far": lambda ctx: len(str(ctx.input))}, put_far=True)
far_route = route(far_choice, b0=far_count, b1=far_put >> far_typed)
far_loop = loop(far_count, until=far_over, max_rounds=5)
far_heard = far_count >> by("word") >> far_loud
FAR = [
    far_count,
    far_typed,
    far_tap,
    far_put,
    far_route,
    far_loop,
    far_heard,
    far_fails // far_count,
    timeout(far_count, 60),
    far_count >> map_over(far_typed, "session.far"),
]
"""Flows whose code another process finds: every function stands in this module."""

CHANGES = [
    put({"user.seen": is_odd}, changed=True),
    default(steps=[], changed=False),
    put(log=append("again")),
    drop("steps", "k0") >> put(k1=0),
    merge("log", "changed", into="both"),
    rename(log="diary"),
    keep("steps", "log", "changed"),
]


def mapped(given: Spec, name: str) -> Flow:
    """A map over items that its own step makes, as its input or in the state."""

    @step(name=f"{name}_items")
    def items(state: Any) -> Any:
        listed = [f"{name}i{i}" for i in range(given["items"])]
        state.session[f"{name}_list"] = listed
        return listed

    over = f"session.{name}_list" if given["over"] else ""
    return items >> map_over(build(given["body"], f"{name}m"), over, at_once=2)


def listened_to(given: Spec, name: str) -> Flow:
    """A part, and a step that hears it; in between one that hands on what it hears, if it is loud."""

    @step(name=f"{name}_loud")
    async def loud(chunks: Any) -> Any:
        async for piece in chunks:
            yield piece.upper() if isinstance(piece, str) else piece[1]

    @step(name=f"{name}_heard")
    async def heard(chunks: Any, state: Any) -> str:
        pieces: list[Any] = []
        async for piece in chunks:
            await asyncio.sleep(0)
            pieces.append(piece)
        texts = ["".join(piece for piece in pieces if isinstance(piece, str))]
        branches = sorted({piece[0] for piece in pieces if isinstance(piece, tuple)})
        texts += ["".join(p[1] for p in pieces if p[0] == branch) for branch in branches]
        state.session[f"{name}_heard"] = texts if texts[0] == "" else pieces
        return f"{name} heard {blake2b(repr(texts).encode(), digest_size=3).hexdigest()}"

    body = build(given["body"], f"{name}h")
    by_unit = by(given["by"], hold=2)
    if given["loud"] and not isinstance(body, Parallel):
        return body >> by_unit >> loud >> heard
    return body >> by_unit >> heard


def looker(breaks: bool) -> Any:
    def look_on(input: Any, state: Any) -> None:
        if breaks:
            raise RuntimeError(f"cannot look at {len(str(input))} and {len(state.session)}")

    return look_on


def looped(given: Spec, name: str) -> Flow:
    rounds = given["rounds"]

    def until(state: Any) -> bool:
        return state["session"].get(name, 0) >= rounds

    @step(name=f"{name}_count")
    def count(input: Any, state: Any) -> Any:
        state.session[name] = state.session.get(name, 0) + 1
        return input

    body = build(given["body"], f"{name}b") >> count
    return loop(body, until=until, awaits_input=given["awaits"], max_rounds=20)


def counting_step(name: str, failures: int) -> Flow:
    """A step that fails so many times, then counts its runs in the state."""

    @step(name=name, retries=2)
    async def work(ctx: Any) -> Any:
        ledger: Ledger = ctx._world.ledger
        before = [
            e for e in ledger.of(NodeFailed) if e.path.split("~")[0] == ctx._path.split("~")[0]
        ]
        await asyncio.sleep(0)
        if len(before) < failures:
            raise RuntimeError(f"failure {len(before)}")
        ctx.state.session["steps"] = [*ctx.state.session.get("steps", []), name]
        return f"{name}({str(ctx.input)[:30]})"

    return work


def chooser(count: int) -> Any:
    def choose(input: Any, state: Any) -> str:
        return f"b{(len(str(input)) + len(state['session'])) % count}"

    return choose


async def slow_look(key: str) -> str:
    for _ in range(3):
        await asyncio.sleep(0)
    return f"found {key}"


def noted(key: str, ctx: Any) -> int:
    ctx.state.session[key] = ctx.state.session.get(key, 0) + 1
    ctx.state.shelf.setdefault("notes", []).append(key)
    return ctx.state.session[key]


@tool
def reveal(what: str) -> Any:
    """Tell something that changes the agent's state."""
    return with_state_change({"told": what}, {"patient": {"told": [what]}, "session": {what: True}})


def patient() -> Agent:
    def reply(request: ModelRequest) -> Any:
        if request.n % 2 == 0:
            return call("reveal", what=f"w{request.n}")
        return f"answer {request.n} {seen(request)}"

    return Agent("patient", model=Scripted(then=reply), tools=[reveal])


def speaker(fails: str = "") -> Agent:
    def reply(request: ModelRequest) -> Any:
        if fails and request.n == 1:
            return REPLIES[fails](request.n)
        return f"next {request.n} {seen(request)}"

    return Agent("speaker", model=Scripted(then=reply), retries=1)


def case(spec: Spec, max_turns: int = 6) -> Case:
    spec, fails = spec.get("agent_side", spec), str(spec.get("user_fails", ""))
    return _case(spec, fails, max_turns)


def far(message: Any) -> Any:
    """An agent elsewhere that asks back once."""
    if isinstance(message, str) and message.startswith("next "):
        return f"far heard {message}"
    return {"input_required": f"what of {message}?"}


def _case(spec: Spec, fails: str, max_turns: int) -> Case:
    """A case for a spec's flow; one without agents has no tools to mock."""
    mocks = {
        "look": in_turn(*([f"found {i}" for i in range(9)] + [slow_look] * 200)),
        "note": noted,
        "shaky": by_args(({"key": "bad"}, fault("it broke")), otherwise="fine"),
    }
    said = json.dumps(spec)
    elsewhere = {"wonders": far, "tells": lambda message: f"far has {message}"}
    asked = {n: mock for n, mock in elsewhere.items() if json.dumps({"remote": n})[1:-1] in said}
    approvals = {"approve_it": judge} if '"approval"' in said else {}
    return Case(
        "cut",
        says="begin",
        user=UserAgents(loop=speaker(fails), tools={"ask": patient(), **approvals}),
        mocks={**(mocks if any(k in said for k in ('"agent"', '"team"')) else {}), **asked},
        state={"session": {}, "patient": {}, "shelf": {}},
        stop=Stop(max_turns=max_turns),
        now=1_700_000_000.0,
    )
