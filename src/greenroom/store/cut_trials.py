"""The trials that a process left unfinished, read from its journal.

A last line without its end is where the process died: what it announced had not begun. Any other line
that cannot be read is damage, and may hide what happened: such a trial is in doubt.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from greenroom.errors import GreenroomError
from greenroom.ledger.ledger import Ledger
from greenroom.store.runs import Key
from greenroom.store.slots import ALONE, SLOT, SLOTS

# The first letter of a line: the trial's title, an event of the trial, or an event of its metrics.
TRIAL = b"T"
AGENT = b"A"
JUDGE = b"J"


class CutTrial:
    """A trial that was in progress when its process ended."""

    __slots__ = ("damage", "digest", "judging", "key", "lacks_secrets", "ledger", "where")

    def __init__(self, where: str, read: "LastTrial", *, lacks_secrets: bool = False) -> None:
        self.where = where
        self.key = read.key
        self.digest = read.digest
        self.ledger = read.ledger
        self.judging = read.judging
        self.damage = read.damage
        """Why a part of it cannot be read, so that it is unknown what it did."""
        self.lacks_secrets = lacks_secrets
        """Whether secrets were removed from it, so that it cannot be continued."""

    def discard(self) -> None:
        """Remove it from the journal."""


class _CutInFile(CutTrial):
    """An interrupted trial in a file of the journal."""

    __slots__ = ("_path", "_stretch", "neighbours")

    def __init__(self, path: Path, stretch: range, read: "LastTrial") -> None:
        super().__init__(str(path), read)
        self.neighbours: set[_CutInFile] = set()
        """The interrupted trials in the same file."""
        self._path = path
        self._stretch = stretch

    def discard(self) -> None:
        """Remove it from its file, and the file if it is then empty."""
        self.neighbours.discard(self)
        if not self.neighbours:
            self._path.unlink(missing_ok=True)
            return
        with suppress(OSError), self._path.open("r+b") as file:
            file.seek(self._stretch.start)
            file.write(bytes(len(self._stretch)))


class CutTrials:
    """All trials that earlier processes left unfinished."""

    def __init__(self) -> None:
        self.trials: list[_CutInFile] = []
        self.nameless: list[str] = []
        """Places with data so damaged that the trial it belongs to is unknown."""

    def take(self, path: Path, begin: int, data: bytes) -> _CutInFile | None:
        """Read a slot or a file; the trial in it, if that can be read."""
        written = data.rstrip(b"\0")
        try:
            read = last_trial(written, str(path))
        except Damaged as damaged:
            self.nameless.append(f"{path}, byte {begin}: {damaged}")
            return None
        if read is None:
            return None
        one = _CutInFile(path, range(begin, begin + len(written)), read)
        self.trials.append(one)
        return one


def left_over(folder: Path, under_way: Path | None = None) -> CutTrials:
    """Read the trials that earlier processes left unfinished.

    `under_way` is the shared file of this process, which stays even if it is empty.
    """
    found = CutTrials()
    for path in sorted(folder.glob(f"*{ALONE}")):
        found.take(path, 0, path.read_bytes())
    for path in sorted(folder.glob(f"*{SLOTS}")):
        nameless = len(found.nameless)
        inside = _in_slots(path, found)
        if not inside and len(found.nameless) == nameless and path != under_way:
            path.unlink(missing_ok=True)
    return found


def being_written(folder: Path) -> Sequence[CutTrial]:
    """The trials that a process is running now, read while it works: nothing is locked or removed.

    What is half written or half wiped at this moment is left out.
    """
    found = CutTrials()
    for path in folder.glob("*"):
        with suppress(OSError):  # it may have just been removed
            if path.suffix == ALONE:
                found.take(path, 0, path.read_bytes())
            elif path.suffix == SLOTS:
                _in_slots(path, found)
    # A trial that moves from a slot into its own file is in both for a moment.
    whole = sorted((one for one in found.trials if not one.damage), key=lambda one: len(one.ledger))
    return list({one.key: one for one in whole}.values())


def _in_slots(path: Path, found: CutTrials) -> list[_CutInFile]:
    with path.open("rb") as file:
        pieces = enumerate(iter(partial(file.read, SLOT), b""))
        read = [found.take(path, number * SLOT, data) for number, data in pieces]
    inside = [one for one in read if one is not None]
    neighbours = set(inside)
    for one in inside:
        one.neighbours = neighbours
    return inside


class Damaged(Exception):
    """A place whose data cannot be read."""


class LastTrial(Struct, frozen=True):
    """A trial as read from its lines."""

    key: Key
    digest: str
    ledger: Ledger
    judging: Ledger
    damage: str


def last_trial(data: bytes, where: str) -> LastTrial | None:
    """The last trial in `data`, up to the line at which it was interrupted."""
    text, _, rest = data.partition(b"\0")
    *lines, torn = text.split(b"\n")
    whole = _whole_part(torn)
    if whole:
        lines.append(whole)
    damage = "something was overwritten" if rest or (whole and whole != torn) else ""
    end = len(lines)
    for begun in (at for at in reversed(range(end)) if lines[at][:1] == TRIAL):
        try:
            about = json.loads(lines[begun][1:])
            key, digest = Key(str(about["case_id"]), int(about["trial"])), str(about["digest"])
            expected = int(about.get("lines", 0))
        except (ValueError, TypeError, LookupError, AttributeError):
            damage, end = damage or f"line {begun + 1} cannot be read", begun
            continue
        try:
            ledgers = _ledgers(lines[begun + 1 : end], where)
        except (ValueError, GreenroomError) as error:
            ledgers, damage = (Ledger(), Ledger()), damage or str(error)
        if not damage and end - begun - 1 < expected:
            end = begun  # interrupted while it was being rewritten: what comes before it counts
            continue
        return LastTrial(key, digest, *ledgers, damage)
    if damage or (lines and end):
        raise Damaged(damage or "it does not say which trial it is")
    return None


def _whole_part(torn: bytes) -> bytes:
    """The JSON of a line whose end is missing, if that is complete."""
    text = torn[1:].decode(errors="replace")
    try:
        line, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return b""
    return torn[:1] + text[:end].encode() if isinstance(line, dict) else b""


def _ledgers(lines: list[bytes], where: str) -> tuple[Ledger, Ledger]:
    for line in lines:
        if line[:1] not in (AGENT, JUDGE):
            raise ValueError(f"{line[:40]!r} is not a line of a journal")
    return _events(lines, AGENT, where), _events(lines, JUDGE, where)


def _events(lines: list[bytes], mark: bytes, where: str) -> Ledger:
    own = (line[1:].decode() for line in lines if line[:1] == mark)
    return Ledger.loads("".join(f"{line}\n" for line in own), where)
