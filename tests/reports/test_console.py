"""A report on a console: the table, the reasons, the transcript."""

import io
from dataclasses import replace

import pytest

from greenroom import NotApplicable, Score, Unmeasured
from greenroom.ledger import (
    AgentSaid,
    Answer,
    Answered,
    Ledger,
    RunEnded,
    ToolBlocked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    UserSaid,
    YieldOpened,
)
from greenroom.reports.console import ConsoleReport, ConsoleText
from greenroom.reports.table import rated
from greenroom.reports.terminal import Terminal
from greenroom.reports.transcript import transcript
from greenroom.results import CaseResult, Problem, Report

PASSED = CaseResult(
    case_id="good", status="passed", ended="completed", turns=2, seconds=0.012,
    scores={"tone": Score(0.9, reason="friendly")},
)  # fmt: skip
FAILED = replace(PASSED, case_id="bad", status="failed", scores={"tone": Score(0.2, reason="rude")})
BROKEN = CaseResult(
    case_id="ugly", status="error", error=Problem("agent", "it fell over", "AgentFailed")
)
SKIPPED = CaseResult(case_id="late", status="skipped", notes=["not run: 'bad' did not pass"])


def shown(*results: CaseResult, width: int | None = None, **options) -> str:
    file = io.StringIO()
    terminal = Terminal(file)
    if width:
        terminal.width = width
    ConsoleReport(terminal, **options).show(Report(results, seconds=1.5))
    return file.getvalue()


def row(text: str, case_id: str) -> list[str]:
    return next(line for line in text.splitlines() if line.startswith(case_id)).split()


def test_each_case_has_a_row_with_status_scores_turns_and_time():
    text = shown(PASSED, FAILED, BROKEN)
    assert row(text, "case") == ["case", "status", "tone", "turns", "time"]
    assert row(text, "good") == ["good", "passed", "0.90", "✓", "2", "12", "ms"]
    assert row(text, "bad") == ["bad", "failed", "0.20", "✗", "2", "12", "ms"]
    assert row(text, "ugly") == ["ugly", "error", "–", "–"]


def test_every_metric_is_summed_up_and_what_was_not_measured_is_a_word():
    silent = replace(PASSED, scores={"tone": NotApplicable("no tone"), "heat": Unmeasured("broke")})
    text = shown(PASSED, FAILED, silent)
    assert "tone  mean 0.55, 50.0 % passing (1 of 2), 1 not applicable" in text
    assert "heat  1 unmeasured" in text


def test_outcomes_without_a_number_stay_words_in_the_table():
    silent = replace(PASSED, scores={"tone": NotApplicable("no tone"), "heat": Unmeasured("broke")})
    assert row(shown(silent), "good")[2:4] == ["n/a", "unmeasured"]


def test_too_many_metrics_for_the_width_are_counted_instead():
    many = {f"metric_number_{n}": Score(n > 0) for n in range(9)} | {"heat": Unmeasured("broke")}
    text = shown(replace(FAILED, scores=many), width=80)
    assert "8 of 9 ✓, 1 unmeasured" in text
    assert max(map(len, text.splitlines())) <= 80


def test_of_very_many_metrics_only_those_that_found_something_are_listed():
    many = {f"m{n}": Score(n != 7, reason="seen") for n in range(60)}
    text = shown(replace(PASSED, scores=many))
    assert "m7  mean 0.00" in text
    assert "m8  mean" not in text
    assert "59 other metrics found no problem" in text


def test_long_metric_names_are_broken_where_their_words_end():
    scores = {"correctly_escalated_at_once": Score(1), "b": Score(1)}
    assert "correctly_" in shown(replace(PASSED, scores=scores)).splitlines()[0]


def test_only_what_did_not_pass_is_told_unless_all_is_wanted():
    usual, everything = shown(PASSED, FAILED), shown(PASSED, FAILED, detail="all")
    assert "tone: rude" in usual
    assert "friendly" not in usual
    assert "friendly" in everything


def test_little_detail_is_one_line():
    assert shown(PASSED, FAILED, BROKEN, SKIPPED, detail="little") == (
        "4 cases: 1 passed, 1 failed, 1 error, 1 skipped; 50 % ± 41 passing; 1.5 s\n"
    )


def test_an_error_is_told_with_its_phase():
    assert "error in phase agent (AgentFailed): it fell over" in shown(BROKEN)


def test_skipped_cases_are_told_once_for_each_reason():
    text = shown(FAILED, SKIPPED, replace(SKIPPED, case_id="later"))
    assert text.count("not run: 'bad' did not pass") == 1
    assert "2 skipped: " in text


def test_nothing_evaluated_is_no_percentage():
    assert "nothing evaluated" in shown(BROKEN)
    assert "%" not in shown(BROKEN)


def test_an_unknown_price_is_called_unknown_and_a_known_one_is_said():
    asked = replace(PASSED, models={"gpt": 2})
    assert "answered by gpt; cost unknown" in shown(asked)
    assert "answered by gpt; cost $0.0200" in shown(replace(asked, cost=0.02))
    assert "answered by gpt; cost under $0.0001" in shown(replace(asked, cost=0.00003))


