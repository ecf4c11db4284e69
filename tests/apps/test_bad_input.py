"""Bad usage and bad input exit with 3, say what is wrong, and show a traceback only to -v."""

import json
import os
from pathlib import Path

import pytest

from greenroom import __version__


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "run"],
        ["eval", "walk"],
        ["eval", "run", "shop.py", "--max-concurrency", "0"],
        ["eval", "run", "shop.py", "--min-pass-rate", "90"],
        ["eval", "run", "shop.py", "--no-such-option"],
        ["eval", "run", "shop.py", "-v", "-q"],
    ],
)
def test_bad_usage_exits_3(greenroom, words):
    result = greenroom(*words)
    assert result.exit_code == 3
    assert "Usage: " in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "run", "shop.py", ""],
        ["eval", "run", "shop.py", "--replay", ""],
        ["eval", "run", "shop.py", "--replay="],
        ["eval", "run", "shop.py", "--model", ""],
        ["eval", "run", "shop.py", "--config", ""],
        ["eval", "run", "shop.py", "--mocks", ""],
        ["eval", "run", "shop.py", "--store", ""],
        ["eval", "run", "shop.py", "-f", "json", "-o", ""],
        ["perform", "shop.py", "-m", ""],
        ["traces", "watch", "--baseline", ""],
        ["init", ""],
    ],
    ids=" ".join,
)
def test_an_empty_value_is_bad_usage_and_not_left_out(author, greenroom, words):
    author('hi = Case("hi", says="Hi", metrics=[contains("money")], mocks={"refund": 1})')
    result = greenroom(*words)
    assert result.exit_code == 3
    before = words[-1] or words[-2]
    assert f"the value after {before!r} is empty" in result.stderr
    assert [path.name for path in Path.cwd().iterdir()] == ["shop.py"]


def test_a_value_that_ends_in_an_equals_sign_is_not_empty(author, greenroom):
    author('hi = Case("a=", says="Hi", metrics=[contains("money")], mocks={"refund": 1})')
    assert greenroom("eval", "run", "shop.py", "--no-store", "--filter=id:a=").exit_code == 0


def test_help_and_version_exit_0(greenroom):
    assert greenroom("--help").exit_code == 0
    assert greenroom("eval", "run", "--help").exit_code == 0
    assert __version__ in greenroom("--version").stdout


@pytest.mark.parametrize(
    "agent, said",
    [
        ("nowhere.py", "greenroom: there is no file 'nowhere.py'."),
        ("nowhere/", "there is no folder 'nowhere/'."),
        ("shpo.py", "there is no file 'shpo.py'. Did you mean 'shop.py'?"),
        ("shop.py:nobody", "there is no 'nobody'"),
        ("shop.py:agnet", "there is no 'agnet'. Did you mean 'agent'"),
        ("no.such.module", "no file or module 'no.such.module'"),
    ],
)
def test_what_is_not_there_is_named(author, greenroom, agent, said):
    author('hi = Case("hi", says="Hi", metrics=[contains("x")])')
    result = greenroom("eval", "run", agent, "shop.py")
    assert result.exit_code == 3
    assert said in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("words", [["pipe.py"], ["shop.py", "pipe"], ["shop.py", "/dev/null"]])
def test_what_is_no_regular_file_is_not_called_missing(author, greenroom, words):
    author('hi = Case("hi", says="Hi", metrics=[contains("x")])')
    os.mkfifo("pipe")
    os.mkfifo("pipe.py")
    result = greenroom("eval", "run", *words)
    assert result.exit_code == 3
    assert f"cannot read {words[-1]}: it is a pipe or a device" in result.stderr


def test_a_link_whose_target_is_missing_is_not_suggested_for_itself(author, greenroom):
    author("")
    Path("there.py").symlink_to("gone.py")
    result = greenroom("eval", "run", "there.py")
    assert result.exit_code == 3
    assert "there is no file 'there.py'" in result.stderr
    assert "Did you mean" not in result.stderr


def test_a_file_without_cases_is_told_so(author, greenroom):
    author("")
    result = greenroom("eval", "run", "shop.py")
    assert result.exit_code == 3
    assert "no cases found in shop.py" in result.stderr


def test_a_bad_case_is_bad_input(author, greenroom):
    author("hi = Case('hi', mocks='none')")
    result = greenroom("eval", "run", "shop.py")
    assert result.exit_code == 3
    assert "`mocks` is 'none'" in result.stderr


