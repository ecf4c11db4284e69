"""What holds of every comparison of trajectories, however the calls fall."""

from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from greenroom import Case, Expect, Score
from greenroom.ledger import Ledger, RunEnded, RunStarted, ToolCall, ToolCalled, UserSaid
from greenroom.metrics import MatchType, tool_trajectory_avg_score
from greenroom.metrics.comparison import in_order, most_pairs, pairs_in_order
from greenroom.metrics.expectations import ExpectedTools
from metrics.runs import world

names = st.sampled_from("abc")
args = st.dictionaries(st.just("n"), st.integers(0, 1), max_size=1)
calls = st.builds(ToolCall, names, args)
wanted = st.lists(st.one_of(names, calls), max_size=5)
made = st.lists(calls, max_size=5)
modes = st.sampled_from(list(MatchType))


def ran(calls: list[ToolCall]) -> Ledger:
    ledger = Ledger()
    done = [ToolCalled(call_id=f"c{n}", tool=c.tool, args=c.args) for n, c in enumerate(calls)]
    for event in (RunStarted(run_id="r"), UserSaid(text="Hi"), *done, RunEnded(reason="completed")):
        ledger.append(event, at=1.0)
    return ledger


def compared(wanted: Any, made: list[ToolCall], mode: MatchType, **options: Any) -> Score:
    case = Case("c", says="Hi", expect=Expect(tools=wanted))
    found = tool_trajectory_avg_score(mode, **options).measure(case, ran(made), world())
    assert isinstance(found, Score)
    return found


def value(wanted: Any, made: list[ToolCall], mode: MatchType, **options: Any) -> float:
    return compared(wanted, made, mode, **options).value


@given(wanted, made, st.randoms(use_true_random=False))
def test_where_order_does_not_count_it_does_not_count(wanted, made, random):
    shuffled = random.sample(made, len(made))
    for mode in (MatchType.ANY_ORDER, MatchType.UNORDERED, MatchType.SUPERSET, MatchType.SUBSET):
        assert value(wanted, made, mode) == value(wanted, shuffled, mode)
        assert value(wanted, made, mode) == value(random.sample(wanted, len(wanted)), made, mode)


@given(wanted, made)
def test_what_a_case_expects_is_told_as_the_metric_for_it_tells_it(wanted, made):
    case = Case("c", says="Hi", expect=Expect(tools=wanted))
    implied: Any = ExpectedTools().measure(case, ran(made), world())
    asked: Any = compared(wanted, made, MatchType.EXACT)
    assert implied.value == asked.value
    if not implied.passed:
        differs = implied.details[0]
        told = {**asked.details["compared"][0], **differs}
        assert told == asked.details["compared"][0]
        assert asked.reason == implied.reason


@given(wanted, made)
def test_a_stricter_match_type_never_scores_more(wanted, made):
    ladder = [MatchType.ADK, MatchType.EXACT, MatchType.STRICT, MatchType.IN_ORDER]
    values = [value(wanted, made, mode) for mode in [*ladder, MatchType.ANY_ORDER]]
    assert values == sorted(values)
    assert value(wanted, made, MatchType.UNORDERED) <= value(wanted, made, MatchType.SUPERSET)


@given(st.one_of(made.map(lambda calls: (calls, calls)), st.tuples(wanted, made)))
def test_what_is_exact_passes_every_match_type(both):
    wanted, made = both
    is_exact = value(wanted, made, MatchType.EXACT) == 1
    assert not is_exact or all(value(wanted, made, mode) == 1 for mode in MatchType)


@given(made, modes)
def test_the_expected_calls_themselves_always_pass(made, mode):
    assert value(made, made, mode) == 1
    assert value([c.tool for c in made], made, mode) == 1


@given(wanted, made, calls, st.integers(0, 5))
def test_an_extra_call_never_raises_exact_once_there_are_enough(wanted, made, extra, place):
    more = [*made[:place], extra, *made[place:]]
    if len(made) >= len(wanted):
        assert value(wanted, more, MatchType.EXACT) == 0
    assert value(wanted, more, MatchType.ANY_ORDER) >= value(wanted, made, MatchType.ANY_ORDER) or (
        not wanted
    )


