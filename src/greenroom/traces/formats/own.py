"""Greenroom's own ledgers."""

from collections.abc import Iterator

from greenroom.errors import BadLedger
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import is_object
from greenroom.ledger.questions import started
from greenroom.traces.files import TraceFile
from greenroom.traces.records import Flaw, Found, Imported


class OwnLedger:
    """Reads what `Ledger.save` and `greenroom traces import` write."""

    name = "greenroom"

    def recognises(self, file: TraceFile) -> bool:
        """Whether it begins with the start of a run."""
        return file.raw.lstrip()[:1] == b"{" and b'"run_started"' in file.raw[:200]

    def read(self, file: TraceFile) -> Iterator[Found]:
        """The one conversation in it."""
        try:
            ledger = Ledger.load(file.path)
        except BadLedger as error:
            yield Flaw(place="", why=str(error), source=file.source)
            return
        first = started(ledger)
        if first is None:
            yield Flaw(place="", why="the ledger has no beginning.", source=file.source)
            return
        case = first.case if is_object(first.case) else {}
        yield Imported(
            conversation=first.run_id,
            ledger=ledger,
            format=self.name,
            source=file.source,
            case_id=str(case.get("id", "")),
            trial=first.trial,
        )