def test_the_command_that_plays_a_case_again_is_shown_where_it_is_known():
    assert "again: greenroom eval run x.py" in shown(
        FAILED, rerun={"bad": "greenroom eval run x.py"}
    )
    assert "again" not in shown(FAILED)


def ledger(*events) -> Ledger:
    kept = Ledger()
    for event in events:
        kept.append(event, at=0.0)
    return kept


TALK = ledger(
    UserSaid(text="Money back!"),
    ToolCalled(call_id="1", tool="ask", args={"what": "Which order?"}),
    YieldOpened(yield_id="1", type="tool", tool="ask", call_id="1"),
    ToolCalled(call_id="1", tool="look", args={}, voice="user"),
    ToolReturned(call_id="1", tool="look", value="bill", source="live", voice="user"),
    AgentSaid(text="seven", voice="user"),
    Answered(answers=(Answer(yield_id="1", value="seven", tool="ask"),)),
    ToolReturned(call_id="1", tool="ask", value="seven", source="user"),
    ToolCalled(call_id="2", tool="refund", args={"order": 7}),
    ToolReturned(call_id="2", tool="refund", value={"ok": True}, source="mock"),
    ToolCalled(call_id="3", tool="mail", args={}),
    ToolFailed(call_id="3", tool="mail", error="no such address", source="live"),
    ToolCalled(call_id="4", tool="typo", args={}),
    ToolFailed(call_id="4", tool="typo", error="there is no tool 'typo'", source="refused"),
    ToolCalled(call_id="5", tool="hang", args={}),
    AgentSaid(text="Done."),
    ToolBlocked(call_id="6", tool="wire", args={"sum": 9}, why="no mock"),
    RunEnded(reason="error"),
)


def test_a_transcript_tells_both_sides_in_order():
    assert [(line.who, line.text, line.source) for line in transcript(TALK)] == [
        ("user", "Money back!", ""),
        ("tool", 'ask(what="Which order?")', "asks the user"),
        ("user's tool", 'look() → "bill"', ""),
        ("user", "seven", ""),
        ("tool", 'refund(order=7) → {"ok": true}', "mock"),
        ("tool", "mail() → failed: no such address", "live"),
        ("refused", "typo() → failed: there is no tool 'typo'", "refused"),
        ("tool", "hang() → never returned", ""),
        ("agent", "Done.", ""),
        ("refused", "wire(sum=9) was not run", "gate"),
        ("end", "the trial broke", ""),
    ]


def test_a_transcript_is_shown_where_the_ledger_was_kept():
    text = shown(replace(FAILED, kept=TALK))
    assert '    tool         refund(order=7) → {"ok": true}  (mock)\n' in text
    assert "refused      wire(sum=9) was not run  (gate)" in text


def test_long_conversations_keep_their_beginning_and_their_end():
    long = ledger(*[UserSaid(text=f"line {n}") for n in range(100)])
    text = shown(replace(FAILED, kept=long))
    assert "line 0\n" in text
    assert "line 99\n" in text
    assert "line 50\n" not in text
    assert "… 76 more" in text
    assert "line 50\n" in shown(replace(FAILED, kept=long), detail="all")


def test_long_texts_are_cut_unless_all_is_wanted():
    essay = ledger(AgentSaid(text="word " * 200 + "end"))
    assert "word…" in shown(replace(FAILED, kept=essay))
    assert "word end" in shown(replace(FAILED, kept=essay), detail="all")


@pytest.mark.parametrize("width", [20, 40, 80])
def test_what_does_not_fit_goes_on_below_in_its_own_column(width):
    said = ledger(AgentSaid(text="many words that do not fit at all " * 3))
    lines = shown(replace(FAILED, kept=said), width=width).splitlines()
    begun = next(n for n, line in enumerate(lines) if line.startswith("    agent"))
    assert lines[begun + 1].startswith(" " * 17 + lines[begun + 1].strip()[:1])


def test_a_text_cannot_forge_a_line_of_somebody_else():
    forged = ledger(AgentSaid(text="Hello.\n    user         I am happy."))
    text = shown(replace(FAILED, kept=forged))
    assert "\n    user" not in text


@pytest.mark.parametrize(
    "share, colour",
    [
        (1, "green"),
        (0.95, "green"),
        (0.9499, "yellow"),
        (0.8, "yellow"),
        (0.7999, "red"),
        (0, "red"),
    ],
)
def test_a_share_has_the_colour_it_deserves(share, colour):
    assert rated(share).style == colour


def test_a_baseline_adds_what_changed():
    page = ConsoleText().render(
        Report([FAILED]), baseline=Report([replace(FAILED, status="passed")])
    )
    assert "flipped     bad  passed before, failed now (1 trial each)" in page
    assert "\x1b" not in page
    assert "flipped" not in ConsoleText().render(Report([FAILED]))


def test_trials_show_how_sure_the_rate_is_and_how_steady_the_cases_are():
    results = [
        replace(PASSED if n < good else FAILED, case_id=f"c{case}", trial=n + 1)
        for case, good in enumerate([3, 3, 1, 0])
        for n in range(3)
    ]
    text = " ".join(shown(*results, detail="little").split())
    assert "12 trials of 4 cases: 7 passed, 5 failed; 58 % (" in text
    assert ") passing; 1 flaky; pass^3 50.0 %; " in text


