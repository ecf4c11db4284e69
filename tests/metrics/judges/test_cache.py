"""Judges' answers are kept on disk, and believed only if they would be believed again."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from greenroom import score
from greenroom.cases import Score
from greenroom.ledger import Ledger, Message, ModelReplied, Usage
from greenroom.metrics import judge
from greenroom.metrics.judges import jury
from greenroom.models import ModelReply, ModelRequest
from greenroom.world import LiveWorld
from greenroom.world.answers import AnswerCache, CachedWorld, key_of
from metrics.judges.asked import Asked, measured, no, order, yes
from warm_python import WarmPython

PAID = ModelReply(json.dumps(yes()), usage=Usage(100, 20), cost=0.01, model="judge-1")


def polite(model, cache, **options):
    return judge("polite", "Was it polite?", model=model, cache=cache, **options)


async def test_the_same_question_is_paid_for_once(tmp_path):
    cache = AnswerCache(tmp_path)
    model = Asked(PAID)
    first, again = [await measured(polite(model, cache)) for _ in range(2)]
    assert model.calls == 1
    assert (first.details["cached"], first.details["cost"]) == (0, 0.01)
    assert (again.details["cached"], again.details["cost"]) == (1, 0.0)
    assert again.details["usage"] == {"input": 0, "output": 0}
    assert (again.value, again.reason, again.details["model"]) == (1.0, "Fine.", "judge-1")


async def test_a_kept_answer_is_labelled_in_the_ledger(tmp_path):
    cache = AnswerCache(tmp_path)
    worlds = [LiveWorld(Ledger()), LiveWorld(Ledger())]
    for world in worlds:
        await measured(polite(Asked(PAID), cache), world=world)
    assert [[r.source for r in w.ledger.of(ModelReplied)] for w in worlds] == [["live"], ["cached"]]


async def test_five_votes_stay_five(tmp_path):
    cache = AnswerCache(tmp_path)
    votes = [yes(), no(), yes(), no(), yes()]
    model = Asked(*votes)
    options = {"samples": 5, "threshold": 0.6}
    first, again = [await measured(polite(model, cache, **options)) for _ in range(2)]
    assert model.calls == 5
    assert first.details["votes"] == again.details["votes"] == [True, False, True, False, True]
    assert again.details["cached"] == len(cache) == 5


async def test_more_samples_ask_only_for_the_new_ones(tmp_path):
    cache = AnswerCache(tmp_path)
    model = Asked(then=yes())
    await measured(polite(model, cache, samples=2, threshold=1.0))
    await measured(polite(model, cache, samples=5, threshold=1.0))
    assert model.calls == 5


@pytest.mark.parametrize(
    "other",
    [
        lambda model, cache: judge("polite", "Was it kind?", model=model, cache=cache),
        lambda model, cache: judge("kind", "Was it polite?", model=model, cache=cache),
        lambda model, cache: judge(
            "polite", "Was it polite?", model=model, cache=cache, form="0-10"
        ),
        lambda model, cache: polite(model, cache, evidence=["response"]),
        lambda model, cache: polite(model, cache, template="Kindly: {prompt}"),
    ],
)
async def test_another_question_is_asked_anew(tmp_path, other):
    cache = AnswerCache(tmp_path)
    await measured(polite(Asked(PAID), cache))
    model = Asked(then=yes())
    await measured(other(model, cache))
    assert model.calls > 0


@dataclass(frozen=True)
class Tuned:
    """A model with options, as providers' models have them."""

    inner: Asked
    temperature: float = 0.0
    api_key: str = ""
    name: str = "tuned"

    async def respond(self, request, on_delta=None):
        return await self.inner.respond(request, on_delta)


async def test_the_options_of_a_model_count_and_its_key_does_not(tmp_path):
    model = Asked(then=yes())
    for tuned in (Tuned(model), Tuned(model, api_key="other"), Tuned(model, temperature=1.0)):
        await measured(polite(tuned, AnswerCache(tmp_path)))
    assert model.calls == 2


async def test_another_run_is_asked_about_anew(tmp_path):
    cache = AnswerCache(tmp_path)
    await measured(polite(Asked(PAID), cache))
    model = Asked(yes())
    await measured(polite(model, cache), order("It is in Nice."))
    assert model.calls == 1


