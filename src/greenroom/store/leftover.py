"""What a process that ended had under way, read from its journal."""

import json
from contextlib import suppress
from functools import partial
from pathlib import Path

from greenroom.errors import GreenroomError
from greenroom.ledger.ledger import Ledger
from greenroom.store.places import ALONE, SLOT, SLOTS
from greenroom.store.runs import Key

# What a line begins with: whose trial it is, an event of the run, one of what the metrics asked.
TRIAL = b"T"
AGENT = b"A"
JUDGE = b"J"


class LeftOver:
    """A trial that was under way when its process ended."""

    __slots__ = ("_stretch", "digest", "judging", "key", "ledger", "neighbours", "path")

    def __init__(
        self, path: Path, stretch: range, key: Key, digest: str, ledger: Ledger, judging: Ledger
    ) -> None:
        self.neighbours: set[LeftOver] = set()
        """Those that stand in the same file."""
        self.path = path
        self.key = key
        self.digest = digest
        self.ledger = ledger
        self.judging = judging
        self._stretch = stretch

    def discard(self) -> None:
        """Leave nothing of it in its file, and no file without anything in it."""
        self.neighbours.discard(self)
        if not self.neighbours:
            self.path.unlink(missing_ok=True)
            return
        with suppress(OSError), self.path.open("r+b") as file:
            file.seek(self._stretch.start)
            file.write(bytes(len(self._stretch)))


def left_over(folder: Path, under_way: Path | None = None) -> list[LeftOver]:
    """What earlier processes had under way when they ended; unreadable ones are left out.

    `under_way` is the shared file of this process, which stays even if it is empty.
    """
    read = [_left_over(path, 0, path.read_bytes()) for path in sorted(folder.glob(f"*{ALONE}"))]
    found = [one for one in read if one is not None]
    for path in sorted(folder.glob(f"*{SLOTS}")):
        inside = _in_slots(path)
        if not inside and path != under_way:
            path.unlink(missing_ok=True)
        found += inside
    return found


def _in_slots(path: Path) -> list[LeftOver]:
    with path.open("rb") as file:
        pieces = enumerate(iter(partial(file.read, SLOT), b""))
        read = [_left_over(path, number * SLOT, data) for number, data in pieces]
    found = [one for one in read if one is not None]
    neighbours = set(found)
    for one in found:
        one.neighbours = neighbours
    return found


def _left_over(path: Path, begin: int, data: bytes) -> LeftOver | None:
    """The last trial in a slot or a file, up to the line at which it was cut."""
    # What was wiped is zeros, which no line has; the last piece is a line without its end, or nothing.
    told = data.partition(b"\0")[0]
    lines, stretch = told.split(b"\n")[:-1], range(begin, begin + len(told))
    end = len(lines)
    for begun in (at for at in reversed(range(end)) if lines[at][:1] == TRIAL):
        try:
            about = json.loads(lines[begun][1:])
            if end - begun - 1 < about.get("lines", 0):
                end = begun  # cut while it was written down again: what stands before it counts
                continue
            key = Key(str(about["case_id"]), int(about["trial"]))
            ledgers = [_events(lines[begun + 1 : end], mark, path) for mark in (AGENT, JUDGE)]
            return LeftOver(path, stretch, key, str(about["digest"]), *ledgers)
        except (ValueError, TypeError, LookupError, AttributeError, GreenroomError):
            return None
    return None


def _events(lines: list[bytes], mark: bytes, path: Path) -> Ledger:
    own = (line[1:].decode(errors="replace") for line in lines if line[:1] == mark)
    return Ledger.loads("".join(f"{line}\n" for line in own), str(path))
