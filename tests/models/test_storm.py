"""Many cases at once against a real server that lets only so many calls through each second.

How few refusals it takes depends on the speed of the machine here: `test_pacer.py` asserts that in
simulated time, and `make bench` measures it.
"""

import subprocess
import sys

import pytest

from greenroom import Agent, Case, Expect, evaluate
from greenroom.ledger import Noted
from greenroom.models import provider_model
from greenroom.world.pacer import RETRIED
from models.storm import Bucket, storm, stormy
from models.wire import openai, refusal, wire


async def test_a_storm_of_calls_finds_the_pace_of_its_server():
    found = await storm(calls=120)
    assert found.report.passed
    assert found.bucket.passed == 120
    assert found.model.impatient() == []


async def test_every_refusal_is_in_the_ledger_of_the_case_that_met_it():
    found = await storm(calls=48, width=48, full=False)
    noted = [
        event
        for result in found.report
        for event in (result.ledger or ())
        if isinstance(event, Noted) and event.name == RETRIED
    ]
    assert len(noted) == found.bucket.refused >= 1
    assert {event.data["waits"] for event in noted} == {1.0}


async def test_a_server_that_says_no_exact_time_is_found_patiently_too():
    found = await storm("exact", calls=120)
    assert found.report.passed
    assert found.bucket.passed == 120


COLD = """
import sys
from greenroom import Agent, Case, Expect, rehearse
from greenroom.models import provider_model

agent = Agent("clerk", model=provider_model("openai:storm", base_url=sys.argv[1]))
cases = [Case(f"c{n}", "Hi", expect=Expect(contains="Hello")) for n in range(12)]
print(rehearse(agent, cases, concurrency=12).passed)
"""


@pytest.mark.heavy
def test_cases_that_begin_while_a_client_is_loaded_wait_for_all_of_it():
    with stormy(Bucket("whole")) as url:
        done = subprocess.run(
            [sys.executable, "-c", COLD, url], capture_output=True, text=True, check=False
        )
    assert done.stdout == "True\n", done.stderr


async def test_only_failures_that_may_pass_are_asked_again():
    answers = [refusal(503, retry_after="0"), openai("Hello."), refusal(400, "no such thing")]
    with wire(answers) as server:
        agent = Agent("clerk", model=provider_model("openai:storm", base_url=f"{server.url}/v1"))
        cases = [Case(name, "Hi", expect=Expect(contains="Hello")) for name in ("a", "b")]
        report = await evaluate(agent, cases, concurrency=1)
    assert [result.status for result in report] == ["passed", "error"]
    assert len(server.asked) == 3
