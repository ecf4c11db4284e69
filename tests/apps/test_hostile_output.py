"""Whatever a model says is shown, and steers nothing: no escape sequences, no markup."""

import json
import re

from apps.terminals import on_terminal

TITLE = r"\x1b]0;owned\x07"
CLEAR = r"\x1b[2J\x1b[1;1H"
MARKUP = "[red]x[/red] [link=https://evil.example]y[/link] :smile: [/]"
BIDI = r"\u202egnp.exe"
C1 = r"\x9b31m"
NASTY = f'"{TITLE}{CLEAR}{MARKUP}{BIDI}{C1}"'

EVERYWHERE = f"""
NASTY = {NASTY}

@metric(name=f"tone {{NASTY}}")
def tone(response):
    from greenroom import Score
    return Score(0.0, reason=f"reason {{NASTY}}")

said = Case("said", says=f"user {{NASTY}}", mocks={{"refund": NASTY}}, metrics=[tone],
            agent=clerk(call("refund", order=7), f"agent {{NASTY}}"))
typed = Case("typed", says="Hi", metrics=[tone], agent=clerk(call(NASTY, **{{NASTY: NASTY}}), "ok"))
named = Case(f"id {{NASTY}}", says="Hi", name=NASTY, metrics=[tone], agent=clerk("ok"))
crashed = Case("crashed", says="Hi", metrics=[tone],
               agent=Agent("a", model=Scripted(RuntimeError(f"crash {{NASTY}}"))))
"""

SAFE = re.compile(r"\x1b\[(\?25[lh]|[0-9;]*m|2K|1A)")
"""What rich itself sends: cursor off and on, colours, and the clearing of its own progress."""


def left_over(text: str) -> str:
    """The control characters that are nobody's but the model's."""
    return "".join(re.findall(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202e]", SAFE.sub("", text)))


def test_a_pipe_receives_no_control_characters_and_every_bracket(author, greenroom):
    author(EVERYWHERE)
    for words in ([], ["-v"], ["-q"]):
        result = greenroom("eval", "run", "shop.py", *words)
        assert result.exit_code == 2
        assert left_over(result.output) == ""
    shown = greenroom("eval", "run", "shop.py", "-v").stdout
    for place in ("user", "agent", "reason", "tone", "crash", "id"):
        assert f"{place} {TITLE}{CLEAR}{MARKUP}{BIDI}{C1}" in shown, place


def test_a_terminal_receives_no_control_characters_and_every_bracket(author, tmp_path):
    author(EVERYWHERE)
    shown = on_terminal("eval", "run", "shop.py", "-v", cwd=tmp_path)
    assert shown.exit_code == 2
    assert left_over(shown.text) == ""
    assert "\x1b]8" not in shown.text, "a link"
    assert "[red]x[/red]" in SAFE.sub("", shown.text)
    assert ":smile:" in SAFE.sub("", shown.text)


def test_messages_on_stderr_are_harmless_too(author, greenroom):
    author(f"raise RuntimeError({NASTY})", bare=True)
    result = greenroom("eval", "run", "shop.py")
    assert result.exit_code == 3
    assert left_over(result.stderr) == ""
    assert f"RuntimeError: {TITLE}{CLEAR}{MARKUP}" in result.stderr


def test_names_and_words_of_a_file_steer_nothing_wherever_they_are_shown(author, greenroom):
    author(EVERYWHERE)
    evil = bytes(NASTY.strip('"'), "ascii").decode("unicode_escape")
    says, name, tag = (f"{word} {evil}" for word in ("says", "name", "tag"))
    data = {"version": 1, "cases": [{"id": "one", "says": says, "name": name, "tags": [tag, tag]}]}
    author(json.dumps(data), "evil.json", bare=True)
    for words in (["list", "evil.json", "-v"], ["validate", "evil.json"]):
        result = greenroom("eval-set", *words)
        assert left_over(result.output) == "", words
        assert "\\x1b]0;owned" in result.output, words


def test_a_conversation_with_a_simulated_user_steers_nothing(author, greenroom):
    author(f"""
    NASTY = {NASTY}
    agent = clerk(f"agent {{NASTY}}", f"agent {{NASTY}}")
    person = Scripted(f"user {{NASTY}}", then="</finished>")
    """)
    words = ["--prompt", "Hi", "--model", "shop.py:person"]
    for more in ([], ["-v"], ["--json"]):
        result = greenroom("simulate", "run", "shop.py", *words, *more)
        assert result.exit_code == 0, result.output
        assert left_over(result.output) == ""
    assert f"user         user {TITLE}" in greenroom("simulate", "run", "shop.py", *words).stdout


def test_a_drawn_agent_steers_nothing(author, greenroom):
    author(f"""
    agent = Agent("a", model=Scripted("Hi", name={NASTY}))
    """)
    result = greenroom("agent", "graph", "shop.py")
    assert result.exit_code == 0
    assert left_over(result.output) == ""
