"""A copy of each ledger in a folder."""

import re
from pathlib import Path

from greenroom.ledger.redaction import without_secrets
from greenroom.world.middleware.current import current_run
from greenroom.world.middleware.protocol import Middleware


def recorder(folder: str | Path) -> "Recorder":
    """Saves the ledger of each run in a folder, as RUN.jsonl, when its conversation is over."""
    return Recorder(Path(folder))


class Recorder(Middleware):
    """A folder of ledgers."""

    name = "recorder"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def after_run(self) -> None:
        """Write down what the ledger has."""
        run = current_run()
        self._folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w.-]", "_", run.run_id).lstrip(".") or "run"
        text = without_secrets(run.ledger.redacted().dumps())
        (self._folder / f"{name}.jsonl").write_text(text)
