"""`greenroom eval-set`: files made, filled, listed, checked, merged and converted."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from greenroom import EvalSet, rehearse
from greenroom.store import Store
from warm_python import WarmPython

CASES = """
version: 1
id: shop
cases:
- id: one
  name: The first
  says: Hi
  tags: [smoke]
  expect: {contains: money}
- id: two
  turns:
  - says: Hi
  - says: "Sure?\\e[2J"
    expect: {contains: money}
"""

TRACE = '{"id": "talk", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes."}]}'


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("shop.yaml").write_text(CASES)


@pytest.mark.e2e
@pytest.mark.parametrize(
    "words",
    [
        ["eval-set", "add", "shop.yaml", "--from-template", "single-turn"],
        ["traces", "to-case", "trace-{}.jsonl", "--into", "shop.yaml"],
    ],
    ids=["add", "to-case"],
)
def test_commands_that_add_at_once_keep_all_their_cases(words):
    started: list[WarmPython] = []
    for number in range(4):
        Path(f"trace-{number}.jsonl").write_text(TRACE.replace("talk", f"talk {number}"))
        command = [sys.executable, "-m", "greenroom", *(word.format(number) for word in words)]
        started.append(WarmPython(command, stderr=subprocess.DEVNULL))
    assert [one.wait(600) for one in started] == [0] * 4
    assert len(EvalSet.load("shop.yaml")) == 2 + 4


def test_create_writes_an_empty_set_and_never_over_another(greenroom):
    result = greenroom("eval-set", "create", "refunds", "-d", "Money back")
    assert result.exit_code == 0, result.output
    made = EvalSet.load("refunds.evalset.json")
    assert (made.id, made.description, len(made)) == ("refunds", "Money back", 0)
    again = greenroom("eval-set", "create", "refunds")
    assert again.exit_code == 3
    assert "refunds.evalset.json already exists" in again.stderr
    assert greenroom("eval-set", "create", "refunds", "--force").exit_code == 0
    assert greenroom("eval-set", "create", "other", "-o", "deep/er/other.yaml").exit_code == 0
    assert EvalSet.load("deep/er/other.yaml").id == "other"


def test_create_takes_a_file_in_place_of_a_name(greenroom):
    for file in ("late.yaml", "deep/late.evalset.json"):
        result = greenroom("eval-set", "create", file)
        assert result.stdout == f"created {file}\n"
        assert EvalSet.load(file).id == "late"


def test_validate_names_an_empty_file_once_and_says_what_to_do(greenroom):
    for file in ("none.jsonl", "none.yaml", "none.csv"):
        Path(file).touch()
        checked = greenroom("eval-set", "validate", file)
        assert checked.exit_code == 3
        assert checked.stdout.startswith(f"{file}: the file is empty. Write a case into it")


def test_create_refuses_a_name_that_is_a_path(greenroom):
    result = greenroom("eval-set", "create", "../evil")
    assert result.exit_code == 3
    assert not Path("../evil.evalset.json").exists()


@pytest.mark.parametrize("template", ["single-turn", "multi-turn", "tool-test"])
def test_a_template_adds_a_case_with_blanks_that_validate_finds(greenroom, template):
    for number in ("", "-2"):
        result = greenroom("eval-set", "add", "shop.yaml", "--from-template", template)
        assert f"added '{template}{number}' to shop.yaml" in result.stdout
    assert len(EvalSet.load("shop.yaml")) == 4
    checked = greenroom("eval-set", "validate", "shop.yaml")
    assert checked.exit_code == 3
    assert "is not filled in yet" in checked.stdout


def test_comments_stay_when_a_case_is_added(greenroom):
    Path("mine.yaml").write_text("# mine\nversion: 1\ncases:\n- id: one\n  says: Hi  # first\n")
    before = Path("mine.yaml").read_text()
    result = greenroom("eval-set", "add", "mine.yaml", "--from-template", "single-turn")
    assert "which now has 2 cases" in result.stdout
    assert Path("mine.yaml").read_text().startswith(before)
    assert EvalSet.load("mine.yaml").ids == ["one", "single-turn"]


def test_a_session_becomes_a_case_that_plays_it_again(author, greenroom):
    author('hi = Case("hi", "Hi", mocks={"refund": "ok"}, metrics=[contains("money")])')
    from greenroom.suite import load_cases
    from greenroom.suite.inputs.references import load_value

    [result] = rehearse(load_value("shop.py:agent"), load_cases("shop.py"))
    assert result.ledger is not None
    result.ledger.save("run.jsonl")
    assert greenroom("eval-set", "add", "shop.yaml", "--from-session", "run.jsonl").exit_code == 0
    assert EvalSet.load("shop.yaml").ids == ["one", "two", "hi"]
    played = greenroom("eval", "run", "shop.py", "shop.yaml:hi")
    assert played.exit_code == 0, played.output


def test_a_trial_of_a_stored_run_becomes_a_case(greenroom):
    Path("echo.py").write_text("def agent(text: str) -> str:\n    return f'money for {text}'\n")
    assert greenroom("eval", "run", "echo.py:agent", "shop.yaml", "--store", "runs").exit_code == 0
    run = Store("runs").runs()[0].id
    words = ["eval-set", "add", "shop.yaml", "--store", "runs", "--from-run", run]
    added = greenroom(*words, "--case", "two", "--id", "again")
    assert added.exit_code == 0, added.output
    assert EvalSet.load("shop.yaml")["again"].turns[0].says == "Hi"
    missing = greenroom(*words, "--case", "three")
    assert missing.exit_code == 3
    assert "'three'" in missing.stderr
    assert greenroom(*words).exit_code == 3


def test_a_session_that_cannot_be_read_is_named(greenroom):
    Path("torn.jsonl").write_text("{")
    for file in ("torn.jsonl", "none.jsonl"):
        result = greenroom("eval-set", "add", "shop.yaml", "--from-session", file)
        assert result.exit_code == 3
        assert file in result.stderr


def test_one_way_of_adding_has_to_be_chosen(greenroom):
    for words in ([], ["-i", "--from-template", "single-turn"]):
        result = greenroom("eval-set", "add", "shop.yaml", *words)
        assert result.exit_code == 3
        assert "give one of" in result.stderr


def test_an_id_that_is_taken_is_refused(greenroom):
    words = ["eval-set", "add", "shop.yaml", "--from-template", "single-turn", "--id", "one"]
    result = greenroom(*words)
    assert result.exit_code == 3
    assert "two cases 'one'" in result.stderr


def test_remove_takes_a_case_out_and_an_unknown_id_changes_nothing(greenroom):
    before = Path("shop.yaml").read_text()
    result = greenroom("eval-set", "remove", "shop.yaml", "one", "three")
    assert result.exit_code == 3
    assert "no case 'three'" in result.stderr
    assert Path("shop.yaml").read_text() == before
    assert greenroom("eval-set", "remove", "shop.yaml", "one").exit_code == 0
    assert EvalSet.load("shop.yaml").ids == ["two"]


COMMENTED = """\
# Who may refund
version: 1
cases:
  # the usual way
  - id: one
    says: Hi  # politely
    expect: {contains: Hello}

  # in anger
  - id: two
    says: >
      Hi!

      Hello?
    expect: {contains: Hello}
  # the last word
  - {id: three, says: Bye, expect: {contains: Bye}}