async def test_the_seats_of_a_jury_do_not_share_an_answer(tmp_path):
    model = Asked(then=yes())
    await measured(jury([model, model], prompt="?", cache=AnswerCache(tmp_path)))
    assert model.calls == 2


async def test_an_unusable_answer_is_not_kept(tmp_path):
    cache = AnswerCache(tmp_path)
    model = Asked("nonsense", PAID)
    assert isinstance(await measured(polite(model, cache)), Score)
    assert len(cache) == 1
    # The answer that came at the second asking is the answer to the first.
    other = Asked("again nonsense")
    found = await measured(polite(other, cache))
    assert (other.calls, found.details["attempts"], found.details["cached"]) == (0, 1, 1)


def only_file(cache):
    [place] = [p for p in cache.path.rglob("*") if p.is_file()]
    return place


SPOILED = {
    "torn": lambda text: text[: len(text) // 2],
    "empty": lambda _: "",
    "no object": lambda _: "[]",
    "bare verdict": lambda _: json.dumps(yes()),
    "another key": lambda text: json.dumps({**json.loads(text), "key": "0" * 64}),
    "another format": lambda text: json.dumps({**json.loads(text), "format": 99}),
    "text that is none": lambda text: json.dumps({**json.loads(text), "text": yes()}),
    "no verdict": lambda text: json.dumps({**json.loads(text), "text": "verdict: true"}),
    "two verdicts": lambda text: json.dumps({**json.loads(text), "text": json.dumps(yes()) * 2}),
    "deep": lambda _: "[" * 100_000,
    "huge": lambda text: text + " " * 5_000_000,
    "not utf-8": lambda _: "\udcff",
}


@pytest.mark.parametrize("how", SPOILED)
async def test_a_spoiled_entry_is_as_good_as_none(tmp_path, how):
    cache = AnswerCache(tmp_path)
    await measured(polite(Asked(PAID), cache))
    place = only_file(cache)
    text = SPOILED[how](place.read_text())
    place.write_bytes(text.encode(errors="surrogateescape"))
    model = Asked(no())
    found = await measured(polite(model, cache))
    assert (model.calls, found.passed, found.details["cached"]) == (1, False, 0)
    # And it is fixed.
    assert (await measured(polite(Asked(), cache))).passed is False


@given(st.binary() | st.text().map(str.encode))
def test_whatever_stands_in_a_file_the_cache_survives_it(tmp_path_factory, content):
    cache = AnswerCache(tmp_path_factory.mktemp("cache"))
    key = "ab" * 32
    cache.put(key, PAID)
    only_file(cache).write_bytes(content)
    assert cache.get(key) is None


async def test_a_folder_in_the_way_is_no_answer(tmp_path):
    cache = AnswerCache(tmp_path)
    await measured(polite(Asked(PAID), cache))
    place = only_file(cache)
    place.unlink()
    place.mkdir()
    found = await measured(polite(Asked(PAID), cache))
    assert found.passed


async def test_a_pipe_in_the_way_is_not_waited_for(tmp_path):
    cache = AnswerCache(tmp_path)
    await measured(polite(Asked(PAID), cache))
    place = only_file(cache)
    place.unlink()
    os.mkfifo(place)
    assert (await measured(polite(Asked(PAID), cache))).passed


async def test_a_cache_that_cannot_be_written_harms_nothing(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    cache = AnswerCache(blocked / "judges")
    assert (await measured(polite(Asked(PAID), cache))).passed
    assert len(cache) == 0


async def test_a_cache_can_be_cleared_and_leaves_other_files(tmp_path):
    cache = AnswerCache(tmp_path)
    (tmp_path / "notes.json").write_text("{}")
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / "mine.json").write_text("{}")
    await measured(polite(Asked(PAID), cache))
    assert (len(cache), cache.clear(), len(cache)) == (1, 1, 0)
    assert (tmp_path / "notes.json").exists()
    assert (tmp_path / "ab" / "mine.json").exists()


async def test_nothing_is_kept_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    await measured(judge("polite", "?", model=Asked(PAID)))
    assert list(tmp_path.iterdir()) == []


async def test_a_run_may_keep_answers_for_all_its_judges(tmp_path):
    cache = AnswerCache(tmp_path)
    model = Asked(PAID)
    for _ in range(2):
        world = CachedWorld(LiveWorld(Ledger()), cache)
        await score(order(), [judge("polite", "?", model=model)], world=world)
    assert model.calls == 1


async def test_a_script_is_not_kept_by_a_run_that_keeps_answers(tmp_path):
    cache = AnswerCache(tmp_path)
    world = CachedWorld(LiveWorld(Ledger()), cache)
    script = Asked(PAID)._script
    assert (await measured(judge("polite", "?", model=script), world=world)).passed
    assert len(cache) == 0


async def test_a_judge_may_stay_out_of_it(tmp_path):
    cache = AnswerCache(tmp_path)
    model = Asked(PAID)
    for _ in range(2):
        world = CachedWorld(LiveWorld(Ledger()), cache)
        await measured(judge("polite", "?", model=model, cache=False), world=world)
    assert (model.calls, len(cache)) == (2, 0)


def test_the_place_is_given_or_in_the_environment_or_here(tmp_path, monkeypatch):
    monkeypatch.delenv("GREENROOM_JUDGES", raising=False)
    assert AnswerCache().path == Path(".greenroom/judges")
    monkeypatch.setenv("GREENROOM_JUDGES", str(tmp_path))
    assert AnswerCache().path == tmp_path
    assert AnswerCache("here").path == Path("here")
    assert judge("t", "?", model=Asked(), cache="there").bench.cache.path == Path("there")  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
    assert judge("t", "?", model=Asked(), cache=True).bench.cache.path == tmp_path  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]


