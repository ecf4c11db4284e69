"""Agents behind an address: an OpenAI-compatible chat endpoint, or any JSON endpoint by template.

    agent = http_agent("http://127.0.0.1:8000/ask", template={"question": "{{message}}"},
                       answer="$.reply.text")
    rehearse(agent, cases, allow_opaque=True)

Its models and tools run on the far side, where they are neither seen nor mocked. The fence is open to that
host and port for each question, and to nothing else.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from greenroom.backends.backend import Advance, Feature, Interception, Resumption, ToolFacts
from greenroom.backends.foreign import Invocation, Played, digest_of, message_data
from greenroom.backends.http.request import Endpoint
from greenroom.backends.http.templates import Template, answer_path, found_at
from greenroom.errors import AgentFailed
from greenroom.ledger.events import NodeEnded
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.redaction import keep_fields
from greenroom.world.world import World

MEMORY = "http.messages"
CHAT_ANSWER = "$.choices[0].message.content"
_NODE = "http"


def http_agent(
    url: str,
    *,
    template: Json = None,
    answer: str = "",
    model: str = "",
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> "HttpBackend":
    """An agent that answers at `url`.

    Without a template it is asked as a chat endpoint: `{"model": …, "messages": […]}`, and the
    answer is read where such endpoints put it. In a template `{{message}}`, `{{messages}}`,
    `{{state}}` and `{{run_id}}` stand for the turn's values; `answer` says where in the reply the
    answer is (`$.reply.text`), and without it the whole reply is the answer.
    """
    if template is None:
        template = {"model": model or "default", "messages": "{{messages}}"}
        answer = answer or CHAT_ANSWER
    return HttpBackend(Endpoint(url, headers or {}, timeout), Template(template), answer)


class HttpBackend:
    """Runs an agent by asking an endpoint; make one with `http_agent`."""

    name: ClassVar[str] = "http"
    models: ClassVar[Interception] = "opaque"
    tool_calls: ClassVar[Interception] = "opaque"
    # Between turns; a question that was cut off may have been acted on.
    resumes: ClassVar[Resumption] = "checkpoint"
    supports: ClassVar[frozenset[Feature]] = frozenset(
        {"speaks_first", "structured_output", "turns"}
    )

    def __init__(self, endpoint: Endpoint, template: Template, answer: str = "") -> None:
        keep_fields("", template.given)
        self.endpoint = endpoint
        self.template = template
        self.answer = answer
        self._path = answer_path(answer)

    @property
    def reaches(self) -> tuple[str, ...]:
        """The one place that must be reached, as host and port."""
        return (self.endpoint.place,)

    @cached_property
    def snapshot(self) -> Json:
        """Where and how it is asked; secrets in the address and the headers are left out."""
        return {
            "framework": self.name,
            "url": self.endpoint.shown,
            "headers": sorted(self.endpoint.headers),
            "template": self.template.given,
            "answer": self.answer,
        }

    @cached_property
    def digest(self) -> str:
        """Changes whenever the address or the way to ask does; the far side may change unseen."""
        return digest_of(self.snapshot)

    @property
    def tools(self) -> Mapping[str, ToolFacts] | None:
        """Unknown: they run on the far side."""
        return None

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Ask the far side what it says to what the user said last."""
        invocation = Invocation(ledger, world, MEMORY)
        return await invocation.play(lambda: self._play(invocation))

    async def _play(self, invocation: Invocation) -> Played:
        path = invocation.begin_unseen(_NODE, "far side")
        messages = invocation.history()
        if invocation.given:
            messages.append(message_data("user", invocation.given))
        reply = await self.endpoint.ask(self.template.filled(_values(invocation, messages)))
        answer = self._answer(reply)
        invocation.world.record(NodeEnded(path=path, node=_NODE, output=answer))
        return Played([*messages, message_data("assistant", answer)], answer)

    def _answer(self, reply: Json) -> Json:
        try:
            answer = found_at(reply, self._path)
        except LookupError:
            raise AgentFailed(
                f"the reply of {self.endpoint.shown} has nothing at {self.answer!r}; it is "
                f"{repr(reply)[:300]}. Mend answer=, or the endpoint."
            ) from None
        if answer is None or (isinstance(answer, str) and not answer.strip()):
            raise AgentFailed(f"{self.endpoint.shown} answered with nothing.")
        return answer


def _values(invocation: Invocation, messages: list[Json]) -> dict[str, Any]:
    world = invocation.world
    return {
        "message": invocation.given or "",
        "messages": messages,
        "state": dict(invocation.ledger.fold(world.voice)),
        "run_id": world.run_id,
    }
