"""A choice of models: who answers, by what, and what cannot be chosen from."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from greenroom import (
    Agent,
    Case,
    Lines,
    Scripted,
    SimulatedUser,
    StateSchema,
    loop,
    rehearse,
    simulate,
    step,
)
from greenroom.agents import compile_flow, map_over, race
from greenroom.backends.native import NativeBackend
from greenroom.errors import BadAgent, BadMetric, BadQuery
from greenroom.ledger import Ledger, Message, ModelCalled, ModelReplied, Usage, cost, ended
from greenroom.metrics.judges import llm_judge
from greenroom.models import (
    ChoiceContext,
    ModelReply,
    ModelRequest,
    Price,
    candidate,
    choose,
    price_of,
)

CHEAP, DEAR = Price.per_million(1, 2), Price.per_million(10, 20)
HALF_A_CENT = ModelReply("Hi", usage=Usage(1000, 0), cost=0.005, prices="test")


def scripted(name: str, *answers: Any, then: Any = "Hi", usage: Usage | None = None) -> Scripted:
    return Scripted(*answers, then=then, name=name, usage=usage)


def asked(ledger: Ledger, voice: Any = "agent") -> list[str]:
    return [event.model for event in ledger.of(ModelCalled, voice=voice)]


def request(text: str = "Hello") -> ModelRequest:
    return ModelRequest("clerk", (Message("user", text),))


def is_long(request: ModelRequest) -> bool:
    return len(request.last) > 10


SMALL = candidate(scripted("small"), quality=1, price=CHEAP)
BIG = candidate(scripted("big"), quality=2, price=DEAR)
LONG = candidate(scripted("long"), quality=3, price=CHEAP, when=is_long)
LOCAL = scripted("local")
CHOOSE: Any = choose  # for options of another type than they should be
CANDIDATE: Any = candidate

PICKS: list[tuple[Any, ChoiceContext, str, str]] = [
    (choose(BIG, SMALL, by="cost"), ChoiceContext(), "Hello", "small"),
    (choose(BIG, SMALL, LONG, by="cost"), ChoiceContext(), "Hello, hello, hello", "small"),
    (choose(BIG, LONG, by="cost"), ChoiceContext(), "Hello", "big"),
    (choose(BIG, LONG, by="cost"), ChoiceContext(), "Hello, hello, hello", "long"),
    (choose(SMALL, BIG, LONG, by="quality"), ChoiceContext(), "Hello", "big"),
    (choose(SMALL, BIG, LONG, by="quality"), ChoiceContext(), "Hello, hello, hello", "long"),
    (choose(LONG, by="cost", otherwise=LOCAL), ChoiceContext(), "Hello", "local"),
    (choose(BIG, SMALL, by="budget", budget=1, otherwise=LOCAL), ChoiceContext(), "Hello", "small"),
    (
        choose(BIG, by="budget", budget=1, otherwise=LOCAL),
        ChoiceContext(spending=((1, 0.9),)),
        "Hello",
        "big",
    ),
    (
        choose(BIG, by="budget", budget=1, otherwise=LOCAL),
        ChoiceContext(spending=((1, 1.0),)),
        "Hello",
        "local",
    ),
    (
        choose(BIG, by="budget", budget=1, otherwise=LOCAL),
        ChoiceContext(spending=((1, 0.0), (2, 0.5))),
        "Hello",
        "local",
    ),
    (
        choose(BIG, by="quality", budget=0.3, otherwise=LOCAL),
        ChoiceContext(spending=((1, 0.3),)),
        "Hello",
        "local",
    ),
    (choose(BIG, SMALL, by="adaptive"), ChoiceContext(), "Hello", "small"),
    (choose(BIG, SMALL, by="adaptive"), ChoiceContext(corrections=1), "Hello", "big"),
    (choose(BIG, SMALL, by="adaptive"), ChoiceContext(failures=1), "Hello", "big"),
    (choose(BIG, SMALL, by="adaptive"), ChoiceContext(failures=7), "Hello", "big"),
    (choose(BIG, SMALL, LONG, by="adaptive"), ChoiceContext(corrections=2), "Hello", "big"),
    (choose(LONG, BIG, by="adaptive"), ChoiceContext(), "Hello", "big"),
    (
        choose(BIG, SMALL, by="adaptive", promote={"session": {"upset": True}}),
        ChoiceContext(state={"session": {"upset": True}}),
        "Hello",
        "big",
    ),
    (
        choose(BIG, SMALL, by="adaptive", promote={"session": {"upset": True}}),
        ChoiceContext(state={"session": {}}),
        "Hello",
        "small",
    ),
]


@pytest.mark.parametrize("choice, context, text, name", PICKS)
def test_the_pick_follows_from_request_and_standing_alone(choice, context, text, name):
    assert choice.pick(request(text), context).name == name
    assert choice.pick(request(text), context).name == name


async def test_the_ledger_names_the_model_that_was_chosen():
    brain = choose(SMALL, LONG, by="quality")
    agent = loop(Agent("clerk", model=brain), awaits_input=True)
    user = Lines("Hello, hello, hello")
    ledger = await simulate(Case("one", says="Hi", user=user), agent)
    assert asked(ledger) == ["small", "long"]
    assert [event.model for event in ledger.of(ModelReplied)] == ["small", "long"]


async def test_a_given_price_is_what_a_reply_costs():
    small = candidate(scripted("small", usage=Usage(1000, 500)), price=CHEAP)
    ledger = await simulate(Case("one", says="Hi"), Agent("clerk", model=choose(small)))
    assert cost(ledger) == pytest.approx(1000e-6 + 500 * 2e-6)


def spender(budget: float, usd: list[float], **options: Any) -> Agent:
    def answer(request: ModelRequest) -> ModelReply:
        return ModelReply("Hi", usage=Usage(1, 1), cost=usd[request.n % len(usd)], prices="test")

    paid = candidate(Scripted(then=answer, name="paid"), price=None)
    return Agent("clerk", model=choose(paid, by="budget", budget=budget, **options))


@given(
    st.floats(0.01, 1), st.lists(st.floats(0.001, 0.4), min_size=1, max_size=5), st.integers(1, 12)
)
def test_a_budget_is_never_passed_by_more_than_one_call(budget, usd, rounds):
    import asyncio

    agent = loop(spender(budget, usd, otherwise=LOCAL), max_rounds=rounds)
    ledger = asyncio.run(simulate(Case("one", says="Hi"), agent))
    paid = [e.cost or 0.0 for e in ledger.of(ModelReplied) if e.model != "local"]
    assert sum(paid[:-1]) < budget or not paid[:-1]
    if len(paid) < rounds:
        assert sum(paid) >= budget * (1 - 1e-6)


async def test_branches_share_what_is_left_of_a_budget():
    def branch(name: str):
        brain = choose(
            candidate(Scripted(then=HALF_A_CENT, name="paid")),
            by="budget",
            budget=0.045,
            otherwise=LOCAL,
        )
        return loop(Agent(name, model=brain), max_rounds=20)

    flow = branch("first") >> (branch("a") | branch("b"))
    ledger = await simulate(Case("one", says="Hi"), branch("a") | branch("b") | branch("c"))
    assert asked(ledger).count("paid") == 9
    ledger = await simulate(Case("one", says="Hi"), flow)
    assert asked(ledger).count("paid") == 9


async def test_items_of_a_map_share_a_budget_and_losers_of_a_race_have_spent_theirs():
    def half_cents(name: str, latency: float = 0.0) -> Any:
        paid = Scripted(then=HALF_A_CENT, name="paid", latency=latency)
        brain = choose(candidate(paid), by="budget", budget=0.045, otherwise=LOCAL)
        return loop(Agent(name, model=brain), max_rounds=20)

    @step
    def three(input: Any) -> list[int]:
        return [1, 2, 3]

    ledger = await simulate(Case("one", says="Hi"), three >> map_over(half_cents("each")))
    assert asked(ledger).count("paid") == 9
    ledger = await simulate(Case("one", says="Hi"), three >> map_over(half_cents("each"), "x"))
    assert not asked(ledger)

    quick = Agent("quick", model=Scripted(then="Hi", latency=0.02))
    lost = race(quick, half_cents("slow", 0.003)) >> half_cents("after")
    ledger = await simulate(Case("one", says="Hi"), lost)
    assert 8 <= asked(ledger).count("paid") <= 10


async def test_without_another_model_a_spent_budget_is_an_error_that_a_fallback_may_catch():
    ledger = await simulate(Case("one", says="Hi"), loop(spender(0.1, [0.06]), max_rounds=9))
    end = ended(ledger)
    assert end is not None
    assert end.error_type == "NoCandidate"
    assert "the budget of $0.1 is spent ($0.12)" in end.error
    assert asked(ledger) == ["paid", "paid"]


class Verdict(BaseModel):
    fine: bool


async def test_a_correction_promotes_the_next_question_of_this_node_only():
    def brain() -> Any:
        small = scripted("small", "nonsense", then={"fine": True})
        big = scripted("big", {"fine": True})
        return choose(candidate(small, quality=1), candidate(big, quality=2), by="adaptive")

    first = Agent("first", model=brain(), output=Verdict)
    other = choose(
        candidate(scripted("tiny"), quality=1),
        candidate(scripted("huge"), quality=2),
        by="adaptive",
    )
    ledger = await simulate(Case("one", says="Hi"), first >> Agent("second", model=other))
    assert asked(ledger) == ["small", "big", "tiny"]


async def test_a_failed_attempt_promotes():
    small = scripted("small", ConnectionError("down"))
    brain = choose(
        candidate(small, quality=1), candidate(scripted("big"), quality=2), by="adaptive"
    )
    ledger = await simulate(Case("one", says="Hi"), Agent("clerk", model=brain, retries=1))
    assert asked(ledger) == ["small", "big"]


async def test_the_state_promotes_while_it_matches():
    @step
    def hear(state, input):
        state.session["upset"] = "angry" in input
        return input

    brain = choose(SMALL, BIG, by="adaptive", promote={"session": {"upset": True}})
    agent = loop(hear >> Agent("clerk", model=brain), awaits_input=True)
    user = Lines("I am angry", "Fine again")
    ledger = await simulate(Case("one", says="Hi", user=user), agent)
    assert asked(ledger) == ["small", "big", "small"]


async def test_a_scripted_candidate_counts_its_own_answers():
    brain = choose(
        candidate(scripted("short", "s1", "s2", then=None), quality=1, price=CHEAP),
        candidate(scripted("long", "l1", "l2", then=None), quality=2, price=DEAR, when=is_long),
        by="quality",
    )
    agent = loop(Agent("clerk", model=brain), awaits_input=True)
    user = Lines("a rather long one", "short", "a rather long one")
    ledger = await simulate(Case("one", says="Hi", user=user), agent)
    assert [event.text for event in ledger.of(ModelReplied)] == ["s1", "l1", "s2", "l2"]


async def test_a_simulated_user_may_be_given_a_choice():
    voice = choose(
        candidate(scripted("dull", "More", "And?"), price=CHEAP, quality=1),
        candidate(scripted("clever", "</finished>"), quality=2, price=DEAR, when=lambda r: r.n > 0),
        by="quality",
    )
    agent = loop(Agent("clerk", model=scripted("clerk")), awaits_input=True)
    case = Case("one", says="Hi", user=SimulatedUser("A buyer", model=voice))
    assert asked(await simulate(case, agent), "user") == ["dull", "clever"]


def test_a_judge_may_be_given_a_choice_and_its_answers_are_found_again(tmp_path):
    def judged(small: str) -> Any:
        verdict = {"reasoning": "It greets.", "score": 8}
        models = choose(
            candidate(scripted(small, then=verdict), price=CHEAP),
            candidate(scripted("big", then=verdict), price=DEAR),
        )
        metric = llm_judge(rubric="It greets.", model=models, cache=tmp_path / "kept")
        report = rehearse(Agent("clerk", model=LOCAL), [Case("one", says="Hi", metrics=[metric])])
        assert report.passed, str(report)
        score: Any = next(iter(report["one"].scores.values()))
        return score.details

    first, again, other = judged("small"), judged("small"), judged("other")
    assert [found["model"] for found in (first, again, other)] == ["small", "small", "other"]
    assert [found["cached"] for found in (first, again, other)] == [0, 1, 0]


def test_a_judge_that_adapts_is_refused():
    with pytest.raises(BadMetric, match="a judge gets no feedback"):
        llm_judge(rubric="It greets.", model=choose(SMALL, BIG, by="adaptive"))


def test_a_choice_takes_the_place_of_every_model():
    brain = choose(SMALL, BIG)
    backend = NativeBackend(Agent("a", model=LOCAL) >> Agent("b", model=LOCAL)).with_model(brain)
    report = rehearse(backend, [Case("one", says="Hi")])
    assert report.models == {"small": 2}


def test_the_snapshot_shows_candidates_and_the_digest_follows_them():
    def agent(**options: Any):
        brain = choose(SMALL, LONG, by="budget", budget=0.05, otherwise=LOCAL, **options)
        return compile_flow(Agent("clerk", model=brain))

    facts: Any = agent().snapshot
    assert facts["choice"] == {
        "by": "budget",
        "budget": 0.05,
        "candidates": [
            {"model": "small", "quality": 1, "usd_per_million": {"input": 1.0, "output": 2.0}},
            {
                "model": "long",
                "quality": 3,
                "when": facts["choice"]["candidates"][1]["when"],
                "usd_per_million": {"input": 1.0, "output": 2.0},
            },
        ],
        "otherwise": {"model": "local"},
    }
    assert "is_long" in facts["choice"]["candidates"][1]["when"]
    assert agent().digest == agent().digest
    digests = {
        compile_flow(Agent("clerk", model=model)).digest
        for model in (
            choose(SMALL, BIG),
            choose(BIG, SMALL),
            choose(SMALL, candidate(scripted("big", then="Other"), quality=2, price=DEAR)),
            choose(SMALL, candidate(scripted("big"), quality=2, price=CHEAP)),
            choose(SMALL, BIG, by="quality"),
            choose(SMALL, BIG, budget=1),
        )
    }
    assert len(digests) == 6


def test_an_agent_with_one_model_has_no_choice_in_its_snapshot():
    snapshot: Any = compile_flow(Agent("clerk", model=LOCAL)).snapshot
    assert "choice" not in snapshot


class Unpriced:
    name = "own"

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        return ModelReply("Hi", usage=Usage(1, 1))


@pytest.mark.parametrize("options", [{"by": "cost"}, {"by": "budget", "budget": 1}])
def test_an_unknown_price_is_refused_by_name_unless_allowed(options):
    with pytest.raises(BadAgent, match=r"does not know the price of own;.*Price\.per_million"):
        choose(SMALL, Unpriced(), **options)
    allowed = choose(Unpriced(), SMALL, **options, unknown_prices="allow")
    assert allowed.pick(request(), ChoiceContext()).name == "small"
    priced = choose(candidate(Unpriced(), price=Price.per_million(0.1, 0.1)), SMALL, **options)
    assert priced.pick(request(), ChoiceContext()).name == "own"


def test_a_choice_by_quality_needs_no_price():
    assert choose(candidate(Unpriced(), quality=2), SMALL, by="quality")


async def test_a_budget_that_cannot_be_counted_is_refused_by_the_model_s_name():
    brain = choose(SMALL, by="budget", budget=1)
    flow = Agent("first", model=Unpriced()) >> Agent("second", model=brain)
    end = ended(await simulate(Case("one", says="Hi"), flow))
    assert end is not None
    assert end.error_type == "NoCandidate"
    assert "the price of own is unknown" in end.error
    allowed = choose(SMALL, by="budget", budget=1, unknown_prices="allow")
    flow = Agent("first", model=Unpriced()) >> Agent("second", model=allowed)
    assert asked(await simulate(Case("one", says="Hi"), flow)) == ["own", "small"]


@pytest.mark.parametrize(
    "make, says",
    [
        (choose, "no candidates"),
        (lambda: choose(SMALL, SMALL), "two models called 'small'"),
        (lambda: choose(SMALL, otherwise=scripted("small")), "two models called 'small'"),
        (lambda: CHOOSE(SMALL, by="costs"), "Did you mean 'cost'?"),
        (lambda: choose(SMALL, by="budget"), "needs budget="),
        (lambda: choose(SMALL, budget=0), "above 0"),
        (lambda: choose(SMALL, budget=True), "above 0"),
        (lambda: choose(SMALL, budget=float("nan")), "above 0"),
        (lambda: CHOOSE(SMALL, unknown_prices="maybe"), "unknown_prices="),
        (lambda: choose(SMALL, LOCAL, by="quality"), "how good local is"),
        (lambda: choose(SMALL, LOCAL, by="adaptive"), "how good local is"),
        (lambda: choose(SMALL, promote={"session": {"a": 1}}), "never promoted"),
        (lambda: CANDIDATE("nobody"), "a candidate has the model 'nobody'"),
        (lambda: CANDIDATE(LOCAL, price=0.15), "say for how many tokens"),
        (lambda: CANDIDATE(LOCAL, quality="best"), "quality='best'"),
        (lambda: CANDIDATE(LOCAL, quality=float("inf")), "quality=inf"),
        (lambda: CANDIDATE(LOCAL, when="long"), "when='long'"),
        (lambda: CANDIDATE(choose(SMALL)), "is a choice itself"),
    ],
)
def test_what_cannot_be_chosen_from_is_refused_in_words(make, says):
    with pytest.raises(BadAgent) as caught:
        make()
    assert says in str(caught.value)


def test_a_promotion_may_name_a_field_of_a_schema():
    class Mood(StateSchema):
        upset: bool = False

    brain = choose(SMALL, BIG, by="adaptive", promote={Mood.upset: True})
    assert brain.pick(request(), ChoiceContext(state={"session": {"upset": True}})).name == "big"
    assert brain.facts()["promote"] == {"session": {"upset": True}}


def test_a_promotion_is_a_query():
    with pytest.raises(BadQuery):
        choose(SMALL, BIG, by="adaptive", promote={"session": {"$nonsense": 1}})


async def test_an_async_condition_is_refused_and_one_that_raises_is_named():
    async def later(_: ModelRequest) -> bool:
        return True

    with pytest.raises(BadAgent, match="plain function"):
        CANDIDATE(LOCAL, when=later)
    broken = choose(CANDIDATE(LOCAL, when=lambda request: request.nothing))
    end = ended(await simulate(Case("one", says="Hi"), Agent("clerk", model=broken)))
    assert end is not None
    assert "`when` of the candidate 'local' raised AttributeError" in end.error


class Wrapped:
    name = "wrapped"

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        return await self.inner.respond(request, on_delta)


async def test_a_choice_that_follows_the_run_cannot_be_asked_without_one():
    reply = await Wrapped(choose(SMALL, BIG)).respond(request())
    assert reply.model == "small"
    for brain in (choose(SMALL, budget=1), choose(SMALL, BIG, by="adaptive")):
        with pytest.raises(BadAgent, match="was asked without one"):
            await Wrapped(brain).respond(request())


def test_a_provider_s_models_are_chosen_by_their_listed_prices(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    brain = choose("openai:gpt-4o", "openai:gpt-4o-mini")
    assert brain.pick(request(), ChoiceContext()).name == "openai:gpt-4o-mini"


def test_the_price_of_a_choice_is_that_of_the_model_it_begins_with():
    assert price_of(choose(BIG, SMALL, LONG)) == CHEAP
    assert price_of(choose(BIG, SMALL, LONG, by="quality")) == DEAR
    promote = {"session": {"upset": True}}
    assert price_of(choose(BIG, SMALL, by="adaptive", promote=promote)) == CHEAP
