"""Charts drawn by the real Mermaid, where the machine has it.

Nothing of Mermaid's is kept here: `GREENROOM_MERMAID` names its `mermaid.min.js`, from
`npm pack mermaid` for example. Without it these tests are skipped, and the grammar in
test_mermaid.py is what holds.
"""

import asyncio
import os
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from browser.chromium import chromium
from greenroom import Agent, Case, Ledger, Scripted, loop, route, simulate, step
from greenroom.agents import compile_flow, estimate
from greenroom.agents.mermaid import mermaid

HOSTILE = [
    '"]; evil',
    "<img src=x onerror=alert(1)>",
    "a\nb --> c",
    "#quot;",
    "`x`",
    "end",
    "%% no comment",
    "&lt;script&gt;",
    "]]) }} |x|",
    "javascript:alert(1)",
    "</text><script>alert(1)</script>",
    "ünï · 漢字",
]
KINDS = (
    "agent",
    "sequence",
    "parallel",
    "race",
    "fallback",
    "map_over",
    "route",
    "loop",
    "timeout",
    "approved",
    "step",
)


@pytest.fixture(scope="module")
def page() -> Generator[Any]:
    """A page with Mermaid in it, and a network that is off."""
    place = os.environ.get("GREENROOM_MERMAID", "")
    if not place:
        pytest.skip("GREENROOM_MERMAID names no mermaid.min.js")
    with chromium() as browser:
        context = browser.new_context(offline=True)
        page = context.new_page()
        page.set_content("<body></body>")
        page.add_script_tag(content=Path(place).read_text(encoding="utf-8"))
        page.evaluate("mermaid.initialize({startOnLoad: false, securityLevel: 'strict'})")
        yield page
        context.close()


def rendered(page: Any, chart: str) -> str:
    """The text of the picture that Mermaid makes; an error of its parser is an error here."""
    return page.evaluate(
        """async (chart) => {
            const {svg} = await mermaid.render("picture", chart);
            const held = document.createElement("div");
            held.innerHTML = svg;
            document.body.append(held);
            const bad = held.querySelectorAll("script, img, a, [onerror], [onclick]").length;
            const text = held.textContent;
            held.remove();
            if (bad) throw new Error(`${bad} live elements`);
            return text;
        }""",
        chart,
    )


def played(flow: Any) -> Ledger:
    """A trial, in a thread: the browser has the loop of this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(simulate(Case("one", says="Hi"), flow))).result()


def test_the_way_of_a_trial_can_be_drawn(page):
    @step(writes="kind")
    def tidy(input: Any) -> str:
        return "billing"

    clerk = Agent("clerk", model=Scripted(then="Hi"), reads="kind")
    flow = tidy >> (clerk | Agent("other", model=Scripted(then="Hi")))
    flow = flow >> route("session.kind", billing=clerk, otherwise=tidy)
    flow = loop(flow, max_rounds=2)
    ledger = played(flow)
    snapshot = compile_flow(flow).snapshot
    chart = mermaid(snapshot, data=True, costs=estimate(flow), trial=ledger)
    shown = rendered(page, chart)
    for word in ("tidy", "clerk · scripted", "2 visits", "route on session.kind", "billing"):
        assert word in shown


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_name_is_a_label_and_nothing_else(page, kind, name):
    part = {"id": "a", "kind": "agent", "name": name, "model": name, "tools": [name]}
    facts = {"reads": [name], "writes": [name], "question": name, "over": name, "on": name}
    parts = {"body": part, name: {**part, "id": "b", "kind": "step"}}
    snapshot: Any = {"id": "x", "kind": kind, "name": name, "until": name, **facts, "parts": parts}
    rendered(page, mermaid(snapshot, data=True))
