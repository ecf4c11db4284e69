"""What a judge gets to see: everything, between marks nobody can forge, or an honest part of it."""

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.metrics import judge
from greenroom.metrics.judges.evidence import evidence_text, fitted, sealed
from metrics.judges.asked import Asked, evidence_in, measured, order, yes
from metrics.runs import agent, beside, run, tool, user

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
FIELDS = st.dictionaries(st.sampled_from(["response", "messages", "tool_calls"]), JSON)
HOSTILE = st.text(st.sampled_from("<>‹›＜＞〈⟨\u200b\u202e\u2028\u0085\r\n\\\"'u003ceEnND \x00é漢"))


@given(FIELDS | st.dictionaries(st.just("response"), HOSTILE))
def test_evidence_reads_back_as_it_was(fields):
    block = sealed(fields)
    found = re.fullmatch(r"<<<EVIDENCE (\w{32})>>>\n(.*)\n<<<END \1>>>", block.text, re.DOTALL)
    assert found
    assert json.loads(found[2]) == fields
    assert found[1] not in found[2]
    assert block.notice.count(found[1]) == 2


@given(st.text() | HOSTILE)
def test_nothing_inside_looks_like_a_mark_or_hides(text):
    inside = evidence_text({"response": text})
    seen = unicodedata.normalize("NFKC", inside)
    assert not set("<>‹›«»〈〉⟨⟩") & set(seen)
    assert all(unicodedata.category(c) not in ("Cf", "Zl", "Zp") for c in inside)
    assert len(inside.splitlines()) == 3


def test_half_a_character_is_told_as_its_code():
    assert evidence_text({"response": "a\ud800"}) == '{\n "response": "a\\ud800"\n}'


def test_text_in_any_script_stays_readable():
    text = "Où est le colis? 包裹在哪里 Где посылка? أين الطرد 🎁"
    assert text in evidence_text({"response": text})


@given(FIELDS)
def test_evidence_that_fits_is_left_alone(fields):
    assert fitted(fields) == (fields, {})


@given(
    st.dictionaries(
        st.sampled_from(["response", "messages", "tool_calls"]),
        st.recursive(
            st.text(max_size=10).map(lambda text: text * 150),
            lambda inner: (
                st.lists(inner, max_size=9) | st.dictionaries(st.text(), inner, max_size=9)
            ),
            max_leaves=8,
        ),
    ),
    st.integers(1000, 2500),
)
def test_evidence_is_never_longer_than_its_limit_and_says_what_it_lost(fields, limit):
    kept, lost = fitted(fields, limit)
    assert len(evidence_text(kept)) <= limit
    assert set(kept) == set(fields)
    assert bool(lost) == (len(evidence_text(fields)) > limit)
    for name, count in lost.items():
        assert count == len(evidence_text(fields[name])) - len(evidence_text(kept[name]))


LONG = "First words. " + "blah " * 50_000 + "The answer is 42."


async def test_a_long_response_keeps_its_beginning_and_its_end():
    model = Asked(yes())
    metric = judge("t", "?", model=model, limit=5000)
    found = await measured(metric, order(LONG))
    shown = evidence_in(model.requests[0])["messages"][-1]["text"]
    assert shown.startswith("First words.")
    assert shown.endswith("The answer is 42.")
    assert len(model.requests[0].last) < 5500
    assert found.details["left_out"]["messages"] > 240_000
    left_out = found.details["left_out"]["messages"]
    assert f"characters were left out, {left_out} of `messages`" in model.requests[0].instructions


async def test_the_usual_limit_leaves_long_runs_whole():
    model = Asked(yes())
    found = await measured(judge("t", "?", model=model), order(LONG))
    assert evidence_in(model.requests[0])["messages"][-1]["text"] == LONG
    assert "left_out" not in found.details


async def test_many_calls_lose_their_middle_and_the_response_stays():
    calls = [tool("look", page=n, result="x" * 100) for n in range(2000)]
    model = Asked(yes())
    ledger = run(user("Go"), *calls, agent("All pages are empty."))
    found = await measured(judge("t", "?", model=model, limit=20_000), ledger)
    shown = evidence_in(model.requests[0])
    assert shown["messages"][-1]["text"] == "All pages are empty."
    assert shown["tool_calls"][0]["args"] == {"page": 0}
    assert shown["tool_calls"][-1]["args"] == {"page": 1999}
    assert any("entries left out" in str(entry) for entry in shown["tool_calls"])
    assert set(found.details["left_out"]) == {"tool_calls"}


async def test_a_result_of_nothing_but_keys_is_cut_too():
    model = Asked(yes())
    ledger = run(user("Go"), tool("look", result={f"key{n}": n for n in range(5000)}), agent("Ok."))
    found = await measured(judge("t", "?", model=model, limit=3000), ledger)
    assert found.details["left_out"]["tool_calls"] > 0
    assert len(model.requests[0].last) < 3500


async def test_what_was_said_beside_a_call_is_shown_in_its_place_and_once():
    ledger = run(user("Go"), beside("I look.", "look"), beside("Bye.", "hang_up"), agent("Bye."))
    for field, shown in (
        ("messages", ["Go", "I look.", "Bye."]),
        ("responses", ["I look.", "Bye."]),
    ):
        model = Asked(yes())
        await measured(judge("t", "?", model=model, evidence=[field]), ledger)
        found = evidence_in(model.requests[0])[field]
        assert [m["text"] if isinstance(m, dict) else m for m in found] == shown


@pytest.mark.parametrize("text", ["", " ", "\u200b" * 3])
async def test_an_empty_reply_beside_a_call_is_shown_as_it_is(text):
    model = Asked(yes())
    ledger = run(user("Go"), tool("look"), agent(text))
    await measured(judge("t", "?", model=model), ledger)
    assert evidence_in(model.requests[0])["messages"][-1]["text"] == text
