"""Estimates by hand: what small graphs cost under given traffic, and what stays unknown."""

from typing import Any

import pytest

from greenroom import Agent, Scripted, loop, route, step
from greenroom.agents import (
    Estimate,
    Traffic,
    approved,
    compile_flow,
    estimate,
    history,
    map_over,
    persona,
    race,
    timeout,
)
from greenroom.agents.flow import Flow
from greenroom.errors import BadAgent, BadInput
from greenroom.models import Price, candidate, choose

PRICES = {"m": Price.per_million(1, 2), "dear": Price.per_million(10, 20)}
USUAL: dict[str, Any] = {"tokens_in": 500, "tokens_out": 200}


class Unpriced:
    """A model that no list knows."""

    name = "house-model"

    async def respond(self, request: object, on_delta: object = None) -> object:
        raise AssertionError("an estimate asks no model")


def an(name: str, model: str = "m", **given: object) -> Agent:
    return Agent(name, model=Scripted(name=model), **given)  # pyright: ignore[reportArgumentType]


def guess(flow: Flow, **traffic: object) -> Estimate:
    return estimate(flow, Traffic(**{**USUAL, **traffic}), prices=PRICES)  # pyright: ignore[reportArgumentType]


def usd(tokens_in: float, tokens_out: float) -> float:
    return pytest.approx((tokens_in + 2 * tokens_out) / 1_000_000)  # pyright: ignore[reportReturnType]


def test_one_call_costs_its_tokens() -> None:
    found = guess(an("clerk"))
    assert estimate(compile_flow(an("clerk")), Traffic(**USUAL), prices=PRICES).usd == found.usd
    clerk = found.nodes["clerk"]
    assert (clerk.visits, clerk.calls, clerk.tokens_in, clerk.tokens_out) == (1, 1, 500, 200)
    assert found.usd == clerk.usd == usd(500, 200)
    assert (clerk.agent, clerk.models) == ("clerk", {"m": 1})


def test_a_day_has_so_many_runs() -> None:
    assert guess(an("clerk"), conversations_per_day=10_000).usd_per_day == pytest.approx(9.0)
    assert guess(an("clerk")).usd_per_day is None


def test_each_further_question_reads_the_earlier_answers_again() -> None:
    found = guess(an("clerk"), calls=3)
    assert (found.calls, found.tokens_in, found.tokens_out) == (3, 500 + 700 + 900, 600)
    assert found.usd == usd(2100, 600)
    assert guess(an("clerk"), calls=3, tokens_tool=100).tokens_in == 500 + 800 + 1100


def test_a_sequence_and_a_fork_visit_every_part() -> None:
    found = guess(an("a") >> (an("b") | an("c", "dear")))
    assert [*found.nodes] == ["seq.0/a", "seq.1/par.0/b", "seq.1/par.1/c"]
    assert found.nodes["seq.1/par.1/c"].usd == pytest.approx(0.009)
    assert found.usd == pytest.approx(0.0009 * 2 + 0.009)


def test_a_route_goes_each_way_as_often_as_said_and_the_rest_is_shared() -> None:
    flow = route("session.kind", billing=an("a"), refund=an("b"), otherwise=an("c"))
    found = guess(flow, routes={"route": {"billing": 0.6}})
    assert [node.visits for node in found.nodes.values()] == pytest.approx([0.6, 0.2, 0.2])
    assert found.usd == usd(500, 200)
    assert found.guesses == (
        "'route.billing/a' asks its model once in each visit (calls=)",
        "'route.refund/b' asks its model once in each visit (calls=)",
        "'route.otherwise/c' asks its model once in each visit (calls=)",
    )


def test_a_loop_asks_anew_in_each_round_and_its_agent_remembers() -> None:
    fixed = loop(an("clerk"), max_rounds=3)
    assert guess(fixed).tokens_in == 500 + 700 + 900
    assert guess(loop(an("clerk"), until={"done": True}), rounds=3).tokens_in == 2100
    forgetful = loop(an("clerk", context=[persona("You are brief.")]), max_rounds=3)
    assert guess(forgetful).tokens_in == 1500
    brief = loop(an("clerk", context=[history(last=1)]), max_rounds=3)
    assert guess(brief).tokens_in == pytest.approx(500 + 700 + 700)


def test_rounds_and_calls_grow_together() -> None:
    # Two rounds of two calls: four questions, each with all before it.
    found = guess(loop(an("clerk"), max_rounds=2), calls=2)
    assert found.tokens_in == 500 + 700 + 900 + 1100


def test_turns_of_a_conversation_count_as_rounds() -> None:
    found = guess(an("clerk"), turns=2)
    assert (found.calls, found.tokens_in) == (2, 500 + 700)


