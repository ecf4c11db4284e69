"""The actor on a node: it starts worker processes next to itself and passes their lines on.

It knows nothing about trials. It keeps the pace of models for its processes, and copies attachments, because
both concern the node. Ray is not imported here.
"""

import asyncio
import os
import platform
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir
from time import time
from typing import Any, Final
from uuid import uuid4

import msgspec

from greenroom import __version__
from greenroom.ledger.attachments import MARK
from greenroom.ledger.blobs import BlobFolder, digests_in, given_blob
from greenroom.ledger.plain import Json
from greenroom.store.configuration import without
from greenroom.suite.workers.blobs import known_blobs
from greenroom.suite.workers.local import LocalProcess
from greenroom.suite.workers.turns import TurnGiver
from greenroom.suite.workers.wire import TURN, WAITS, packed, unpacked
from greenroom.world.pacer import Pace

BEAT: Final = 1.0
"""Seconds after which the driver gets an answer even if there is nothing to report, to show that the node is alive."""
_PAUSE: Final = 0.002
"""Seconds in which more lines may come, so that one answer takes them all."""
_MOST: Final = 1_000_000
"""Bytes that wait here for the driver; beyond them the pipe of a worker fills, and the worker waits."""
_CHUNK: Final = 65_536
_NOT_OURS: Final = "RAY_"

Heard = tuple[list[tuple[int, bytes]], list[tuple[int, str]], dict[str, bytes]]
"""Lines of workers, how some of them ended, and the bytes of attachments that the lines mention."""


class Relay:
    """The worker processes of one driver on one node."""

    def __init__(self, rates: dict[str, float]) -> None:
        self._rates = rates
        self._paces: dict[str, Pace] = {}
        self._turns = TurnGiver(self._pace_of)
        self._children: dict[int, LocalProcess] = {}
        self._lines: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self._ended: list[tuple[int, str]] = []
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._is_urgent = False
        self._listening: set[asyncio.Task[None]] = set()
        self._said: dict[int, list[tuple[int, bytes]]] = {}
        self._next = 0
        self._blobs = BlobFolder(Path(gettempdir()) / f"greenroom-{uuid4().hex}")
        self._known: set[str] = set()

    async def about(self) -> dict[str, Json]:
        """What the driver compares first: with another version it may understand nothing else."""
        return {
            "greenroom": __version__,
            "python": ".".join(platform.python_version_tuple()[:2]),
            "now": time(),
        }

    async def start(self, number: int, parcel: bytes, env: dict[str, str]) -> int:
        """Start a worker process and send it its briefing; its pid."""
        given: dict[str, Any] = msgspec.json.decode(parcel)
        root = Path.cwd()
        ours = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_OURS)}
        path = [str(root / part) for part in given["path"]]
        child = LocalProcess(
            {**without(given["withheld"], ours), **env},
            path=[*path, *(p for p in sys.path if p and not _belongs_to_ray(p))],
            folder=str(root / given["folder"]),
            dies_with_parent=True,
        )
        self._children[number] = child
        await child.open({**given["briefing"], "attachments": str(self._blobs.path)})
        task = asyncio.ensure_future(self._listen(number, child))
        self._listening.add(task)
        task.add_done_callback(self._listening.discard)
        return child.process.pid

    async def say(self, turn: int, lines: list[tuple[int, bytes]], blobs: dict[str, bytes]) -> None:
        """Pass lines on to the processes, in the order in which the driver sent them."""
        for data in blobs.values():
            digest = given_blob(data, "").digest
            self._blobs.keep([digest])
            self._known.add(digest)
        self._said[turn] = lines
        # Large messages may be overtaken by small ones.
        while self._next in self._said:
            for number, line in self._said.pop(self._next):
                if (child := self._children.get(number)) is not None:
                    child.write(line)
            self._next += 1

    async def hear(self) -> Heard:
        """What the processes have sent since the last call; waits for it for a short time."""
        if not self._lines and not self._ended:
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), BEAT)
        if self._lines and not self._is_urgent:
            await asyncio.sleep(_PAUSE)
        lines, ended = [*self._lines], self._ended
        self._lines.clear()
        self._ended, self._size, self._is_urgent = [], 0, False
        self._room.set()
        return lines, ended, self._mentioned(lines)

    async def end(self, number: int) -> None:
        """End a process at once; what it sent before is still passed on."""
        if (child := self._children.get(number)) is not None:
            child.kill()

    async def close(self) -> None:
        """End every process, and leave nothing behind."""
        for child in self._children.values():
            child.kill()
        self._turns.close()
        rmtree(self._blobs.path, ignore_errors=True)

    async def _listen(self, number: int, child: LocalProcess) -> None:
        begun: list[bytes] = []
        while data := await child.read(_CHUNK):
            whole, newline, rest = data.rpartition(b"\n")
            if not newline:
                begun.append(data)
                continue
            self._take(number, child, b"".join((*begun, whole, newline)))
            begun = [rest]
            while self._size > _MOST:
                self._room.clear()
                await self._room.wait()
        how, _ = await child.ended()
        await child.close()
        self._children.pop(number, None)
        self._ended.append((number, how))
        self._news.set()

    def _take(self, number: int, child: LocalProcess, lines: bytes) -> None:
        """Keep whole lines for the driver; those about turns are answered here."""
        turn, waits = TURN.encode(), WAITS.encode()
        if lines.startswith(turn) or b"\n" + turn in lines:
            each = lines.splitlines(keepends=True)
            for line in each:
                if line.startswith(turn):
                    message = msgspec.json.decode(unpacked(line)[2])
                    self._turns.receive(message, lambda answer: child.write(packed(answer)))
            lines = b"".join(line for line in each if not line.startswith(turn))
        if lines:
            self._is_urgent |= lines.startswith(waits) or b"\n" + waits in lines
            self._lines.append((number, lines))
            self._size += len(lines)
            self._news.set()

    def _mentioned(self, lines: list[tuple[int, bytes]]) -> dict[str, bytes]:
        """The bytes of attachments that the driver does not know yet."""
        mark = MARK.encode()
        found = {d for _, text in lines if mark in text for d in digests_in(text.decode())}
        new = found - self._known
        self._known |= new
        return known_blobs(new)

    def _pace_of(self, model: str, is_opening: bool) -> Pace:
        if model not in self._paces:
            self._paces[model] = Pace(is_opening=is_opening)
            if model in self._rates:
                self._paces[model].keep(self._rates[model])
        return self._paces[model]


def _belongs_to_ray(path: str) -> bool:
    """Whether an entry of `sys.path` is only for Ray's own processes."""
    parts = Path(path).parts
    return "thirdparty_files" in parts or parts[-3:] == ("ray", "_private", "workers")
