"""No secret gets into the store, and nothing is lost by that but the secret."""

from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet, Report, Scripted, Turn, call, evaluate, rehearse, tool
from greenroom.errors import BadInput, NotFound
from greenroom.ledger.redaction import Redactor, clean_ids
from greenroom.metrics import contains
from greenroom.models import ModelReply
from greenroom.results import failed_cases
from greenroom.store import Store
from greenroom.store.redaction import Cleaner
from greenroom.store.runs import Key, Row
from greenroom.suite.recorded.rescores import rescore
from greenroom.world.answers import AnswerCache
from store.asked import Asked
from store.timeless import timeless

KEYS = [f"sk-ant-{letter * 20}" for letter in "abc"]
OK = contains("Answer", name="ok")


def cases(trials: int = 1) -> EvalSet:
    """Cases that differ by their secrets only."""
    return EvalSet("set", [Case(f"order {key}", f"I am {key}") for key in KEYS], trials=trials)


def agent(**options: Any) -> Agent:
    return Agent("a", model=Scripted(then=lambda r: f"Answer to {r.last}", **options))


def written(place: Path) -> str:
    files = (path for path in place.rglob("*") if path.is_file())
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def test_results_read_back_are_the_same_but_for_the_secrets(tmp_path: Path) -> None:
    report = rehearse(agent(), cases(), store=tmp_path, metrics=[OK])
    assert [result.case_id for result in report] == [f"order {key}" for key in KEYS]
    text = written(tmp_path)
    assert not any(key in text for key in KEYS)
    stored = Store(tmp_path).report(report.id)
    assert stored.summary == report.summary
    assert [r.responses for r in stored] == [["Answer to I am [redacted:api_key]"]] * 3
    assert len({r.case_id for r in stored}) == 3
    assert all(r.case_id.startswith("order [redacted:api_key] #") for r in stored)


async def test_a_run_with_secrets_in_the_names_of_its_cases_goes_on(tmp_path: Path) -> None:
    given: dict[str, Any] = {"store": tmp_path, "metrics": [OK], "concurrency": 1}
    first = Asked(lambda request: f"Answer to {request.last}", cut=4)
    await evaluate(Agent("a", model=first), cases(2), cancel=first.cancel, **given)
    assert Store(tmp_path).runs()[0].done == 3
    model = Asked(lambda request: f"Answer to {request.last}")
    report = await evaluate(Agent("a", model=model), cases(2), resume=True, **given)
    assert model.count == 3
    assert [(r.case_id, r.trial) for r in report] == [
        (f"order {key}", trial) for key in KEYS for trial in (1, 2)
    ]
    assert report.passed
    assert not any(key in written(tmp_path) for key in KEYS)
    [run] = Store(tmp_path).runs()
    assert (run.status, run.done) == ("finished", 6)


@pytest.mark.sqlite
async def test_word_for_word_is_kept_only_what_is_under_way(tmp_path: Path) -> None:
    turns = [
        Case(f"case {n}", turns=[Turn(f"I am {key}"), Turn("And now?")])
        for n, key in enumerate(KEYS)
    ]
    evalset = EvalSet("set", turns)
    given: dict[str, Any] = {"store": tmp_path, "metrics": [OK], "concurrency": 1}
    first = Asked(lambda request: f"Answer to {request.last}", cut=4)
    await evaluate(Agent("a", model=first), evalset, cancel=first.cancel, **given)
    assert [key in written(tmp_path) for key in KEYS] == [False, True, False]
    model = Asked(lambda request: f"Answer to {request.last}")
    report = await evaluate(Agent("a", model=model), evalset, resume=True, **given)
    assert report.passed
    assert model.count == 3
    assert not any(key in written(tmp_path) for key in KEYS)


async def test_a_ledger_that_lost_its_secrets_is_not_measured_anew(tmp_path: Path) -> None:
    evalset = EvalSet("set", [Case("leaky", f"I am {KEYS[0]}"), Case("clean", "I am Bob")])
    report = await evaluate(agent(), evalset, store=tmp_path, metrics=[OK])
    found = await rescore(report.id, metrics=[contains("Answer", name="again")], store=tmp_path)
    leaky, clean = found.report
    assert (leaky.status, clean.status) == ("error", "passed")
    assert "secrets were removed from its ledger" in str(leaky.error)


