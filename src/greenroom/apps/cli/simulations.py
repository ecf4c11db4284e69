"""`greenroom simulate`: conversations run, shown and kept."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from greenroom.apps.cli.event_loop import loaded, to_the_end
from greenroom.apps.cli.exits import (
    GATE_MISSED,
    RUN_ERRORS,
    Stopped,
    aside,
    is_verbose,
    put_out_json,
)
from greenroom.apps.cli.report_output import check_unused
from greenroom.cases import Case, EvalSet, SimulatedUser, Stop, harvest
from greenroom.cases.files import write_evalset
from greenroom.cases.files.additions import evalset_at
from greenroom.cases.files.changes import changing
from greenroom.cases.files.save import save_text
from greenroom.cases.names import free_id
from greenroom.ledger.events import ToolBlocked
from greenroom.ledger.plain import Json
from greenroom.ledger.redaction import redactor, without_secrets
from greenroom.reports.terminal import Terminal, plain, styled
from greenroom.reports.transcript import transcript
from greenroom.results.words import number_of, shortened
from greenroom.simulation import Simulation, simulation_data
from greenroom.suite import Batch, simulate_all
from greenroom.suite.inputs.criteria import equipped
from greenroom.suite.inputs.sources import check_not_empty, gather, load_mocks, load_model

_LONGEST = 200


class _Setup(Struct, frozen=True, kw_only=True):
    """The agent, the user's model, and what answers for tools."""

    agent: str
    model: str
    mocks: str
    allow_tools: Sequence[str]
    resources: str = ""
    middleware: Sequence[str] = ()
    allow_opaque: bool = False
    concurrency: int = 1

    def run(self, evalset: EvalSet, on_complete: Any = None) -> Batch:
        """Simulate every case."""
        mocks: Mapping[str, object] = load_mocks(self.mocks) if self.mocks else {}
        user_model = load_model(self.model)

        async def simulated() -> Batch:
            return await simulate_all(
                await loaded(self.agent),
                equipped(evalset, mocks, None),
                user_model=user_model,
                concurrency=self.concurrency,
                allow_tools=self.allow_tools,
                allow_opaque=self.allow_opaque,
                resources=self.resources,
                middleware=self.middleware,
                on_complete=on_complete,
            )

        return to_the_end(simulated)


def run_one(
    agent: str,
    prompt: str,
    persona: str,
    plan: str,
    goals: str,
    max_turns: int,
    output: str,
    save_as_eval: str,
    as_json: bool,
    **setup: Any,
) -> None:
    """One conversation, described on the command line."""
    wanted = [goal.strip() for goal in goals.split(",") if goal.strip()]
    user = SimulatedUser(persona, plan=plan, goals=wanted)
    case = Case("simulation", prompt, user=user, stop=Stop(max_turns=max_turns))
    batch = _Setup(agent=agent, **setup).run(EvalSet("simulation", [case]))
    [one] = batch.simulations
    if as_json:
        put_out_json(json.dumps(_data(one), indent=2))
    else:
        _show(one, batch.notes, whole=is_verbose())
    if output:
        path = Path(output)
        save_text(json.dumps(_data(one), indent=2, ensure_ascii=True) + "\n", path)
        aside(f"wrote {path}")
    if save_as_eval:
        _save_case(one, Path(save_as_eval))
    _end(batch)


def run_many(
    agent: str,
    scenarios: str,
    filters: Sequence[str],
    output: str,
    save_successful: str,
    force: bool,
    as_json: bool,
    **setup: Any,
) -> None:
    """All conversations of a file."""
    if save_successful:
        check_unused(Path(save_successful), "--save-successful", force=force)
    evalset = gather(scenarios, configs=False).evalset
    check_not_empty(evalset, scenarios)
    if filters:
        total, evalset = len(evalset), evalset.filter(*filters)
        aside(f"filtered to {len(evalset)}/{total}")
    terminal = Terminal()
    batch = _Setup(agent=agent, **setup).run(
        evalset, None if as_json else partial(_say_line, terminal)
    )
    if as_json:
        put_out_json(json.dumps([_data(one) for one in batch.simulations], indent=2))
    else:
        _say_totals(terminal, batch)
    if output:
        _write_all(batch, Path(output))
    if save_successful:
        _save_successful(batch, evalset, Path(save_successful))
    _end(batch)


def _end(batch: Batch) -> None:
    """Raise if a conversation did not complete."""
    if batch.faults:
        raise Stopped("; ".join(batch.faults), RUN_ERRORS)
    if batch.errors:
        raise Stopped(f"{len(batch.errors)} of {_count(batch)} broke", RUN_ERRORS)
    cut = [one for one in batch.simulations if not one.completed]
    if cut:
        raise Stopped(f"{len(cut)} of {_count(batch)} stopped at a limit", GATE_MISSED)


