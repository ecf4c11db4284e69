"""`greenroom simulate`: a model plays the user, tools stay mocked, conversations are kept."""

import json
import signal
from pathlib import Path

import pytest

from apps.terminals import started
from greenroom import EvalSet

SHOP = """
import re

def answer(request):
    last = request.messages[-1]
    if last.role == "tool":
        return "Your money is on its way."
    return call("refund", order=7) if re.search("7", last.text) else "Which order?"

agent = Agent("clerk", model=Scripted(then=answer), tools=[refund])
customer = Scripted("Order 7.", "<done 1>Your money is on its way.</done>")
endless = Scripted(then="I do not know.")
broken = Scripted(RuntimeError("lost \\x1b[2J"))
"""


@pytest.fixture(autouse=True)
def shop(author):
    author(SHOP)
    Path("mocks.yaml").write_text("refund: {value: ok}")


RUN = ["simulate", "run", "shop.py", "--prompt", "Money back!", "--goals", "a refund, thanks"]
MOCKED = [*RUN, "--mocks", "mocks.yaml"]


def test_a_conversation_is_shown_with_its_end_its_turns_and_its_goals(greenroom):
    result = greenroom(*MOCKED, "--model", "shop.py:customer")
    shown = result.stdout
    assert "user         Money back!" in shown
    assert 'tool         refund(order=7) → "ok"  (mock)' in shown
    assert "2 turns, goals 1/2" in shown
    assert "reached    a refund" in shown
    assert "not shown  thanks" in shown


def test_a_conversation_cut_at_its_limit_exits_1_and_is_not_saved(greenroom):
    words = [*MOCKED, "--model", "shop.py:endless", "--max-turns", "3", "--save-as-eval", "s.yaml"]
    result = greenroom(*words)
    assert result.exit_code == 1
    assert "stopped at max_turns  simulation  3 turns" in result.stdout
    assert "not saved to s.yaml" in result.stderr
    assert not Path("s.yaml").exists()


def test_a_completed_conversation_is_saved_and_plays_as_a_case(greenroom):
    words = ["simulate", "run", "shop.py", "--prompt", "Money back!", "--goals", "a refund"]
    words += ["--mocks", "mocks.yaml", "--model", "shop.py:customer", "--save-as-eval", "s.yaml"]
    for _ in range(2):
        result = greenroom(*words, "-o", "deep/talk.json")
        assert result.exit_code == 0, result.output
    assert EvalSet.load("s.yaml").ids == ["simulation", "simulation-2"]
    assert json.loads(Path("deep/talk.json").read_text())["goals_achieved"] == ["a refund"]
    assert greenroom("eval", "run", "shop.py", "s.yaml").exit_code == 0


def test_a_tool_without_a_mock_is_refused_with_what_to_type(greenroom):
    result = greenroom(*RUN, "--model", "shop.py:customer")
    assert result.exit_code == 2
    assert "refund(order=7) was not run" in result.stdout
    assert "--mocks FILE, or --allow-tool refund" in result.stdout


def test_a_user_that_breaks_is_an_error_and_steers_no_terminal(greenroom):
    result = greenroom(*MOCKED, "--model", "shop.py:broken")
    assert result.exit_code == 2
    assert "lost \\x1b[2J" in result.stdout


def test_json_is_the_conversation_and_nothing_else(greenroom):
    data = json.loads(greenroom(*MOCKED, "--model", "shop.py:customer", "--json").stdout)
    assert data["conversation"][0] == {"role": "user", "content": "Money back!"}
    assert data["turns"] == 2


def test_a_place_where_nothing_can_be_written_is_bad_input(greenroom):
    result = greenroom(*MOCKED, "--model", "shop.py:customer", "--json", "-o", "shop.py/talk.json")
    assert result.exit_code == 3
    assert "cannot write shop.py/talk.json" in result.stderr
    assert json.loads(result.stdout)["turns"] == 2


