"""Recorded trials by the names that the command line gives them: `CASE`, `CASE#2`.

`greenroom runs replay` and `greenroom runs diff` are here.
"""

import json
from collections.abc import Sequence
from typing import Any

from greenroom.apps.cli.event_loop import loaded, to_the_end
from greenroom.apps.cli.exits import GATE_MISSED, PASSED, aside, put_out_json, telling
from greenroom.apps.cli.report_output import open_store
from greenroom.errors import BadInput, NotFound, ReplayDrifted
from greenroom.ledger.difference import Difference, diff
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.redaction import redactor
from greenroom.reports.terminal import Terminal
from greenroom.results.text import number_of
from greenroom.simulation.replay import OnDrift, replay
from greenroom.store import Store
from greenroom.store.runs import Key


def trial_ledger(store: Store, run_id: str, case: str) -> Ledger:
    """The ledger of `case` or `case#2` in a run; without a case, the first that there is."""
    keys = [key for key, result in store.results(run_id) if result.kept is not None]
    name, _, number = case.rpartition("#")
    wanted = [Key(case, 1)]
    if name and number.isdecimal():
        wanted.append(Key(name, int(number)))
    chosen = [key for key in keys if key in wanted] if case else keys
    if chosen:
        return store.ledger(run_id, chosen[0])
    known = ", ".join(f"{key.case_id}#{key.trial}" for key in keys[:10]) or "none"
    raise NotFound(f"run {run_id!r} has no trial {case!r} with a ledger; it has {known}.")


def replay_trial(
    run: str, case: str, agent: str, on_drift: OnDrift, store: str, as_json: bool, verbose: bool
) -> int:
    """Replay a trial with the agent as it is now, and say where it differs."""
    with telling(verbose):
        place = open_store(store)
        recorded = trial_ledger(place, place.run(run).id, case)

        async def replayed() -> Ledger:
            found: Any = await loaded(agent, None, verbose)
            return await replay(recorded, found, on_drift=on_drift)

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
    with telling(verbose=False):
        place = open_store(store)
        run_id = place.run(run).id
        found = diff(trial_ledger(place, run_id, case), _other(place, run_id, case, other))
        _say(found, as_json)
    return GATE_MISSED if found else PASSED


def _other(store: Store, run_id: str, case: str, other: str) -> Ledger:
    """The trial to compare with: `RUN`, `RUN#2`, `#2`, or without a name the next one of the case."""
    name, sign, number = case.rpartition("#")
    name = name if sign and number.isdecimal() else case
    if other:
        run, _, trial = other.partition("#")
        chosen = store.run(run).id if run else run_id
        return trial_ledger(store, chosen, f"{name}#{trial}" if trial else case)
    mine = int(number) if sign and number.isdecimal() else 1
    trials = [
        key.trial for key, result in store.results(run_id) if key.case_id == name and result.kept
    ]
    rest = [trial for trial in trials if trial != mine]
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
        put_out_json(json.dumps(redactor().value(whole), indent=2))
        return
    for line in [drift] if drift else redactor().value([str(one) for one in found]):
        Terminal().say(line)
    if not drift:
        aside(f"{number_of(len(found), 'difference')}" if found else "no difference")