# the end
"""


def test_comments_stay_when_a_case_is_removed(greenroom):
    Path("talk.yaml").write_text(COMMENTED)
    assert greenroom("eval-set", "remove", "talk.yaml", "two", "three").exit_code == 0
    assert EvalSet.load("talk.yaml").ids == ["one"]
    left = Path("talk.yaml").read_text()
    begin, end = COMMENTED.index("  - id: two"), COMMENTED.index("  # the last word")
    assert left == COMMENTED[:begin] + "  # the last word\n# the end\n"
    assert COMMENTED[begin:end] not in left


QUOTING = """\
# Who may refund
version: 1
cases:
  - says: |
      Hi
      # politely

      # and well
    id: one

  # in anger
  - id: two
    says: |
      Hello
      # twice

      # thrice

  # with a list
  - says: "1
# 2
 3"
    id: three
  # the end
  - id: four
    says: |
      Bye
      # for now
"""


@pytest.mark.parametrize(
    "case, begin, end",
    [
        ("one", "  - says: |", "\n  # in anger"),
        ("two", "  - id: two", "\n  # with"),
        ("three", '  - says: "1', "  # the end"),
        ("four", "  - id: four", ""),
    ],
)
def test_what_looks_like_a_comment_in_a_text_goes_with_its_case(greenroom, case, begin, end):
    Path("talk.yaml").write_text(QUOTING)
    result = greenroom("eval-set", "remove", "talk.yaml", case)
    assert result.exit_code == 0, result.output
    before, _, rest = QUOTING.partition(begin)
    kept = rest[rest.index(end) :] if end else ""
    assert Path("talk.yaml").read_text() == before + kept


def test_the_last_case_of_a_file_with_comments_is_not_removed(greenroom):
    Path("talk.yaml").write_text(COMMENTED)
    result = greenroom("eval-set", "remove", "talk.yaml", "one", "two", "three")
    assert result.exit_code == 3
    assert "would have no case" in result.stderr
    assert "lost" not in result.stderr
    assert Path("talk.yaml").read_text() == COMMENTED


def test_comments_that_would_be_lost_keep_a_case_from_being_removed(greenroom):
    text = "version: 1  # ours\ncases: [{id: one, says: Hi}, {id: two, says: Bye}]\n"
    Path("talk.yaml").write_text(text)
    result = greenroom("eval-set", "remove", "talk.yaml", "two")
    assert result.exit_code == 3
    assert "has comments that would be lost if 'two' were removed here" in result.stderr
    assert Path("talk.yaml").read_text() == text


def test_a_file_keeps_its_shape_when_a_case_is_removed(greenroom):
    words = ["eval-set", "convert", "shop.yaml", "shop.evalset.json", "--to", "adk", "--lossy"]
    assert greenroom(*words).exit_code == 0
    assert greenroom("eval-set", "remove", "shop.evalset.json", "one").exit_code == 0
    left = EvalSet.load("shop.evalset.json")
    assert (left.shape, left.ids) == ("adk", ["two"])


def test_list_shows_ids_names_turns_tags_and_the_total(greenroom):
    result = greenroom("eval-set", "list", "shop.yaml")
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["id", "name", "turns", "tags"],
        ["one", "The", "first", "1", "smoke"],
        ["two", "2"],
        ["2", "cases"],
    ]


def test_list_can_filter_say_more_and_speak_json(greenroom):
    filtered = greenroom("eval-set", "list", "shop.yaml", "--filter", "tag:smoke")
    assert "filtered to 1/2" in filtered.stderr
    assert filtered.stdout.splitlines()[-1] == "1 case"
    assert "user: Sure?\\x1b[2J" in greenroom("eval-set", "list", "shop.yaml", "-v").stdout
    data = json.loads(greenroom("eval-set", "list", "shop.yaml", "--json").stdout)
    assert [(case["id"], case["turns"]) for case in data] == [("one", 1), ("two", 2)]


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("none.yaml", None, "there is no file 'none.yaml'."),
        ("torn.json", "{", "Invalid JSON"),
        ("other.txt", "x", "other.txt"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(greenroom, name, text, said):
    if text is not None:
        Path(name).write_text(text)
    for verb in ("list", "validate"):
        result = greenroom("eval-set", verb, name)
        assert result.exit_code == 3
        assert said in result.output


def test_validate_tells_what_cannot_be_read_with_what_cannot_be_measured(greenroom):
    Path("bad.yaml").write_text("""\
