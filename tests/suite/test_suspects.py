"""Cases that fail though they passed in the baseline are played again."""

import json
import os
import random
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import warm_python
from greenroom import Agent, Case, Expect, Report, Scripted, evaluate, rehearse
from greenroom.errors import BadInput
from greenroom.ledger.messages import Usage
from greenroom.models.model import ModelReply
from greenroom.results import Gate
from greenroom.results.comparisons.confirmation import enough
from greenroom.store import Store
from greenroom.suite.cancel import Cancel
from greenroom.suite.evaluation import stream

Passes = Callable[[str, int], bool]
"""Whether a case passes the n-th time it is played."""


class Player:
    """An agent whose cases pass as they are told; it counts how often each was played."""

    def __init__(self, passes: Passes, cost: float = 0.0) -> None:
        self.passes, self.cost = passes, cost
        self.played: Counter[str] = Counter()

    def answer(self, request) -> ModelReply:
        case_id = request.last
        self.played[case_id] += 1
        text = "yes" if self.passes(case_id, self.played[case_id]) else "no"
        return ModelReply(text, (), Usage(), self.cost, "made up", "toy")

    @property
    def agent(self) -> Agent:
        return Agent("player", model=Scripted(self.answer, then=self.answer))


def cases(count: int) -> list[Case]:
    return [Case(f"c{n}", says=f"c{n}", expect=Expect(contains="yes")) for n in range(count)]


def good(count: int, trials: int = 3) -> Report:
    return rehearse(Player(lambda *_: True).agent, cases(count), trials=trials)


def all_but(*broken: str) -> Passes:
    return lambda case_id, _: case_id not in broken


def test_a_broken_case_is_found_wherever_it_stands_and_a_flaky_one_is_cleared():
    baseline = good(12)
    dice = random.Random(5)
    for _ in range(4):
        broken, flaky = dice.sample([f"c{n}" for n in range(12)], 2)
        player = Player(
            lambda case_id, n, broken=broken, flaky=flaky: (
                case_id != broken and not (case_id == flaky and n == 1)
            )
        )
        report = rehearse(player.agent, cases(12), baseline=baseline)
        changes = report.compare(baseline)
        assert [case.case_id for case in changes.regressed] == [broken]
        assert [case.case_id for case in changes.flaky] == [flaky]
        assert changes.regressed[0].why == "passed 3 of 3 before, failed 6 of 6 now"
        assert changes.flaky[0].why == "passed 3 of 3 before, failed once, then passed"
        assert str(Gate().decide(report, baseline)) == f"1 case regressed: {broken}"
        assert player.played[broken] == 1 + enough(3, 0)


def test_trials_played_again_are_kept_apart_and_enter_no_rate():
    baseline = good(4)
    report = rehearse(Player(all_but("c2"), cost=0.5).agent, cases(4), baseline=baseline)
    assert len(report) == 4
    assert report.pass_rate == 0.75
    assert [result.trial for result in report.confirmed] == [2, 3, 4, 5, 6]
    assert {result.case_id for result in report.confirmed} == {"c2"}
    assert report.cost == pytest.approx(0.5 * 9)
    assert report.models == {"toy": 9}
    assert report.against == baseline.id
    assert report.metrics["expected_contains"].measured == 4
    assert "Confirmed 1 case with 5 more trials ($2.50)." in str(report.compare(baseline))


def test_without_a_baseline_or_with_confirm_off_nothing_is_played_again():
    choices: Any = ({}, {"baseline": good(4), "confirm": 0})
    for options in choices:
        player = Player(all_but("c2"))
        report = rehearse(player.agent, cases(4), **options)
        assert player.played["c2"] == 1
        assert (report.confirmed, report.against) == ((), None)


def test_a_baseline_of_other_cases_is_refused_before_anything_is_played():
    player = Player(lambda *_: True)
    other = rehearse(player.agent, [Case("x", says="x", expect=Expect(contains="yes"))])
    player.played.clear()
    with pytest.raises(BadInput, match=r"is in .*, so nothing could be compared"):
        rehearse(player.agent, cases(2), baseline=other)
    assert not player.played


@pytest.mark.parametrize(
    "options, told",
    [
        ({"baseline": "main.json"}, "baseline='main.json' should be a Report"),
        ({"baseline": []}, "should be a Report"),
        ({"confirm": -1}, "confirm=-1 should be"),
        ({"confirm": 5}, "confirm=5 is for baseline="),
    ],
)
def test_what_cannot_be_meant_is_refused(options, told):
    with pytest.raises(BadInput, match=told):
        rehearse(Player(lambda *_: True).agent, cases(1), **options)


