"""Trials that were recorded once, to be run again without asking a model.

A recording is a folder with a file for each trial, small enough to be committed to a repository; a run in
the store is one, too. Judges have a file of their own next to that of the trial.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from greenroom.cases.case import Case
from greenroom.errors import BadInput, BadLedger, GreenroomError, NotFound
from greenroom.ledger.file_names import file_name
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, is_object
from greenroom.ledger.questions import started, time_of_recording
from greenroom.ledger.redaction import clean_ids, redactor
from greenroom.results.result import CaseResult
from greenroom.results.trial_verdict import REPLAYED
from greenroom.simulation.recorded.replay import OnDrift, check_recorded
from greenroom.suite.options import Values
from greenroom.suite.trial_state import TrialState
from greenroom.world.replayed import RecordedJudges, Recording
from greenroom.world.world import World

if TYPE_CHECKING:
    from greenroom.store.store import Store

CHANGED: Final = (
    f"{REPLAYED}: the agent has changed since then, and what it is now (its model, for one) may answer "
    f"otherwise"
)
"""The note on a result of another version of the agent than the recorded one."""


class RecordedTrial(Struct, frozen=True):
    """A trial as it was recorded, and what its judges answered."""

    ledger: Ledger
    judging: Ledger
    asks_live: bool = False
    """Whether questions that were not recorded are asked live."""

    def answers(self, done: Ledger | None, case: Case) -> Recording:
        """The recorded answers for the models of a trial of `case` that has got as far as `done`."""
        if case.history and not done:
            from greenroom.simulation.recorded.restored import past_of  # few cases need it

            done = past_of(case)
        return Recording(self.ledger, asks_live=self.asks_live, done=done)

    def judges(self, world: World) -> World:
        """A world in which judges are answered from the recording."""
        return RecordedJudges(world, self.judging, asks_live=self.asks_live)

    def dumps(self) -> list[Json]:
        """The trial as a worker is sent it."""
        return [self.ledger.dumps(), self.judging.dumps(), self.asks_live]

    @classmethod
    def loads(cls, data: Any) -> "RecordedTrial":
        """The trial that was sent."""
        return cls(Ledger.loads(data[0]), Ledger.loads(data[1]), data[2])


def clock_in(ledger: Ledger) -> float | None:
    """The time on a trial's clock: the one its case sets, else when it began."""
    first = started(ledger)
    if first is None:
        return None
    data: dict[str, Json] = first.case if is_object(first.case) else {}
    now = data.get("now")
    return now if isinstance(now, int | float) else time_of_recording(first)


