"""Names and words that begin like a command to a CI server, or hold a line break, command nothing."""

import json
import re
from pathlib import Path

import pytest

from apps.terminals import on_terminal
from greenroom.ledger.safe_text import harmless, harmless_json, on_one_line

COMMANDS = ("::error file=a::x", "::set-output name=a::b", "##vso[task.complete]", "##teamcity[x]")
NAMES = ("::error::boom", "##vso[task.x]y", "##teamcity[a]", "##[error]b", "two\n::error::lines")
CONTROL = "\x1b]0;owned\x07\x9b31m\u202e"

SHOP = f"""
NAMES = {NAMES!r}
COMMANDS = {COMMANDS!r}
CONTROL = {CONTROL!r}
cases = [
    Case(name, says="\\n".join(COMMANDS), name=name, tags=[name], metrics=[contains("never " + name)],
         agent=Agent("a", model=Scripted("\\n" + "\\n  ".join(COMMANDS) + CONTROL)))
    for name in NAMES
]
crashed = Case("crashed", says="Hi",
               agent=Agent("a", model=Scripted(RuntimeError("x\\n" + "\\n".join(COMMANDS) + CONTROL))))
good = EvalSet("::error::set", cases=[*cases, crashed], name="##vso[set]")
"""


def commands_in(text: str) -> list[str]:
    """What a CI server would carry out of a log."""
    anywhere = re.findall(r"##(?:vso|teamcity)?\[.*", text)
    return anywhere + re.findall(r"(?m)^\s*::\S.*", text)


def test_the_test_knows_a_command_when_it_sees_one() -> None:
    for command in COMMANDS:
        assert commands_in(f"one\n  {command}") == [command] or command.startswith("::")
        assert commands_in(f"one\n  {command}\ntwo")
        assert not commands_in(harmless(f"one\n  {command}\ntwo"))


RUNS = (
    ["eval", "run", "shop.py"],
    ["eval", "run", "shop.py", "-v"],
    ["eval", "run", "shop.py", "-q"],
)
LATER = (
    ["runs", "list", "--store", "kept"],
    ["runs", "show", "RUN", "--store", "kept"],
    ["runs", "show", "RUN", "-v", "--store", "kept"],
    ["eval", "compare", "a.json", "b.json"],
)


def test_a_log_of_a_run_holds_no_command(author, greenroom):
    author(SHOP)
    for words in RUNS:
        result = greenroom(*words)
        assert result.exit_code == 2, result.output
        assert commands_in(result.output) == [], words
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", result.output), words
    greenroom("eval", "run", "shop.py", "--format", "json", "-o", "a.json", "--store", "kept")
    greenroom("eval", "run", "shop.py", "--format", "json", "-o", "b.json")
    listed = greenroom("runs", "list", "--store", "kept", "--json")
    run = json.loads(listed.stdout)[0]
    for words in LATER:
        result = greenroom(*(run["id"] if word == "RUN" else word for word in words))
        assert result.exit_code in (0, 1, 2), result.output
        assert commands_in(result.output) == [], words


def test_json_says_the_same_and_commands_nothing(author, greenroom):
    author(SHOP)
    result = greenroom("eval", "run", "shop.py", "--json")
    assert commands_in(result.stdout) == []
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", result.stdout)
    ids = [one["case_id"] for one in json.loads(result.stdout)["results"]]
    assert set(NAMES) <= set(ids)


def test_json_on_a_terminal_steers_nothing(author, tmp_path: Path):
    author(SHOP)
    shown = on_terminal("eval", "run", "shop.py", "--json", cwd=tmp_path)
    text = shown.text.replace("\r\n", "\n")
    assert "owned" in text
    assert not re.search("\x1b\\]|[\x9b\u202e]", text)
    assert commands_in(text) == []


def test_errors_about_files_command_nothing(author, greenroom, tmp_path: Path):
    author("agent = 1")
    for name in ("::error::x.json", "two\n::error::x.json"):
        path = tmp_path / name.replace("/", "_")
        path.write_text('{"version": 1, "cases": [{"id": "::error::y", "sayz": "x"}]}')
        for words in (["eval-set", "validate"], ["eval-set", "list"]):
            result = greenroom(*words, path.name)
            assert commands_in(result.output) == [], (name, words)


@pytest.mark.parametrize(
    "text", ["plain", "a::b", "## heading", "#[x]", "x: :y", "C++ std::vector"]
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert harmless(text) == text
    assert on_one_line(text) == text


def test_json_made_harmless_is_the_same_json() -> None:
    data = ["\x7f\x9b\u202e\U000e0001 ü 😀", "##vso[x]", "::error::", "\ud800"[:0], "a\u2028b"]
    told = harmless_json(json.dumps(data, ensure_ascii=False))
    assert json.loads(told) == data
    assert "ü 😀" in told
    assert not re.search("[\x7f\x9b\u202e\U000e0001\u2028]", told)
    assert not commands_in(told)
