"""The calls of agents that run inside something else, answered by the World of their case.

Such an agent is not a node of any graph: its place is under what runs it, a function, a step or a tool.
Its calls are recognised by what they ask, not by when they come. So work that begins again after a
pause or an interruption gets the answers it got before, and no tool acts twice.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from threading import Lock

from msgspec.structs import replace

from greenroom.errors import GreenroomError
from greenroom.ledger.events import ModelCalled, ModelFailed, ModelReplied, ToolFailed, ToolReturned
from greenroom.ledger.paths import within
from greenroom.ledger.plain import Json, as_object, plain, same
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.world.answers import key_of
from greenroom.world.call_context import place_here
from greenroom.world.records import given_again, raised_before
from greenroom.world.world import Returned, ToolBody, ToolRequest, World

# Characters that have a meaning in paths.
_PATH_SIGNS = re.compile(r"[^\w-]+")


class Visits:
    """Hosts every agent of one case that runs inside something else."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.broke: GreenroomError | None = None
        """The first error of Greenroom; it decides how the trial ends, even if it was swallowed."""
        self._place = ""
        self._asked: dict[str, list[tuple[str, int]]] = {}
        for event in world.ledger.of(ModelCalled, voice=world.voice):
            self._asked.setdefault(event.path, []).append((event.digest, event.n))
        self._seen: Counter[tuple[str, ...]] = Counter()
        self._used: dict[str, str] = {}
        self._lock = Lock()

    def begin(self, place: str) -> None:
        """Note that work at this place begins, perhaps again; repeated questions get their recorded answers."""
        with self._lock:
            # Work that has lost its context, as in some threads, counts as here too.
            self._place = place
            self._seen = Counter({k: n for k, n in self._seen.items() if not within(k[0], place)})
            self._used = {k: path for k, path in self._used.items() if not within(path, place)}

    @property
    def is_answered(self) -> bool:
        """Whether one model answers in place of all that are asked here."""
        return getattr(self.world, "model", None) is not None

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """The answer recorded for this question at this place, else the World's."""
        self._go_on()
        path = self._path(request.node or request.agent)
        asked = replace(request, path=path)
        with self._lock:
            asked, is_new = self._numbered(asked, key_of(asked, 0))
        if not is_new and (known := self._reply_before(path, asked.n)) is not None:
            return known
        try:
            return await self.world.call_model(asked, body, on_delta)
        except GreenroomError as error:
            self.refuse(error)
            raise

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned:
        """The recorded answer to this call at this place, else the World's."""
        self._go_on()
        path = self._path(request.path)
        args: dict[str, Json] = as_object(
            plain(dict(request.args), f"arguments of {request.tool!r}")
        )
        with self._lock:
            call_id = self._call_id(path, request, args)
        index = self.world.ledger.index_of(self.world.voice)
        match index.results.get(call_id):
            case ToolReturned() as known:
                return Returned(plain(known.value), "", known.source)
            case ToolFailed() as known:
                return Returned(None, known.error, known.source)
            case _:
                pass
        n = index.call_number(request.tool, call_id, path)
        asked = replace(request, id=call_id, args=args, path=path, n=n, visits=True)
        try:
            outcome = await self.world.call_tool(asked, body)
        except GreenroomError as error:
            self.refuse(error)
            raise
        assert isinstance(outcome, Returned), "the World never lets a visit wait"
        return outcome

    def refuse(self, error: GreenroomError) -> GreenroomError:
        """Make this error end the trial, even if it is swallowed; returns it to be raised."""
        self.broke = self.broke or error
        return error

    def new_id(self, *parts: object) -> str:
        """An id that is the same whenever the same run gets to the same place."""
        return self.world.new_id(*parts)

    def _go_on(self) -> None:
        """Refuse further questions after an error of Greenroom: the trial is over."""
        if self.broke is not None:
            raise self.broke

    def _path(self, node: str = "") -> str:
        place = place_here() or self._place
        if not place:
            begun = self.world.ledger.index_of(self.world.voice).open_invocation
            place = begun.path if begun is not None else ""
        return f"{place}/{_PATH_SIGNS.sub('_', node)}" if node else place

    def _count(self, *key: str) -> int:
        """How often the same question was asked at the same place since work began there."""
        self._seen[key] += 1
        return self._seen[key] - 1

    def _numbered(self, request: ModelRequest, digest: str) -> tuple[ModelRequest, bool]:
        """The question with its number at its place, and whether it is asked for the first time."""
        asked = self._asked.setdefault(request.path, [])
        same = [n for known, n in asked if known == digest]
        k = self._count(request.path, digest)
        is_new = k >= len(same)
        n = len({n for _, n in asked}) if is_new else same[k]
        if is_new:
            asked.append((digest, n))
        return replace(request, digest=digest, n=n), is_new

    def _reply_before(self, path: str, n: int) -> ModelReply | None:
        """How a question ended when it was asked before; None if it was interrupted."""
        steps = self.world.ledger.index_of(self.world.voice).steps.get(path, ())
        ends = (step for step in reversed(steps) if isinstance(step, ModelReplied | ModelFailed))
        match next((end for end in ends if end.n == n), None):
            case ModelReplied() as end:
                return given_again(end, "")
            case ModelFailed(error=error, error_type=error_type, ours=ours):
                before = raised_before(error, error_type, ours)
                raise self.refuse(before) if isinstance(before, GreenroomError) else before
            case _:
                return None

    def _call_id(self, path: str, request: ToolRequest, args: Mapping[str, Json]) -> str:
        """The model's own id for this call if it is free, else one that follows from the call."""
        call_id, index = request.id, self.world.ledger.index_of(self.world.voice)
        known = index.called.get(call_id)
        is_free = call_id not in self._used and index.has_wanted(call_id)
        if known is not None:
            is_free &= known.tool == request.tool and same(dict(known.args), dict(args))
        if not is_free:
            text = json.dumps(args, sort_keys=True)
            count = self._count(path, request.tool, text)
            call_id = self.world.new_id(path, request.tool, text, count)
        self._used[call_id] = path
        return call_id
