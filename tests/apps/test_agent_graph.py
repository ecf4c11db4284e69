"""`greenroom agent graph` draws an agent as a Mermaid flowchart."""


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
        ("none.py", "invalid agent path: there is no file 'none.py'"),
        (".", "no agent module found in ."),
    ]:
        result = greenroom("agent", "graph", words)
        assert result.exit_code == 3
        assert said in result.stderr