def test_a_run_is_named_and_noted_without_secrets(tmp_path: Path) -> None:
    evalset = EvalSet(f"set {KEYS[0]}", cases().cases, name=f"Set {KEYS[1]}")
    rehearse(agent(), evalset, store=tmp_path, metrics=[OK])
    [run] = Store(tmp_path).runs()
    assert run.plan.name.startswith("Set [redacted:api_key] #")
    assert run.plan.evalset_id.startswith("set [redacted:api_key] #")


def test_values_of_the_environment_are_secrets_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_PASSWORD", 'päss "word" \\ one\n two')
    said = 'It is päss "word" \\ one\n two, or cMOkc3MgIndvcmQiIFwgb25lCiB0d28='
    report = rehearse(
        Agent("a", model=Scripted(said)), Case("a", "Hi"), store=tmp_path, metrics=[OK]
    )
    [result] = Store(tmp_path).report(report.id)
    [said] = result.responses
    assert said.startswith("It is [redacted:CRM_PASSWORD], or [redacted:CRM_PASSWORD]")
    assert not any(trace in written(tmp_path) for trace in ("päss", "p\\u00e4ss", "cMOk"))


def test_most_rows_are_kept_as_they_are(tmp_path: Path) -> None:
    report = rehearse(agent(), [Case("a", "Hi"), Case("b", "Ho")], store=tmp_path, metrics=[OK])
    assert timeless(Store(tmp_path).report(report.id)) == timeless(report)


def test_one_row_with_a_secret_changes_no_other() -> None:
    def row(text: str) -> Row:
        return Row(
            key=Key("a", 1),
            place=0,
            digest="d",
            status="passed",
            verdict=f'{{"case_id":"a","why":"{text}"}}',
            ledger=b"",
            judging=b"",
        )

    rows = [row("fine"), row(KEYS[0]), row("fine too")]
    clean = Cleaner(Redactor).rows(rows)
    assert (clean[0], clean[2]) == (rows[0], rows[2])
    assert KEYS[0] not in clean[1].verdict


def test_ids_stay_apart_whatever_is_taken_out_of_them() -> None:
    ids = ["plain", *KEYS, "half \ud83d character"]
    kept = clean_ids(ids, Redactor())
    assert list(kept) == ids
    assert len(set(kept.values())) == len(ids)
    assert kept["plain"] == "plain"
    assert not any(key in text for key in KEYS for text in kept.values())


