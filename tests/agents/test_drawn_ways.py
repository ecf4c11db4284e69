"""Whatever the graph, the thick way of a trial is one that can be gone."""

import re

from hypothesis import HealthCheck, given, settings

from greenroom import Ledger
from greenroom.agents import compile_flow
from greenroom.agents.mermaid import mermaid
from greenroom.ledger import InvocationEnded
from resume import graphs
from resume.test_cuts import DEEP, SPECS, Spec, cut_at, played

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
THICK = re.compile(r"^ +(n\d+) ==>(?:\|[^|]*\|)? (n\d+)$", re.MULTILINE)
MARKED = re.compile(r"^ +class (\S+) visited$", re.MULTILINE)


def drawn(spec: Spec, ledger: Ledger) -> str:
    return mermaid(compile_flow(graphs.build(spec)).snapshot, trial=ledger)


def reached(chart: str) -> set[str]:
    """The boxes that thick arrows lead to from the start."""
    arrows, found, new = THICK.findall(chart), {"n0"}, {"n0"}
    while new:
        new = {to for source, to in arrows if source in new} - found
        found |= new
    return found


def check_way(spec: Spec, ledger: Ledger) -> None:
    chart = drawn(spec, ledger)
    marked = {box for line in MARKED.findall(chart) for box in line.split(",")}
    assert marked <= reached(chart), chart
    sources = {source for source, _ in THICK.findall(chart)}
    assert sources <= reached(chart), chart
    ends = [end for end in ledger.of(InvocationEnded) if end.outcome != "failed"]
    (last,) = re.findall(r'(n\d+)\(\["end"\]\)', chart)
    assert (last in reached(chart)) == bool(ends), chart


@settings(suppress_health_check=SLOW)
@given(SPECS)
def test_all_that_a_trial_visited_lies_on_a_way_from_the_start(spec: Spec) -> None:
    check_way(spec, played(spec))


def test_a_trial_that_was_cut_anywhere_is_drawn_as_far_as_it_went() -> None:
    whole = played(DEEP)
    for k in range(1, len(whole), 3):
        check_way(DEEP, cut_at(whole, k))
