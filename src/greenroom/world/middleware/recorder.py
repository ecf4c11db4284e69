"""A copy of each ledger in a folder."""

from pathlib import Path

from greenroom.ledger.file_names import file_name
from greenroom.ledger.questions import started
from greenroom.world.middleware.current import current_run
from greenroom.world.middleware.protocol import Middleware


def recorder(folder: str | Path) -> "Recorder":
    """Saves the ledger of each trial in a folder when its conversation is over.

    The files are named CASE.TRIAL.jsonl, so the folder can be replayed (`replay=`, `--replay`); the file of a
    live conversation has the conversation's id. Secrets are left out.
    """
    return Recorder(Path(folder))


class Recorder(Middleware):
    """A folder of ledgers."""

    name = "recorder"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def after_run(self) -> None:
        """Save the ledger."""
        run, first = current_run(), started(current_run().ledger)
        trial = first.trial if first is not None and first.case else None
        run.ledger.save(self._folder / f"{file_name(run.run_id, trial)}.jsonl", redact=True)
