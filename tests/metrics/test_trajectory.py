"""`tool_trajectory_avg_score` holds the calls of a run against those the case expects."""

from typing import Any

import pytest

from greenroom import Case, Expect, NotApplicable, Score, Turn, Unmeasured, call, score
from greenroom.cases import Criterion, case_data, case_from
from greenroom.errors import BadMetric
from greenroom.ledger import Event, Ledger, ModelReplied, RunResumed, ToolCall, ToolCalled
from greenroom.metrics import (
    MatchType,
    as_metric,
    tool_name_match,
    tool_trajectory_avg_score,
)
from metrics.runs import agent, run, tool, user

LOOK, REFUND = call("look", id=7), call("refund", order=7)


def look() -> list[Event]:
    return tool("look", id=7)


def refund() -> list[Event]:
    return tool("refund", order=7)


def ping() -> list[Event]:
    return tool("ping")


MODES = list(MatchType.__members__)


def expecting(*wanted: Any) -> Case:
    return Case("c", says="Hi", expect=Expect(tools=list(wanted)))


async def outcome(case: Case, ledger: Ledger, match_type: Any = "EXACT", **options: Any) -> Any:
    asked = tool_trajectory_avg_score(match_type, **options)
    (found,) = (await score(ledger, [asked], case)).values()
    return found