# Several trials of a case


def trial(number: int, status: str = "passed", value: float = 0.9, **facts) -> CaseResult:
    scores = {"tone": Score(value, reason="rude" if value < 0.5 else "friendly")}
    return replace(PASSED, case_id="mood", trial=number, status=status, scores=scores, **facts)


def test_several_trials_of_a_case_are_one_row_with_how_many_passed_and_what_differed():
    text = shown(trial(1), trial(2, "failed", 0.2), trial(3), replace(PASSED, case_id="calm"))
    assert row(text, "mood")[:5] == ["mood", "flaky", "2", "of", "3"]
    assert "67 % (20–94)" in next(line for line in text.splitlines() if line.startswith("mood"))
    assert "tone 2 of 3" in text
    assert row(text, "calm")[:5] == ["calm", "passed", "1", "of", "1"]
    assert "mood (trial 2)" not in text.split("\n\n")[0]


def test_a_flaky_case_is_named_with_what_differed():
    text = shown(trial(1), trial(2, "failed", 0.2, turns=5))
    assert "flaky  mood  1 of 2 passed" in text
    assert "differed  tone 1 of 2; 2 to 5 turns" in text


def test_trials_that_fell_short_alike_are_told_once():
    text = shown(*(trial(n, "failed", 0.2) for n in range(1, 21)))
    assert text.count("tone: rude") == 1
    assert "failed  mood (trial 1; the same in 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 9 more)" in text
    assert "flaky" not in text


def test_with_all_details_every_trial_is_told():
    text = shown(trial(1), trial(2, "failed", 0.2), trial(3, "failed", 0.2), detail="all")
    assert text.count("tone: rude") == 2
    assert "tone: friendly" in text


def test_of_many_ways_to_fall_short_some_are_told_and_the_rest_are_counted():
    ways = [replace(trial(n, "failed"), scores={f"m{n}": Score(0)}) for n in range(1, 6)]
    text = shown(*ways)
    assert text.count("failed  mood") == 3
    assert "2 more trials fell short in other ways; -v shows them" in text


def test_the_command_that_plays_a_flaky_case_again_plays_it_as_often():
    text = shown(trial(1), trial(2, "failed", 0.2), rerun={"mood": "greenroom eval run x.py"})
    assert "again: greenroom eval run x.py --trials 2" in text


def test_the_command_that_compares_two_trials_can_be_copied():
    said = ledger(UserSaid(text="Hi"), AgentSaid(text="Hello"), RunEnded(reason="completed"))
    other = ledger(UserSaid(text="Hi"), AgentSaid(text="Go away"), RunEnded(reason="completed"))
    text = shown(
        trial(1, kept=said), trial(2, "failed", 0.2, kept=other), diff="greenroom runs diff r1"
    )
    assert "greenroom runs diff r1 'mood#1' --with '#2'" in text
    assert "'Hello' in trial 1, 'Go away' in trial 2" in " ".join(text.split())


def test_a_table_of_many_cases_with_several_trials_has_a_row_for_each(monkeypatch):
    results = [replace(trial(n), case_id=f"case-{k:03}") for k in range(600) for n in (1, 2)]
    text = shown(*results, width=80)
    assert sum(line.startswith("case-") for line in text.splitlines()) == 600
    assert max(map(len, text.splitlines())) <= 80


def test_the_table_of_trials_fits_into_80_columns():
    results = [trial(n, "failed" if n % 2 else "passed", 0.1 * n) for n in range(1, 9)]
    named = [replace(r, case_id="a-case-with-a-rather-long-name-" * 2) for r in results]
    assert max(map(len, shown(*named, width=80).splitlines())) <= 80


# Metrics and their arguments


def test_a_metric_is_one_row_and_its_arguments_are_details():
    scores = {"called('a')": Score(1), "called('b')": Score(0, reason="b was never called")}
    text = shown(replace(FAILED, scores=scores))
    assert row(text, "case") == ["case", "status", "called", "turns", "time"]
    assert row(text, "bad")[2:5] == ["1", "of", "2"]
    assert "called         mean 0.50, 50.0 % passing (1 of 2)" in text
    assert "  called('b')  mean 0.00" in text
    assert "  called('a')  mean" not in text
    assert "called('b'): b was never called" in text
    assert "  called('a')  mean 1.00" in shown(replace(FAILED, scores=scores), detail="all")


def test_a_metric_with_one_set_of_arguments_is_shown_by_its_name():
    text = shown(replace(PASSED, scores={"called('refund', {'order': 7})": Score(1)}))
    assert row(text, "case")[2] == "called"
    assert row(text, "good")[2:4] == ["1.00", "✓"]


def test_what_broke_a_trial_is_said_once():
    broke = replace(BROKEN, scores={"tone": Unmeasured("?"), "length": Unmeasured("?")})
    text = shown(broke)
    assert text.count("it fell over") == 1
    assert "unmeasured  tone, length: the trial broke" in text
