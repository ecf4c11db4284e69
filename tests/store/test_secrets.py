"""No secret gets into the store, and nothing is lost by that but the secret."""

from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet, Scripted, Turn, evaluate, rehearse
from greenroom.ledger.redaction import Redactor
from greenroom.metrics import contains
from greenroom.models import ModelReply
from greenroom.store import Store
from greenroom.store.cleaning import Cleaner, kept_ids
from greenroom.store.runs import Key, Row
from greenroom.suite.rescoring import rescore
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
    assert "lost secrets when it was written down" in str(leaky.error)


def test_a_run_is_named_and_noted_without_secrets(tmp_path: Path) -> None:
    evalset = EvalSet(f"set {KEYS[0]}", cases().cases, name=f"Set {KEYS[1]}")
    rehearse(agent(), evalset, store=tmp_path, metrics=[OK])
    [run] = Store(tmp_path).runs()
    assert (run.plan.name, run.plan.evalset_id) == (
        "Set [redacted:api_key]",
        "set [redacted:api_key]",
    )


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
            position=0,
            digest="d",
            status="passed",
            verdict=f'{{"case_id":"a","why":"{text}"}}',
            ledger=b"",
            judging=b"",
        )

    rows = [row("fine"), row(KEYS[0]), row("fine too")]
    clean = Cleaner(Redactor()).rows(rows)
    assert (clean[0], clean[2]) == (rows[0], rows[2])
    assert KEYS[0] not in clean[1].verdict


def test_ids_stay_apart_whatever_is_taken_out_of_them() -> None:
    ids = ["plain", *KEYS, "half \ud83d character"]
    kept = kept_ids(ids, Redactor())
    assert list(kept) == ids
    assert len(set(kept.values())) == len(ids)
    assert kept["plain"] == "plain"
    assert not any(key in text for key in KEYS for text in kept.values())


def test_a_cached_answer_of_a_judge_quotes_no_secret(tmp_path: Path) -> None:
    cache, key = AnswerCache(tmp_path), "a" * 64
    cache.put(key, ModelReply(f'{{"reason": "it said {KEYS[0]}", "score": 7}}'))
    assert KEYS[0] not in written(tmp_path)
    found = cache.get(key)
    assert found is not None
    assert found.text == '{"reason": "it said [redacted:api_key]", "score": 7}'