@pytest.mark.parametrize(
    "made, shares",
    [
        ([look, refund], dict.fromkeys(MODES, 1.0)),
        (
            [refund, look],
            {
                "EXACT": 0.0, "STRICT": 0.0, "ADK": 0.0, "IN_ORDER": 0.5,
                "ANY_ORDER": 1.0, "UNORDERED": 1.0, "SUPERSET": 1.0, "SUBSET": 1.0,
            },
        ),
        (
            [look, ping, refund],
            {
                "EXACT": 0.0, "STRICT": 0.0, "ADK": 0.0, "IN_ORDER": 1.0,
                "ANY_ORDER": 1.0, "UNORDERED": 2 / 3, "SUPERSET": 1.0, "SUBSET": 2 / 3,
            },
        ),
        (
            [look],
            {
                "EXACT": 0.0, "STRICT": 0.0, "ADK": 0.0, "IN_ORDER": 0.5,
                "ANY_ORDER": 0.5, "UNORDERED": 0.5, "SUPERSET": 0.5, "SUBSET": 1.0,
            },
        ),
        (
            [look, lambda: tool("refund", order=8)],
            {
                "EXACT": 0.5, "STRICT": 0.5, "ADK": 0.0, "IN_ORDER": 0.5,
                "ANY_ORDER": 0.5, "UNORDERED": 0.5, "SUPERSET": 0.5, "SUBSET": 0.5,
            },
        ),
        ([], {**dict.fromkeys(MODES, 0.0), "SUBSET": 1.0}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("match_type", MODES)
async def test_each_match_type_has_its_own_share(made, shares, match_type):
    found = await outcome(
        expecting(LOOK, REFUND), run(user("Hi"), *(one() for one in made)), match_type
    )
    assert found.value == pytest.approx(shares[match_type])
    assert found.passed is (shares[match_type] == 1)
    assert found.threshold == 1.0


@pytest.mark.parametrize("match_type", MODES)
async def test_expecting_no_calls_allows_none_in_every_match_type(match_type):
    assert (await outcome(expecting(), run(user("Hi"), agent("x")), match_type)).passed
    found = await outcome(expecting(), run(user("Hi"), look()), match_type)
    assert (found.value, found.reason) == (0.0, "turn 1: extra look(id=7)")


async def test_a_case_that_expects_nothing_of_its_calls_is_not_applicable():
    found = await outcome(Case("c", says="Hi"), run(user("Hi"), look()))
    assert isinstance(found, NotApplicable)


async def test_the_reason_names_every_kind_of_difference():
    wanted = expecting(LOOK, REFUND, "mail", call("note", text="a"))
    made = run(user("Hi"), tool("mail"), ping(), look(), tool("note", text="b"))
    found = await outcome(wanted, made)
    assert found.reason == (
        "turn 1: missing refund(order=7); extra ping(); misplaced look(id=7) (place 3, expected in "
        "place 1); wrong arguments note(text='b') instead of note(text='a')"
    )
    assert found.evidence == [
        "turn 1: - refund(order=7)",
        "turn 1:   mail()",
        "turn 1: + ping()",
        "turn 1: > look(id=7)",
        "turn 1: ~ note(text='b')",
    ]


@pytest.mark.parametrize(
    "match_type, told, forgiven",
    [
        ("IN_ORDER", ["missing", "misplaced", "wrong arguments"], ["extra"]),
        ("ANY_ORDER", ["missing", "wrong arguments"], ["extra", "misplaced"]),
        ("SUPERSET", ["missing", "wrong arguments"], ["extra", "misplaced"]),
        ("UNORDERED", ["missing", "extra", "wrong arguments"], ["misplaced"]),
        ("SUBSET", ["extra", "wrong arguments"], ["missing", "misplaced"]),
    ],
)
async def test_the_reason_leaves_out_what_the_match_type_forgives(match_type, told, forgiven):
    wanted = expecting(LOOK, REFUND, "mail", call("note", text="a"))
    made = run(user("Hi"), tool("mail"), ping(), look(), tool("note", text="b"))
    reason = (await outcome(wanted, made, match_type)).reason
    assert all(kind in reason for kind in told)
    assert not any(kind in reason for kind in forgiven)


async def test_the_details_hold_both_trajectories_and_the_match_type():
    found = await outcome(expecting(LOOK, "mail"), run(user("Hi"), look()), "in_order")
    assert found.details == {
        "match_type": "IN_ORDER",
        "scope": "turn",
        "compared": [
            {
                "turn": 1,
                "value": 0.5,
                "expected": [{"tool": "look", "args": {"id": 7}}, "mail"],
                "actual": [{"tool": "look", "args": {"id": 7}}],
                "missing": ["mail"],
                "extra": [],
                "misplaced": [],
                "wrong_arguments": [],
            }
        ],
    }


TALK = Case("talk", turns=[Turn("one", Expect(tools=[LOOK])), Turn("two", Expect(tools=[REFUND]))])


async def test_turns_are_measured_one_by_one_and_their_mean_counts():
    late = run(user("one"), agent("x"), user("two"), look(), refund(), agent("y"))
    found = await outcome(TALK, late, "ANY_ORDER", threshold=0.5)
    assert (found.value, found.passed) == (0.5, True)
    assert found.reason == "turn 1: missing look(id=7). turn 2: as expected"


async def test_the_whole_conversation_can_be_one_row():
    late = run(user("one"), agent("x"), user("two"), look(), refund(), agent("y"))
    found = await outcome(TALK, late, scope="all")
    assert (found.value, found.reason, found.details["scope"]) == (1.0, "as expected", "all")


async def test_a_turn_that_was_never_reached_counts_as_0():
    found = await outcome(TALK, run(user("one"), look()), "IN_ORDER")
    assert (found.value, found.passed) == (0.5, False)
    assert "turn 2: never reached" in found.reason


async def test_adk_counts_each_turn_as_1_or_0():
    wanted = Case(
        "talk", turns=[Turn("one", Expect(tools=[LOOK, REFUND])), Turn("two", Expect(tools=[]))]
    )
    made = run(user("one"), look(), tool("refund", order=8), agent("x"), user("two"), agent("y"))
    assert (await outcome(wanted, made, "EXACT")).value == 0.75
    assert (await outcome(wanted, made, "adk")).value == 0.5


def asked_together(*calls: ToolCall) -> list[Event]:
    """Calls that one model reply asked for."""
    named = [ToolCall(c.tool, c.args, f"t{i}-{c.tool}") for i, c in enumerate(calls)]
    made = [ToolCalled(call_id=c.id, tool=c.tool, args=c.args) for c in named]
    return [ModelReplied(model="m", calls=tuple(named)), *made]


async def test_strict_forgives_the_order_within_one_model_reply_only():
    together = run(user("Hi"), asked_together(REFUND, LOOK), asked_together(call("mail")))
    assert (await outcome(expecting(LOOK, REFUND, "mail"), together, "STRICT")).value == 1.0
    assert (await outcome(expecting(LOOK, REFUND, "mail"), together, "EXACT")).value < 1
    apart = run(user("Hi"), asked_together(REFUND), asked_together(LOOK))
    assert (await outcome(expecting(LOOK, REFUND), apart, "STRICT")).value == 0.0


async def test_in_order_does_not_depend_on_which_call_is_met_first():
    made = run(user("Hi"), tool("b"), tool("a"), tool("b"), tool("c"))
    found = await outcome(expecting("a", "b", "c"), made, "IN_ORDER")
    assert found.value == 1.0
    # A greedy walk would spend everything on the late "a".
    made = run(user("Hi"), tool("b"), tool("c"), tool("a"))
    assert (await outcome(expecting("a", "b", "c"), made, "IN_ORDER")).value == pytest.approx(2 / 3)


async def test_a_bare_name_does_not_take_the_only_call_that_another_needs():
    made = run(user("Hi"), look(), tool("look", id=8))
    assert (await outcome(expecting("look", LOOK), made, "ANY_ORDER")).value == 1.0


@pytest.mark.parametrize(
    "written", ["in_order", "IN_ORDER", "in-order", "In Order", MatchType.IN_ORDER]
)
async def test_a_match_type_is_known_in_any_case(written):
    assert tool_trajectory_avg_score(written).match is MatchType.IN_ORDER


@pytest.mark.parametrize(
    "options, told",
    [
        ({"match_type": "SORTED"}, "'SORTED' is not one of 'EXACT', 'STRICT', 'ADK', 'IN_ORDER'"),
        ({"match_type": 3}, "match_type=3"),
        ({"scope": "talk"}, "scope='talk' is not one of 'turn', 'all'"),
        ({"args": "fuzzy"}, "args='fuzzy' is not one of 'exact', 'subset', 'superset', 'ignore'"),
        ({"tool_args": {"look": "fuzzy"}}, r"tool_args\['look'\]='fuzzy'"),
        ({"tool_args": "ignore"}, "give a mapping by tool"),
        ({"ignore_args": "timestamp"}, "give a list of strings"),
        ({"ignore_args": {"look": "timestamp"}}, "give a list of strings"),
        ({"tolerance": -1}, "tolerance=-1; give a number, 0 or more"),
        ({"tolerance": True}, "tolerance=True"),
        ({"threshold": 5}, "threshold=5; its scale is 0 to 1: give a number above 0, at most 1"),
        ({"threshold": 10**400}, "its scale is 0 to 1: give a number above 0, at most 1"),
        ({"threshold": 0}, "threshold=0; its scale is 0 to 1: give a number above 0, at most 1"),
        ({"name": " "}, "the name ' '"),
        ({"order": "any"}, "no option 'order'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, told):
    threshold = options.pop("threshold", None)
    with pytest.raises(BadMetric, match=told):
        as_metric(Criterion("tool_trajectory_avg_score", threshold=threshold, options=options))


async def test_asked_for_by_name_it_comes_in_place_of_the_implied_comparison():
    asked = Criterion(
        "tool_trajectory_avg_score",
        threshold=0.5,
        options={"match_type": "any_order", "args": "ignore"},
    )
    case = Case("c", says="Hi", expect=Expect(tools=[LOOK, "mail"]), metrics=[asked])
    again = case_from(case_data(case))
    found = await score(run(user("Hi"), tool("look", id=8)), case=again)
    assert list(found) == ["tool_trajectory_avg_score"]
    (only,) = found.values()
    assert isinstance(only, Score)
    assert (only.value, only.passed) == (0.5, True)


async def test_names_alone_can_be_compared():
    made = run(user("Hi"), tool("look", id=99), refund())
    found = await score(made, [tool_name_match()], expecting(LOOK, REFUND))
    assert list(found) == ["tool_name_match"]
    assert (await outcome(expecting(LOOK, REFUND), made)).value == 0.5


async def test_a_call_issued_again_after_a_cut_counts_once():
    for scope in ("turn", "all"):
        one, two, three, four = (
            ToolCalled(call_id="same", tool="look", args={"id": 7}) for _ in range(4)
        )
        cut: list[Event] = [one, RunResumed(), two]
        assert (await outcome(expecting(LOOK), run(user("Hi"), cut), scope=scope)).passed
        uncut: list[Event] = [three, four]
        assert not (await outcome(expecting(LOOK), run(user("Hi"), uncut), scope=scope)).passed


async def test_a_long_run_is_compared_without_running_out_of_stack():
    chain = [call("a", n={"$in": [n, n + 1]}) for n in range(300)]
    made = run(user("Hi"), *(tool("a", n=n) for n in range(300, 0, -1)))
    found = await outcome(expecting(*chain), made, "ANY_ORDER")
    assert found.value == 1.0


async def test_a_predicate_that_raises_leaves_it_unmeasured():
    found = await outcome(
        expecting(LOOK), run(user("Hi"), look()), tool_args={"look": lambda args: args["gone"]}
    )
    assert isinstance(found, Unmeasured)


def test_it_shows_itself_as_it_was_written():
    plain = tool_trajectory_avg_score("in_order", ignore_args=["at"], tolerance=0.1)
    assert repr(plain) == (
        "tool_trajectory_avg_score('IN_ORDER', ignore_args=['at'], tolerance=0.1, "
        "name='tool_trajectory_avg_score')"
    )
    code = tool_trajectory_avg_score(tool_args={"look": lambda args: True})
    assert "tool_args={'look': <lambda>}" in repr(code)