def test_what_the_budget_cannot_pay_stays_a_suspect_and_says_so():
    baseline = good(4)
    player = Player(all_but("c2"), cost=1.0)
    report = rehearse(player.agent, cases(4), baseline=baseline, budget=6.0)
    [suspect] = report.compare(baseline).suspects
    assert suspect.case_id == "c2"
    assert "failed 3 of 3 now; not run: the budget of $6 is not enough" in suspect.why
    assert player.played["c2"] == 3
    assert Gate().decide(report, baseline).passed
    assert not Gate(fail_on=["unclear"]).decide(report, baseline).passed


def test_a_run_that_stops_at_the_first_failure_plays_nothing_again():
    player = Player(all_but("c2"))
    rehearse(player.agent, cases(4), baseline=good(4), fail_fast=True)
    assert player.played["c2"] == 1


def test_trials_that_break_again_are_counted_as_errors_and_prove_nothing():
    def passes(case_id: str, n: int) -> bool:
        if case_id == "c2" and n > 1:
            raise RuntimeError("the provider is down")
        return case_id != "c2"

    baseline = good(4)
    report = rehearse(Player(passes).agent, cases(4), baseline=baseline)
    decision = Gate().decide(report, baseline)
    assert decision.exit_code == 2
    assert str(decision).startswith("3 trials of cases run again ended in an error: ")
    assert "the provider is down" in str(decision)
    assert "its last trial broke" in report.compare(baseline).suspects[0].why


def test_with_one_trial_before_and_many_failing_cases_a_suspect_stays_one():
    failing = [f"c{n}" for n in range(12)]
    baseline = rehearse(Player(all_but(*failing)).agent, cases(20))
    report = rehearse(Player(all_but(*failing, "c15")).agent, cases(20), baseline=baseline)
    [suspect] = report.compare(baseline).suspects
    assert suspect.why == (
        "passed 1 of 1 before, failed 31 of 31 now. One baseline trial is not enough to tell a "
        "change from a case that was lucky: 12 other cases fail on both sides. Make the baseline "
        "with --trials 3."
    )


def test_several_baselines_count_together():
    runs = [good(4, trials=1) for _ in range(3)]
    report = rehearse(Player(all_but("c2")).agent, cases(4), baseline=runs)
    changes = report.compare(runs)
    assert changes.regressed[0].why == "passed 3 of 3 before, failed 6 of 6 now"
    assert report.against == "+".join(run.id for run in runs)


def test_with_as_many_trials_as_it_takes_only_the_first_round_counts():
    baseline = good(20)
    # It fails at first and never again: what came later must not make it look better.
    player = Player(lambda case_id, n: case_id != "c2" or n > 1)
    report = rehearse(player.agent, cases(20), trials="auto", min_pass_rate=0.8, baseline=baseline)
    rounds = max(result.trial for result in report.results)
    assert rounds > 1
    [flaky] = report.compare(baseline).flaky
    assert flaky.now is not None
    assert (flaky.case_id, flaky.now.evaluated) == ("c2", 1)
    assert [result.trial for result in report.confirmed] == [21]
    assert player.played["c2"] == rounds + 1
    assert "the first round here" in str(report.compare(baseline))


async def test_a_stream_hands_them_out_too():
    found = [r async for r in stream(Player(all_but("c2")).agent, cases(4), baseline=good(4))]
    assert len([result for result in found if result.case_id == "c2"]) == 6


def test_a_report_comes_back_from_its_file_with_them(tmp_path: Path):
    baseline = good(4)
    report = rehearse(Player(all_but("c2")).agent, cases(4), baseline=baseline)
    saved = Report.load(report.save(tmp_path / "now.json"))
    before = Report.load(baseline.save(tmp_path / "main.json"))
    assert (len(saved.confirmed), saved.against) == (5, baseline.id)
    assert str(saved.compare(before)) == str(report.compare(baseline))
    # Against another baseline they were not chosen, so they prove nothing there.
    other = good(4)
    assert [case.case_id for case in saved.compare(other).suspects] == ["c2"]


# Written down, cut and resumed


def test_the_store_keeps_them_apart(tmp_path: Path):
    baseline, store = good(4), Store(tmp_path)
    report = rehearse(Player(all_but("c2")).agent, cases(4), baseline=baseline, store=store)
    kept = store.report(report.id)
    assert (len(kept), len(kept.confirmed), kept.against) == (4, 5, baseline.id)
    assert str(kept.compare(baseline)) == str(report.compare(baseline))
    run = store.run(report.id)
    assert (run.done, run.total, run.again) == (4, 4, 5)
    assert "run again: c2 5 times, 0 passed, 5 failed" in str(kept)
    assert not kept.unfinished


