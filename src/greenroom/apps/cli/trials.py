"""Recorded trials by the names that the command line gives them: `CASE`, `CASE#2`.

`greenroom runs replay`, `greenroom runs diff` and `greenroom runs shrink` are here.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from greenroom import suite
from greenroom.apps.cli.event_loop import loaded, to_the_end
from greenroom.apps.cli.exits import GATE_MISSED, PASSED, aside, put_out_data
from greenroom.apps.cli.report_output import check_unused, open_store
from greenroom.backends.answered import with_model
from greenroom.backends.registry import backend_for
from greenroom.cases import EvalSet
from greenroom.cases.data import live_parts, written_data
from greenroom.cases.files import write_evalset
from greenroom.errors import BadInput, NotFound, ReplayDrifted
from greenroom.ledger.difference import Difference, diff
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, is_object, number_in
from greenroom.ledger.questions import started
from greenroom.ledger.redaction import redactor
from greenroom.reports.terminal import Terminal
from greenroom.results.words import number_of
from greenroom.simulation.recorded.allowance import Allowance
from greenroom.simulation.recorded.replay import OnDrift, replay
from greenroom.simulation.recorded.shrink import Shrinking, Shrunk
from greenroom.store import Store
from greenroom.store.runs import Key, Run
from greenroom.suite.inputs.sources import (
    as_middleware,
    as_model_given,
    as_resources,
    gather,
    load_mocks,
)


def trial_ledger(store: Store, run_id: str, case: str) -> Ledger:
    """The ledger of `case` or `case#2` in a run; without a case, the first that there is."""
    return store.ledger(run_id, trial_key(store, run_id, case))


def trial_key(store: Store, run_id: str, case: str) -> Key:
    """Which trial `case` or `case#2` is in a run; without a case, the first with a ledger."""
    keys = [key for key, result in store.results(run_id) if result.kept is not None]
    name, _, number = case.rpartition("#")
    wanted = [Key(case, 1)]
    if name and (trial := number_in(number)) is not None:
        wanted.append(Key(name, trial))
    chosen = [key for key in keys if key in wanted] if case else keys
    if chosen:
        return chosen[0]
    known = ", ".join(f"{key.case_id}#{key.trial}" for key in keys[:10]) or "none"
    raise NotFound(f"run {run_id!r} has no trial {case!r} with a ledger; it has {known}.")


def replay_trial(
    run: str,
    case: str,
    agent: str,
    model: str,
    on_drift: OnDrift,
    middleware: Sequence[str],
    store: str,
    as_json: bool,
) -> int:
    """Replay a trial with the agent as it is now, and say where it differs."""
    place = open_store(store)
    begun = place.run(run)
    recorded = trial_ledger(place, begun.id, case)
    agent, model = agent or _agent_of(begun), model or _own_model(recorded) or begun.plan.model

    async def replayed() -> Ledger:
        found = await _answered(agent, model)
        stack = as_middleware(middleware) or ()
        return await replay(recorded, found, on_drift=on_drift, middleware=stack)

    try:
        again = to_the_end(replayed)
    except ReplayDrifted as drift:
        _say([], as_json, str(redactor().value(str(drift))))
        return GATE_MISSED
    found = diff(recorded, again)
    _say(found, as_json)
    return GATE_MISSED if found else PASSED


def diff_trials(run: str, case: str, other: str, store: str, as_json: bool) -> int:
    """Say where two recorded trials differ."""
    place = open_store(store)
    run_id = place.run(run).id
    found = diff(trial_ledger(place, run_id, case), _other(place, run_id, case, other))
    _say(found, as_json)
    return GATE_MISSED if found else PASSED


def shrink_trial(
    run: str, case: str, agent: str, model: str, output: str, as_json: bool, **given: Any
) -> int:
    """Find the shortest case that fails as a trial did, and write it to a file."""
    place = open_store(given.pop("store"))
    begun = place.run(run)
    run_id = begun.id
    key = trial_key(place, run_id, case)
    agent, model = agent or _agent_of(begun), model or begun.plan.model
    target = Path(output or f"{re.sub(r'[^A-Za-z0-9_-]', '_', key.case_id)}.shrunk.yaml")
    check_unused(target, "--output", force=given.pop("force"))
    calls, usd = given.pop("max_model_calls"), given.pop("budget")
    cases, mocks = given.pop("cases"), given.pop("mocks")
    options = {name: value for name, value in given.items() if value not in (None, "", ())}
    options |= {"allowance": Allowance(calls, usd), "on_step": _progress}

    async def shrunk() -> Shrunk:
        found = await _answered(agent, model)
        options["cases"] = gather(cases).evalset if cases else None
        options["mocks"] = load_mocks(mocks) if mocks else None
        options["middleware"] = as_middleware(options.get("middleware", ())) or ()
        options["resources"] = as_resources(options.get("resources", {}))
        return await suite.shrink_trial(
            run_id, key.case_id, found, trial=key.trial, store=place, **options
        )

    found = to_the_end(shrunk)
    left_out = live_parts(found.case)
    write_evalset(EvalSet(target.name.partition(".")[0], [found.case]), target, lossy=True)
    answering = ["--model", model] if model else []
    command = shlex.join(["greenroom", "eval", "run", agent, str(target), *answering])
    _show(found, target, left_out, command, as_json)
    return PASSED if found.is_minimal else GATE_MISSED


async def _answered(agent: str, model: str) -> object:
    """The agent, with the model that answers in place of its own if one does."""
    found: object = await loaded(agent)
    answering = as_model_given(model)
    return found if answering is None else with_model(backend_for(found), answering)


def _own_model(recorded: Ledger) -> str:
    """The model that the case of a trial names for itself."""
    first = started(recorded)
    data = first.case if first is not None and is_object(first.case) else {}
    return model if isinstance(model := data.get("model"), str) else ""


def _agent_of(run: Run) -> str:
    """The reference that a run's agent was loaded by."""
    if not run.plan.reference:
        raise BadInput(
            f"run {run.id!r} does not say where its agent is found, because it was given as an object. "
            f"Name it: --agent desk.py."
        )
    return run.plan.reference


