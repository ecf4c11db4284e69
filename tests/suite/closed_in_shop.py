"""An agent that asks its model by HTTP, and a step that goes its own way in C."""

import ctypes
import os
import struct
from pathlib import Path
from typing import Any

import httpx

from greenroom import Agent, step
from greenroom.models import ModelReply


class ByHttp:
    """A model behind an address."""

    name = "by-http"

    async def respond(self, request: Any, on_delta: Any = None) -> ModelReply:
        async with httpx.AsyncClient() as client:
            answer = await client.post(os.environ["SHOP_BASE_URL"], json={"asked": request.last})
        if answer.status_code != 200:
            raise ConnectionError(answer.text)
        return ModelReply(answer.json()["text"])


@step
def sneak(input: Any) -> str:
    """Connects past Python, sends a datagram and writes a file, if nothing stops it."""
    libc = ctypes.CDLL(None, use_errno=True)
    address = struct.pack("=H", 2) + struct.pack(">H", int(os.environ["SHOP_PORT"]))
    connected = libc.connect(libc.socket(2, 1, 0), address + bytes([127, 0, 0, 1]) + bytes(8), 16)
    udp = libc.socket(2, 2, 0)
    try:
        Path(os.environ["SHOP_FILE"]).write_text("written")
        wrote = True
    except OSError:
        wrote = False
    return f"{input} tcp={connected == 0} udp={udp >= 0} wrote={wrote}"


asks = Agent("asks", model=ByHttp())
sneaks = sneak
