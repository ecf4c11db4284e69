"""A server that rehearses alongside live traffic, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

SERVER = """
import asyncio, socket, threading
from greenroom import Case, evaluate, tool

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
client = socket.create_connection(listener.getsockname())
early = listener.accept()[0]
asked = threading.Event()
said = []

def serve():
    asked.wait(10)
    try:
        WORK
    except Exception as error:
        said.append(f"{type(error).__name__}: {error}")
    said.append("served")

@tool
def refund() -> str:
    said.append("refunded")
    return "done"

thread = threading.Thread(target=serve)
thread.start()

async def agent(message):
    asked.set()
    while "served" not in said:
        await asyncio.sleep(0.01)
    return "Hello."

report = asyncio.run(evaluate(agent, Case("c", "Hi", metrics=[])))
thread.join()
early.close()
heard = client.recv(10)
print(said, heard, len(report.faults), report.results[0].error)
"""


def served(tmp_path: Path, work: str) -> str:
    script = tmp_path / "server.py"
    script.write_text(SERVER.replace("WORK", work))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.mark.parametrize("close", ["", "; early.close(); listener.close()"], ids=["open", "closed"])
def test_a_connection_accepted_before_the_first_rehearsal_may_be_answered(
    tmp_path: Path, close: str
) -> None:
    heard = served(tmp_path, f"early.sendall(b'hello'){close}")
    assert heard.startswith("['served'] b'hello' 0 ")


def test_an_outgoing_connection_of_no_case_is_refused_in_words_that_fit(tmp_path: Path) -> None:
    heard = served(tmp_path, "client.sendall(b'out')")
    assert "another task of this process" in heard
    assert "Mock the tool" not in heard
    assert " 1 " in heard


def test_a_live_request_that_calls_a_tool_is_refused_in_words_that_fit(tmp_path: Path) -> None:
    heard = served(tmp_path, "refund()")
    assert "refunded" not in heard
    assert "another task of this process" in heard
