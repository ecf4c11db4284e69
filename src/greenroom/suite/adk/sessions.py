"""Services of google-adk that the author named: each trial's session is copied, its files are kept.

Their code runs inside the fence and reaches only the hosts named for it. A session service keeps a
copy only, so its failures are notes. An artifact service answers the agent, so its failures end the
trial: an agent whose storage is broken is not the agent under test.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from functools import partial
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

from google.adk.artifacts import BaseArtifactService
from google.adk.events import Event
from google.adk.sessions import BaseSessionService, Session
from msgspec import Struct

from greenroom.errors import BadInput, GreenroomError, RunBroke, ToolRefused
from greenroom.simulation.fence import Breach, enclose, opening_for
from greenroom.simulation.hangs.watchdog import Deadline, finish

USER = "greenroom"
COPY_SECONDS = 10.0
"""How long a session service may take for one event."""

_WAY_OUT = "Where artifact_service did this, name its hosts: service_hosts=[...]."
_LOCAL = "name its hosts, service_hosts=[...], or keep the sessions in a local SQLite file"

# Databases of google-adk have columns of 128 characters.
_LONGEST = 100


class Place(Struct, frozen=True):
    """Where the author finds the session and the files of one trial."""

    app: str
    session: str
    user: str = USER

    @classmethod
    def of_trial(cls, app: str, case_id: str, trial: int) -> "Place":
        """A separate place for every trial of every run."""
        # Some services accept only these characters in the id of a session.
        name = re.sub(r"[^a-z0-9]+", "-", case_id.lower())[:_LONGEST].strip("-") or "case"
        known = re.sub(r"[^\w.-]+", "-", app)[:_LONGEST].strip("-.") or "greenroom"
        return cls(known, f"{name}-{trial}-{token_hex(4)}")

    def __str__(self) -> str:
        return f"session {self.session!r} of user {self.user!r} in app {self.app!r}"


class Named(Struct, frozen=True):
    """The services that the author named, and the hosts they may reach."""

    sessions: BaseSessionService | None = None
    artifacts: BaseArtifactService | None = None
    hosts: Collection[str] = ()

    def __post_init__(self) -> None:
        _check("session_service", self.sessions, BaseSessionService)
        _check("artifact_service", self.artifacts, BaseArtifactService)
        if isinstance(self.hosts, str):
            raise BadInput(f"service_hosts={self.hosts!r} is one string; give a list of hosts.")

    @property
    def way_out(self) -> str:
        """What to do about a refusal that one of them may have met inside the run."""
        return "" if self.artifacts is None else _WAY_OUT

    def copy_to(self, place: Place) -> "SessionCopy | None":
        """The copier of one trial's session; None without a session service."""
        return None if self.sessions is None else SessionCopy(self.sessions, place, self.hosts)


def _check(option: str, given: object, wanted: type[Any]) -> None:
    if given is not None and not isinstance(given, wanted):
        raise BadInput(
            f"{option}={given!r} is not a {wanted.__name__} of google-adk; give an instance of one."
        )


def open_to(hosts: Collection[str]) -> AbstractContextManager[None]:
    """The fence opened to these hosts; to none, it stays as it is."""
    return opening_for(hosts=hosts) if hosts else nullcontext()


