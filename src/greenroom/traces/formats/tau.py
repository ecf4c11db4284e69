"""Results of tau-bench: a list of trials, each with its task, its reward and its messages."""

from collections.abc import Iterator

from greenroom.errors import BadTrace
from greenroom.ledger.plain import is_object
from greenroom.traces.files import TraceFile
from greenroom.traces.formats.openai import conversation
from greenroom.traces.records import Flaw, Found
from greenroom.traces.writer import whole_number


class TauBench:
    """Reads what tau-bench's `run.py` writes."""

    name = "tau"

    def recognises(self, file: TraceFile) -> bool:
        """Whether its first entry is a trial of a task."""
        return "traj" in file.first and "task_id" in file.first

    def read(self, file: TraceFile) -> Iterator[Found]:
        """Each trial; its reward is kept as tau-bench's verdict."""
        for place, trial in file.entries():
            try:
                if not is_object(trial) or "traj" not in trial or "task_id" not in trial:
                    raise BadTrace("it should be a trial with `task_id` and `traj`.")
                count = whole_number(trial.get("trial", 0))
                if count is None:
                    raise BadTrace(f"its trial should be a number, not {trial['trial']!r}.")
                task = f"task-{trial['task_id']}"
                yield conversation(
                    f"{task}-trial-{count}",
                    trial["traj"],
                    self.name,
                    file.source,
                    case_id=task,
                    trial=count + 1,
                    verdicts={"reward": trial["reward"]} if "reward" in trial else {},
                    is_over=True,
                )
            except BadTrace as error:
                yield Flaw(place=place, why=str(error), source=file.source)
