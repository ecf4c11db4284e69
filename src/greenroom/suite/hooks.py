"""Somebody else's code that is told what happens: it may look, and it harms nothing."""

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome
from greenroom.ledger.events import Event
from greenroom.results.result import CaseResult
from greenroom.simulation.fence import passage
from greenroom.simulation.watchdog import watched
from greenroom.world.threads import Expired

OnCase = Callable[[Case], None]
OnResult = Callable[[CaseResult], None]
OnMetric = Callable[[Case, str, Outcome], None]
OnEvent = Callable[[Case, Event], None]

HOOK_SECONDS = 5.0


@dataclass(slots=True, kw_only=True)
class Hooks:
    """Who is told of what. A hook that raises, hangs or is async is noted and changes nothing."""

    on_case_start: OnCase | None = None
    on_case_complete: OnResult | None = None
    on_metric_complete: OnMetric | None = None
    on_event: OnEvent | None = None
    seconds: float = HOOK_SECONDS
    notes: list[str] = field(default_factory=list[str])

    def case_started(self, case: Case) -> None:
        """A case begins."""
        self._tell(self.on_case_start, case)

    def case_completed(self, result: CaseResult) -> None:
        """A trial is done, and safe if the run is written down."""
        self._tell(self.on_case_complete, result)

    def metric_completed(self, case: Case, name: str, outcome: Outcome) -> None:
        """A metric has looked at a case."""
        self._tell(self.on_metric_complete, case, name, outcome)

    def happened(self, case: Case, event: Event) -> None:
        """Something was written into the ledger of a case."""
        # The author of the run listens, not the agent: the fence is not meant for him.
        with passage():
            self._tell(self.on_event, case, event)

    def note(self, text: str) -> None:
        """Say something in the report, once."""
        if text not in self.notes:
            self.notes.append(text)

    def _tell(self, hook: Callable[..., None] | None, *what: Any) -> None:
        if hook is None:
            return
        name = getattr(hook, "__name__", hook)
        try:
            returned = self._in_time(hook, *what)
        except Expired:
            self.note(f"the hook {name!r} did not return within {self.seconds:g} s, and was cut")
        except Exception as error:  # noqa: BLE001 - somebody else's code, kept from the results
            self.note(f"the hook {name!r} raised {error!r}")
        else:
            if inspect.iscoroutine(returned):
                returned.close()
                self.note(f"the hook {name!r} is async and was not awaited; make it a function")

    def _in_time(self, hook: Callable[..., None], *what: Any) -> object:
        task = asyncio.current_task()
        if task is None:  # told from a callback of the loop
            return cast(object, hook(*what))
        with watched(task, self.seconds):
            return cast(object, hook(*what))