def test_the_first_words_are_required(greenroom):
    result = greenroom("simulate", "run", "shop.py")
    assert result.exit_code == 3
    assert "--prompt" in result.stderr


SCENARIOS = [
    {"scenario_id": "good", "starting_prompt": "Hello", "goals": ["a refund"]},
    {"scenario_id": "quick", "starting_prompt": "Order 7!", "goals": ["a refund"], "max_turns": 1},
]


@pytest.fixture
def scenarios():
    Path("scenarios.json").write_text(json.dumps(SCENARIOS))
    return ["simulate", "batch", "shop.py", "scenarios.json", "--mocks", "mocks.yaml"]


def test_a_batch_writes_a_file_for_each_scenario_and_a_set_of_the_successful(greenroom, scenarios):
    words = [
        *scenarios,
        "--model",
        "shop.py:customer",
        "-o",
        "talks",
        "--save-successful",
        "s.yaml",
    ]
    result = greenroom(*words)
    assert result.exit_code == 1, result.output
    assert "completed  good  2 turns, goals 1/1" in result.stdout
    assert "stopped at max_turns  quick  1 turn" in result.stdout
    assert sorted(path.name for path in Path("talks").iterdir()) == ["good.json", "quick.json"]
    assert EvalSet.load("s.yaml").ids == ["good"]


def test_a_set_of_the_successful_replaces_a_file_only_by_force(greenroom, scenarios):
    Path("s.yaml").write_text("mine")
    words = [*scenarios, "--model", "shop.py:customer", "--filter", "good"]
    words += ["--save-successful", "s.yaml"]
    refused = greenroom(*words)
    assert refused.exit_code == 3
    assert "s.yaml already exists; give another --save-successful, or --force." in refused.stderr
    assert (refused.stdout, Path("s.yaml").read_text()) == ("", "mine")
    assert greenroom(*words, "--force").exit_code == 0
    assert EvalSet.load("s.yaml").ids == ["good"]


def test_a_batch_with_a_conversation_that_broke_exits_2(greenroom, scenarios):
    result = greenroom(*scenarios, "--model", "shop.py:broken", "--sequential")
    assert result.exit_code == 2
    assert "1 of 2 conversations broke" in result.stderr


def test_a_batch_can_be_filtered_and_speak_json(greenroom, scenarios):
    words = [*scenarios, "--model", "shop.py:customer", "--filter", "good", "--json"]
    result = greenroom(*words)
    assert result.exit_code == 0, result.output
    assert [one["scenario_id"] for one in json.loads(result.stdout)] == ["good"]
    assert "filtered to 1/2" in result.stderr


def test_ids_that_no_file_can_have_stay_in_their_folder(greenroom, author):
    author(
        """
    cases = [Case(name, "Hi") for name in ("../up", "a b", "a_b", "A_b", "..")]
    """,
        "odd.py",
    )
    result = greenroom("simulate", "batch", "shop.py", "odd.py", "-o", "talks")
    assert result.exit_code == 0, result.output
    names = sorted(path.name.lower() for path in Path("talks").iterdir())
    assert len(set(names)) == 5
    assert not Path("up.json").exists()


@pytest.mark.parametrize("sent, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_conversation_exits_as_shells_do(author, tmp_path, sent, code):
    author(
        """
    import asyncio
    from pathlib import Path

    async def forever(order):
        Path("waiting").touch()
        await asyncio.sleep(9999)

    agent = clerk(call("refund", order=7))
    mocks = {"refund": forever}
    """,
        "slow.py",
    )
    words = ["simulate", "run", "slow.py", "--prompt", "Hi", "--mocks", "slow.py:mocks"]
    with started(*words, cwd=tmp_path) as process:
        while not (tmp_path / "waiting").exists():
            assert process.poll() is None
        process.send_signal(sent)
        shown = process.communicate()[0].decode()
    assert process.returncode == code
    assert "Traceback" not in shown
