"""The page of `greenroom web` that shows a store, while its server runs."""

import json
import os
import socket
from contextlib import suppress
from pathlib import Path

_PATIENCE = 0.3


def server_note(place: Path) -> Path:
    """The file in which a server notes its address. It holds the token, so only its user may read it."""
    return place / "web" / "server.json"


def served_at(place: Path) -> str:
    """The address of the page that shows this store; "" if no server runs. The token is not part of it."""
    with suppress(OSError, ValueError, KeyError, TypeError, OverflowError):
        note = json.loads(server_note(place).read_text())
        address, port = str(note["address"]), int(note["port"])
        os.kill(int(note["pid"]), 0)  # a server that was killed leaves its note behind
        if address:
            socket.create_connection(("127.0.0.1", port), _PATIENCE).close()
            return address
    return ""
