"""How values are said to a reader."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.ledger.safe_text import harmless
from greenroom.reports.words import as_called, duration, percent
from greenroom.results.gate import below
from greenroom.results.words import dollars, dollars_apart, shortened


@pytest.mark.parametrize(
    "seconds, said",
    [
        (0, "0 ms"),
        (0.0124, "12 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.0 s"),
        (3.44, "3.4 s"),
        (59.94, "59.9 s"),
        (59.96, "1 m 00 s"),
        (125, "2 m 05 s"),
        (3599.6, "1 h 00 m"),
        (4200, "1 h 10 m"),
    ],
)
def test_durations_are_said_in_the_unit_a_person_would_choose(seconds, said):
    assert duration(seconds) == said


def test_a_share_short_of_all_is_never_called_100_percent():
    assert percent(1) == "100.0 %"
    assert percent(0.99999) == "99.9 %"
    assert percent(2 / 3) == "66.7 %"


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_missed_gate_never_shows_two_equal_percentages(rate, minimum):
    if minimum - rate > 1e-9:
        found, bar = re.findall(r"[0-9.]+ %", below(rate, minimum))
        assert found != bar


@given(st.text())
def test_harmless_text_holds_no_character_that_could_steer_a_terminal(text):
    shown = harmless(text)
    shown.encode()
    odd = {char for char in shown if not char.isprintable()} - {"\n", "\u200c", "\u200d"}
    assert {unicodedata.category(char) for char in odd} <= {"Zs"}


def test_what_is_harmless_stays_as_it_is():
    for text in ("plain", "Grüße\nzwei", "日本語", "👩‍⚕️", "[red]x[/red]"):
        assert harmless(text) == text


def test_what_is_not_harmless_is_written_out():
    assert harmless("a\x1b[2Jb\x07\x9b\u202e\ud800\r\n\tc") == (
        r"a\x1b[2Jb\x07\x9b\u202e\ud800" + "\n    c"
    )


def test_long_text_is_cut_with_a_mark():
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abc def", 5) == "abc…"


def test_a_call_reads_as_one_would_type_it():
    assert as_called("refund", {"order": 7, "why": "späť"}) == 'refund(order=7, why="späť")'


def test_money_is_said_with_the_digits_that_matter_and_is_never_rounded_to_nothing():
    assert [dollars(cost) for cost in (0, 0.00001, 0.0042, 0.5, 12.345, 1234567)] == [
        "$0.00",
        "under $0.0001",
        "$0.0042",
        "$0.5000",
        "$12.35",
        "$1,234,567.00",
    ]


@pytest.mark.parametrize(
    "one, other, said",
    [
        (0.03, 0.01, ("$0.0300", "$0.0100")),
        (0.00003, 0.00001, ("$0.00003", "$0.00001")),
        (1.2341, 1.23, ("$1.2341", "$1.2300")),
        (0.5, 0.5, ("$0.5000", "$0.5000")),
    ],
)
def test_two_amounts_that_differ_are_never_said_alike(one: float, other: float, said: object):
    assert dollars_apart(one, other) == said
