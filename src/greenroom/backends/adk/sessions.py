"""Sessions for the framework that report every event before it is stored.

A plug-in would not do: the framework asks plug-ins about an event one after another, and stops at the
first that returns its own event.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from google.adk.artifacts import InMemoryArtifactService
from google.adk.events import Event
from google.adk.sessions import InMemorySessionService, Session

from greenroom.backends.adk.translation import attachment_of
from greenroom.ledger.attachments import Attachment
from greenroom.ledger.plain import Json, as_object

_FILES = "artifacts"


class Keeper(Protocol):
    """Keeps a session elsewhere too; neither method may wait, raise or change its arguments."""

    def begin(self, state: Mapping[str, Any]) -> None:
        """The session begins with this state, by prefixed keys."""
        ...

    def keep(self, event: Event) -> None:
        """This event is in the session now, without temporary state."""
        ...


class Sessions(InMemorySessionService):
    """Sessions in memory; `heard` is called with every event before it is stored, and `kept` after."""

    def __init__(
        self,
        heard: Callable[[Event], None],
        kept: Callable[[Session, Event], None] | None = None,
    ) -> None:
        super().__init__()
        self._heard = heard
        self._kept = kept

    async def append_event(self, session: Session, event: Event) -> Event:
        """Report the event, temporary state included, and keep the rest."""
        if event.partial:
            return await super().append_event(session, event)
        self._heard(event)
        appended = await super().append_event(session, event)
        if self._kept is not None:
            self._kept(session, appended)
        return appended


class Artifacts:
    """The files that an agent saves: in memory for an advance, in its remembered history between."""

    __slots__ = ("others", "service")

    def __init__(self, memory: list[Json]) -> None:
        items = [as_object(item) for item in memory]
        files = [item for item in items if _FILES in item]
        self.others: list[Json] = [item for item in items if _FILES not in item]
        self.service = InMemoryArtifactService.model_validate(files[-1] if files else {})

    async def saved_by(self, event: Event, session: Session) -> dict[str, Attachment | None]:
        """The files that an event says were saved."""
        found: dict[str, Attachment | None] = {}
        for name, version in event.actions.artifact_delta.items():
            part = await self.service.load_artifact(
                app_name=session.app_name,
                user_id=session.user_id,
                session_id=session.id,
                filename=name,
                version=version,
            )
            found[name] = attachment_of(part, name)
        return found

    def items(self) -> list[Json]:
        """What the history must keep of them: nothing, if no file was saved."""
        if not self.service.artifacts:
            return []
        return [self.service.model_dump(mode="json", include={_FILES})]
