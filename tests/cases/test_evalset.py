"""An eval set is a container of cases that gets smaller, larger and merged by plain rules."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Case, EvalSet
from greenroom.cases import Criterion, matches_filter, merge
from greenroom.errors import BadCase, BadInput, NotFound

REFUND = Case("refund-1", says="Hi", name="Refund, once", tags=["smoke", "money"])
TWICE = Case("refund-2", says="Hi", tags=["money"])
GREETS = Case("greets", says="Hi", name="Says hello", tags=["smoke"])
SHOP = EvalSet("shop", [REFUND, TWICE, GREETS])

IDS = st.text("abAB*?[]!:-", min_size=1, max_size=4)
CASES = st.builds(Case, IDS, says=st.just("Hi"), name=IDS | st.just(""), tags=st.lists(IDS))
SETS = st.builds(EvalSet, IDS, st.lists(CASES, max_size=6, unique_by=lambda case: case.id))
PATTERNS = st.text("abAB*?[]!:-", min_size=1, max_size=4).filter(lambda p: p.strip("!"))


def test_a_set_knows_its_cases_by_id_and_by_themselves() -> None:
    assert "greets" in SHOP
    assert GREETS in SHOP
    assert "unheard-of" not in SHOP
    assert Case("greets", says="Bye") not in SHOP
    assert (SHOP.get("greets"), SHOP.get("x"), SHOP.get("x", REFUND)) == (GREETS, None, REFUND)
    assert (SHOP.ids, SHOP.tags) == (["refund-1", "refund-2", "greets"], ["money", "smoke"])


def test_cases_are_added_and_taken_away() -> None:
    more = SHOP.with_cases(Case("late", says="Hi"))
    assert more.ids == ["refund-1", "refund-2", "greets", "late"]
    assert more.without("refund-1", "late").ids == ["refund-2", "greets"]
    with pytest.raises(BadCase, match="two cases 'greets'"):
        SHOP.with_cases(GREETS)
    with pytest.raises(BadCase, match="no case 'x'"):
        SHOP.without("x")


def test_a_set_comes_back_from_its_file(tmp_path: Path) -> None:
    SHOP.save(tmp_path / "shop.json")
    assert EvalSet.load(tmp_path / "shop.json").ids == SHOP.ids


# Filters


@pytest.mark.parametrize(
    "patterns, ids",
    [
        (["refund*"], ["refund-1", "refund-2"]),
        (["refund-?"], ["refund-1", "refund-2"]),
        (["*hello"], ["greets"]),
        (["smoke"], ["refund-1", "greets"]),
        (["tag:smoke"], ["refund-1", "greets"]),
        (["name:Refund*"], ["refund-1"]),
        (["id:g*"], ["greets"]),
        (["name:*"], ["refund-1", "greets"]),
        (["greets", "refund-2"], ["refund-2", "greets"]),
        (["!money"], ["greets"]),
        (["smoke", "!tag:money"], ["greets"]),
        (["!refund-1", "!refund-2"], ["greets"]),
    ],
)
def test_a_filter_keeps_what_any_pattern_means_and_no_excluding_one(
    patterns: list[str], ids: list[str]
) -> None:
    assert SHOP.filter(*patterns).ids == ids


def test_upper_and_lower_case_count_in_a_filter() -> None:
    assert not matches_filter(REFUND, "Refund-*")
    assert matches_filter(REFUND, "Refund*")  # its name


def test_an_id_with_brackets_means_itself() -> None:
    case = Case("refund[eur]", says="Hi")
    assert matches_filter(case, "refund[eur]")
    assert not matches_filter(case, "refund[usd]")


def test_a_prefix_looks_in_one_place_only() -> None:
    case = Case("smoke", says="Hi", tags=["fast"])
    assert matches_filter(case, "id:smoke")
    assert not matches_filter(case, "tag:smoke")
    assert matches_filter(Case("tag:odd", says="Hi"), "id:tag:odd")


def test_a_filter_that_leaves_nothing_lists_what_there_is_and_what_is_near() -> None:
    with pytest.raises(NotFound) as caught:
        SHOP.filter("refnd-1")
    told = str(caught.value)
    assert "eval set 'shop' has no case that matches 'refnd-1'. Did you mean 'refund-1'" in told
    assert "Ids: 'refund-1', 'refund-2', 'greets'; tags: 'money', 'smoke'." in told


@pytest.mark.parametrize(
    "patterns",
    [
        ["greets", "id:refund-3"],
        ["refund-*", "tag:smokey"],
        ["refund-1", "greets", "!greets"],
    ],
)
def test_a_pattern_that_matches_nothing_is_refused_beside_one_that_does(
    patterns: list[str],
) -> None:
    with pytest.raises(NotFound, match=f"no case that matches '{patterns[1].split('!')[0]}'"):
        SHOP.filter(*patterns)


@pytest.mark.parametrize("pattern", ["", " ", "!", "tag:", "!id:", "name: "])
def test_a_blank_filter_is_refused(pattern: str) -> None:
    with pytest.raises(BadInput, match="is not a filter"):
        SHOP.filter(pattern)


def test_a_filter_without_patterns_is_refused() -> None:
    with pytest.raises(BadInput, match="no patterns"):
        SHOP.filter()


@given(evalset=SETS, patterns=st.lists(PATTERNS, min_size=1, max_size=3))
def test_a_filter_keeps_the_order_and_is_done_when_done_once(
    evalset: EvalSet, patterns: list[str]
) -> None:
    try:
        kept = evalset.filter(*patterns)
    except (NotFound, BadInput):
        return
    assert kept.ids == [case_id for case_id in evalset.ids if case_id in kept]
    assert kept.filter(*patterns) == kept


@given(evalset=SETS, pattern=PATTERNS.filter(lambda p: not p.startswith("!") and ":" not in p))
def test_a_pattern_and_its_opposite_share_out_the_cases(evalset: EvalSet, pattern: str) -> None:
    def ids(wanted: str) -> list[str]:
        try:
            return evalset.filter(wanted).ids
        except NotFound:
            return []

    assert sorted(ids(pattern) + ids(f"!{pattern}")) == sorted(evalset.ids)


@given(evalset=SETS)
def test_every_case_is_found_by_its_own_id(evalset: EvalSet) -> None:
    for case in evalset:
        assert case in evalset.filter(f"id:{case.id}")


# Limits and samples


def test_a_limit_takes_the_first_cases() -> None:
    assert SHOP.limit(2).ids == ["refund-1", "refund-2"]
    assert SHOP.limit(99) == SHOP


@pytest.mark.parametrize("n", [0, -1, True, 1.5])
def test_a_limit_or_sample_of_nothing_is_refused(n: Any) -> None:
    with pytest.raises(BadInput, match="would leave no cases"):
        SHOP.limit(n)
    with pytest.raises(BadInput, match="would leave no cases"):
        SHOP.sample(n)


@given(evalset=SETS, n=st.integers(1, 7), seed=st.integers(0, 3))
def test_a_sample_is_drawn_by_its_seed_and_grows_from_the_smaller_one(
    evalset: EvalSet, n: int, seed: int
) -> None:
    drawn = evalset.sample(n, seed=seed)
    assert len(drawn) == min(n, len(evalset))
    assert drawn == evalset.sample(n, seed=seed)
    assert set(drawn.ids) <= set(evalset.sample(n + 1, seed=seed).ids)
    assert drawn.ids == [case_id for case_id in evalset.ids if case_id in drawn]


def test_another_seed_draws_other_cases() -> None:
    many = EvalSet("many", [Case(f"c{i}", says="Hi") for i in range(50)])
    assert many.sample(5, seed=1).ids != many.sample(5, seed=2).ids


# Merging


def test_merged_sets_say_where_their_cases_come_from() -> None:
    merged = merge(EvalSet("a", [REFUND]), EvalSet("b", [GREETS]))
    assert (merged.id, merged.ids) == ("merged", ["refund-1", "greets"])
    assert merged.description == "Merged from 2 eval sets"
    assert merged.metadata == {"merged_from": ["a", "b"], "duplicates_dropped": 0}


def test_an_id_in_two_sets_is_an_error_that_names_both() -> None:
    with pytest.raises(BadCase, match="'a' and 'b' both have a case 'greets'"):
        merge(EvalSet("a", [GREETS]), EvalSet("b", [GREETS]))


def test_equal_cases_collapse_and_are_counted() -> None:
    merged = merge(EvalSet("a", [GREETS]), EvalSet("b", [GREETS, REFUND]), deduplicate=True)
    assert (merged.ids, merged.metadata["duplicates_dropped"]) == (["greets", "refund-1"], 1)


def test_of_different_cases_with_one_id_the_author_says_which_to_keep() -> None:
    one, other = Case("x", says="One"), Case("x", says="Other")
    sets = EvalSet("a", [one]), EvalSet("b", [other])
    with pytest.raises(BadCase, match=r"'a' and 'b' have different cases 'x'.*'first' or 'last'"):
        merge(*sets, deduplicate=True)
    assert merge(*sets, deduplicate="first")["x"] is one
    assert merge(*sets, deduplicate="last")["x"] is other
    wrong: Any = "newest"
    with pytest.raises(BadCase, match="deduplicate='newest'"):
        merge(*sets, deduplicate=wrong)


def test_the_metrics_of_a_set_measure_its_own_cases_only() -> None:
    strict = Criterion("exact")
    merged = merge(
        EvalSet("a", [REFUND, Case("own", says="Hi", metrics=["exact"])], metrics=[strict]),
        EvalSet("b", [GREETS], trials=3),
    )
    assert merged.metrics == ()
    assert [list(case.metrics) for case in merged] == [[strict], ["exact"], []]
    assert merged.trials == 3


def test_metrics_that_all_sets_share_stay_with_the_merged_one() -> None:
    merged = merge(EvalSet("a", [REFUND], metrics=["exact"]), EvalSet("b", metrics=["exact"]))
    assert (list(merged.metrics), list(merged["refund-1"].metrics)) == (["exact"], [])


@given(one=SETS, other=SETS)
def test_a_merged_set_holds_every_id_once_and_counts_what_it_dropped(
    one: EvalSet, other: EvalSet
) -> None:
    merged = merge(one, other, deduplicate="first")
    assert merged.ids == list(dict.fromkeys([*one.ids, *other.ids]))
    assert len(merged) + merged.metadata["duplicates_dropped"] == len(one) + len(other)
    assert all(merged[case.id] is case for case in one)
    last = merge(one, other, deduplicate="last")
    assert all(last[case.id] is case for case in other)


@given(evalset=SETS)
def test_a_set_merged_with_itself_is_no_larger(evalset: EvalSet) -> None:
    assert merge(evalset, evalset, deduplicate=True).cases == evalset.cases


@pytest.mark.parametrize("trials", [0, -1, True, 2.0, "3", 100_001, 10**400])
def test_a_number_of_trials_that_no_run_could_finish_is_refused(trials: Any) -> None:
    with pytest.raises(BadCase, match=r"eval set 'shop' has trials=.*; give a whole number from 1"):
        EvalSet("shop", [GREETS], trials=trials)


def test_a_file_with_too_many_trials_says_where(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(f"version: 1\ntrials: {10**30}\ncases: [{{id: a, says: Hi}}]\n")
    with pytest.raises(BadInput, match=r"line 2, column 1, trials: 10+ are too many"):
        EvalSet.load(file)
