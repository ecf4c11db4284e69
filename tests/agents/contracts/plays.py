"""Random graphs that declare all they do with the state, and what happened when they were run.

Every node writes down of each place that it declares to read whether something was there. Chance
decides what fails, which way a route goes, how many rounds a loop takes and who wins a race.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from greenroom import Agent, Case, Lines, Scripted, Stop, call, loop, route, simulate, step, tool
from greenroom.agents import Flow, Graph, compile_flow, fallback, map_over, race, tap, timeout
from greenroom.agents.approvals import Approved, approved
from greenroom.agents.handoffs import Team
from greenroom.agents.tools import Tool
from greenroom.agents.transforms import default, drop, keep, merge, put, rename

Spec = dict[str, Any]
VALUES: list[Any] = ["b0", "b1", "b2", ["x", "y"], []]
PLACES = ("session.a", "session.b", "user.u", "temp.t")


class Luck:
    """What chance decides in one run, and what was found in it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.found: list[tuple[str, str, bool, bool]] = []
        """Who read, where, whether something was there, and whether that was in a later round or turn."""

    def look(self, who: str, place: str, state: Any, path: str = "") -> None:
        scope, _, key = place.partition(".")
        is_later = not path.startswith("@1/") or re.search(r"#([2-9]|1\d)", path) is not None
        self.found.append((who, place, scope in state and key in state[scope], is_later))

    def fails(self, chance: float) -> None:
        if self.random.random() < chance:
            raise RuntimeError("bad luck")

    async def pause(self, hangs: float) -> None:
        if self.random.random() < hangs:
            await asyncio.sleep(60)
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)


# Specs: JSON, from a source of random numbers


def spec_of(random: Random, depth: int = 3) -> Spec:
    """A random graph with at most so many levels."""
    if depth == 3:
        kind = "seq"
    else:
        kind = random.choice(NESTED if depth and random.random() < 0.5 else LEAVES)
    return {"kind": kind, **SPECS[kind](random, depth - 1)}


def _hanging(spec: Spec) -> Spec:
    """The same with steps that hang now and then, for somebody else to stop."""
    parts = {"parts": [_hanging(part) for part in spec.get("parts", ())]}
    bodies = {key: _hanging(spec[key]) for key in ("body", "instead") if spec.get(key)}
    return {**spec, **(parts if parts["parts"] else {}), **bodies, "hangs": 0.3}


def _some(random: Random, most: int) -> list[str]:
    return random.sample(PLACES, random.randint(0, most))


def _step_spec(random: Random, _: int) -> Spec:
    return {
        "reads": _some(random, 2),
        "writes": _some(random, 2),
        "fails": random.choice([0, 0, 0, 0.3]),
        "retries": random.choice([0, 0, 1]),
    }


def _agent_spec(random: Random, _: int) -> Spec:
    tools = [
        {"reads": _some(random, 1), "writes": _some(random, 1)} for _ in range(random.randrange(3))
    ]
    writes = random.sample(PLACES, random.randrange(2))
    return {"reads": _some(random, 1), "writes": writes, "tools": tools, "fails": 0.1}


def _parts(random: Random, depth: int) -> Spec:
    return {"parts": [spec_of(random, depth) for _ in range(random.choice([2, 3, 4]))]}


def _body(random: Random, depth: int) -> Spec:
    return {"body": spec_of(random, depth), "rounds": random.choice([1, 2, 3])}


def _routed(random: Random, depth: int) -> Spec:
    on = random.choice([None, None, random.choice(PLACES)])
    return {**_parts(random, depth), "on": on, "otherwise": random.random() < 0.5}


def _timed(random: Random, depth: int) -> Spec:
    return {"body": _hanging(spec_of(random, depth))}


def _mapped(random: Random, depth: int) -> Spec:
    over = random.choice([None, random.choice(PLACES)])
    return {"body": spec_of(random, depth), "over": over}


def _tapped(random: Random, _: int) -> Spec:
    return {"reads": _some(random, 2)}


def _transformed(random: Random, _: int) -> Spec:
    return {"what": random.choice(sorted(TRANSFORMS)), "places": random.sample(PLACES, 2)}


TRANSFORMS: dict[str, Callable[[str, str], Flow]] = {
    "put": lambda one, _: put({one: "b0"}),
    "default": lambda one, _: default({one: "b1"}),
    "drop": lambda one, _: drop(one),
    "drop_both": drop,
    "keep": lambda one, _: keep(one),
    "rename": lambda one, other: rename({one: other}),
    "merge": lambda one, other: merge(one, into=other),
}


def _guarded(random: Random, depth: int) -> Spec:
    when = random.choice([None, random.choice(PLACES)])
    otherwise = spec_of(random, depth) if random.random() < 0.6 else None
    return {"body": spec_of(random, depth), "when": when, "instead": otherwise}


def _team_spec(random: Random, depth: int) -> Spec:
    return {"agents": [_agent_spec(random, depth) for _ in range(random.choice([2, 3]))]}