class SessionCopy:
    """Copies the session of one trial as it grows, in order; failures are among its `notes`.

    It runs in parallel with the trial: a slow service does not slow the agent down. The copy ends with
    the first failure, since a session with a gap would be misleading.
    """

    def __init__(
        self,
        service: BaseSessionService,
        place: Place,
        hosts: Collection[str] = (),
        seconds: float = COPY_SECONDS,
    ) -> None:
        self.notes: list[str] = []
        self._service = service
        self._place = place
        self._hosts = hosts
        self._seconds = seconds
        self._steps: asyncio.Queue[Callable[[], Coroutine[Any, Any, None]] | None] = asyncio.Queue()
        self._copied = 0
        self._session: Session | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, state: Mapping[str, object]) -> None:
        """The session begins with this state."""
        lasting = {name: state[name] for name in state if not name.startswith("temp:")}
        self._steps.put_nowait(partial(self._create, deepcopy(lasting)))

    def keep(self, event: Event) -> None:
        """This event comes next."""
        try:
            step = partial(self._append, event.model_copy(deep=True))
        except Exception as error:  # noqa: BLE001 - what an agent keeps in its state may not be copied
            step = partial(self._fail, error)
        self._steps.put_nowait(step)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._copy())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._task is not None
        try:
            if error is None:
                self._steps.put_nowait(None)
                await self._task
        finally:
            self._task.cancel()

    async def _copy(self) -> None:
        trouble = ""
        with enclose(f"copy of {self._place.session}") as fence, open_to(self._hosts):
            fence.body_guard = _no_tools
            try:
                await self._all_steps()
            except Exception as error:  # noqa: BLE001 - a service may raise anything
                trouble = repr(error)
        self._tell(trouble, fence.breach)

    async def _all_steps(self) -> None:
        while (step := await self._steps.get()) is not None:
            await self._in_time(step())
        # Only newer services of google-adk keep events back.
        flush = getattr(self._service, "flush", None)
        if flush is not None and self._session is not None:
            await self._in_time(flush())

    async def _in_time(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for the service up to the limit, even if it ignores its cancellation."""
        deadline = Deadline(self._seconds)
        task = await finish(work, deadline)
        if deadline.expired:
            raise TimeoutError(f"not done within {self._seconds:g} s")
        task.result()

    async def _create(self, state: dict[str, Any]) -> None:
        place = self._place
        self._session = await self._service.create_session(
            app_name=place.app, user_id=place.user, session_id=place.session, state=state
        )

    async def _append(self, event: Event) -> None:
        assert self._session is not None
        await self._service.append_event(self._session, event)
        self._copied += 1

    async def _fail(self, error: Exception) -> None:
        raise error

    def _tell(self, trouble: str, breach: Breach | None) -> None:
        if breach is not None:
            refused = (
                f"it tried to reach the outside by {breach}, which the fence refused: {_LOCAL}"
            )
            self.notes.append(f"session_service: {refused}.")
        if trouble:
            self.notes.append(
                f"session_service failed: {trouble}. Events copied: {self._copied}; what it has of "
                f"the trial, {self._place}, is incomplete. The trial itself is complete, and its verdict holds."
            )
        elif self._session is not None:
            self.notes.append(f"session_service has {self._place}")


def _no_tools(_: object, tool: str) -> None:
    raise ToolRefused(f"session_service called the tool {tool!r}; it is there to keep sessions.")


class TrialFiles(BaseArtifactService):
    """The author's artifact service, where each trial has its own place for its files.

    Files that google-adk keeps for a user across sessions belong to a user of the trial alone: no
    trial may find what another left behind. A `ValueError` is the service's answer to what the agent
    asked for; any other exception ends the trial by way of `broke`.
    """

    def __init__(
        self,
        service: BaseArtifactService,
        place: Place,
        hosts: Collection[str],
        broke: Callable[[GreenroomError], GreenroomError],
    ) -> None:
        self._service = service
        self._place = place
        self._hosts = hosts
        self._broke = broke

    async def save_artifact(self, **asked: object) -> int:
        """Save a file of this trial."""
        return await self._ask(self._service.save_artifact, asked)

    async def load_artifact(self, **asked: object) -> Any:
        """A file of this trial, or None."""
        return await self._ask(self._service.load_artifact, asked)

    async def list_artifact_keys(self, **asked: object) -> list[str]:
        """The names of the files of this trial."""
        listed = self._service.list_artifact_keys
        found: list[str] = await self._ask(listed, {**asked, "session_id": None})
        if asked.get("session_id") is not None:
            found = [*found, *await self._ask(listed, asked)]
        return sorted(set(found))

    async def delete_artifact(self, **asked: object) -> None:
        """Delete a file of this trial."""
        await self._ask(self._service.delete_artifact, asked)

    async def list_versions(self, **asked: object) -> list[int]:
        """The versions of a file."""
        return await self._ask(self._service.list_versions, asked)

    async def list_artifact_versions(self, **asked: object) -> Any:
        """The versions of a file, described."""
        return await self._ask(self._service.list_artifact_versions, asked)

    async def get_artifact_version(self, **asked: object) -> Any:
        """One version of a file, described."""
        return await self._ask(self._service.get_artifact_version, asked)

    async def _ask(
        self, method: Callable[..., Awaitable[object]], asked: Mapping[str, object]
    ) -> Any:
        try:
            with open_to(self._hosts):
                return await method(**self._placed(asked))
        except (ValueError, GreenroomError):
            raise
        except Exception as error:
            name = getattr(method, "__name__", "its method")
            raise self._broke(
                RunBroke(
                    f"artifact_service broke in {name}, so the agent did not have the files it "
                    f"works with: {error!r}. Fix the service, or leave it out."
                )
            ) from error

    def _placed(self, asked: Mapping[str, object]) -> dict[str, Any]:
        """The arguments of a request, changed to the app, user and session of this trial."""
        place, is_in_session = self._place, asked.get("session_id") is not None
        is_users = not is_in_session or str(asked.get("filename", "")).startswith("user:")
        user = f"{place.user}-{place.session}" if is_users else place.user
        session = place.session if is_in_session else None
        return {**asked, "app_name": place.app, "user_id": user, "session_id": session}
