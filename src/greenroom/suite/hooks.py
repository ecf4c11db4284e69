"""The author's hooks, called as things happen in a run: they look, and one may replace what a metric found.

A hook is a function. A plug-in is an object with any of the hooks as methods, and with `on_run_start`
and `on_run_complete` if it likes.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import cast

from msgspec import Struct, field

from greenroom.cases.case import Case
from greenroom.cases.copies import own_copy, with_own_parts
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadInput, HookRefused
from greenroom.ledger.events import Event
from greenroom.metrics.definition import as_outcome, falls_short
from greenroom.metrics.scores import left_out
from greenroom.results.report import FAULT, Report
from greenroom.results.result import CaseResult
from greenroom.results.trial_verdict import can_be_rejudged, rejudged
from greenroom.results.words import outcome_text
from greenroom.simulation.fence import FencedScope, LastingOpening, RunScope, put_up
from greenroom.simulation.hangs.limits import call_in_time
from greenroom.store.runs import Plan
from greenroom.world.call_context import answered_by, guarded
from greenroom.world.threads import Interruption, Overdue

OnCase = Callable[[Case], None]
OnResult = Callable[[CaseResult], None]
OnMetric = Callable[[Case, str, Outcome], "Outcome | None"]
OnEvent = Callable[[Case, Event], None]

HOOK_SECONDS = 5.0
_MOST_CUTS = 3
HOOKS = ("on_case_start", "on_event", "on_metric_complete", "on_case_complete")
"""The names of single functions."""
_OUTCOMES = (Score, NotApplicable, Unmeasured)
_REPLACE = (
    "a Score, NotApplicable or Unmeasured replaces what was found, in a trial that did not break"
)
MOMENTS = ("on_run_start", *HOOKS, "on_run_complete")
"""The methods that a plug-in may have."""


class _Listener(Struct, frozen=True):
    """One listener, and what to call it in a note."""

    hook: Callable[..., object]
    name: str


class Hooks(Struct, kw_only=True):
    """The hooks of a run. A hook that raises, hangs or is async is noted and changes nothing.

    They run outside the fence, because they belong to the author of the run and not to the agent; but
    they must not call a tool.
    """

    on_case_start: OnCase | None = None
    on_case_complete: OnResult | None = None
    on_metric_complete: OnMetric | None = None
    on_event: OnEvent | None = None
    plugins: Sequence[object] = ()
    seconds: float = HOOK_SECONDS
    notes: list[str] = field(default_factory=list[str])
    listeners: dict[str, list[_Listener]] = field(default_factory=dict[str, list[_Listener]])
    """The listeners of each moment."""
    cuts: Counter[str] = field(default_factory=Counter[str])
    """How often each hook timed out, by name."""

    def __post_init__(self) -> None:
        for moment in HOOKS:
            if (hook := getattr(self, moment)) is not None:
                self._add(moment, _Listener(hook, _hook_name(hook)))
        for plugin in self.plugins:
            self._add_plugin(plugin)

    @property
    def replacing(self) -> list[tuple[str, object]]:
        """The names and functions of the hooks that may replace what a metric found."""
        listening = self.listeners.get("on_metric_complete", ())
        return [(listener.name, listener.hook) for listener in listening]

    def run_started(self, plan: Plan) -> None:
        """A run begins, or is resumed."""
        self._call_all("on_run_start", plan)

    def case_started(self, case: Case) -> None:
        """A case begins."""
        self._call_all("on_case_start", case)

    def happened(self, case: Case, event: Event) -> None:
        """Something was written into the ledger of a case."""
        self._call_all("on_event", case, event)

    def metrics_completed(self, case: Case, result: CaseResult) -> CaseResult:
        """The metrics have measured a trial: its result, with the outcomes that a hook returned in place of theirs."""
        if "on_metric_complete" not in self.listeners:
            return result
        found, replaced = dict(result.scores), dict(result.replaced)
        for name, listener in product(result.scores, tuple(self.listeners["on_metric_complete"])):
            was = found[name]
            seen = own_copy(case), name, own_copy(was)
            returned = self._call_apart("on_metric_complete", listener, *seen)
            if isinstance(returned, bool | int | float) or (
                isinstance(returned, _OUTCOMES) and returned != was and not can_be_rejudged(result)
            ):
                self.note(
                    f"the hook {listener.name!r} returned {returned!r} for {name!r}: {_REPLACE}"
                )
            elif isinstance(returned, _OUTCOMES) and returned != was:
                measured = _words(result.scores[name])
                replaced[name] = f"by the hook {listener.name!r}; it was {measured}"
                found[name] = as_outcome(returned, name)
        if found == result.scores:
            return result
        return rejudged(result, _measured_late(found, replaced), replaced)

    def case_completed(self, result: CaseResult) -> None:
        """Call the hooks for a finished trial; if the run is recorded, the trial is saved by now."""
        if "on_case_complete" in self.listeners:
            self._call_all("on_case_complete", with_own_parts(result))

    def run_completed(self, report: Report) -> Report:
        """A run is over: its report, with a note of what went wrong in hooks at this moment."""
        known = len(self.notes)
        if "on_run_complete" in self.listeners:
            is_here = isinstance(report.results, list)  # else they are read from the store
            seen = [*map(with_own_parts, report.results)] if is_here else report.results
            self._call_all("on_run_complete", replace(report, results=seen))
        new = self.notes[known:]
        return replace(report, notes=[*report.notes, *new]) if new else report

    def note(self, text: str) -> None:
        """Add a note to the report, once."""
        if text not in self.notes:
            self.notes.append(text)

    def _add_plugin(self, plugin: object) -> None:
        moments = [moment for moment in MOMENTS if callable(getattr(plugin, moment, None))]
        if not moments or isinstance(plugin, type):
            raise BadInput(
                f"plugins= has {plugin!r}, which is not a plug-in. Give an object with any of the "
                f"methods {', '.join(MOMENTS)}."
            )
        for moment in moments:
            name = f"{type(plugin).__name__}.{moment}"
            self._add(moment, _Listener(getattr(plugin, moment), name))

    def _add(self, moment: str, listener: _Listener) -> None:
        self.listeners.setdefault(moment, []).append(listener)

    def _call_all(self, moment: str, *what: object) -> None:
        for listener in tuple(self.listeners.get(moment, ())):
            self._call_apart(moment, listener, *what)

    def _call_apart(self, moment: str, listener: _Listener, *what: object) -> object:
        """Call a listener outside the fence, where it must not call tools; what it returns."""
        refuse = partial(self._refuse, listener)
        put_up()
        apart = RunScope(FencedScope(f"hook {listener.name}", body_guard=refuse))
        with apart, LastingOpening(), guarded(refuse), answered_by(None):
            return self._call(moment, listener, *what)

    def _refuse(self, listener: _Listener, _: object, tool: str) -> None:
        why = f"the hook {listener.name!r} called the tool {tool!r}; hooks look and never act"
        self.note(f"{FAULT}{why}, so it was not run")
        raise HookRefused(f"{why}. Do it in a tool of the agent, or after the run.")

    def _call(self, moment: str, listener: _Listener, *what: object) -> object:
        name = f"the hook {listener.name!r}"
        try:
            returned = call_in_time(partial(listener.hook, *what), self.seconds, name, apart=True)
        except (Interruption, KeyboardInterrupt):
            raise
        except Overdue:
            self._count_cut(moment, listener)
        except BaseException as error:  # noqa: BLE001 - kept from the results
            # Nothing is awaited here, so it was neither cancelled nor closed: the hook raised that itself,
            # as it may call `sys.exit` or `pytest.fail`.
            self.note(f"{name} raised {error!r}")
        else:
            if not inspect.iscoroutine(returned):
                return returned
            returned.close()
            self.note(f"{name} is async and was not awaited; make it a function")
        return None

    def _count_cut(self, moment: str, listener: _Listener) -> None:
        name = f"the hook {listener.name!r}"
        self.note(f"{name} did not return within {self.seconds:g} s, and was stopped")
        self.cuts[listener.name] += 1
        if self.cuts[listener.name] == _MOST_CUTS:
            # Else a run would take that long for each of its events.
            self.listeners[moment] = [o for o in self.listeners[moment] if o is not listener]
            self.note(f"{name} was stopped {_MOST_CUTS} times, and not called after that")


def _hook_name(hook: object) -> str:
    """The name of a hook's function, else of its class: the same in every process."""
    while isinstance(hook, partial):
        hook = cast("partial[object]", hook).func
    return getattr(hook, "__name__", type(hook).__qualname__)


def _measured_late(found: Mapping[str, Outcome], replaced: Collection[str]) -> dict[str, Outcome]:
    """The outcomes; what was left out for a critical metric that no longer fails is unmeasured."""
    spared = {left_out(name) for name in replaced if not falls_short(found[name])}
    return {
        name: Unmeasured(f"{outcome.why}, and a hook replaced that after the measurement")
        if isinstance(outcome, NotApplicable) and outcome.why in spared
        else outcome
        for name, outcome in found.items()
    }


def _words(outcome: Outcome) -> str:
    """An outcome with its reason."""
    why = outcome.reason if isinstance(outcome, Score) else outcome.why
    return f"{outcome_text(outcome)}: {why}" if why else outcome_text(outcome)