def _count(batch: Batch) -> str:
    return number_of(len(batch.simulations), "conversation")


# Shown


def _redacted(one: Simulation) -> Simulation:
    """The conversation without secrets."""
    ledger = None if one.ledger is None else one.ledger.redacted()
    return replace(redactor().value(one), ledger=ledger)


def _data(one: Simulation) -> dict[str, Json]:
    """The conversation as JSON, without secrets, to print or to keep in a file."""
    return simulation_data(_redacted(one))


def _show(one: Simulation, notes: Sequence[str], *, whole: bool) -> None:
    one = _redacted(one)
    terminal = Terminal()
    for line in transcript(one.ledger) if one.ledger is not None else ():
        text = line.text if whole else shortened(line.text, _LONGEST)
        source = styled(f"  ({line.source})" if line.source else "", "dim")
        terminal.hang(styled(line.who, "bold"), plain(text, source), width=13)
    terminal.print()
    _say_line(terminal, one)
    for goal in one.goals:
        reached = goal in one.goals_achieved
        mark = styled("reached" if reached else "not shown", "green" if reached else "yellow")
        terminal.hang(mark, plain(goal), indent=2, width=11)
    for note in notes:
        terminal.say(styled("note: ", "yellow"), without_secrets(note))


def _say_line(terminal: Terminal, one: Simulation) -> None:
    """How a conversation ended, on one line, and what broke it."""
    one = _redacted(one)
    status = "completed" if one.completed else "broke" if _broke(one) else f"stopped at {one.ended}"
    style = "green" if one.completed else "bold red" if _broke(one) else "yellow"
    goals = f", goals {len(one.goals_achieved)}/{len(one.goals)}" if one.goals else ""
    turns = number_of(one.turns, "turn")
    terminal.say(styled(status, style), "  ", one.case_id, f"  {turns}{goals}")
    if one.error:
        terminal.say(one.error, indent=2)
    refused = one.ledger.of(ToolBlocked) if one.ledger is not None else []
    if refused:
        here = f"on the command line: --mocks FILE, or --allow-tool {refused[0].tool}"
        terminal.say(here, indent=2)


def _broke(one: Simulation) -> bool:
    return one.ended in (None, "error")


def _say_totals(terminal: Terminal, batch: Batch) -> None:
    parts = [_count(batch)]
    if batch.completed is not None:
        parts.append(f"{batch.completed:.0%} of those that ran completed")
    if batch.mean_turns is not None:
        parts.append(f"{batch.mean_turns:.1f} turns on average")
    if batch.goals_achieved is not None:
        parts.append(f"{batch.goals_achieved:.0%} of the goals reached")
    terminal.say("; ".join(parts))
    for note in batch.notes:
        terminal.say(styled("note: ", "yellow"), without_secrets(note))


# Kept


def _write_all(batch: Batch, folder: Path) -> None:
    taken: set[str] = set()
    for one in batch.simulations:
        data = _data(one)
        # An id may contain anything, but a file's name must not lead out of its folder.
        name = wanted = re.sub(r"[^\w.-]", "_", str(data["scenario_id"])).lstrip(".") or "scenario"
        number = 1
        while name.lower() in taken:
            number += 1
            name = f"{wanted}-{number}"
        taken.add(name.lower())
        text = json.dumps(data, indent=2, ensure_ascii=True)
        save_text(text + "\n", folder / f"{name}.json")
    aside(f"wrote {len(batch.simulations)} files to {folder}")


def _save_case(one: Simulation, path: Path) -> None:
    if one.ledger is None or not one.completed:
        aside(f"not saved to {path}: the conversation did not complete")
        return
    with changing(path):
        held = evalset_at(path)
        case = _harvested(one, free_id(one.case_id, held))
        write_evalset(held.with_cases(case), path, shape=held.shape or None)
    aside(f"saved as case {case.id!r} in {path}")


def _save_successful(batch: Batch, evalset: EvalSet, path: Path) -> None:
    cases = [_harvested(one, one.case_id) for one in batch.simulations if one.completed]
    name = path.name.partition(".")[0] or evalset.id
    write_evalset(EvalSet(name, cases), path)
    aside(f"saved {len(cases)} of {len(evalset)} to {path}")


def _harvested(one: Simulation, case_id: str) -> Case:
    assert one.ledger is not None
    return replace(harvest(one.ledger, case_id), tags=("simulated",))