def test_an_answer_of_a_judge_that_quotes_a_secret_is_not_kept(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    assert not cache.put("a" * 64, ModelReply(f'{{"reason": "it said {KEYS[0]}", "score": 7}}'))
    assert cache.put("b" * 64, ModelReply('{"reason": "it said nothing", "score": 7}'))
    assert len(cache) == 1
    assert KEYS[0] not in written(tmp_path)


@pytest.mark.sqlite
async def test_a_secret_that_is_none_any_more_keeps_no_run_from_going_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted = list[int]()

    @tool
    def pay(order: int) -> str:
        """Pay."""
        acted.append(order)
        return "paid"

    def answer(request: Any) -> Any:
        return call("pay", order=3) if request.last == "pay" else f"Answer to {request.last}"

    secret = [Turn("pay"), Turn("more")]
    evalset = EvalSet("set", [Case("plain", "Hi"), Case("pay hunter2-hunter2", turns=secret)])
    given: dict[str, Any] = {"store": tmp_path, "metrics": [OK], "concurrency": 1}
    monkeypatch.setenv("CRM_TOKEN", "hunter2-hunter2")
    first = Asked(answer, cut=4)
    before = Agent("a", model=first, tools=[pay])
    await evaluate(before, evalset, cancel=first.cancel, allow_tools=["pay"], **given)
    monkeypatch.delenv("CRM_TOKEN")
    model = Asked(answer)
    after = Agent("a", model=model, tools=[pay])
    report = await evaluate(after, evalset, resume=True, allow_tools=["pay"], **given)
    assert acted == [3]
    assert [result.case_id for result in report] == ["plain", "pay hunter2-hunter2"]
    assert model.count == 1


async def test_files_of_trials_that_were_finished_before_a_cut_are_empty(tmp_path: Path) -> None:
    evalset = EvalSet("set", [Case(f"case {n}", f"I am {key}") for n, key in enumerate(KEYS)])
    first = Asked(lambda request: f"Answer to {request.last}", cut=3)
    agent = Agent("a", model=first)
    await evaluate(agent, evalset, cancel=first.cancel, store=tmp_path, metrics=[OK], concurrency=1)
    assert Store(tmp_path).runs()[0].done == 2
    assert [key in written(tmp_path) for key in KEYS] == [False, False, False]


def test_a_row_that_nobody_can_read_harms_none_beside_it(tmp_path: Path) -> None:
    odd = Case("odd", f"go, I am {KEYS[0]}", mocks={"look": 10**5000})
    evalset = EvalSet("set", [*(Case(f"case {n}", "go") for n in range(6)), odd])

    @tool
    def look() -> int:
        """Look."""
        raise AssertionError

    def answer(request: Any) -> Any:
        return (
            f"Answer {len(request.messages)}"
            if request.n or len(request.messages) > 1
            else call("look")
        )

    mocks = {"look": 1}
    talker = Agent("a", model=Scripted(then=answer), tools=[look])
    report = rehearse(talker, evalset, store=tmp_path, metrics=[OK], mocks=mocks, concurrency=8)
    [run] = Store(tmp_path).runs()
    assert (run.status, run.done) == ("finished", 7)
    assert KEYS[0] not in written(tmp_path)
    assert len(report) == 7


async def test_sets_that_differ_by_a_secret_are_two(tmp_path: Path) -> None:
    given: dict[str, Any] = {"store": tmp_path, "metrics": [OK], "concurrency": 1}
    first = Asked(lambda request: f"Answer to {request.last}", cut=2)
    one, other = (EvalSet(f"set {key}", [Case("a", "Hi"), Case("b", "Ho")]) for key in KEYS[:2])
    await evaluate(Agent("a", model=first), one, cancel=first.cancel, **given)
    with pytest.raises(NotFound):
        await evaluate(agent(), other, resume=True, **given)
    assert (await evaluate(agent(), one, resume=True, accept_changes=True, **given)).passed


async def test_a_changed_metric_is_noticed_whatever_it_is_called(tmp_path: Path) -> None:
    given: dict[str, Any] = {"store": tmp_path, "concurrency": 1}
    model = Asked(lambda request: f"Answer to {request.last}", cut=2)
    evalset = EvalSet("set", [Case("a", "Hi"), Case("b", "Ho")])
    talker = Agent("a", model=model)
    named = contains("Answer", name="no_password")
    await evaluate(talker, evalset, cancel=model.cancel, metrics=[named], **given)
    other = contains("Nothing", name="no_password")
    with pytest.raises(BadInput, match="metric 'no_password' has changed"):
        await evaluate(talker, evalset, resume=True, metrics=[other], **given)


def test_what_becomes_a_secret_during_the_run_is_none_to_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LATE_API_TOKEN", raising=False)

    def answer(_: Any) -> str:
        monkeypatch.setenv("LATE_API_TOKEN", "late-but-secret")
        return "Answer: late-but-secret"

    rehearse(Agent("a", model=Scripted(then=answer)), Case("a", "Hi"), store=tmp_path, metrics=[OK])
    assert "late-but-secret" not in written(tmp_path)


def test_an_id_that_looks_like_one_without_its_secret_is_another(tmp_path: Path) -> None:
    [clean] = clean_ids([f"order {KEYS[0]}"], Redactor()).values()
    evalset = EvalSet("set", [Case(f"order {KEYS[0]}", "one"), Case(clean, "two")])
    report = rehearse(agent(), evalset, store=tmp_path, metrics=[OK])
    assert [result.responses for result in report] == [["Answer to one"], ["Answer to two"]]
    assert Store(tmp_path).runs()[0].done == 2


def test_a_run_is_compared_with_a_stored_or_saved_one_by_the_ids_of_its_cases(
    tmp_path: Path,
) -> None:
    before = rehearse(agent(), cases(), store=tmp_path, metrics=[OK])
    worse = Agent("a", model=Scripted(then=lambda _: "Nothing"))
    now = rehearse(worse, cases(), store=False, metrics=[OK])
    saved = Report.load(before.save(tmp_path / "before.json"))
    for earlier in (before, Store(tmp_path).report(before.id), saved):
        changes = now.compare(earlier)
        assert [change.verdict for change in changes.cases] == ["flipped"] * 3, earlier
    failed = failed_cases(Report.load(now.save(tmp_path / "now.json")), cases())
    assert failed.ids == cases().ids
