"""An agent that asks its model by HTTP, and a step that goes its own way in C."""

import ctypes
import http.client
import os
import struct
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from greenroom import Agent, Scripted, call, step, tool
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


@tool
def fetch(url: str) -> str:
    """Ask a shop elsewhere, by name."""
    return httpx.post(url, json={"asked": "by URL"}).json()["text"]


@tool
def fetch_in_tunnel(url: str) -> str:
    """Ask a shop elsewhere as for https: the proxy leads to a host, and hears no more than that."""
    connection = http.client.HTTPConnection(urlsplit(os.environ["http_proxy"]).netloc, timeout=10)
    connection.set_tunnel(urlsplit(url).netloc)
    connection.request("POST", "/v1", '{"asked": "in a tunnel"}')
    return connection.getresponse().read().decode()


class Fetching:
    """Calls the tool that it has, with what the user says."""

    name = "fetching"

    async def respond(self, request: Any, on_delta: Any = None) -> ModelReply:
        if request.messages[-1].role == "tool":
            return ModelReply(request.last)
        return await Scripted(call(request.tools[0].name, url=request.last)).respond(request)


fetch_agent = Agent("fetches", model=Fetching(), tools=[fetch])
fetch_in_tunnel_agent = Agent("fetches", model=Fetching(), tools=[fetch_in_tunnel])
asks = Agent("asks", model=ByHttp())
sneaks = sneak
greets = Agent("greets", model=Scripted(then="Hello."))