SPECS: dict[str, Callable[[Random, int], Spec]] = {
    "step": _step_spec,
    "agent": _agent_spec,
    "seq": _parts,
    "par": _parts,
    "loop": _body,
    "route": _routed,
    "race": _parts,
    "try": _parts,
    "map": _mapped,
    "within": _timed,
    "approval": _guarded,
    "tap": _tapped,
    "transform": _transformed,
    "team": _team_spec,
}
LEAVES = ["step", "step", "step", "agent", "tap", "transform", "team"]
NESTED = [kind for kind in SPECS if kind not in LEAVES]


# Flows, from specs


def build(spec: Spec, luck: Callable[[], Luck], name: str = "n") -> Flow:
    """The flow of a spec; nodes are named after their place in it."""
    return FLOWS[spec["kind"]](spec, luck, name)


def _built(spec: Spec, luck: Callable[[], Luck], name: str) -> list[Flow]:
    return [build(part, luck, f"{name}{i}") for i, part in enumerate(spec["parts"])]


def _step(spec: Spec, luck: Callable[[], Luck], name: str) -> Flow:
    async def idle() -> None:
        luck().fails(spec["fails"])

    async def work(ctx: Any) -> None:
        here = luck()
        for place in spec["reads"]:
            here.look(name, place, ctx.state, ctx._path)
        await here.pause(spec.get("hangs", 0))
        for place in spec["writes"]:
            scope, _, key = place.partition(".")
            ctx.state[scope][key] = here.random.choice(VALUES)
        here.fails(spec["fails"])

    # Who is given the state and declares nothing may do anything; that is another test.
    fn = work if spec["reads"] or spec["writes"] else idle
    return step(fn, name=name, reads=spec["reads"], writes=spec["writes"], retries=spec["retries"])


def _team(spec: Spec, luck: Callable[[], Luck], name: str) -> Flow:
    """Agents who hand over to each other as chance has it."""
    names = [f"{name}m{i}" for i in range(len(spec["agents"]))]
    made = [
        _agent(one, luck, names[i], [other for other in names if other != names[i]])
        for i, one in enumerate(spec["agents"])
    ]
    return replace(made[0], handoffs=made[1:])


def _agent(spec: Spec, luck: Callable[[], Luck], name: str, handoffs: Sequence[str] = ()) -> Agent:
    tools = [_tool(one, f"{name}_t{i}") for i, one in enumerate(spec["tools"])]

    def reply(_: Any) -> Any:
        here = luck()
        here.fails(spec["fails"])
        if tools and here.random.random() < 0.5:
            return call(here.random.choice(tools).name)
        if handoffs and here.random.random() < 0.5:
            return call(f"transfer_to_{here.random.choice(handoffs)}")
        return here.random.choice(["b0", "b1"])

    def looks(scene: Any) -> list[Any]:
        for place in spec["reads"]:
            luck().look(name, place, scene.state)
        return []

    return Agent(
        name,
        model=Scripted(then=reply),
        tools=tools,
        context=[looks],
        reads=spec["reads"],
        writes=spec["writes"],
        handoffs=handoffs,
    )


def _tool(spec: Spec, name: str) -> Tool:
    def body() -> str:
        raise AssertionError("a tool body ran in a rehearsal")

    return tool(name=name, reads=spec["reads"], writes=spec["writes"])(body)


def _sequence(spec: Spec, luck: Callable[[], Luck], name: str) -> Flow:
    first, *others = _built(spec, luck, name)
    for part in others:
        first = first >> part
    return first


def _parallel(spec: Spec, luck: Callable[[], Luck], name: str) -> Flow:
    first, *others = _built(spec, luck, name)
    for part in others:
        first = first | part
    return first


def _loop(spec: Spec, luck: Callable[[], Luck], name: str) -> Flow:
    def until() -> bool:
        return luck().random.random() < 0.6

    body = build(spec["body"], luck, f"{name}0")
    if spec["rounds"] == 3:
        return loop(body, until=until, max_rounds=3)
    return loop(body, max_rounds=spec["rounds"])


def _route(spec: Spec, luck: Callable[[], Luck], name: str) -> Flow:
    flows = {f"b{i}": flow for i, flow in enumerate(_built(spec, luck, name))}
    if spec["otherwise"]:
        flows["otherwise"] = flows.pop("b0")

    def choose() -> str:
        return luck().random.choice(list(flows))

    return route(spec["on"] or choose, **flows)


def _race(spec: Spec, luck: Callable[[], Luck], name: str) -> Flow:
    return race(*_built(spec, luck, name))


def _fallback(spec: Spec, luck: Callable[[], Luck], name: str) -> Flow:
    return fallback(*_built(spec, luck, name))


def _map(spec: Spec, luck: Callable[[], Luck], name: str) -> Flow:
    def items() -> list[int]:
        return list(range(luck().random.randrange(3)))

    body = build(spec["body"], luck, f"{name}0")
    if spec["over"]:
        return map_over(body, spec["over"])
    return step(items, name=f"{name}_items") >> map_over(body)


def _timeout(spec: Spec, luck: Callable[[], Luck], name: str) -> Flow:
    return timeout(build(spec["body"], luck, f"{name}0"), 0.02)


