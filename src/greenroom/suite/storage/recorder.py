"""The recorder of a run: a stored run, or one that records nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from greenroom.cases.evalset import EvalSet
from greenroom.errors import BadInput, StoreFailed, StoreRefused
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.store.configuration import chosen_place
from greenroom.store.runs import Key, Plan
from greenroom.suite.options import Values
from greenroom.suite.trial_state import FindBackend, Trial, TrialState

Done = Callable[[CaseResult], None]


class Recorder:
    """Records a run as it goes. This one records nothing: only the report remains."""

    run_id: str = ""
    failure: str = ""
    """Why nothing more can be recorded; empty while all is well."""

    def listen(self, on_failure: Callable[[], None]) -> None:
        """Call `on_failure`, in any thread, once something cannot be recorded."""

    def is_done(self, trial: Trial) -> bool:  # noqa: ARG002 - here and below for those who record
        """Whether an earlier process finished this trial of this very case."""
        return False

    def begin(self, trial: Trial, backend: FindBackend) -> TrialState:  # noqa: ARG002
        """Begin a trial, or resume it where an earlier process was interrupted."""
        return TrialState(trial)

    async def keep(self, state: TrialState, result: CaseResult, done: Done) -> None:  # noqa: ARG002
        """Record a result; `done` is called when it is saved. Waits only if the disk is far behind."""
        done(result)

    async def flush(self) -> None:
        """Wait until every result so far is saved."""

    def freeze(self) -> None:
        """Record no more events of trials in progress: they are being stopped."""

    @property
    def spent(self) -> tuple[float, float]:
        """What earlier processes have spent on this run, and on its most expensive trial, in USD."""
        return 0.0, 0.0

    def earlier(self) -> Iterable[tuple[Key, CaseResult]]:
        """The results that earlier processes finished."""
        return ()

    def results(self, evalset: EvalSet, left_out: Mapping[int, str]) -> Sequence[CaseResult]:  # noqa: ARG002
        """All results of a run that kept none here; `left_out` says by position which trials have none."""
        return ()

    def shared_report(self) -> Report | None:
        """The totals of all processes that share the run; None if it is not shared."""
        return None

    async def close(self, *, finished: bool, notes: Sequence[str], seconds: float) -> list[str]:  # noqa: ARG002
        """Close the run, finished or not; returns notes on the recording."""
        return []


async def open_recorder(
    options: Values, plan: Plan, evalset: EvalSet, notes: list[str]
) -> Recorder:
    """The recorder of a run. If no store was asked for and the usual one fails, a note says so."""
    given, resume, name = options["store"], options["resume"], options["resume_or_new"]
    continues = resume is not False or bool(name)
    store = None
    if given is not False:
        from greenroom.store.store import as_store  # SQLite is loaded only where it is used

        store = as_store(given)
    if store is None:
        if continues:
            raise BadInput(
                "there is no store to resume from: it is switched off, by store=False, GREENROOM_STORE=off, "
                "or `store` in pyproject.toml. Name one."
            )
        return Recorder()
    from greenroom.suite.storage.opened_runs import begin_run, named_run, resume_run

    try:
        if name:
            if resume is not False:
                raise BadInput(
                    "resume= and resume_or_new= contradict each other; give one of them."
                )
            return await named_run(store, plan, evalset, options)
        if resume is False:
            return await begin_run(store, plan, evalset, options)
        return await resume_run(store, plan, evalset, "" if resume is True else resume, options)
    except StoreFailed as error:
        # A store that the caller chose must work. So must any store from which a run is continued: to run
        # its cases without it would pay for what is finished, or for what another process is running now.
        is_chosen = given is not None or bool(chosen_place())
        if is_chosen or continues or isinstance(error, StoreRefused):
            raise
        notes.append(f"the run is not recorded: {error}")
        return Recorder()
