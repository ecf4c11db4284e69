"""The shop whose runs are in the golden stores, and what a reader finds in such a store.

The digests in the stores are those of this agent, these cases and these metrics: leave them as they are.

    python -m store.golden.shop FOLDER    make a store with the code of today, and `found.json` next to it
"""

import asyncio
import json
import sys
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any

from greenroom import Agent, Case, EvalSet, Expect, Stop, Turn, call, evaluate, tool
from greenroom.metrics import contains, judge
from greenroom.models import ModelReply, ModelRequest, Scripted
from greenroom.results.comparisons.comparison import compare
from greenroom.store import Store
from greenroom.suite import rescore
from store.asked import Asked
from store.timeless import timeless

LONG = "All of it, word for word: " + " ".join(map(str, range(13_000)))
"""Longer than a slot of the journal."""


@tool
def look(key: str) -> str:
    """Look something up."""
    raise AssertionError("a tool body ran in a rehearsal")


def answer(request: ModelRequest) -> Any:
    """A look first, then what was found; it breaks for one case, and is free or of no known price for others."""
    if "break" in request.last:
        raise RuntimeError("no answer today")
    if request.n % 2 == 0:
        return call("look", key=f"k{request.n}")
    text = LONG if "long" in request.last else f"Answer {request.n}: {request.last}"
    return ModelReply(text, cost=None if "unknown" in request.last else 0.25, prices="golden")


def mended(request: ModelRequest) -> Any:
    """The same, but nothing breaks."""
    return answer(request) if "break" not in request.last else ModelReply("Answer", cost=0.5)


def worse(request: ModelRequest) -> Any:
    """Says what one case does not expect."""
    return ModelReply("Well?", cost=0.25) if "One" in request.last else answer(request)


def clerk(model: Any) -> Agent:
    return Agent("clerk", model=model, instructions="Be brief.", tools=[look])


def case(name: str, *says: str, **options: Any) -> Case:
    *before, last = says or ("Hello", "And now?")
    turns = [*map(Turn, before), Turn(last, expect=options.pop("expect", None))]
    given: dict[str, Any] = {"mocks": {"look": f"found {name}"}, **options}
    return Case(name, turns=turns, **given)


KIND = ModelReply('{"reasoning": "So.", "verdict": true}', cost=0.125, prices="golden")
CASES = [
    case("passes", expect=Expect(contains="Answer")),
    case("fails", expect=Expect(contains="never said")),
    case("breaks", "Hello", "Please break"),
    case("ends early", "Hello", "And?", "And?", stop=Stop(max_turns=2)),
    case("judged", metrics=[judge("kind", "Is it kind?", model=Scripted(then=KIND))]),
    case("caf\u00e9 \ud83d", "Half a character"),
    case("long", "Everything", mocks={"look": "a long one"}),
]
OK = contains("n", name="ok")


def set_of(*left_out: str, name: str = "golden") -> EvalSet:
    return EvalSet(name, [case for case in CASES if case.id not in left_out])


async def play(place: Path, evalset: EvalSet, model: Asked, **options: Any) -> Any:
    """A run of the clerk, one trial after the other."""
    given: dict[str, Any] = {"metrics": [OK], "concurrency": 1, "cancel": model.cancel, **options}
    return await evaluate(clerk(model), evalset, store=place, **given)


async def make(place: Path) -> None:
    """Runs in every state that a run can be in."""
    await play(place, set_of(), Asked(answer), trials=2)
    await play(place, set_of("long"), Asked(answer, cut=18), trials=2)
    # The second go at it leaves a case out and runs a changed one again; both have cost something.
    changed = case("fails", expect=Expect(contains="Answer"))
    now = EvalSet("golden", [changed, *set_of("long", "passes", "fails")])
    resumed = {"resume": True, "accept_changes": True, "trials": 2}
    await play(place, now, Asked(mended), retry_errors=True, **resumed)
    two = EvalSet("confirmed", [case("one", "One"), case("two", "Two")])
    baseline = await play(place, two, Asked(answer), trials=3)
    await play(place, two, Asked(worse), baseline=baseline)
    unknown = [case("unknown price", "unknown"), case("known price", "known")]
    await play(place, EvalSet("prices", unknown), Asked(answer))
    await play(place, set_of("long", name="cut"), Asked(answer))
    # Tried again, cut again: what the first try cost is spent, a trial is under way in the journal.
    [run, *_] = Store(place).runs()
    again = Asked(mended, cut=1)
    await play(place, set_of("long", name="cut"), again, resume=run.id, retry_errors=True)
    await play(place, set_of("long", name="under way"), Asked(answer, cut=7))


async def found(place: Path) -> dict[str, Any]:
    """What a reader finds in a store, and how it goes on: on a copy, so that the store stays as it is."""
    store = Store(place)
    runs = store.runs()
    reports = {run.id: store.report(run.id) for run in runs}
    with TemporaryDirectory() as folder:
        copy = Path(copytree(place, Path(folder) / "store"))
        rescored = await rescore(runs[-1].id, store=copy, metrics=[contains("sorry")])
        model = Asked(mended)
        # Without the judged case: its identity has the source of our own code in it, which changes.
        more = await play(copy, set_of("long", "judged", name="under way"), model, resume=True)
        questions = model.questions
        model = Asked(mended)
        left = set_of("long", "judged", name="cut")
        retried = await play(copy, left, model, resume=True, retry_errors=True)
        questions += model.questions
        spent = {run.id: Store(copy).spent(run.id) for run in Store(copy).runs()}
    return {
        "runs": [[run.id, run.status, dict(run.counts), run.done, run.total] for run in runs],
        "spent": {run.id: store.spent(run.id) for run in runs},
        "without errors": {run.id: len(store.keys(run.id, broken=False)) for run in runs},
        "again": {run.id: run.again for run in runs},
        "reports": {name: shortened(timeless(report)) for name, report in reports.items()},
        "ledgers": {
            name: [len(result.ledger or ()) for result in report]
            for name, report in reports.items()
        },
        "compared": [
            [change.case_id, change.verdict]
            for change in compare(reports[runs[-1].id], reports[runs[1].id]).cases
        ],
        "rescored": [result.status for result in rescored.report],
        "resumed": [[result.label, result.status, result.cost] for result in (*more, *retried)],
        "questions": questions,
        "spent in the end": spent,
    }


def shortened(data: Any) -> Any:
    """Without the long texts."""
    match data:
        case dict():
            return {key: shortened(value) for key, value in data.items()}
        case list():
            return [shortened(value) for value in data]
        case str() if len(data) > 200:
            return f"{data[:40]}… {len(data)}"
        case _:
            return data


def written(data: Any) -> Any:
    """As JSON brings it back."""
    return json.loads(json.dumps(data))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    asyncio.run(make(folder))
    for file in (*folder.glob("journals/*/lock"), *folder.glob(".gitignore")):
        file.unlink()
    text = json.dumps(asyncio.run(found(folder)), indent=1)
    folder.with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")