def test_a_way_that_is_gone_in_half_of_the_rounds_remembers_half_as_much() -> None:
    flow = loop(route("session.kind", a=an("a"), b=step(lambda: None, name="b")), max_rounds=3)
    found = guess(flow, routes={"route": {"a": 0.5}})
    # 1.5 visits; a visit in the second round finds half an exchange, one in the third a whole one.
    assert found.calls == pytest.approx(1.5)
    assert found.tokens_in == pytest.approx(0.5 * (500 + (500 + 100) + (500 + 200)))


def test_numbers_by_node_come_before_those_for_all() -> None:
    flow = an("a") >> an("b")
    found = guess(flow, calls={"a": 2, "*": 1}, tokens_in={"seq.1/b": 100, "*": 500})
    assert [node.calls for node in found.nodes.values()] == [2, 1]
    assert [node.tokens_in for node in found.nodes.values()] == [1200, 100]


def test_an_unknown_price_is_named_and_never_zero() -> None:
    flow = an("a") >> Agent("b", model=Unpriced())  # pyright: ignore[reportArgumentType]
    found = guess(flow, conversations_per_day=1000)
    assert (found.usd, found.usd_per_day) == (None, None)
    assert found.at_least == usd(500, 200)
    assert found.unknown == ("the price of house-model",)
    assert found.nodes["seq.1/b"].usd is None
    assert "one conversation" in str(found)
    assert "unknown, at least $0.0009" in str(found)
    assert "per day (1,000 conversations): unknown, at least $0.90" in str(found)
    assert "not known: the price of house-model" in str(found)


def test_what_is_never_reached_costs_nothing_whatever_its_price() -> None:
    model = Unpriced()
    flow = route("session.k", a=an("a"), b=Agent("b", model=model))  # pyright: ignore[reportArgumentType]
    assert guess(flow, routes={"route": {"a": 1.0}}).usd == usd(500, 200)


def test_without_tokens_the_calls_are_known_and_the_cost_is_not() -> None:
    found = estimate(an("a"), Traffic(calls=2), prices=PRICES)
    assert (found.calls, found.tokens_in, found.usd) == (2, None, None)
    assert found.unknown == ("the tokens of a",)
    assert str(found).splitlines()[1].split() == ["a", "m", "1", "2", *["unknown"] * 3]


def test_a_script_costs_nothing_and_that_is_a_known_price() -> None:
    assert estimate(Agent("a", model=Scripted("Hi"))).usd == 0


def test_what_was_neither_given_nor_seen_is_said() -> None:
    flow = loop(an("a"), until={"done": True}) >> route("session.k", x=an("x"), y=an("y"))
    found = guess(flow, calls=1)
    assert found.guesses == (
        "'seq.0/loop' goes one round (rounds=)",
        "'seq.1/route' goes each of its 2 ways equally often (routes=)",
    )
    assert "assumed: 'seq.0/loop' goes one round (rounds=)" in str(found)
    steps = loop(step(lambda: None, name="s"), until={"done": True}) >> an("a")
    assert guess(steps, calls=1).guesses == ()


@pytest.mark.parametrize(
    "given, words",
    [
        ({"tokens_in": -1}, "tokens_in=-1; give a number from 0"),
        ({"calls": {"a": "two"}}, r"calls\['a'\]='two'; give a number"),
        ({"conversations_per_day": True}, "conversations_per_day=True"),
        ({"fallbacks": 1.5}, "fallbacks=1.5; give a share from 0 to 1"),
        ({"routes": {"route": 0.5}}, "give a share for each way"),
        ({"routes": {"route": {"a": 0.7, "b": 0.7}}}, "add up to 1.4"),
    ],
)
def test_traffic_that_cannot_be_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Traffic(**given)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "given, words",
    [
        (
            {"calls": {"nobody": 2}},
            "names 'nobody', which is not in the agent; its nodes are route",
        ),
        ({"calls": {"twin": 2}}, "there are several: route.a/twin, route.b/twin"),
        ({"routes": {"route": {"c": 0.5}}}, "names 'c' at 'route'; there are a, b"),
        ({"routes": {"route": {"a": 0.5, "b": 0.1}}}, "the shares add up to 0.6; together"),
    ],
)
def test_traffic_of_another_agent_is_refused(given: dict[str, object], words: str) -> None:
    flow = route("session.k", a=an("twin"), b=an("twin"))
    with pytest.raises(BadInput, match=words):
        guess(flow, **given)


