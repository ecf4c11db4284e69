"""Two timelines next to each other."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from browser.sample_reports import refund_run
from greenroom.reports.page.alignment import beside
from greenroom.reports.page.short_values import Trimmer
from greenroom.reports.page.timeline import timeline


def said(text: str, kind: str = "agent", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "text": text, **more}


def called(tool: str, **args: Any) -> dict[str, Any]:
    return {"kind": "tool", "who": tool, "value": {"args": args}}


def pairs(found) -> list[tuple[int | None, int | None, str]]:
    return [(row.a, row.b, row.differs) for row in found.rows]


def test_other_words_pair_up_and_another_act_is_told_apart():
    a = [said("hi", "user"), said("Sure."), called("refund", n=25), said("Done.")]
    b = [said("hi", "user"), said("Of course!"), called("refund", n=26), said("Done.")]
    found = beside(a, b)
    assert pairs(found) == [(0, 0, ""), (1, 1, "words"), (2, 2, "act"), (3, 3, "")]
    assert (found.words, found.act) == (1, 2)


def test_what_only_one_side_did_stands_alone_where_it_happened():
    a = [said("hi", "user"), said("Done.")]
    b = [said("hi", "user"), called("look"), said("Done.")]
    assert pairs(beside(a, b)) == [(0, 0, ""), (None, 1, "act"), (1, 2, "")]
    assert pairs(beside(b, a)) == [(0, 0, ""), (1, None, "act"), (2, 1, "")]


def test_branches_may_come_in_any_order():
    left, right = {**called("x"), "path": "par.0"}, {**called("y"), "path": "par.1"}
    found = beside([left, right], [right, left])
    assert all(row.differs == "" for row in found.rows)
    assert found.act is None


def test_another_result_of_the_same_call_is_no_other_act():
    one, other = called("look"), called("look")
    one["value"]["result"], other["value"]["result"] = 1, 2
    assert pairs(beside([one], [other])) == [(0, 0, "words")]


def test_a_recorded_run_beside_itself_differs_nowhere():
    rows = timeline(refund_run(), Trimmer())
    found = beside(rows, rows)
    assert (found.words, found.act) == (None, None)
    assert [(row.a, row.b) for row in found.rows] == [(n, n) for n in range(len(rows))]


lines = st.lists(
    st.one_of(
        st.builds(said, st.sampled_from("ab"), st.sampled_from(["user", "agent", "model"]), path=st.sampled_from(["", "p"])),
        st.builds(called, st.sampled_from("xy"), n=st.integers(0, 1)),
    ),
    max_size=12,
)  # fmt: skip


@given(lines, lines)
def test_every_row_of_both_sides_is_there_once(a, b):
    found = beside(a, b)
    assert [row.a for row in found.rows if row.a is not None] == list(range(len(a)))
    assert sorted(row.b for row in found.rows if row.b is not None) == list(range(len(b)))