REQUEST = ModelRequest("judge:x", (Message("user", "a"),), "b", (), {"type": "object"}, "m")


@pytest.mark.parametrize(
    "change",
    [
        {"agent": "judge:y"},
        {"messages": (Message("user", "A"),)},
        {"messages": (Message("system", "a"),)},
        {"instructions": "B"},
        {"output_schema": None},
        {"model": "n"},
        {"node": "n"},
    ],
)
def test_all_of_a_request_is_in_its_key(change):
    assert key_of(REQUEST, 0) != key_of(replace(REQUEST, **change), 0)
    assert key_of(REQUEST, 0) != key_of(REQUEST, 1)
    assert key_of(REQUEST, 0, "temperature 0") != key_of(REQUEST, 0, "temperature 1")
    assert key_of(REQUEST, 0) == key_of(replace(REQUEST, n=7), 0)


WORKER = """
import sys
from greenroom.models import ModelReply
from greenroom.world.answers import AnswerCache
cache = AnswerCache(sys.argv[1])
mine = sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
bad = 0
for round in range(300):
    key = f"{round % 7:064x}"
    cache.put(key, ModelReply(f"{mine}:" + mine * 20_000))
    found = cache.get(key)
    who, _, said = ("", "", "") if found is None else found.text.partition(":")
    bad += said != who * 20_000 or not who
print(bad)
"""


@pytest.mark.heavy
def test_two_processes_at_once_never_see_half_an_answer(tmp_path):
    workers = [
        WarmPython(
            [sys.executable, "-c", WORKER, str(tmp_path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    told = [worker.communicate(timeout=60)[0].strip() for worker in start(workers)]
    assert told == ["0", "0"]
    assert len(AnswerCache(tmp_path)) == 7
    assert list(tmp_path.rglob("*.tmp")) == []


def start(workers):
    """Let all of them go before waiting for any."""
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return workers


async def test_an_entry_that_was_edited_counts_as_absent(tmp_path):
    cache = AnswerCache(tmp_path)
    key = "ab" * 32
    assert cache.put(key, ModelReply("It is fine.", (), None, None, "", "judge"))
    kept = cache.get(key)
    assert kept is not None
    assert kept.text == "It is fine."
    (place,) = tmp_path.glob("??/*.json")
    whole = place.read_text()
    for old, new in (("It is fine.", "It is bad."), ('"model": "judge"', '"model": "other"')):
        place.write_text(whole.replace(old, new))
        assert whole != place.read_text()
        assert cache.get(key) is None
    entry = json.loads(whole)
    del entry["seal"]
    place.write_text(json.dumps(entry))
    assert cache.get(key) is None
    place.write_text(whole)
    assert cache.get(key) is not None
