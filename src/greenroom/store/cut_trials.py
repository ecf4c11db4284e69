"""What a process that ended had under way, read from its journal.

A last line without its end is where the process was cut: what it was about had not begun. Any other line
that cannot be read is damage, and hides what may have happened: such a trial is in doubt.
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

# What a line begins with: which trial it is, an event of the run, one of what the metrics asked.
TRIAL = b"T"
AGENT = b"A"
JUDGE = b"J"


class CutTrial:
    """A trial that was under way when its process ended."""

    __slots__ = ("damage", "digest", "judging", "key", "lacks_secrets", "ledger", "where")

    def __init__(self, where: str, read: "LastTrial", *, lacks_secrets: bool = False) -> None:
        self.where = where
        self.key = read.key
        self.digest = read.digest
        self.ledger = read.ledger
        self.judging = read.judging
        self.damage = read.damage
        """Why not all of it can be read, so that it is unknown what it did."""
        self.lacks_secrets = lacks_secrets
        """Whether secrets were taken out of it, so that nothing can go on from here."""

    def discard(self) -> None:
        """Leave nothing of it."""


class _CutInFile(CutTrial):
    """One that stands in a file of the journal."""

    __slots__ = ("_path", "_stretch", "neighbours")

    def __init__(self, path: Path, stretch: range, read: "LastTrial") -> None:
        super().__init__(str(path), read)
        self.neighbours: set[_CutInFile] = set()
        """Those that stand in the same file."""
        self._path = path
        self._stretch = stretch

    def discard(self) -> None:
        """Leave nothing of it in its file, and no file without anything in it."""
        self.neighbours.discard(self)
        if not self.neighbours:
            self._path.unlink(missing_ok=True)
            return
        with suppress(OSError), self._path.open("r+b") as file:
            file.seek(self._stretch.start)
            file.write(bytes(len(self._stretch)))


class CutTrials:
    """All that earlier processes had under way when they ended."""

    def __init__(self) -> None:
        self.trials: list[_CutInFile] = []
        self.nameless: list[str] = []
        """Where something stands that is not even readable enough to say which trial it was."""

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
    """What earlier processes had under way when they ended.

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
    """What a process has under way now, read next to it: nothing is held or removed.

    What is half written or half wiped in this moment is left out.
    """
    found = CutTrials()
    for path in folder.glob("*"):
        with suppress(OSError):  # it may have just been removed
            if path.suffix == ALONE:
                found.take(path, 0, path.read_bytes())
            elif path.suffix == SLOTS:
                _in_slots(path, found)
    # A trial that moves from a slot into a file of its own is in both for a moment.
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
    """A place in which something stands that cannot be read."""


class LastTrial(Struct, frozen=True):
    """A trial as its lines tell it."""

    key: Key
    digest: str
    ledger: Ledger
    judging: Ledger
    damage: str


def last_trial(data: bytes, where: str) -> LastTrial | None:
    """The last trial of which lines are in `data`, up to the line at which it was cut."""
    text, _, rest = data.partition(b"\0")
    *lines, torn = text.split(b"\n")
    whole = _whole_part(torn)
    if whole:
        lines.append(whole)
    damage = "something was written over" if rest or (whole and whole != torn) else ""
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
            end = begun  # cut while it was written down again: what stands before it counts
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