def test_every_part_of_a_race_is_paid_for() -> None:
    assert guess(race(an("a"), an("b"))).usd == usd(1000, 400)
    assert guess(timeout(an("a"), 5)).usd == usd(500, 200)


def test_a_fallback_pays_for_the_tries_that_failed() -> None:
    flow = an("a") // an("b") // an("c")
    found = guess(flow, fallbacks=0.5)
    assert [node.visits for node in found.nodes.values()] == [1, 0.5, 0.25]
    assert [node.visits for node in guess(flow, fallbacks={"try": 0.1}).nodes.values()] == (
        pytest.approx([1, 0.1, 0.01])
    )
    assert guess(flow, calls=1).guesses == ("'try' never falls back (fallbacks=)",)


def test_a_map_visits_its_body_for_each_item_and_no_item_sees_another() -> None:
    flow = map_over(an("a"))
    assert (guess(flow, items=4).calls, guess(flow, items=4).tokens_in) == (4, 2000)
    assert guess(flow, calls=1).guesses == ("'par' goes over one item (items=)",)
    # In the second round an item's agent remembers the four of the first.
    again = guess(loop(flow, max_rounds=2), items=4)
    assert again.tokens_in == 4 * 500 + 4 * (500 + 4 * 200)


def test_what_is_approved_or_not_costs_what_follows() -> None:
    flow = approved(an("pay"), "Pay?", otherwise=an("excuse", "dear"))
    found = guess(flow, approvals=0.75)
    assert [node.visits for node in found.nodes.values()] == [0.75, 0.25]
    assert found.usd == pytest.approx(0.75 * 0.0009 + 0.25 * 0.009)
    assert guess(flow, calls=1).guesses == ("'approval' is always approved (approvals=)",)


def test_agents_that_are_handed_over_to_cost_their_share() -> None:
    flow = an("clerk", handoffs=[an("billing", "dear"), an("refunds")])
    found = guess(flow, calls=1, handoffs={"clerk": {"billing": 0.25}})
    assert {node.agent: node.visits for node in found.nodes.values()} == {
        "clerk": 1,
        "billing": 0.25,
        "refunds": 0,
    }
    assert found.usd == pytest.approx(0.0009 + 0.25 * 0.009)
    assert guess(flow, calls=1).guesses == ("'clerk' never hands over (handoffs=)",)


def chosen(**options: Any) -> Agent:
    cheap = candidate(Scripted(name="cheap"), quality=1, price=Price.per_million(1, 2))
    dear = candidate(Scripted(name="dear"), quality=2, price=Price.per_million(10, 20))
    return Agent("a", model=choose(cheap, dear, **options))


@pytest.mark.parametrize(
    "by, first", [("cost", "cheap"), ("quality", "dear"), ("adaptive", "cheap")]
)
def test_a_choice_of_models_costs_what_the_one_costs_that_it_begins_with(
    by: str, first: str
) -> None:
    found = estimate(chosen(by=by), Traffic(**USUAL, calls=1))
    assert found.nodes["a"].models == {first: 1}
    assert found.usd == pytest.approx(0.0009 if first == "cheap" else 0.009)
    assert found.guesses == (f"'a' always asks {first} of its models (models=)",)


def test_a_choice_of_models_may_be_given_by_shares() -> None:
    found = estimate(chosen(), Traffic(**USUAL, calls=1, models={"a": {"cheap": 0.75}}))
    assert found.usd == pytest.approx(0.75 * 0.0009 + 0.25 * 0.009)
    assert (found.nodes["a"].models, found.guesses) == ({"cheap": 0.75, "dear": 0.25}, ())
    with pytest.raises(BadInput, match="names 'other' at 'a'; there are cheap, dear"):
        estimate(chosen(), Traffic(models={"a": {"other": 0.5}}))


def test_an_agent_without_a_graph_needs_runs() -> None:
    with pytest.raises(BadAgent, match=r"Traffic\.seen"):
        estimate(object())


def test_the_table_and_the_data_tell_the_same() -> None:
    found = guess(an("a") >> an("b"), calls=2, conversations_per_day=1000)
    assert str(found) == (
        "node              model  visits  calls  tokens in  tokens out    cost\n"
        "seq.0/a           m           1      2      1,200         400  $0.002\n"
        "seq.1/b           m           1      2      1,200         400  $0.002\n"
        "one conversation                     4      2,400         800  $0.004\n"
        "per day (1,000 conversations): $4.00"
    )
    data = found.data()
    assert data["usd_per_day"] == pytest.approx(4.0)
    assert data["per_conversation"]["usd"] == pytest.approx(0.004)
    assert [node["node"] for node in data["nodes"]] == ["seq.0/a", "seq.1/b"]