@given(wanted, made, modes)
def test_forgiving_arguments_never_scores_less(wanted, made, mode):
    exact = value(wanted, made, mode)
    assert exact <= value(wanted, made, mode, args="subset")
    assert exact <= value(wanted, made, mode, args="superset")
    assert value(wanted, made, mode, args="subset") <= value(wanted, made, mode, args="ignore")


@given(wanted, made, modes)
def test_the_difference_accounts_for_every_call(wanted, made, mode):
    found = compared(wanted, made, mode)
    (part,) = found.details["compared"]  # pyright: ignore[reportIndexIssue, reportCallIssue, reportArgumentType]
    kinds = ("missing", "extra", "misplaced", "wrong_arguments")
    missing, extra, moved, wrong = [len(part[kind]) for kind in kinds]
    matched = round(value(wanted, made, MatchType.ANY_ORDER) * len(wanted)) if wanted else 0
    assert missing + wrong + matched == len(wanted)
    assert extra + wrong + matched == len(made)
    assert moved <= matched
    marks = [line.removeprefix("turn 1: ")[0] for line in found.evidence if "no calls" not in line]
    assert [marks.count(mark) for mark in "-+>~"] == [missing, extra, moved, wrong]


@given(wanted, made, modes)
def test_a_score_below_1_names_what_is_wrong_and_1_names_nothing(wanted, made, mode):
    found = compared(wanted, made, mode)
    (part,) = found.details["compared"]  # pyright: ignore[reportIndexIssue, reportCallIssue, reportArgumentType]
    assert (found.reason == "turn 1: as expected") is (found.value == 1)
    forgiven = {
        MatchType.IN_ORDER: {"extra"},
        MatchType.ANY_ORDER: {"extra"},
        MatchType.SUPERSET: {"extra"},
        MatchType.SUBSET: {"missing"},
    }
    for kind in {"missing", "extra"} - forgiven.get(mode, set()):
        assert found.value == 1 or all(text in found.reason for text in part[kind])


fitting = st.integers(0, 5).flatmap(
    lambda made: st.tuples(
        st.lists(
            st.sets(st.integers(0, made - 1)).map(sorted) if made else st.just([]), max_size=5
        ),
        st.just(made),
    )
)


def is_paired(pairs: dict[int, int], fitting: list[list[int]]) -> bool:
    fit = all(j in fitting[i] for i, j in pairs.items())
    return fit and len(set(pairs.values())) == len(pairs)


@given(fitting)
def test_the_most_pairs_are_as_many_as_trying_everything_finds(rows):
    fitting, made = rows
    found = most_pairs(fitting)
    places = [*range(made), *([-1] * len(fitting))]
    best = max(
        sum(j in row for row, j in zip(fitting, order, strict=False))
        for order in permutations(places, len(fitting))
    ) if len(places) <= 7 else len(found)  # fmt: skip
    assert is_paired(found, fitting)
    assert len(found) == best


def longest(fitting: list[list[int]], made: int, i: int = 0, j: int = 0) -> int:
    """The longest common subsequence by its definition."""
    if i == len(fitting) or j == made:
        return 0
    skipped = max(longest(fitting, made, i + 1, j), longest(fitting, made, i, j + 1))
    return max(skipped, 1 + longest(fitting, made, i + 1, j + 1)) if j in fitting[i] else skipped


@given(fitting)
def test_the_pairs_in_order_are_as_many_as_the_definition_says(rows):
    fitting, made = rows
    found = pairs_in_order(fitting, made)
    assert is_paired(found, fitting)
    assert list(found.values()) == sorted(found.values())
    assert len(found) == longest(fitting, made)


@given(fitting)
def test_looking_for_more_pairs_keeps_everyone_who_had_one(rows):
    fitting, made = rows
    begin = pairs_in_order(fitting, made)
    found = most_pairs(fitting, begin)
    assert begin.keys() <= found.keys()
    assert set(begin.values()) <= set(found.values())
    assert len(found) == len(most_pairs(fitting))


@given(st.permutations(range(6)))
def test_the_row_that_stays_in_order_is_a_longest_one(order):
    pairs = dict(enumerate(order))
    kept = [pairs[i] for i in sorted(in_order(pairs))]
    assert kept == sorted(kept)
    fitting = [[j] for j in order]
    assert len(kept) == longest(fitting, 6)
