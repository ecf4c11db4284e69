"""Files that an agent saves: kept in memory for an advance, and in the ledger between advances."""

from google.adk.artifacts import InMemoryArtifactService

from greenroom.ledger.plain import Json

_KEY = "artifacts"


class Artifacts:
    """The files of one run, out of the framework's remembered history and back into it."""

    __slots__ = ("others", "service")

    def __init__(self, memory: list[Json]) -> None:
        files = [item for item in memory if _KEY in item]
        self.others = [item for item in memory if _KEY not in item]
        self.service = InMemoryArtifactService.model_validate(files[-1] if files else {})

    def items(self) -> list[Json]:
        """What the history must remember of them: nothing, if no file was saved."""
        if not self.service.artifacts:
            return []
        return [self.service.model_dump(mode="json", include={_KEY})]
