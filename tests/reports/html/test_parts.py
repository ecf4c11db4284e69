"""What the page is made of: timelines, comparison, packed data, and what is cut."""

import json
import zlib
from base64 import b64decode
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from browser.sample_reports import ledger_of, refund_run, rich_report
from greenroom import Report, Score
from greenroom.ledger import (
    AgentSaid,
    Change,
    RunEnded,
    RunResumed,
    StateChanged,
    ToolCalled,
    UserSaid,
)
from greenroom.ledger.plain import Json, as_array, as_object
from greenroom.reports.html import render_html
from greenroom.reports.html.packed_data import PackedValues, json_text
from greenroom.reports.page.short_values import Trimmer
from greenroom.reports.page.story import story_of
from greenroom.reports.page.timeline import step_rows, timeline
from greenroom.results import CaseResult


def rows(ledger) -> list[dict[str, Any]]:
    return timeline(ledger, Trimmer())


def of(kind: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row for row in found if row["kind"] == kind)


# The timeline


def test_a_tool_call_is_one_row_with_its_arguments_result_source_and_time():
    found = next(row for row in rows(refund_run()) if row.get("who") == "refund")
    assert found["value"] == {"args": {"order": "A-7", "amount": 120}, "result": "ok"}
    assert (found["source"], found["s"], found["at"]) == ("mock", 0.14, 3.3)


def test_a_change_of_state_tells_the_place_the_old_and_the_new_value():
    found = next(row for row in rows(refund_run()) if row.get("who") == "refund")
    assert found["changes"] == [["session.orders.A-7", "delivered", "refunded"]]


def test_a_failed_tool_and_a_refused_one_are_marked():
    found = rows(refund_run())
    failed = next(row for row in found if row.get("who") == "send_mail")
    assert (failed["text"], failed["bad"]) == ("mailbox full", True)


def test_a_pause_and_its_answer_both_have_a_row():
    found = rows(refund_run())
    assert of("pause", found)["text"] == "Which order?"
    assert (of("answer", found)["text"], of("answer", found)["who"]) == ("A-7", "answers ask")


def test_the_users_own_side_is_told_apart():
    theirs = [row for row in rows(refund_run()) if row.get("theirs")]
    assert [row["who"] for row in theirs] == ["claude-haiku"]


def test_the_time_a_run_lay_cut_does_not_count():
    ledger = ledger_of((0, UserSaid(text="hi")), (1000, RunResumed()), (1002, AgentSaid(text="ho")))
    assert [row["at"] for row in rows(ledger)] == [0, 0, 2]


def test_a_call_that_never_returned_says_so():
    ledger = ledger_of(
        (0, ToolCalled(call_id="1", tool="t", args={})), (1, RunEnded(reason="max_seconds"))
    )
    assert of("tool", rows(ledger))["text"] == "never returned"


def test_a_very_long_run_keeps_its_beginning_and_its_end_and_says_what_is_missing():
    events = [(n, AgentSaid(text=str(n))) for n in range(2000)]
    scissors = Trimmer()
    found = timeline(ledger_of(*events), scissors)
    assert found[0]["text"] == "0"
    assert found[-1]["text"] == "1999"
    assert of("gap", found)["text"] == "1500 events are not shown here"
    assert scissors.cuts == 1


def test_without_a_ledger_the_trajectory_is_told():
    result = rich_report()["refund-happy"]
    found: list[dict[str, Any]] = step_rows(result.trajectory, Trimmer())
    assert [row["kind"] for row in found[:3]] == ["user", "node", "tool"]
    told = story_of(replace(result, kept=None, steps=result.trajectory))
    assert told.timeline
    assert told.brief


def test_a_ledger_without_events_has_no_rows():
    assert rows(ledger_of()) == []


def test_a_change_in_a_branch_is_shown_by_what_it_became():
    change = Change("session", ("a",), "set", 1)
    ledger = ledger_of((0, StateChanged(changes=(change,), path="@1/par.0/x")))
    assert of("state", rows(ledger))["changes"] == [["session.a", None, 1]]


# Details


def test_no_secret_reaches_the_page_not_even_packed():
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    ledger = ledger_of((0, UserSaid(text=f"my key is {key}")), (1, RunEnded(reason="completed")))
    result = CaseResult(
        case_id="a", status="failed", scores={"m": Score(0.0, reason=key)}, kept=ledger
    )
    page = render_html(Report([result], notes=[key]))
    packed = [block for block in page.split("<script") if 'id="pack-' in block]
    inside = json.dumps([unpacked(block[: block.index("</script") + 2]) for block in packed])
    assert "[redacted:" in inside
    assert key not in page + inside


def test_only_what_is_known_is_in_the_details():
    bare = CaseResult(case_id="a", status="passed", scores={"m": Score(1.0)})
    assert set(as_object(to_builtins(story_of(bare)))) == {"scores"}


def test_the_metrics_that_need_a_look_come_first():
    scores = {"fine": Score(1.0), "bad": Score(0.0)}
    story = story_of(CaseResult(case_id="a", status="failed", scores=scores))
    assert [name for name, _ in story.scores] == ["bad", "fine"]


def test_expected_and_actual_come_from_the_metrics_evidence():
    story = story_of(rich_report()["refund-broken-parcel"])
    response = next(one for one in story.differences if one["part"] == "response")
    assert response["expected"] == ["I have refunded $99 for order A-7."]
    assert response["actual"] == ["I have refunded $120 for order A-7."]


# What is cut


def test_long_texts_lists_and_objects_are_cut_and_counted():
    scissors = Trimmer()
    assert scissors.text("x" * 20_000).endswith("… 8000 more characters")
    assert as_array(scissors.json(list(range(500))))[-1] == "… 300 more"
    assert as_object(scissors.json({str(n): n for n in range(500)}))["…"] == "300 more"
    assert scissors.cuts == 3


def test_what_is_short_is_left_alone():
    scissors = Trimmer()
    value = {"a": [1, 2.5, None, True, "text"]}
    assert scissors.json(value) == value
    assert scissors.cuts == 0


def test_all_values_of_a_case_together_stay_within_bounds():
    scissors = Trimmer(room=1000)
    found = [scissors.text("y" * 400) for _ in range(50)]
    assert sum(map(len, found)) < 3000
    assert scissors.cuts > 40


# Packed data


def unpacked(block: str) -> list[Json]:
    inside = block[block.index(">") + 1 : block.rindex("<")]
    return json.loads(zlib.decompress(b64decode(inside)))


texts = st.text() | st.text(alphabet=st.characters(categories=["Cf", "Po"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
)


@given(st.lists(values))
def test_what_is_packed_comes_out_as_it_was(given_values):
    packs = PackedValues(10**9)
    places = [packs.add(value) for value in given_values]
    blocks = [unpacked(block) for block in packs.close()]
    found = [blocks[place[0]][place[1]] for place in places if place is not None]
    assert found == given_values


@given(values)
def test_plain_data_holds_nothing_that_html_could_end_at(value):
    shown = json_text(value)
    assert not set(shown) & set("<>&\u2028\u2029")
    assert shown.isascii()
    assert json.loads(shown) == value


def test_what_does_not_fit_is_left_out_and_has_no_place():
    packs = PackedValues(100)
    first = packs.add("a" * 300_000)
    assert first == (0, 0)
    assert packs.add("b") is None
