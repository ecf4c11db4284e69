"""A reader of traces as another package would have it."""

from collections.abc import Iterator

from greenroom.traces import Imported, LedgerWriter, TraceFile


class Diary:
    """Reads lines of user and agent."""

    name = "diary"

    def recognises(self, file: TraceFile) -> bool:
        """By its first word."""
        return file.raw.startswith(b"DIARY")

    def read(self, file: TraceFile) -> Iterator[Imported]:
        """One conversation."""
        writer = LedgerWriter(file.path.stem)
        for line in file.raw.decode().splitlines()[1:]:
            who, _, text = line.partition(": ")
            (writer.user if who == "user" else writer.said)(text)
        yield writer.imported(self.name, file.source)