class RecordingFolder(Struct, frozen=True):
    """A folder of recorded trials."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def find(self, case_id: str, number: int) -> RecordedTrial | None:
        """A trial of a case; None if it is not in the folder."""
        trial, judges = self._files(case_id, number)
        if not trial.exists():
            return None
        return RecordedTrial(
            Ledger.load(trial), Ledger.load(judges) if judges.exists() else Ledger()
        )

    def keep(self, case_id: str, number: int, recorded: RecordedTrial) -> None:
        """Keep a trial, without the secrets in it, in place of an earlier recording."""
        trial, judges = self._files(case_id, number)
        recorded.ledger.save(trial, redact=True)
        if len(recorded.judging):
            recorded.judging.save(judges, redact=True)
        else:
            judges.unlink(missing_ok=True)

    def _files(self, case_id: str, number: int) -> tuple[Path, Path]:
        stem = file_name(case_id, number)
        return self.path / f"{stem}.jsonl", self.path / f"{stem}.judges.jsonl"


class RecordedRun(Struct, frozen=True):
    """A run in the store, whose trials are recordings."""

    store: "Store"
    run_id: str

    def __str__(self) -> str:
        return f"run {self.run_id}"

    def find(self, case_id: str, number: int) -> RecordedTrial | None:
        """A trial of a case; None if the run has none, or none with a ledger."""
        from greenroom.store.runs import Key

        key = Key(clean_ids([case_id], redactor())[case_id], number)
        try:
            ledger = self.store.ledger(self.run_id, key)
            judging = self.store.ledger(self.run_id, key, "judging")
        except NotFound:
            return None
        return RecordedTrial(ledger, judging) if len(ledger) else None


@dataclass(frozen=True, slots=True)
class Tape:
    """The recording that an evaluation writes, or replays."""

    record: RecordingFolder | None
    replay: RecordingFolder | RecordedRun | None
    on_drift: OnDrift

    @property
    def notes(self) -> list[str]:
        """Notes for the report."""
        if self.record is not None:
            return [f"recorded in {self.record}, where --replay {self.record} finds it"]
        return [f"replayed from {self.replay}"]

    def lend(self, state: TrialState) -> GreenroomError | None:
        """Give a trial what was recorded of it, and a clock; the reason if it cannot run.

        The clock of a recorded trial does not advance, so that a replay shows the same time.
        """
        trial = state.trial
        if self.replay is None:
            begun = None if state.ledger is None else clock_in(state.ledger)
            state.now = time() if begun is None else begun
            return None
        try:
            found = self.replay.find(trial.case.id, trial.number)
            if found is not None:
                check_recorded(found.ledger)
                state.recorded = structs.replace(found, asks_live=self.on_drift == "live")
                state.now = clock_in(found.ledger)
        except BadInput as error:
            return error
        if found is not None or self.on_drift == "live":
            return None
        return NotFound(
            f"trial {trial.number} of case {trial.case.id!r} is not in {self.replay}. Record it with "
            f"record= (--record), or give on_drift='live' to ask the models."
        )

    def keep(self, state: TrialState, result: CaseResult) -> CaseResult:
        """Record a trial; one that broke is not recorded, and its result says so.

        A replay with another version of the agent says so, too.
        """
        if self.record is None:
            has_changed = state.recorded is not None and _has_changed(state.recorded, result)
            return replace(result, notes=(*result.notes, CHANGED)) if has_changed else result
        ledger, why = result.ledger_or_none, "it broke"
        if ledger is not None and result.status not in ("error", "skipped"):
            try:
                check_recorded(ledger)
                recorded = RecordedTrial(ledger, state.judging)
                self.record.keep(state.trial.case.id, state.trial.number, recorded)
            except (BadLedger, OSError) as error:
                why = str(error)
            else:
                return result
        return replace(result, notes=(*result.notes, f"not recorded: {why}"))


def _has_changed(recorded: RecordedTrial, result: CaseResult) -> bool:
    was, now = started(recorded.ledger), started(result.ledger_or_none or Ledger())
    return was is not None and now is not None and was.digest != now.digest


def tape_of(options: Values) -> Tape | None:
    """The tape that these options ask for; None if nothing is recorded or replayed."""
    record, replay = options["record"], options["replay"]
    if record is None and replay is None:
        return None
    if record is not None and replay is not None:
        raise BadInput(
            "record= and replay= contradict each other: what is replayed was recorded before. Give one "
            "of them."
        )
    if record is not None and options["omit_questions"]:
        raise BadInput(
            "record= needs what models are asked, to find their answers again; leave omit_questions out."
        )
    folder = None if record is None else _folder_for(Path(record))
    return Tape(
        folder, None if replay is None else _recordings(replay, options), options["on_drift"]
    )


def _folder_for(path: Path) -> RecordingFolder:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"record={str(path)!r} cannot be a folder: {error}.") from error
    return RecordingFolder(path)


def _recordings(given: Any, options: Values) -> RecordingFolder | RecordedRun:
    path = Path(given)
    if path.is_dir():
        return RecordingFolder(path)
    from greenroom.store.store import as_store  # SQLite is loaded only where it is used

    store = as_store(options["store"]) or as_store(None)
    try:
        if store is not None and isinstance(given, str):
            return RecordedRun(store, store.run(given).id)
    except NotFound as error:
        raise NotFound(f"replay={given!r} is not a folder, and {error}") from error
    raise NotFound(
        f"replay={str(given)!r} is not a folder with a recording. Record one: --record DIR."
    )
