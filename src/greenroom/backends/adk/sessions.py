"""The framework's sessions, overheard: nothing gets into one without being told here first.

A plug-in would not do. The framework asks plug-ins about an event one after the other, and stops at
the first that gives an event of its own.
"""

from collections.abc import Callable

from google.adk.events import Event
from google.adk.sessions import InMemorySessionService, Session


class Sessions(InMemorySessionService):
    """Sessions in memory; `heard` is told every event before it is kept."""

    def __init__(self, heard: Callable[[Event], None]) -> None:
        super().__init__()
        self._heard = heard

    async def append_event(self, session: Session, event: Event) -> Event:
        """Tell of the event, temporary state included, and keep the rest."""
        if not event.partial:
            self._heard(event)
        return await super().append_event(session, event)
