"""`greenroom agent graph` draws an agent as a Mermaid flowchart."""

import json

import pytest


def test_a_graph_shows_agents_tools_routes_loops_and_branches(author, greenroom):
    author("""
    from greenroom import route, step

    @step
    def tidy(input): return input

    def until_done(state): return True

    one, two = clerk("a"), Agent("other", model=Scripted("b"))
    agent = tidy >> (one | two) >> route("session.kind", billing=clerk("c"), otherwise=tidy)
    agent = agent >> loop(two, until=until_done, max_rounds=3)
    """)
    result = greenroom("agent", "graph", "shop.py")
    assert result.exit_code == 0, result.output
    shown = result.stdout
    assert shown.startswith("flowchart TD\n")
    for label in ('[["tidy"]]', '["clerk · scripted"]', '("refund")', '{"route on session.kind"}'):
        assert label in shown
    assert '-->|"billing"|' in shown
    assert "until until_done, at most 3 rounds" in shown
    assert "\x1b" not in shown


def test_an_agent_that_is_not_there_is_bad_input(author, greenroom):
    author("", "empty.py", bare=True)
    for words, said in [
        ("empty.py", "no agent found in empty.py"),
        ("none.py", "there is no file 'none.py'"),
        (".", "no agent module found in ."),
    ]:
        result = greenroom("agent", "graph", words)
        assert result.exit_code == 3
        assert said in result.stderr


@pytest.fixture
def run(author, greenroom, monkeypatch) -> str:
    """The id of a run of an agent, two trials of each case, in the store."""
    monkeypatch.setenv("GREENROOM_STORE", "kept")
    author("""
    from greenroom import route, step
    from greenroom.models import ModelReply
    from greenroom.ledger import Usage

    @step(writes="kind")
    def sort(input): return "billing" if "bill" in input else "other"

    paid = Scripted(then=ModelReply("Paid.", usage=Usage(10, 10), cost=0.0125, prices="test"))
    billing = Agent("billing", model=paid, reads="kind")
    other = Agent("other", model=Scripted(then="Hm."))
    agent = sort >> route("session.kind", billing=billing, otherwise=other)
    """)
    cases = "version: 1\ncases:\n- {id: bill, says: my bill, expect: {response: Paid.}}\n- {id: other, says: hello, expect: {response: Hm.}}\n"
    author(cases, "cases.yaml", bare=True)
    done = greenroom("eval", "run", "shop.py", "cases.yaml", "--trials", 2)
    assert done.exit_code == 0, done.output
    listed = greenroom("runs", "list", "--json")
    return json.loads(listed.stdout)[0]["id"]


def test_the_way_of_a_recorded_trial_is_drawn_as_it_was_then(run, author, greenroom):
    result = greenroom("agent", "graph", "--run", run, "--case", "bill#2", "--data", "--cost")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert any(
        "billing · scripted<br/>≈ $0.00625<br/>1 visit" in line and line.endswith('$0.0125"]')
        for line in lines
    ), result.stdout
    assert '    n2 ==>|"billing"| n3' in lines
    assert '    n2 -->|"otherwise"| n4' in lines
    assert '    n1 -.->|"kind"| n2' in lines
    author("agent = clerk('Hi')", "other.py")
    again = greenroom("agent", "graph", "other.py", "--run", run, "--case", "bill#2")
    assert again.stdout == greenroom("agent", "graph", "--run", run, "--case", "bill#2").stdout
    assert "has changed since this run" in again.stderr


def test_a_case_is_found_by_its_name_and_the_first_trial_without_one(run, greenroom):
    first = greenroom("agent", "graph", "--run", run[:15])
    assert first.exit_code == 0, first.output
    assert first.stdout == greenroom("agent", "graph", "--run", run, "--case", "bill").stdout
    assert '==>|"otherwise"|' in greenroom("agent", "graph", "--run", run, "--case", "other").stdout


def test_what_cannot_be_drawn_is_bad_input(run, greenroom):
    for words, said in [
        ((), "say what to draw"),
        (("shop.py", "--case", "bill"), "give --run too"),
        (("--run", "1999"), "there is no run '1999'"),
        (("--run", run, "--case", "none"), "has no trial 'none' with a ledger; it has bill#1"),
        (("--run", run, "--case", "bill#9"), "has no trial 'bill#9'"),
        (("--run", run, "--store", "off"), "there is no store"),
    ]:
        result = greenroom("agent", "graph", *words)
        assert result.exit_code == 3, (words, result.output)
        assert said in result.stderr


def test_an_estimate_of_a_foreign_agent_needs_a_run(author, greenroom):
    author("def agent(message): return 'Hi'")
    result = greenroom("agent", "graph", "shop.py", "--cost")
    assert result.exit_code == 3
    assert "give --run too" in result.stderr


def test_an_estimate_of_a_flow_needs_no_run(author, greenroom):
    author("agent = clerk('a')")
    assert "≈ $0.00" in greenroom("agent", "graph", "shop.py", "--cost").stdout
