"""Agents drawn as Mermaid flowcharts, from snapshots of our own and of strangers."""

import re

from hypothesis import given
from hypothesis import strategies as st

from greenroom import Agent, Scripted, loop, step
from greenroom.agents import compile_flow
from greenroom.agents.mermaid import mermaid

LINE = re.compile(
    r'    (n\d+(\(\["[^"]*"\]\)|\[\["[^"]*"\]\]|\["[^"]*"\]|\("[^"]*"\)|\{\{"[^"]*"\}\}|\{"[^"]*"\})'
    r'|n\d+ -->(\|"[^"]*"\|)? n\d+|n\d+ -\.- n\d+)'
)


def drawn(flow) -> str:
    return mermaid(compile_flow(flow).snapshot)


def test_a_sequence_is_drawn_from_start_to_end():
    @step
    def tidy(input):
        return input

    assert drawn(tidy >> Agent("clerk", model=Scripted("Hi"))) == (
        "flowchart TD\n"
        '    n0(["start"])\n'
        '    n1[["tidy"]]\n'
        '    n2["clerk · scripted"]\n'
        "    n1 --> n2\n"
        '    n3(["end"])\n'
        "    n0 --> n1\n"
        "    n2 --> n3\n"
    )


def test_a_loop_that_waits_says_who_it_waits_for():
    shown = drawn(loop(Agent("clerk", model=Scripted("Hi")), awaits_input=True))
    assert '-->|"the user answers"| n1' in shown
    assert '-->|"done"|' in shown


def test_a_tree_of_a_framework_is_drawn_with_its_tools():
    shown = mermaid(
        {
            "framework": "google-adk",
            "name": "root",
            "kind": "LlmAgent",
            "model": "gemini-2.5-flash",
            "tools": [[{"name": "refund"}], "search"],
            "sub_agents": [{"name": "billing", "kind": "LlmAgent", "sub_agents": []}],
        }
    )
    for label in ('["root · gemini-2.5-flash"]', '("refund")', '("search")', '["billing"]'):
        assert label in shown


NAMES = st.text() | st.sampled_from(['"]; evil', "<script>", "a\nb --> c", "#quot;", "`x`"])
SNAPSHOTS = st.recursive(
    st.none() | st.integers() | NAMES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries(
            {"kind": st.sampled_from(["agent", "sequence", "parallel", "loop", "route"])},
            optional={
                "name": NAMES,
                "model": NAMES,
                "tools": st.lists(inner, max_size=2),
                "parts": st.dictionaries(NAMES, inner, max_size=3)
                | st.fixed_dictionaries({"body": inner}),
                "on": NAMES,
                "until": NAMES,
            },
        )
    ),
    max_leaves=8,
)


@given(SNAPSHOTS)
def test_no_name_can_break_out_of_its_label(snapshot):
    first, *lines = mermaid(snapshot).removesuffix("\n").split("\n")
    assert first == "flowchart TD"
    assert [line for line in lines if not LINE.fullmatch(line)] == []
