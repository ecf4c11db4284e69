"""Tasks of the A2A protocol, computed from the ledger of a conversation; they are stored nowhere else."""

from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import Struct

from greenroom.backends.a2a.wire import parts_for
from greenroom.ledger.attachments import Attachment, attachments_in
from greenroom.ledger.events import (
    Answered,
    Event,
    InvocationEnded,
    InvocationStarted,
    Noted,
    UserSaid,
    YieldOpened,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json

HEARD = "a2a:message"
"""The note of a message as it was received: `{"context", "task", "message", "text", "answers", "attachments"}`."""
GIVEN_UP = "a2a:given_up"
"""The note that a task was cancelled, or broke outside of any invocation."""
ANSWER = "answer"
"""The one artifact of a task."""

State = Literal["WORKING", "COMPLETED", "FAILED", "CANCELED", "INPUT_REQUIRED"]
_FAILED = "The agent could not answer. Its operator finds the reason in the conversation {}."


class Asked(Struct, frozen=True):
    """A message from the other side."""

    context: str
    task: str
    message: str
    text: str
    answers: dict[str, Json]
    """Its answers to the tools that wait, by their names."""
    attachments: tuple[Attachment, ...]
    is_heard: bool
    """Whether it has reached the agent."""


class ServedTask(Struct, frozen=True):
    """A task: from the message that began it to the agent's answer."""

    id: str
    context: str
    state: State
    asked: tuple[Asked, ...]
    at: float
    output: Json = None
    said: str = ""
    """Why it failed, for the other side."""
    waits: tuple[YieldOpened, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state in ("COMPLETED", "FAILED", "CANCELED")

    @property
    def is_under_way(self) -> bool:
        """Whether the agent has work to do for it, such as processing an answer."""
        is_answered = self.state == "INPUT_REQUIRED" and not self.asked[-1].is_heard
        return self.state == "WORKING" or is_answered

    def status(self) -> dict[str, Json]:
        """Its state, with what the agent asks or why it failed."""
        at = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds")
        found: dict[str, Json] = {
            "state": f"TASK_STATE_{self.state}",
            "timestamp": at.replace("+00:00", "Z"),
        }
        parts = self._said()
        if parts:
            found["message"] = {
                "messageId": f"{self.id}.{len(self.asked)}",
                "contextId": self.context,
                "taskId": self.id,
                "role": "ROLE_AGENT",
                "parts": parts,
            }
        return found

    def _said(self) -> list[Json]:
        if self.state != "INPUT_REQUIRED":
            return [{"text": self.said}] if self.said else []
        asks = [wait.prompt or f"{wait.tool} needs an answer." for wait in self.waits]
        tools: list[Json] = [
            {"tool": wait.tool, "args": wait.args} for wait in self.waits if wait.type == "tool"
        ]
        text: Json = {"text": "\n".join(asks)}
        return [text, {"data": {"waits": tools}}] if tools else [text]

    def artifact(self) -> dict[str, Json] | None:
        """Its answer, if it has one."""
        if self.state != "COMPLETED" or self.output is None:
            return None
        return {"artifactId": ANSWER, "parts": parts_for(self.output)}

    def data(self, history: int | None = None, *, artifacts: bool = True) -> dict[str, Json]:
        """The task as the other side sees it, with its last `history` messages."""
        messages: list[Json] = [
            {
                "messageId": one.message,
                "contextId": self.context,
                "taskId": self.id,
                "role": "ROLE_USER",
                "parts": [{"text": one.text}],
            }
            for one in self.asked
        ]
        shown = messages if history is None else messages[max(0, len(messages) - history) :]
        found: dict[str, Json] = {
            "id": self.id,
            "contextId": self.context,
            "status": self.status(),
            "history": shown,
        }
        answer = self.artifact() if artifacts else None
        return {**found, "artifacts": [answer]} if answer is not None else found


def tasks_in(ledger: Ledger) -> list[ServedTask]:
    """The tasks of a conversation in their order."""
    spans: dict[str, list[Event]] = {}
    current: list[Event] = []
    for event in ledger:
        if isinstance(event, Noted) and event.name == HEARD:
            current = spans.setdefault(event.data["task"], [])
        current.append(event)
    waits = tuple(ledger.index_of().pending)
    names, conversation = list(spans), str(getattr(ledger.first, "run_id", ""))
    return [
        _task(name, spans[name], waits if name == names[-1] else (), conversation) for name in names
    ]


def _task(
    name: str, events: list[Event], waits: tuple[YieldOpened, ...], conversation: str
) -> ServedTask:
    asked = _messages(events)
    state: State = "INPUT_REQUIRED" if waits else "WORKING"
    output: Json = None
    said = ""
    for event in events:
        if isinstance(event, InvocationEnded) and state not in ("CANCELED", "FAILED"):
            state = "FAILED" if event.outcome == "failed" else "COMPLETED"
            output = event.output
        elif isinstance(event, Noted) and event.name == GIVEN_UP:
            state, said = event.data["state"], event.data.get("why", "")
    if state == "FAILED" and not said:
        said = _FAILED.format(conversation)
    context, at = asked[0].context, events[-1].at
    kept = waits if state == "INPUT_REQUIRED" else ()
    return ServedTask(name, context, state, asked, at, output, said, kept)


def _messages(events: list[Event]) -> tuple[Asked, ...]:
    found: list[Asked] = []
    for number, event in enumerate(events):
        if isinstance(event, Noted) and event.name == HEARD:
            rest = events[number + 1 :]
            heard = any(isinstance(e, UserSaid | Answered | InvocationStarted) for e in rest)
            data: dict[str, Any] = event.data
            found.append(
                Asked(
                    data["context"],
                    data["task"],
                    data["message"],
                    data["text"],
                    data["answers"],
                    attachments_in(data["attachments"]),
                    heard,
                )
            )
    return tuple(found)
