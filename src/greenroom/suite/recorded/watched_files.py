"""A folder in which files appear and grow: each is read only when it is new or has changed."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from greenroom.traces.acts import kind_of
from greenroom.traces.readers import FileContent, content_of, put_together
from greenroom.traces.records import Flaw, Imported, Span


@dataclass(slots=True)
class WatchedFiles:
    """The traces in the files of a folder; `state` inside it is left out, except for its inbox."""

    folder: Path
    state: Path
    reader: str = ""
    newest: float = 0.0
    """When the files changed that were read last."""
    contents: dict[Path, FileContent | None] = field(default_factory=dict[Path, FileContent | None])
    """None of files that were released."""
    stamps: dict[Path, tuple[float, int]] = field(default_factory=dict[Path, tuple[float, int]])

    def refresh(self) -> bool:
        """Read what is new or has changed; False if nothing is."""
        inbox = self.state / "inbox"
        stamps: dict[Path, tuple[float, int]] = {}
        for path in self.folder.rglob("*"):
            is_ours = self.state in path.parents and inbox not in path.parents
            if path.name.startswith(".") or is_ours or not path.is_file():
                continue
            try:
                found = path.stat()
            except FileNotFoundError:  # deleted since
                continue
            stamps[path] = found.st_mtime, found.st_size
        news = sorted(path for path, stamp in stamps.items() if self.stamps.get(path) != stamp)
        gone = self.stamps.keys() - stamps.keys()
        for path in gone:
            del self.contents[path]
        for path in news:
            self.contents[path] = content_of(path, self.reader)
        self.stamps = stamps
        self.newest = max((stamps[path][0] for path in news), default=0.0)
        return bool(news or gone)

    def conversations(self) -> Iterator[Imported | Flaw]:
        """The traces in the files; those without an act of an agent are silently left out."""
        acting = self._acting()
        kept: list[FileContent] = []
        for path in sorted(self.contents):
            if (content := self.contents[path]) is not None:
                found = [
                    one for one in content.found if not isinstance(one, Span) or one.trace in acting
                ]
                kept.append(structs.replace(content, found=found))
        return put_together(kept)

    def release(self, counted: Collection[str], traces: Collection[str], until: float) -> None:
        """Forget files whose traces were all counted, or have shown no act of an agent for long."""
        acting = self._acting()
        for path, content in self.contents.items():
            is_old = self.stamps[path][0] <= until
            if content is not None and all(
                (isinstance(one, Imported) and one.conversation in counted)
                or (
                    isinstance(one, Span)
                    and (one.trace in traces or (is_old and one.trace not in acting))
                )
                for one in content.found
            ):
                self.contents[path] = None

    def _acting(self) -> set[str]:
        """The traces in which an agent, a model or a tool acts."""
        return {
            one.trace
            for content in self.contents.values()
            for one in (content.found if content is not None else ())
            if isinstance(one, Span) and kind_of(one)
        }