def _progress(step: Shrinking) -> None:
    turns, mocks = number_of(step.turns, "message"), number_of(step.mocks, "mock")
    asked = number_of(step.model_calls, "model call")
    aside(f"still fails with {turns} and {mocks} ({number_of(step.trials, 'trial')}, {asked})")


def _show(
    found: Shrunk, target: Path, left_out: Sequence[str], command: str, as_json: bool
) -> None:
    if as_json:
        facts = {name: getattr(found, name) for name in Shrunk.__struct_fields__[1:]}
        whole = {**facts, "file": str(target), "case": written_data(found.case)}
        put_out_data(whole)
        return
    terminal = Terminal()
    for turn in found.case.turns:
        terminal.say(redactor().value(f"user: {turn.says}"))
    terminal.say(f"mocks: {', '.join(found.case.mocks) or 'none'}")
    if found.stopped:
        aside(f"perhaps not the shortest: {found.stopped}")
    if left_out:
        aside(f"left out of the file, because it is code: {', '.join(left_out)}")
    asked = f"{number_of(found.trials, 'trial')}, {number_of(found.model_calls, 'model call')}"
    aside(f"written to {target} after {asked}; to run it: {command}")


def _other(store: Store, run_id: str, case: str, other: str) -> Ledger:
    """The trial to compare with: `RUN`, `RUN#2`, `#2`, or without a name the next one of the case."""
    name, sign, number = case.rpartition("#")
    mine = number_in(number) if sign else None
    name = case if mine is None else name
    if other:
        run, _, trial = other.partition("#")
        chosen = store.run(run).id if run else run_id
        return trial_ledger(store, chosen, f"{name}#{trial}" if trial else case)
    trials = [
        key.trial for key, result in store.results(run_id) if key.case_id == name and result.kept
    ]
    rest = [trial for trial in trials if trial != (1 if mine is None else mine)]
    if not rest:
        raise BadInput(
            f"run {run_id!r} has one trial of {name!r}. Say which to compare it with: --with RUN."
        )
    return trial_ledger(store, run_id, f"{name}#{rest[0]}")


def _say(found: Sequence[Difference], as_json: bool, drift: str = "") -> None:
    if as_json:
        data: Json = [
            {"voice": d.voice, "path": d.path, "says": d.says, "first": d.one, "second": d.other}
            for d in found
        ]
        whole = {"drift": drift or None, "differences": data}
        put_out_data(whole)
        return
    for line in [drift] if drift else redactor().value([str(one) for one in found]):
        Terminal().say(line)
    if not drift:
        aside(f"{number_of(len(found), 'difference')}" if found else "no difference")