def _approved(spec: Spec, luck: Callable[[], Luck], name: str) -> Flow:
    body = build(spec["body"], luck, f"{name}0")
    instead = build(spec["instead"], luck, f"{name}1") if spec["instead"] else None
    return approved(body, "Well?", when=spec["when"], otherwise=instead, name=name)


def _tap(spec: Spec, luck: Callable[[], Luck], name: str) -> Flow:
    def look(ctx: Any) -> None:
        for place in spec["reads"]:
            luck().look(name, place, ctx.state, ctx._path)

    return tap(look, name=name, reads=spec["reads"])


def _transform(spec: Spec, luck: Callable[[], Luck], name: str) -> Flow:
    return TRANSFORMS[spec["what"]](*spec["places"])


FLOWS: dict[str, Callable[[Spec, Callable[[], Luck], str], Flow]] = {
    "step": _step,
    "agent": _agent,
    "seq": _sequence,
    "par": _parallel,
    "loop": _loop,
    "route": _route,
    "race": _race,
    "try": _fallback,
    "map": _map,
    "within": _timeout,
    "approval": _approved,
    "tap": _tap,
    "transform": _transform,
    "team": _team,
}


# Runs


class Played:
    """A graph, what its runs begin with, and what its nodes found, in several runs of two turns."""

    def __init__(self, spec: Spec, given: list[str], seeds: Iterator[int] | list[int]) -> None:
        self.spec = spec
        self._luck = Luck(0)
        self.graph: Graph = compile_flow(build(spec, lambda: self._luck))
        self.state: dict[str, dict[str, str]] = {}
        for place in given:
            scope, _, key = place.partition(".")
            self.state.setdefault(scope, {})[key] = "b0"
        self.found: list[tuple[str, str, bool, bool]] = []
        for seed in seeds:
            self._play(seed)

    def _play(self, seed: int) -> None:
        self._luck = Luck(seed)
        case = Case(
            "soundness",
            user=Lines("two"),
            says="one",
            mocks=self._mocks(),
            state=self.state,
            stop=Stop(max_turns=4),
        )
        ledger = asyncio.run(simulate(case, self.graph.root.flow))
        ids = {n.segment: n.id for n in self.graph.nodes() if not isinstance(n.flow, Team)}
        for who, place, there, is_later in self._luck.found:
            self.found.append((ids[who.partition("_t")[0]], place, there, is_later))
        self.ledger = ledger

    def _mocks(self) -> dict[str, Any]:
        flows = [node.flow for node in self.graph.nodes()]
        asked = {flow.tool: self._approve for flow in flows if isinstance(flow, Approved)}
        called = [one for flow in flows if isinstance(flow, Agent) for one in flow.toolbox]
        return {**asked, **{one.name: self._mock(one) for one in called}}

    def _approve(self, question: str, input: Any) -> bool:
        return self._luck.random.random() < 0.6

    def _mock(self, given: Tool) -> Callable[..., Any]:
        def answer(ctx: Any) -> str:
            for place in given.reads:
                self._luck.look(given.name, place, ctx.state, ctx._path)
            for place in given.writes:
                scope, _, key = place.partition(".")
                ctx.state[scope][key] = "b1"
            return "done"

        return answer


# Small graphs, each of which needs one rule


def one(kind: str, **given: Any) -> Spec:
    usual: Spec = {"reads": [], "writes": [], "tools": [], "fails": 0, "retries": 0, "over": None}
    return {**usual, "kind": kind, **given}


def several(kind: str, *parts: Spec) -> Spec:
    return one(kind, parts=list(parts))


A, B = PLACES[:2]
READ, WRITE = one("step", reads=[A]), one("step", writes=[A])
FAIL, HANG = one("step", writes=[B], fails=0.7), one("step", writes=[B], hangs=0.7)
DROP = one("transform", what="drop", places=[A, B])
ENSURE = one("transform", what="default", places=[A, B])
BUSY = one("agent", tools=[{"reads": [], "writes": [A]}], fails=0.5)
POINTED = [
    several("try", several("seq", WRITE, FAIL), READ),
    several("seq", WRITE, several("try", several("seq", DROP, FAIL, WRITE), FAIL), READ),
    several("try", one("within", body=several("seq", WRITE, HANG)), READ),
    several(
        "seq",
        WRITE,
        several("try", one("within", body=several("seq", DROP, HANG, WRITE)), FAIL),
        READ,
    ),
    several("try", BUSY, READ),
    several("seq", WRITE, one("loop", body=several("seq", READ, DROP), rounds=2)),
    several("seq", several("par", WRITE, DROP), READ),
    several("seq", WRITE, several("par", DROP, ENSURE), READ),
]


def pointed() -> Iterator[Played]:
    """The small graphs, each run often enough to go every way."""
    for spec in POINTED:
        yield Played(spec, [], list(range(12)))


def played(seed: int, runs: int = 2) -> Played:
    """A random graph and its runs."""
    random = Random(seed)
    spec = spec_of(random)
    return Played(spec, _some(random, 2), [seed * 10 + n for n in range(runs)])
