"""The life of a worker process: it imports what its briefing names, then runs the trials it is sent."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from greenroom.backends.answered import with_model
from greenroom.backends.backend import Backend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.criteria import criterion_from
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import MetricLike
from greenroom.cases.reader import case_from
from greenroom.errors import BadLedger, GreenroomError
from greenroom.ledger.blobs import BlobFolder
from greenroom.ledger.codec import encoded
from greenroom.ledger.events import Event
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.redaction import given_secrets
from greenroom.models.model import Model
from greenroom.results.data import outcome_from, verdict_data
from greenroom.results.result import CaseResult
from greenroom.results.trial_verdict import broken
from greenroom.simulation.fence import (
    FencedExecutor,
    FencedScope,
    lead_through,
    opening_for,
    strays,
)
from greenroom.simulation.fence.kernel import confine
from greenroom.simulation.hangs.generators import ending_generators
from greenroom.simulation.hangs.stalls import Stall
from greenroom.simulation.hangs.watchdog import keep_watching
from greenroom.simulation.outside_trials import check_apart, outside_trials
from greenroom.simulation.trial_context import check_fence
from greenroom.suite.inputs.criteria import as_config, equipped, with_config
from greenroom.suite.inputs.import_rules import allow_import_network, only_rehearsing
from greenroom.suite.inputs.references import (
    fenced_import,
    load_agent,
    load_value,
)
from greenroom.suite.inputs.sources import as_evalset, gather, gather_beside, load_mocks
from greenroom.suite.measurement import Measurement
from greenroom.suite.options import complete
from greenroom.suite.settings import Settings
from greenroom.suite.storage.identity import identity_of
from greenroom.suite.trial import run_trial
from greenroom.suite.trial_state import Trial, TrialState
from greenroom.suite.watch import (
    RareCollection,
    closed,
    describe_stall,
    fence_gaps,
    leftovers,
    refusals_since,
)
from greenroom.suite.workers import wire
from greenroom.suite.workers.turns import AskedPace
from greenroom.suite.workers.wire import Outbox
from greenroom.world.modules import load_as
from greenroom.world.pacer import ask_for_turns, pace_of
from greenroom.world.threads import Expired

Briefing = dict[str, Any]


def main(
    inbox: int, outbox: int, rules: dict[str, Any] | None = None, parent: int | None = None
) -> None:
    """Work until the parent ends this process, or is gone; with `rules`, the kernel closes it in first.

    If `parent` is given, this process ends when the parent does, even while it is blocked in C.
    """
    if parent is not None:
        _die_with(parent)
    if rules is not None:
        confine(**rules)
        lead_through(rules["port"])
    # Ctrl-C is for the parent, which ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for fd in (inbox, outbox):
        os.set_inheritable(fd, False)
    with outside_trials() as scope, only_rehearsing():
        asyncio.run(_serve(inbox, Outbox(outbox), scope))


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        import ctypes  # only where it is used

        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


async def _serve(inbox: int, outbox: Outbox, scope: FencedScope) -> None:
    asyncio.get_running_loop().set_default_executor(FencedExecutor())
    ask_for_turns(partial(AskedPace, outbox))
    orders = _orders(inbox, outbox)
    setup = await _start(await orders.get(), outbox, scope)
    under_way: set[asyncio.Task[None]] = set()
    watching = keep_watching(on_stall=partial(_send_stall, outbox))
    async with ending_generators():
        with RareCollection(), watching:
            while setup is not None and (order := await orders.get()) is not None:
                task = asyncio.create_task(setup.run(order, outbox))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
    if setup is not None:
        middleware = setup.settings.middleware
        notes = [] if middleware is None else await closed(middleware)
        outbox.tell(wire.NOTES, None, [*notes, *setup.notes()])


def _send_stall(outbox: Outbox, stall: Stall) -> None:
    """Report to the parent, which has its own clocks, that the trials alongside this one are held up."""
    position = stall.owner if isinstance(stall.owner, int) else None
    note = describe_stall(stall) if stall.is_news else ""
    outbox.tell(wire.STALLED, position, {"seconds": stall.seconds, "note": note})


def _orders(inbox: int, outbox: Outbox) -> "asyncio.Queue[Any]":
    """The parent's lines as they come, read by a thread: the loop may be blocked."""
    loop = asyncio.get_running_loop()
    orders: asyncio.Queue[object] = asyncio.Queue()

    def listen() -> None:
        with os.fdopen(inbox, "rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # the parent died while it was writing
                match json.loads(line):
                    case {"safe": int(number)}:
                        outbox.answer(number)
                    case {"turn": int(number), "wait": wait}:
                        outbox.give_turn(number, wait)
                    case order:
                        loop.call_soon_threadsafe(orders.put_nowait, order)
        os._exit(1)  # the parent is gone

    Thread(target=listen, name="greenroom-orders", daemon=True).start()
    return orders


async def _start(briefing: Briefing, outbox: Outbox, scope: FencedScope) -> "WorkerSetup | None":
    try:
        # Packages are imported; the author's files fence themselves in.
        with opening_for(processes=True):
            setup = await _set_up(briefing)
        check_apart(scope, "while a worker process was made ready")
        found = identity_of(setup.backend, setup.cases.values(), setup.settings.measuring.metrics)
        outbox.tell(wire.READY, None, {**found, "notes": setup.notes()})
    except Exception as error:  # noqa: BLE001 - the author's code, whose failure the parent reports
        shown = str(error) if isinstance(error, GreenroomError) else repr(error)
        outbox.tell(wire.FAILED, None, {"why": shown})
        return None
    return setup


class WorkerSetup:
    """Everything that a worker needs to run any trial."""

    def __init__(
        self,
        backend: Backend | None,
        cases: dict[str, Case],
        settings: Settings,
        blobs: BlobFolder,
    ) -> None:
        self.backend = backend
        self.blobs = blobs
        self.cases = cases
        self.settings = settings
        self._strays = len(strays())

    async def run(self, order: dict[str, Any], outbox: Outbox) -> None:
        """Run or resume a trial, and report everything that happens to the parent."""
        position, case = order["position"], self.cases[order["case_id"]]
        outbox.send(wire.BEGUN, position, b"")
        try:
            with keep_watching(position):
                result = await self._run(Trial(position, case, order["trial"]), order, outbox)
            outbox.tell(wire.DONE, position, _done(result, self.notes()))
        except (Exception, asyncio.CancelledError, Expired) as error:  # noqa: BLE001 - the trial's error
            names = self.settings.measuring.names(case)
            outbox.tell(wire.DONE, position, _done(broken(case, error, metrics=names), []))

    async def _run(self, trial: Trial, order: dict[str, Any], outbox: Outbox) -> CaseResult:
        position = trial.position
        ledger, judging = _ledger(order["ledger"]), _ledger(order["judging"])
        senders = (
            _sender(ledger, outbox, wire.AGENT, position, self.blobs),
            _sender(judging, outbox, wire.JUDGE, position, self.blobs),
        )
        state = TrialState(trial, ledger, judging, *senders, on_restart=_leave_to_parent)
        state.run_id, state.now, replays = order["run_id"], order["now"], order["replays"]
        state.scores = {
            name: outcome_from(one, f"the outcome of {name!r}")
            for name, one in order["scores"].items()
        }
        if replays is not None:
            from greenroom.suite.recordings import RecordedTrial  # loaded where it is used

            state.recorded = RecordedTrial.loads(replays)
        if order.get("is_recorded"):
            state.before_live = partial(outbox.ask, position)
        try:
            return await run_trial(self.backend, state, self.settings)
        finally:
            for send in senders:
                send(None)

    def notes(self) -> list[str]:
        """Notes on what the fence could not hold, or refused, in this process since the last call."""
        before, self._strays = self._strays, len(strays())
        return [*fence_gaps(), *refusals_since(before), *leftovers()]


_sent_secrets: set[str] = set()


def _send_secrets(outbox: Outbox) -> None:
    """Send the secrets that were found here to the parent, which records everything."""
    if len(known := given_secrets()) > len(_sent_secrets):
        for name, value in known:
            if value not in _sent_secrets:
                outbox.tell(wire.KEEPS, None, {"name": name, "value": value})
                _sent_secrets.add(value)


def _done(result: CaseResult, notes: list[str]) -> dict[str, Any]:
    """The verdict for the parent, without the tags: the parent has them, and they may be any object."""
    verdict: dict[str, Any] = {**verdict_data(result), "tags": []}
    return {"verdict": verdict, "kept": result.kept is not None, "notes": notes}


def _leave_to_parent(_: Ledger, __: Ledger) -> None:
    """Do not measure a trial that left the recorded path: the parent, which has all of it, runs it again."""
    raise BadLedger("the trial left the recorded path.")


def _ledger(text: str) -> Ledger:
    # Reading needs pydantic, and most trials begin at their beginning.
    return Ledger.loads(text, "the parent's ledger") if text else Ledger()


def _sender(
    ledger: Ledger, outbox: Outbox, mark: str, position: int, blobs: BlobFolder
) -> Callable[[Event | None], None]:
    """A function that sends what is new in a ledger, including what an interrupted earlier call did not send."""
    sent, sending = len(ledger), Lock()

    def send(_: Event | None) -> None:
        nonlocal sent
        with sending:  # tools may be called in threads
            _send_secrets(outbox)
            while sent < len(ledger):
                line = encoded(ledger[sent]).rstrip(b"\n")
                blobs.keep_mentioned(line)
                outbox.send(mark, position, line)
                sent += 1

    return send


# From the briefing


async def _set_up(briefing: Briefing) -> WorkerSetup:
    blobs = BlobFolder(Path(briefing["attachments"]))
    if briefing["allow_import"]:
        allow_import_network()
    if not briefing["options"]["allow_unfenced"]:
        check_fence()
    _load_modules(briefing["modules"])
    given: Any = {name: _option(name, value) for name, value in briefing["options"].items()}
    options = complete(given)
    config = as_config(options["config"])
    options = with_config(options, config)
    evalset = equipped(_cases(briefing["cases"]), options["mocks"], config)
    settings = Settings.of(options, Measurement.of(options, evalset))
    for model in settings.rates:
        pace_of(model)
    wanted = set(briefing["ids"])
    cases = {case.id: case for case in evalset if case.id in wanted}
    backend = await _backend(briefing["agent"], settings.model)
    return WorkerSetup(backend, cases, settings, blobs)


def _load_modules(modules: list[tuple[str, str]]) -> None:
    """Import the parent's modules by the names they have there; relative paths start from this folder."""
    for name, file in modules:
        with fenced_import(Path(file).name):
            load_as(name, os.path.normpath(Path.cwd() / file))


async def _backend(agent: object, model: Model | None) -> Backend | None:
    if isinstance(agent, str):
        agent = await load_agent(agent)
    if agent is None:
        return None
    backend = backend_for(_named(agent))
    return backend if model is None else with_model(backend, model)


def _cases(given: dict[str, Any]) -> EvalSet:
    match given:
        case {"gathered": where, "configs": configs}:
            return gather(where, configs=configs).evalset
        case {"beside": agent, "configs": configs}:
            return gather_beside(agent, configs=configs).evalset
        case {"reference": where}:
            return as_evalset(where)
        case {"value": where}:
            return as_evalset(load_value(where))
        case _:
            usual = given["usual"]
            return EvalSet(
                given["id"],
                [case_from(data, "case") for data in given["cases"]],
                metrics=[_metric(metric) for metric in given["metrics"]],
                usual=None if usual is None else [criterion_from(data, "usual") for data in usual],
            )


def _option(name: str, given: Any) -> object:
    """The value of an option, from what the briefing has of it."""
    match name:
        case "metrics":
            return [_metric(metric) for metric in given]
        case "allow_tools":
            return [_named(tool) for tool in given]
        case "middleware":
            return [_named(one) for one in given]
        case "resources":
            return _resources(given)
        case "mocks" if isinstance(given, str):
            return load_mocks(given)
        case "mocks":
            return case_from({"id": "mocks", "mocks": given}, "mocks").mocks
        case _:
            return _named(given)


def _resources(given: Any) -> object:
    if isinstance(given, str) or [*given] == ["reference"]:
        return _named(given)
    return {name: _named(factory) for name, factory in given.items()}


def _metric(given: Any) -> MetricLike:
    if isinstance(given, str) or "criterion" in given:
        return criterion_from(given, "metrics")
    return _named(given)


def _named(given: object) -> object:
    """The object that a reference names; anything else is returned as is."""
    match given:
        case {"reference": str(where)}:
            return load_value(where)
        case _:
            return given
