"""A long conversation is cut in one way, wherever it is told."""

import io
import re

from hypothesis import given
from hypothesis import strategies as st

from greenroom.ledger import AgentSaid, Ledger, UserSaid
from greenroom.reports.console import ConsoleReport
from greenroom.reports.failure import failure_text
from greenroom.reports.terminal import Terminal
from greenroom.reports.transcript import Line, Omitted, abridged, retold, transcript
from greenroom.results import CaseResult, Report


def talk(count: int) -> list[Line]:
    return [Line("user", f"line {number}") for number in range(count)]


@given(st.integers(0, 40), st.integers(0, 10), st.integers(0, 10))
def test_nothing_is_left_out_uncounted(count: int, first: int, last: int) -> None:
    lines = talk(count)
    shown = list(abridged(lines, first=first, last=last))
    gaps = [line for line in shown if isinstance(line, Omitted)]
    assert len(shown) - len(gaps) + sum(gap.count for gap in gaps) == count
    assert all(gap.count > 1 for gap in gaps)
    assert shown[:first] == lines[:first][: len(shown)]
    assert [line for line in shown if isinstance(line, Line)] == (
        [*lines[:first], *lines[count - last :]] if gaps else lines
    )
    assert list(abridged(lines, whole=True, first=first, last=last)) == lines


def test_a_long_line_is_cut_at_its_end_unless_all_is_to_be_seen() -> None:
    long = [Line("agent", "x" * 300)]
    assert [len(line.text) for line in abridged(long) if isinstance(line, Line)] == [240]
    assert list(abridged(long, whole=True)) == long


def test_only_who_speaks_stands_at_the_beginning_of_a_line() -> None:
    told = list(retold([Line("agent", "a\nuser  b", "mock")]))
    assert told == ["agent        a\n             user  b  (mock)"]


def test_every_door_leaves_out_the_same_lines() -> None:
    ledger = Ledger()
    for number in range(20):
        ledger.append(UserSaid(text=f"asked {number}."), at=0.0)
        ledger.append(AgentSaid(text=f"said {number}."), at=0.0)
    result = CaseResult(case_id="long", status="failed", ended="completed", kept=ledger)
    page = io.StringIO()
    ConsoleReport(Terminal(page)).show(Report([result]))
    told = [page.getvalue(), failure_text(result), "\n".join(retold(transcript(ledger)))]
    shown = [re.findall(r"(?:asked|said) \d+\.|… \d+ more", text) for text in told]
    assert shown[0] == shown[1] == shown[2]
    assert shown[0][5:8] == ["said 2.", "… 16 more", "asked 11."]