@pytest.mark.parametrize(
    "text, said",
    [
        ("import no_such_thing", "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def agent(:", "SyntaxError"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        ("class Halt(BaseException): pass\nraise Halt('now')", "Halt: now"),
    ],
)
@pytest.mark.parametrize(
    "words", [["shop.py"], ["shop.py", "fine.py"], ["fine.py:agent", "shop.py"]]
)
def test_a_module_that_cannot_be_imported_is_named_with_what_it_raised(
    author, greenroom, text, said, words
):
    author(text, bare=True)
    author('hi = Case("hi", says="Hi", metrics=[contains("x")])', "fine.py")
    result = greenroom("eval", "run", *words)
    assert result.exit_code == 3
    assert f"shop.py cannot be loaded: {said}" in result.stderr
    assert "-v" in result.stderr
    assert "Traceback" not in result.output


def test_a_factory_that_raises_is_bad_input_too(author, greenroom):
    author("""
    del agent
    async def get_agent_async():
        raise LookupError("no key")
    hi = Case("hi", says="Hi", metrics=[contains("x")])
    """)
    result = greenroom("eval", "run", "shop.py")
    assert result.exit_code == 3
    assert "shop.py:get_agent_async() cannot be loaded: LookupError: no key" in result.stderr


@pytest.mark.parametrize(
    "breaks",
    ["raise LookupError('no key')", "raise SystemExit(0)", "raise BaseException('halt')"],
)
@pytest.mark.parametrize(
    "given",
    [
        ("--middleware", "broken.py:name"),
        ("--middleware", "factory.py:make"),
        ("--middleware", "lazy.py:name"),
        ("--mocks", "broken.py:name"),
        ("--resources", "broken.py:name"),
        ("--resources", "lazy.py:name"),
        ("--model", "broken.py:name"),
    ],
)
def test_code_that_an_option_names_is_bad_input_when_it_raises(author, greenroom, breaks, given):
    author('hi = Case("hi", says="Hi", metrics=[contains("x")])')
    author(breaks, "broken.py", bare=True)
    author(f"def make():\n    {breaks}\n", "factory.py", bare=True)
    author(f"def __getattr__(name):\n    {breaks}\n", "lazy.py", bare=True)
    result = greenroom("eval", "run", "shop.py", *given)
    assert result.exit_code == 3
    assert f"{given[1].partition(':')[0]}" in result.stderr
    assert "cannot be loaded: " in result.stderr
    assert "greenroom explain ImportFailed" in result.stderr


def test_the_traceback_is_shown_to_those_who_ask(author, greenroom):
    author("1 / 0", bare=True)
    shown = greenroom("eval", "run", "shop.py", "-v").stderr
    assert "Traceback" in shown
    assert "1 / 0" in shown
    assert "Run it again" not in shown


@pytest.mark.parametrize(
    "words",
    [
        ["perform", "shop.py", "-m", "Hi", "--store", "/proc/x"],
        ["traces", "import", "spans.json", "-o", "file"],
        ["store", "migrate", "--store", "damaged"],
        ["store", "migrate", "--store", "missing"],
        ["store", "check", "--store", "missing"],
        ["serve", "shop.py", "--port", "0", "--store", "damaged"],
    ],
    ids=" ".join,
)
def test_a_place_that_cannot_be_used_is_bad_input(author, greenroom, words):
    author("agent = clerk('Hello.')")
    Path("file").write_text("mine")
    Path("damaged").mkdir()
    Path("damaged/runs.db").write_text("not a database at all, but long enough to be read" * 20)
    asked: dict[str, object] = {
        "traceId": "0" * 31 + "1",
        "spanId": "0" * 15 + "1",
        "name": "invoke_agent x",
    }
    asked |= {"startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    asked["attributes"] = [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}}
    ]
    spans = {"resourceSpans": [{"scopeSpans": [{"spans": [asked]}]}]}
    Path("spans.json").write_text(json.dumps(spans))
    result = greenroom(*words)
    assert result.exit_code == 3, result.output
    assert words[-1] in result.stderr
    assert not Path("missing").exists()
    assert "Error:" not in result.stderr.replace("StoreFailed", "")


def test_a_project_is_not_begun_in_a_file(author, greenroom):
    author("")
    result = greenroom("init", "shop.py")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "cannot write shop.py/agent.py" in result.stderr


def test_v_is_only_offered_by_a_command_that_takes_it(tmp_path, monkeypatch, greenroom):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "boom.py").write_text("1 / 0\n")
    (tmp_path / "t.csv").write_text("question,answer\nHi,Hello\n")
    checked = greenroom("eval-set", "validate", "t.csv", "--agent", "boom.py")
    assert "ZeroDivisionError" in checked.stderr
    assert "-v" not in checked.stderr
    assert "Run it again with -v" in greenroom("eval", "run", "boom.py", "t.csv").stderr
