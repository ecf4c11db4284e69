"""Compiled flows under google-adk's own commands: in a terminal, and in a real browser."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser.chromium import chromium

pytestmark = pytest.mark.heavy

AGENT = '''
from greenroom import Agent, Scripted, call, step, tool
from greenroom.backends.adk import to_adk


@tool
def refund(order: int) -> str:
    """Refund an order."""
    return f"order {order} refunded"


model = Scripted(call("refund", order=7), "Done.", then="Anything else?")
clerk = Agent("clerk", model=model, tools=[refund])


@step
def shout(input: str) -> str:
    return input.upper()


app = to_adk(clerk >> shout, name="desk")
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "__init__.py").write_text("from . import agent\n")
    (tmp_path / "desk" / "agent.py").write_text(AGENT)
    return tmp_path


def adk(*words: str) -> list[str]:
    return [sys.executable, "-W", "ignore", "-m", "google.adk.cli", *words]


def test_a_compiled_flow_talks_under_adk_run(folder: Path) -> None:
    ran = subprocess.run(
        adk("run", "desk"),
        input="refund please\nthanks\nexit\n",
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "[clerk]: Done." in ran.stdout
    assert "[desk]: DONE." in ran.stdout
    assert "[desk]: ANYTHING ELSE?" in ran.stdout


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            adk("web", "--port", str(port), "."), cwd=folder, stdout=log, stderr=log,
            env={**os.environ, "OTEL_SDK_DISABLED": "true"},
        )  # fmt: skip
        try:
            found = f"http://127.0.0.1:{port}"
            for _ in range(120):
                try:
                    urllib.request.urlopen(f"{found}/list-apps", timeout=5).read()
                    break
                except OSError:
                    time.sleep(0.5)
            yield found
        finally:
            server.terminate()
            server.wait(20)


def test_a_compiled_flow_talks_in_adk_web(address: str) -> None:
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{address}/dev-ui/?app=desk")
        field = page.locator("textarea").first
        field.wait_for(timeout=60_000)
        field.fill("refund please")
        field.press("Enter")
        page.get_by_text("DONE.", exact=True).first.wait_for(timeout=60_000)
        assert "refund" in page.locator("body").inner_text().replace("refund please", "")
