"""Files are imported inside the fence: what loads an agent reaches nobody and acts on nothing."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import warm_python
from greenroom import Case, Expect, evaluate
from greenroom.errors import ImportRefused
from greenroom.suite import load_agent

CASES = "version: 1\ncases:\n- id: a\n  says: Hi\n  expect: {response: Hello.}\n"
AGENT = "def agent(message):\n    return 'Hello.'\n"


@pytest.fixture
def server():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()


def connecting(address: tuple[str, int], swallow: bool) -> str:
    call = f"socket.create_connection({address!r}, 1).close()"
    if not swallow:
        return f"import socket\n{call}\n{AGENT}"
    return f"import socket\ntry:\n    {call}\nexcept OSError:\n    pass\n{AGENT}"


def starting(_: tuple[str, int], swallow: bool) -> str:
    return f"import subprocess\nsubprocess.run(['true'], check={not swallow})\n{AGENT}"


def calling(_: tuple[str, int], swallow: bool) -> str:
    guard = "try:\n    delete()\nexcept Exception:\n    pass\n" if swallow else "delete()\n"
    return (
        "from pathlib import Path\nfrom greenroom import tool\n@tool\ndef delete() -> str:\n"
        f"    Path(__file__).with_name('acted').touch()\n    return 'gone'\n{guard}{AGENT}"
    )


@pytest.mark.parametrize("swallow", [False, True], ids=["raised", "swallowed"])
@pytest.mark.parametrize("tries", [connecting, starting, calling])
async def test_what_a_file_does_when_it_is_imported_is_refused(
    tries, swallow, server, tmp_path: Path
) -> None:
    file = tmp_path / f"{tries.__name__}_{swallow}_agent.py"
    file.write_text(tries(server, swallow))
    with pytest.raises(ImportRefused, match=file.name):
        await load_agent(f"{file}:agent")
    assert not (tmp_path / "acted").exists()


MADE = """
from pathlib import Path
from greenroom import Agent, Scripted, per_case, tool

@tool
def delete() -> str:
    Path(__file__).with_name("acted").touch()
    return "gone"

class Named:
    is_looked_at = False

    @property
    def name(self):
        if self.is_looked_at:
            acting()
        return "mine"

    async def respond(self, request):
        return "Hello."

def acting():
    try:
        delete()
    except Exception:
        pass
    return Agent("desk", model=Scripted("Hello."))

made = per_case(acting)
named = Agent("desk", model=Named(), tools=[delete])
Named.is_looked_at = True
"""


@pytest.mark.parametrize("attr", ["made", "named"])
async def test_what_an_agent_does_when_it_is_looked_at_is_refused(attr, tmp_path: Path) -> None:
    file = tmp_path / "looked_at_agent.py"
    file.write_text(MADE)
    with pytest.raises(
        ImportRefused, match=r"called the tool 'delete' at looked_at_agent.py:\d+ in "
    ):
        await load_agent(f"{file}:{attr}")
    command = [sys.executable, "-m", "greenroom.apps.cli", "agent", "graph", f"{file}:{attr}"]
    assert warm_python.run(command, capture_output=True, cwd=tmp_path).returncode == 3
    assert not (tmp_path / "acted").exists()


async def test_a_factory_is_fenced_too(server, tmp_path: Path) -> None:
    file = tmp_path / "made_agent.py"
    file.write_text(
        "import socket\nasync def create_agent():\n"
        f"    socket.create_connection({server!r}, 1).close()\n    return print\n"
    )
    with pytest.raises(ImportRefused, match=r"create_agent\(\).*made_agent.py:3"):
        await load_agent(str(file))


async def test_a_file_may_run_a_loop_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "looping_agent.py"
    file.write_text(
        "import asyncio\nasync def prepared():\n    await asyncio.sleep(0)\n    return 'Hello.'\n"
        "WORDS = asyncio.run(prepared())\ndef agent(message):\n    return WORDS\n"
    )
    before = asyncio.get_running_loop()
    report = await evaluate(f"{file}:agent", Case("c", "Hi", expect=Expect(response="Hello.")))
    assert asyncio.get_running_loop() is before
    assert report.passed, str(report)


def run(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    (folder / "cases.yaml").write_text(CASES)
    command = [sys.executable, "-m", "greenroom.apps.cli", "eval", "run", "agent.py:agent"]
    return warm_python.run(
        [*command, "cases.yaml", *options], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["here", "workers"])
def test_the_command_names_file_and_line_and_takes_leave(
    workers: tuple[str, ...], server, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(connecting(server, swallow=False))
    refused = run(tmp_path, *workers)
    assert refused.returncode == 3, refused.stdout + refused.stderr
    assert "agent.py:2" in refused.stderr
    assert "--allow-import-network" in refused.stderr
    allowed = run(tmp_path, *workers, "--allow-import-network")
    assert allowed.returncode == 0, allowed.stdout + allowed.stderr
