"""A word to somebody who looks elsewhere: on the desktop if it can be told, else the bell."""

import asyncio
import json
import shutil
import sys

from greenroom.ledger.shown import harmless
from greenroom.reports.terminal import Terminal


async def notify(text: str, terminal: Terminal) -> None:
    """Tell the desktop, or ring."""
    command = _command(harmless(text))
    if command is None:
        terminal.bell()
        return
    nothing = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdout=nothing, stderr=nothing)
    if await process.wait():
        terminal.bell()


def _command(text: str) -> list[str] | None:
    if sys.platform == "darwin" and shutil.which("osascript"):
        return [
            "osascript",
            "-e",
            f"display notification {json.dumps(text)} with title {json.dumps('Greenroom')}",
        ]
    if shutil.which("notify-send"):
        return ["notify-send", "--", "Greenroom", text]
    return None
