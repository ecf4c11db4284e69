"""ROUGE: the comparison alone beside rouge-score, and the race with answers that are compared.

In the race everybody else uses rouge-score, as they would; Greenroom uses its own. A cached stem is
worth more than any harness costs, so each is also shown net of a bare loop with the same ROUGE.
"""

import json
import sys
from collections.abc import Mapping, Sequence

from goals import Goal, row
from peers import PEER, environment, left_out
from plan import Plan
from turns import Figures, best, in_turns, output, played, turns

OURS, BARE, BARE_OURS = "greenroom", "bare", "bare, our rouge"


def contestants(heavy: Sequence[str]) -> dict[str, str]:
    """The interpreter of everybody in the race, with those heavy peers that were asked for."""
    here = sys.executable
    found = {BARE: here, BARE_OURS: here, PEER: environment(PEER), OURS: here}
    return found | {name: environment(name) for name in heavy}


def measured(plan: Plan) -> Figures:
    """The comparison alone, and the race."""
    return {
        "pairs": pairs(plan.pairs, plan.rounds),
        "race": race(contestants(plan.heavy), plan.usual, plan.rounds),
    }


def race(pythons: Mapping[str, str], count: int, rounds: int) -> Figures:
    """CPU and memory of everybody, for so many cases."""
    heats = {name: played(_module(name), python, count) for name, python in pythons.items()}
    return {"count": count, "contestants": in_turns("ROUGE race", heats, rounds)}


def _module(name: str) -> str:
    return "rouge_bare_ours" if name == BARE_OURS else f"rouge_{name}"


def pairs(count: int, rounds: int) -> Figures:
    """CPU for one pair of texts, by kind of ROUGE, of Greenroom and of rouge-score."""
    command = [sys.executable, "-m", "contestants.rouge_pairs", str(count)]
    found = [json.loads(output(command)) for _ in turns("ROUGE", rounds)]
    return {kind: best([one[kind] for one in found]) for kind in found[0]}


def goals(found: Figures) -> list[Goal]:
    """What is promised: a fifth, of rouge-score and of a peer that uses it."""
    alone, race = found["pairs"], found["race"]
    worst = max(alone, key=lambda kind: _ratio(alone[kind]))
    cpu = per_case(race)
    return [
        Goal(f"CPU of rouge-score, {worst}", _ratio(alone[worst]), 0.2, "×"),
        Goal(f"CPU of {PEER} with it, {race['count']}", cpu[OURS] / cpu[PEER], 0.2, "×"),
    ]


def _ratio(figures: Mapping[str, float]) -> float:
    return figures["greenroom"] / figures["rouge-score"]


def per_case(found: Figures) -> dict[str, float]:
    """CPU microseconds for one case, by contestant."""
    figures = found["contestants"]
    return {name: figures[name]["cpu"] / found["count"] * 1e6 for name in figures}


def lines(found: Figures) -> list[str]:
    """Both tables."""
    alone, cpu = found["pairs"], per_case(found["race"])
    shown = [
        row(f"Trajectory and ROUGE-1, N={found['race']['count']}", ["µs/case", "net", "of peer"]),
        *(row(name, _cells(name, cpu)) for name in cpu),
        *left_out(cpu),
        "",
        row("ROUGE beside rouge-score, µs/pair", ["ours", "theirs", "ratio"]),
    ]
    return shown + [row(kind, _pair_cells(figures)) for kind, figures in alone.items()]


def _cells(name: str, cpu: Mapping[str, float]) -> Sequence[str]:
    bare = cpu[BARE_OURS if name == OURS else BARE]
    net = "" if name in (BARE, BARE_OURS) else f"{cpu[name] - bare:.0f}"
    return [f"{cpu[name]:.0f}", net, f"{cpu[name] / cpu[PEER]:.2f} ×"]


def _pair_cells(figures: Mapping[str, float]) -> Sequence[str]:
    ours, theirs = figures["greenroom"] * 1e6, figures["rouge-score"] * 1e6
    return [f"{ours:.1f}", f"{theirs:.1f}", f"{ours / theirs:.3f} ×"]
