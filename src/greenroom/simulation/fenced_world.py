"""The world of code that runs inside the fence and has no mocks: user agents, simulated tools, judges."""

from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Final, Unpack

from msgspec.structs import replace

from greenroom.errors import Refusal, ReplayDrifted
from greenroom.ledger.ledger import Ledger
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.simulation.fence import Opening, opening_for, without_opening
from greenroom.simulation.refusals import Refusals
from greenroom.world.call_context import ContextSetting, carried
from greenroom.world.live import LiveWorld, WorldOptions
from greenroom.world.records import answer_model, answer_tool
from greenroom.world.world import FixedClock, Pending, Returned, ToolBody, ToolRequest

if TYPE_CHECKING:
    from greenroom.simulation.simulated_tools import SimulatedTools
    from greenroom.world.known_answers import KnownAnswers
    from greenroom.world.replayed import Recording

OWN_TOOL: Final = carried(ContextVar[object]("greenroom_own_tool", default=None))
"""The tool of a user agent whose body runs here."""


def _drop(_: str) -> None:
    """Take a piece of a reply of which only the time matters."""


class FencedWorld(LiveWorld):
    """A live world inside the fence: asking a model is the only way out."""

    is_gate = True
    """Decides itself which bodies run; a World without this asks the case that it is used in."""
    recording: "Recording | KnownAnswers | None" = None
    """Answers for models, where it can."""
    seed: int | None = None
    """Passed to models that accept a seed."""
    simulated: "SimulatedTools | None" = None
    """The tools that models simulate; these models also see the descriptions that the agent's get."""
    starting_processes = staticmethod(partial(opening_for, processes=True))
    """Opens the fence for a process in which code of the case runs, itself inside the fence."""

    def __init__(self, ledger: Ledger, refusals: Refusals, **options: Unpack[WorldOptions]) -> None:
        super().__init__(ledger, **options)
        self.refusals = refusals
        self.listens = False
        """Whether models stream their replies even if nothing reads the pieces."""

    @property
    def refused(self) -> Refusal | None:
        """The first refusal of the trial."""
        return self.refusals.refusal

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """Ask the real model, with the fence open for this call, unless a recording answers."""
        self.refusals.check()
        if self.simulated is not None:
            self.simulated.show(request.tools)
        if self.recording is not None:
            try:
                reply = await self.recording.reply(self, request, on_delta)
            except ReplayDrifted as drift:
                raise self.refusals.set(drift) from None
            if reply is not None:
                return reply
        now = self._clock.now() if isinstance(self._clock, FixedClock) else None
        if self.seed is not None or now is not None:
            request = replace(request, seed=self.seed, now=now)
        if self.listens and on_delta is None:
            on_delta = _drop
        return await answer_model(self, request, body, on_delta, opening=Opening)

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:
        """Run the real tool inside the fence."""
        self.refusals.check()
        if request.yields:
            return await super().call_tool(request, body)
        self._refuse_doubt(request)
        with ContextSetting(OWN_TOOL, request.origin), without_opening():
            return await answer_tool(self, request, body, "live")