version: 1
metrics: [exakt]
cases:
- id: a
  says: Hi
  expected_tools: [look]
  metrics: [called]
- id: b
  expect: {state: {session: {}}}
- id: c
  says: Hi
  tags: [x, x]
  metrics: [{criterion: exact, threshold: 4}]
""")
    Path("bad.test.json").write_text("""{"data": [
{"query": "Hi", "expected_tools": ["look"]},
{"query": "<<fill in: this>>"}
], "metrics": ["called"]}""")
    found = greenroom("eval-set", "validate", "--json", "bad.yaml", "bad.test.json")
    assert found.exit_code == 3
    own, foreign = (
        [(p["where"], p["line"]) for p in f["problems"] if not p["hint"]]
        for f in json.loads(found.stdout)
    )
    assert own == [
        ("metrics[0]", 2),
        ("cases[0].expected_tools", 6),
        ("cases[0].metrics[0]", 7),
        ("cases[1]", 8),
        ("cases[1].expect.state.session", 9),
        ("cases[2].tags[1]", 12),
        ("cases[2].metrics[0].threshold", 13),
    ]
    assert foreign == [("data[0].expected_tools", 2), ("data[1]", 3), ("metrics[0]", 4)]


def test_validate_tells_every_problem_with_line_and_place(greenroom):
    assert greenroom("eval-set", "validate", "shop.yaml").exit_code == 0
    Path("bad.yaml").write_text(
        "version: 1\ncases:\n- id: one\n  says: Hi\n  tags: [' smoke']\n  metrics: [no_such]\n"
        "- id: two\n  expect: {contains: ''}\n  says: Hi\n"
    )
    result = greenroom("eval-set", "validate", "bad.yaml", "shop.yaml")
    assert result.exit_code == 3
    for said in ("line 5, column 10, cases[0].tags[0]", "line 6, column 13, cases[0].metrics[0]"):
        assert said in result.stdout
    assert "shop.yaml: fine" in result.stdout
    assert "bad.yaml is not valid" in result.stderr
    [bad, _] = json.loads(
        greenroom("eval-set", "validate", "bad.yaml", "shop.yaml", "--json").stdout
    )
    assert bad["valid"] is False
    assert bad["problems"][0]["line"] == 5


def test_validate_fixes_what_is_safe_to_fix_and_says_what(greenroom):
    Path("bad.yaml").write_text(
        "version: 1\ncases:\n- says: Hi\n  tags: [' smoke']\n  expect: {contains: x}\n"
    )
    assert greenroom("eval-set", "validate", "bad.yaml").exit_code == 3
    result = greenroom("eval-set", "validate", "bad.yaml", "--fix")
    assert result.exit_code == 0, result.output
    assert "fixed cases[0].id: the case had no id. It is now 'case-1'" in result.stdout
    assert EvalSet.load("bad.yaml").tags == ["smoke"]
    before = Path("bad.yaml").read_text()
    assert greenroom("eval-set", "validate", "bad.yaml", "--fix").exit_code == 0
    assert Path("bad.yaml").read_text() == before


def test_a_hint_is_said_and_changes_no_exit_code(greenroom):
    Path("hint.yaml").write_text("version: 1\ncases:\n- {id: one, says: Hi}\n")
    result = greenroom("eval-set", "validate", "hint.yaml")
    assert result.exit_code == 0
    assert "hint: " in result.stdout


def test_merge_puts_sets_together_and_drops_duplicates_if_asked(greenroom):
    Path("more.yaml").write_text(CASES.replace("id: two", "id: three"))
    refused = greenroom("eval-set", "merge", "shop.yaml", "more.yaml", "-o", "all.json")
    assert refused.exit_code == 3
    assert "both have a case 'one'" in refused.stderr
    words = ["eval-set", "merge", "shop.yaml", "more.yaml", "-o", "out/all.json", "--deduplicate"]
    assert "1 duplicate dropped" in greenroom(*words).stdout
    assert EvalSet.load("out/all.json").ids == ["one", "two", "three"]
    assert greenroom("eval-set", "merge", "shop.yaml").exit_code == 3


def test_a_folder_in_place_of_a_file_is_named_as_one(greenroom):
    Path("evals").mkdir()
    result = greenroom("eval-set", "validate", "evals")
    assert result.exit_code == 3
    assert "cannot read evals: it is a folder" in result.output


def test_merge_can_keep_the_last_of_two_that_differ(greenroom):
    Path("more.yaml").write_text(CASES.replace("The first", "The newest"))
    words = ["eval-set", "merge", "shop.yaml", "more.yaml", "-o", "all.json"]
    assert greenroom(*words, "--deduplicate").exit_code == 3
    assert greenroom(*words, "--keep", "last").exit_code == 0
    assert EvalSet.load("all.json")["one"].name == "The newest"


def test_convert_lists_what_would_be_lost_and_writes_only_if_that_is_allowed(greenroom):
    words = ["eval-set", "convert", "shop.yaml", "shop.evalset.json", "--to", "agentflow"]
    refused = greenroom(*words)
    assert refused.exit_code == 3
    assert "one.turns[0].expect" in refused.stderr
    assert "--lossy" in refused.stderr
    assert not Path("shop.evalset.json").exists()
    allowed = greenroom(*words, "--lossy")
    assert allowed.exit_code == 0
    assert "one.turns[0].expect" in allowed.stderr
    assert EvalSet.load("shop.evalset.json").shape == "agentflow"


def test_convert_between_files_of_our_own_loses_nothing(greenroom):
    assert greenroom("eval-set", "convert", "shop.yaml", "shop.json").exit_code == 0
    assert EvalSet.load("shop.json") == EvalSet.load("shop.yaml")
    unknown = greenroom("eval-set", "convert", "shop.yaml", "x.json", "--to", "adc")
    assert unknown.exit_code == 3
    assert "Did you mean 'adk'?" in unknown.stderr


@pytest.mark.parametrize("words", [["x.json", "--to", "adc"], ["x.text"], ["/proc/x.json"]])
def test_only_what_would_be_lost_may_be_left_out(greenroom, words):
    refused = greenroom("eval-set", "convert", "shop.yaml", *words)
    assert refused.exit_code == 3
    assert "--lossy" not in refused.stderr
    assert greenroom("eval-set", "convert", "shop.yaml", *words, "--lossy").exit_code == 3


def test_the_schema_is_printed_or_written(greenroom):
    assert json.loads(greenroom("eval-set", "schema").stdout)["title"] == "Greenroom eval set"
    assert greenroom("eval-set", "schema", "-o", "deep/schema.json").exit_code == 0
    assert json.loads(Path("deep/schema.json").read_text())["$defs"]


def test_validate_names_a_file_once_that_is_no_eval_set(greenroom):
    Path("other.json").write_text('{"a": 1}')
    checked = greenroom("eval-set", "validate", "other.json")
    assert checked.exit_code == 3
    assert checked.stdout.startswith("other.json: this is not an eval set: it is a mapping")


def test_validate_with_an_agent_checks_tools_and_their_arguments(greenroom):
    Path("clerk.py").write_text("""
