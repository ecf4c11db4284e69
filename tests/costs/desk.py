"""Seeded traffic: a desk whose ways, tool rounds, loops and forks are drawn at random for each run."""

from collections.abc import Callable
from random import Random

from greenroom import (
    Agent,
    Case,
    Ledger,
    Scripted,
    Turn,
    call,
    loop,
    metric,
    rehearse,
    route,
    step,
    tool,
)
from greenroom.agents.flow import Flow
from greenroom.ledger import ToolCall, Usage
from greenroom.models import ModelReply, ModelRequest, Price

PRICE = Price.per_million(0.5, 2.0)
TURNS = (5, 6, 7)
MAIN, LIGHT = "main-model", "light-model"


def given(request: ModelRequest) -> str:
    """What the node was given in this visit."""
    return next(m.text for m in reversed(request.messages) if m.role == "user")


def chance(request: ModelRequest, what: str) -> Random:
    """What is drawn at random follows from the run, the node and the question's number alone."""
    return Random(f"{what} {given(request).split('|')[0]} {request.node} {request.n}")


def reply(request: ModelRequest, text: str, *calls: ToolCall, dear: float = 1.0) -> ModelReply:
    """A reply that reads all that was said, writes a random number of tokens, and saves some by a cache."""
    drawn = chance(request, "tokens")
    read = 80 + 40 * len(request.messages) + drawn.randrange(60)
    usage = Usage(read, drawn.randrange(20, 160))
    saved = drawn.choice([0, 0, 0.25]) * read
    cost = dear * (PRICE.cost(usage.input, usage.output) - saved * PRICE.input)
    model = MAIN if dear == 1.0 else LIGHT
    return ModelReply(text, calls, usage, cost, "test", model)


def plain(request: ModelRequest) -> ModelReply:
    return reply(request, given(request))


def digs(request: ModelRequest) -> ModelReply:
    """Calls its tool no, one, two or three times, then answers."""
    rounds = Random(f"rounds {given(request).split('|')[0]}").choice([0, 1, 1, 2, 3])
    said = [message.role for message in request.messages]
    asked = said[::-1].index("user") // 2
    if asked < rounds:
        return reply(request, "", call("look_up", page=asked))
    return reply(request, given(request))


def light(request: ModelRequest) -> ModelReply:
    return reply(request, given(request), dear=0.2)


@tool
def look_up(page: int) -> str:
    """Look something up."""
    return f"page {page}"


def by(answer: Callable[[ModelRequest], ModelReply], name: str = MAIN) -> Scripted:
    return Scripted(then=answer, name=name)


def goes(ways: dict[str, float], what: str = "") -> Callable[..., str]:
    """A route's decision, drawn with these shares."""

    def decide(input: str) -> str:
        drawn = Random(f"way {what} {input.split('|', maxsplit=1)[0]}")
        return drawn.choices(list(ways), list(ways.values()))[0]

    return decide


def again(share: float) -> Callable[..., bool]:
    """A loop's end, drawn again for each round."""

    def is_over(input: str, state: object) -> bool:
        rounds = input.count("+")
        return rounds >= 5 or Random(f"again {input}").random() > share

    return is_over


@step(name="count")
def counted(input: str) -> str:
    """One round more, so that each round is drawn for itself."""
    return f"{input}+" if "|" in input else f"{input}|+"


@step
def join(input: dict[str, str]) -> str:
    return input["left"]


def desk(billing: float = 0.6) -> Flow:
    """Triage, then one of two ways: with tools and a loop, or side by side."""
    hard = Agent("digger", model=by(digs), tools=[look_up]) >> loop(
        Agent("writer", model=by(plain)) >> counted, until=again(0.5)
    )
    wide = (
        Agent("left", model=by(plain))
        | Agent("right", model=by(light, LIGHT))
        | Agent("mid", model=by(digs), tools=[look_up])
    ) >> join
    ways = {"hard": billing, "wide": 1 - billing}
    return (
        Agent("triage", model=by(light, LIGHT))
        >> route(goes(ways), hard=hard, wide=wide)
        >> Agent("closer", model=by(plain))
    )


@metric
def answered(response: str) -> bool:
    return bool(response)


def runs(agent: Flow, seeds: range) -> list[Ledger]:
    """One run of the agent for each seed, with several turns in each."""
    cases = [
        Case(
            f"c{seed}",
            turns=[Turn(f"{seed} {turn}") for turn in range(Random(seed).choice(TURNS))],
            mocks={"look_up": "found"},
            metrics=[answered],
        )
        for seed in seeds
    ]
    report = rehearse(agent, cases, store=False)
    assert not [result.error for result in report if result.error]
    return [result.ledger for result in report if result.ledger_or_none is not None]
