"""`greenroom agent check` tells what is wrong with an agent, without asking a model."""

import json

DESK = """
from greenroom import StateSchema, route

class Desk(StateSchema):
    intent: str
    confidence: float

classify = Agent("classify", model=Scripted("refund"), writes="intent")
resolve = Agent("resolve", model=Scripted("done"), reads="intent")
agent = classify >> resolve
misspelt = classify >> route("session.inten", refund=resolve, otherwise=resolve)
perhaps = route(lambda: "a", a=classify, b=Agent("b", model=Scripted("x"))) >> resolve
"""


def test_a_sound_agent_has_no_issues(author, greenroom):
    author(DESK)
    result = greenroom("agent", "check", "shop.py")
    assert (result.exit_code, result.stdout) == (0, "no issues\n")


def test_errors_exit_with_1_and_name_the_nearest_place(author, greenroom):
    author(DESK)
    result = greenroom("agent", "check", "shop.py:misspelt")
    assert result.exit_code == 1
    assert "error seq.1/route: reads session.inten" in result.stdout
    assert "Did you mean session.intent?" in result.stdout


def test_a_warning_exits_with_1_only_if_it_is_to_count(author, greenroom):
    author(DESK)
    assert greenroom("agent", "check", "shop.py:perhaps").exit_code == 0
    result = greenroom("agent", "check", "shop.py:perhaps", "--strict")
    assert result.exit_code == 1
    assert "warning seq.1/resolve" in result.stdout


def test_the_starting_state_and_the_schema_are_given(author, greenroom):
    author(DESK)
    assert greenroom("agent", "check", "shop.py:resolve").exit_code == 1
    given = '{"session": {"intent": "refund"}}'
    assert greenroom("agent", "check", "shop.py:resolve", "--given", given).exit_code == 0
    words = ["shop.py:resolve", "--given", given.replace('"refund"', "7")]
    result = greenroom("agent", "check", *words, "--schema", "shop.py:Desk")
    assert result.exit_code == 1
    assert "begins with a wrong value at session.intent" in result.stdout


def test_json_has_the_same_fields_every_time(author, greenroom):
    author(DESK)
    data = json.loads(greenroom("agent", "check", "shop.py:misspelt", "--json").stdout)
    assert data == {
        "version": 1,
        "errors": 1,
        "warnings": 0,
        "notes": 0,
        "issues": [
            {
                "kind": "ReadBeforeWrite",
                "severity": "error",
                "node": "seq.1/route",
                "place": "session.inten",
                "says": "reads session.inten, but no node before it leaves a value there.",
                "fix": "Did you mean session.intent?",
            }
        ],
    }
    empty = json.loads(greenroom("agent", "check", "shop.py", "--json").stdout)
    assert empty == {"version": 1, "errors": 0, "warnings": 0, "notes": 0, "issues": []}


def test_what_cannot_be_used_is_bad_input(author, greenroom):
    author(DESK)
    author(
        "class Foreign:\n    def ainvoke(self, given): ...\nagent = Foreign()",
        "foreign.py",
        bare=True,
    )
    for words, said in [
        (["none.py"], "there is no file 'none.py'"),
        (["shop.py:none"], "there is no 'none'"),
        (["foreign.py"], "cannot be checked"),
        (["shop.py", "--schema", "shop.py:Nothing"], "there is no 'Nothing'"),
        (["shop.py", "--schema", "shop.py:classify"], "is not a schema"),
        (["shop.py", "--given", "{"], "--given is not JSON"),
        (["shop.py", "--given", "[1]"], "is not a state"),
    ]:
        result = greenroom("agent", "check", *words)
        assert result.exit_code == 3, words
        assert said in result.stderr


def test_a_run_can_be_stopped_at_errors_or_left_to_go_on(author, greenroom):
    author(DESK + "cases = [Case('c', says='Hi', metrics=[contains('done')])]")
    run = ["eval", "run", "shop.py:misspelt", "shop.py:cases", "--store", "runs"]
    stopped = greenroom(*run, "--check", "error")
    assert stopped.exit_code == 3
    assert "reads session.inten" in stopped.stderr
    noted = greenroom(*run)
    assert noted.exit_code == 0
    assert "contracts: error seq.1/route: reads session.inten" in noted.output
    assert "contracts" not in greenroom(*run, "--check", "off").output


def test_a_plain_function_has_no_contracts_to_check(author, greenroom):
    author("def agent(message: str) -> str:\n    return message\n", "plain.py", bare=True)
    result = greenroom("agent", "check", "plain.py")
    assert result.exit_code == 3
    assert "plain.py is a plain function" in result.stderr
    assert "Rename the parameter" not in result.stderr