from greenroom import Agent, Scripted, tool

@tool
def refund(order: int) -> str:
    "Pay back."
    return ""

agent = Agent("clerk", model=Scripted("No."), tools=[refund])
""")
    case = "{id: a, says: Pay, mocks: {refnd: {value: 1}}, expect: {tools: [{tool: refund, args: {ordr: 7}}]}}"
    Path("tools.yaml").write_text(f"version: 1\ncases:\n- {case}\n")
    assert greenroom("eval-set", "validate", "tools.yaml").exit_code == 0
    checked = greenroom("eval-set", "validate", "tools.yaml", "--agent", "clerk.py")
    assert checked.exit_code == 3
    assert "line 3, column 30, cases[0].mocks.refnd: case 'a' mocks tool 'refnd'" in checked.stdout
    assert "cases[0].expect.tools[0].args.ordr: case 'a' expects a call" in checked.stdout
    assert "Did you mean 'order'?" in checked.stdout
    assert greenroom("eval-set", "validate", "tools.yaml", "--agent", "none.py").exit_code == 3


@pytest.mark.parametrize(
    "words, other",
    [
        (["merge", "shop.yaml", "more.yaml", "--keep", "last", "-o", "shop.yaml"], "--output"),
        (["convert", "more.yaml", "shop.yaml"], "TARGET"),
    ],
)
def test_merge_and_convert_overwrite_a_file_only_by_force(greenroom, words, other):
    before = Path("shop.yaml").read_text()
    Path("more.yaml").write_text(CASES.replace("The first", "The newest"))
    refused = greenroom("eval-set", *words)
    assert refused.exit_code == 3
    assert f"shop.yaml already exists; give another {other}, or --force." in refused.stderr
    assert Path("shop.yaml").read_text() == before
    assert greenroom("eval-set", *words, "--force").exit_code == 0
    assert EvalSet.load("shop.yaml")["one"].name == "The newest"


def test_messages_of_merge_name_no_options_of_python(author, greenroom):
    author("")
    for name, says in (("a", "Hi"), ("b", "Ho")):
        Path(f"{name}.yaml").write_text(f"version: 1\ncases:\n- {{id: one, says: {says}}}\n")
    words = ["eval-set", "merge", "a.yaml", "b.yaml", "-o", "c.yaml"]
    for more in ([], ["--deduplicate"]):
        result = greenroom(*words, *more)
        assert result.exit_code == 3
        assert "rename one, or " in result.stderr
        assert "deduplicate=" not in result.stderr