@pytest.mark.parametrize("cut_after", [1, 4, 5, 6, 8])
def test_a_run_that_was_cut_asks_for_the_same_trials_and_none_twice(tmp_path: Path, cut_after):
    baseline, player, cancel = good(4), Player(all_but("c2")), Cancel()
    ended = []

    def cut(result) -> None:
        ended.append(result)
        if len(ended) == cut_after:
            cancel.cancel("enough for today")

    options: Any = {"baseline": baseline, "store": tmp_path, "concurrency": 1}
    first = rehearse(player.agent, cases(4), cancel=cancel, on_case_complete=cut, **options)
    assert Store(tmp_path).run(first.id).status == "interrupted"
    report = rehearse(player.agent, cases(4), resume=first.id, **options)
    assert report.compare(baseline).regressed[0].why == "passed 3 of 3 before, failed 6 of 6 now"
    assert [result.trial for result in report.confirmed] == [2, 3, 4, 5, 6]
    assert player.played["c2"] == 6
    assert Store(tmp_path).run(first.id).status == "finished"


def test_a_run_that_played_cases_again_does_not_go_on_with_more_trials(tmp_path: Path):
    report = rehearse(Player(all_but("c2")).agent, cases(4), baseline=good(4), store=tmp_path)
    with pytest.raises(BadInput, match="has run cases again after 1 trials of each"):
        rehearse(
            Player(all_but("c2")).agent,
            cases(4),
            trials=3,
            store=tmp_path,
            resume=report.id,
            accept_changes=True,
        )


SHOP = """
    import os, signal
    from pathlib import Path
    from greenroom import Agent, Case, Expect, Scripted

    HERE = Path(__file__).parent

    def answer(request):
        with (HERE / "played").open("a") as file:
            file.write(request.last + "\\n")
        lines = (HERE / "played").read_text().split()
        if (HERE / "deadly").exists() and len(lines) == int((HERE / "deadly").read_text()):
            (HERE / "deadly").unlink()
            os.kill(os.getppid() if (HERE / "parent").exists() else os.getpid(), signal.SIGKILL)
        return "no" if request.last == "c2" and (HERE / "broken").exists() else "yes"

    agent = Agent("player", model=Scripted(answer, then=answer))
    cases = [Case(f"c{n}", says=f"c{n}", expect=Expect(contains="yes")) for n in range(4)]
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop.py").write_text(textwrap.dedent(SHOP))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def greenroom(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "greenroom.apps.cli", *words]
    env = {**os.environ, "GREENROOM_STORE": ".greenroom"}
    return warm_python.run(command, env=env, text=True, capture_output=True, check=False)


@pytest.mark.parametrize("kill_at", [2, 5, 6, 8])
def test_a_killed_process_is_resumed_with_the_same_verdict_and_no_finished_trial_twice(
    shop: Path, kill_at: int
):
    main = ["eval", "run", "shop.py", "shop.py:cases", "--sequential"]
    assert greenroom(*main, "--trials", "3", "-q", "-o", "main.json").returncode == 0
    (shop / "played").unlink()
    (shop / "broken").touch()
    (shop / "deadly").write_text(str(kill_at))
    words = [*main, "--baseline", "main.json"]
    assert greenroom(*words).returncode == -9
    done = greenroom(*words, "--resume")
    assert done.returncode == 1, done.stderr
    assert "regressed   c2  passed 3 of 3 before, failed 6 of 6 now" in done.stdout
    assert "greenroom: 1 case regressed: c2" in done.stderr
    # The trial in which it was killed is begun once more, and no other.
    assert len((shop / "played").read_text().split()) == 4 + 5 + 1


def test_workers_play_them_too(shop: Path):
    baseline = rehearse("shop.py:agent", "shop.py:cases", trials=3, store=False)
    (shop / "broken").touch()
    report = rehearse("shop.py:agent", "shop.py:cases", baseline=baseline, workers=2, store=False)
    assert len(report.confirmed) == 5
    assert [case.case_id for case in report.compare(baseline).regressed] == ["c2"]


async def test_a_case_that_failed_by_the_script_needs_no_further_trial():
    told = Case("a", says="hi", expect=Expect(contains="yes"))
    baseline = await evaluate(Agent("a", model=Scripted("yes")), [told])
    report = await evaluate(Agent("a", model=Scripted("no")), [told], baseline=baseline)
    assert report.results[0].fixed
    assert not report.confirmed
    assert report.compare(baseline).regressed[0].why == (
        "passed 1 of 1 before, failed now; this run is deterministic"
    )
    assert json.loads(json.dumps(report.compare(baseline).data()))["counts"]["regressed"] == 1
