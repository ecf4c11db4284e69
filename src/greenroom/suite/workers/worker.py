"""The life of a worker process: it is told what to import, then plays the trials it is sent."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from functools import partial
from threading import Lock, Thread
from typing import Any

from greenroom.backends.backend import Backend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.criteria import criterion_from
from greenroom.cases.data import case_from
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import MetricLike
from greenroom.errors import BadLedger, GreenroomError
from greenroom.ledger.codec import encoded
from greenroom.ledger.events import Event
from greenroom.ledger.given import given_secrets
from greenroom.ledger.ledger import Ledger
from greenroom.results.data import verdict_data
from greenroom.results.result import CaseResult, broken
from greenroom.simulation.checks import check_fence
from greenroom.simulation.fence import fenced_executor, strays
from greenroom.simulation.stalls import Stall
from greenroom.simulation.watchdog import keep_watching
from greenroom.suite.blockers import blocked
from greenroom.suite.defaults import all_metrics, as_config, equipped
from greenroom.suite.fence_notes import refused, unheld
from greenroom.suite.garbage import RareCollection
from greenroom.suite.imports import allow_import_network
from greenroom.suite.measurement import Measurement
from greenroom.suite.references import as_evalset, load_agent, load_value
from greenroom.suite.sources import gather, gather_beside, load_mocks, load_model
from greenroom.suite.trial import Settings, run_trial
from greenroom.suite.trial_state import Trial, TrialState
from greenroom.suite.workers.identity import identity_of
from greenroom.suite.workers.location import load_as
from greenroom.suite.workers.wire import (
    AGENT,
    BEGUN,
    DONE,
    FAILED,
    JUDGE,
    KEEPS,
    READY,
    STALLED,
    Outbox,
)
from greenroom.world.answers import AnswerCache
from greenroom.world.threads import Expired

Briefing = dict[str, Any]


def main(inbox: int, outbox: int) -> None:
    """Work until the parent says that it is enough, or is no more."""
    # Ctrl-C is for the parent, who ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for fd in (inbox, outbox):
        os.set_inheritable(fd, False)
    asyncio.run(_serve(inbox, Outbox(outbox)))


async def _serve(inbox: int, outbox: Outbox) -> None:
    asyncio.get_running_loop().set_default_executor(fenced_executor())
    orders = _listening(inbox, outbox)
    bench = await _begun(await orders.get(), outbox)
    under_way: set[asyncio.Task[None]] = set()
    with RareCollection(), keep_watching(on_stall=partial(_tell_stall, outbox)):
        while bench is not None and (order := await orders.get()) is not None:
            task = asyncio.create_task(bench.play(order, outbox))
            under_way.add(task)
            task.add_done_callback(under_way.discard)


def _tell_stall(outbox: Outbox, stall: Stall) -> None:
    """Tell the parent, who has clocks of its own, that the trials beside this one stand still."""
    position = stall.owner if isinstance(stall.owner, int) else None
    note = blocked(stall) if stall.is_news else ""
    outbox.tell(STALLED, position, {"seconds": stall.seconds, "note": note})


def _listening(inbox: int, outbox: Outbox) -> "asyncio.Queue[Any]":
    """The parent's lines as they come, heard by a thread: the loop may be blocked."""
    loop = asyncio.get_running_loop()
    orders: asyncio.Queue[Any] = asyncio.Queue()

    def listen() -> None:
        with os.fdopen(inbox, "rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # the parent died while it spoke
                match json.loads(line):
                    case {"safe": int(number)}:
                        outbox.answer(number)
                    case order:
                        loop.call_soon_threadsafe(orders.put_nowait, order)
        os._exit(1)  # the parent is gone

    Thread(target=listen, name="greenroom-orders", daemon=True).start()
    return orders


async def _begun(briefing: Briefing, outbox: Outbox) -> "WorkerSetup | None":
    try:
        bench = await _bench(briefing)
        found = identity_of(bench.backend, bench.cases.values(), bench.settings.measuring.metrics)
        outbox.tell(READY, None, {**found, "notes": bench.notes()})
    except Exception as error:  # noqa: BLE001 - the author's code, whose failure the parent tells
        shown = str(error) if isinstance(error, GreenroomError) else repr(error)
        outbox.tell(FAILED, None, {"why": shown})
        return None
    return bench


class WorkerSetup:
    """All that a worker needs to play any trial of the run."""

    def __init__(self, backend: Backend | None, cases: dict[str, Case], settings: Settings) -> None:
        self.backend = backend
        self.cases = cases
        self.settings = settings
        self._strays = len(strays())

    async def play(self, order: dict[str, Any], outbox: Outbox) -> None:
        """Play a trial, or go on with it, and tell the parent of all that happens."""
        position, case = order["position"], self.cases[order["case_id"]]
        outbox.send(BEGUN, position, b"")
        try:
            with keep_watching(position):
                result = await self._played(Trial(position, case, order["trial"]), order, outbox)
            outbox.tell(DONE, position, _done(result, self.notes()))
        except (Exception, asyncio.CancelledError, Expired) as error:  # noqa: BLE001 - the trial's error
            names = self.settings.measuring.names(case)
            outbox.tell(DONE, position, _done(broken(case, error, metrics=names), []))

    async def _played(self, play: Trial, order: dict[str, Any], outbox: Outbox) -> CaseResult:
        position = play.position
        ledger, judging = _ledger(order["ledger"]), _ledger(order["judging"])
        told = _telling(ledger, outbox, AGENT, position), _telling(judging, outbox, JUDGE, position)
        take = TrialState(play, ledger, judging, *told, on_restart=_left_to_the_parent)
        if order.get("is_recorded"):
            take.before_live = partial(outbox.ask, position)
        try:
            return await run_trial(self.backend, take, self.settings)
        finally:
            for tell in told:
                tell(None)

    def notes(self) -> list[str]:
        """What the fence could not hold or had to refuse in this process, since last asked."""
        before, self._strays = self._strays, len(strays())
        return [*unheld(), *refused(before)]


_told: set[str] = set()


def _tell_secrets(outbox: Outbox) -> None:
    """Let the parent, who writes everything down, know the secrets that turned up here."""
    if len(known := given_secrets()) > len(_told):
        for name, value in known:
            if value not in _told:
                outbox.tell(KEEPS, None, {"name": name, "value": value})
                _told.add(value)


def _done(result: CaseResult, notes: list[str]) -> dict[str, Any]:
    """What the parent is told in the end; it knows the tags, which may be anything."""
    verdict: dict[str, Any] = {**verdict_data(result), "tags": []}
    return {"verdict": verdict, "kept": result.kept is not None, "notes": notes}


def _left_to_the_parent(_: Ledger, __: Ledger) -> None:
    """A run that came another way is not measured: the parent, who has it all, plays it anew."""
    raise BadLedger("the run came another way than the recorded one.")


def _ledger(text: str) -> Ledger:
    # Reading needs pydantic, and most trials begin at their beginning.
    return Ledger.loads(text, "the parent's ledger") if text else Ledger()


def _telling(
    ledger: Ledger, outbox: Outbox, mark: str, position: int
) -> Callable[[Event | None], None]:
    """Sends what is new in a ledger; also what an earlier call was cut off from sending."""
    sent, sending = len(ledger), Lock()

    def tell(_: Event | None) -> None:
        nonlocal sent
        with sending:  # tools may be called in threads
            _tell_secrets(outbox)
            while sent < len(ledger):
                outbox.send(mark, position, encoded(ledger[sent]).rstrip(b"\n"))
                sent += 1

    return tell


# From the briefing


async def _bench(briefing: Briefing) -> WorkerSetup:
    if briefing["allow_import"]:
        allow_import_network()
    if not briefing["allow_unfenced"]:
        check_fence()
    for name, file in briefing["modules"]:
        load_as(name, file)
    config = as_config(_named(briefing["config"]))
    evalset = equipped(_cases(briefing["cases"]), _mocks(briefing["mocks"]), config)
    metrics = [_metric(metric) for metric in briefing["metrics"]]
    settings = Settings(
        measuring=Measurement(
            metrics=all_metrics(metrics, evalset),
            seconds_per_metric=briefing["seconds_per_metric"],
            cache=AnswerCache.of(briefing["cache"]),
        ),
        allow_tools=[_named(tool) for tool in briefing["allow_tools"]],
        allow_opaque=briefing["allow_opaque"],
    )
    wanted = set(briefing["ids"])
    cases = {case.id: case for case in evalset if case.id in wanted}
    return WorkerSetup(await _backend(briefing), cases, settings)


async def _backend(briefing: Briefing) -> Backend | None:
    agent = briefing["agent"]
    if isinstance(agent, str):
        model = load_model(briefing["model"]) if briefing["model"] else None
        agent = await load_agent(agent, model=model)
    return None if agent is None else backend_for(_named(agent))


def _cases(told: dict[str, Any]) -> EvalSet:
    match told:
        case {"gathered": where, "configs": configs}:
            return gather(where, configs=configs).evalset
        case {"beside": agent, "configs": configs}:
            return gather_beside(agent, configs=configs).evalset
        case {"reference": where}:
            return as_evalset(where)
        case {"value": where}:
            return as_evalset(load_value(where))
        case _:
            usual = told["usual"]
            return EvalSet(
                told["id"],
                [case_from(data, "case") for data in told["cases"]],
                metrics=[_metric(metric) for metric in told["metrics"]],
                usual=None if usual is None else [criterion_from(data, "usual") for data in usual],
            )


def _mocks(told: Any) -> Any:
    if isinstance(told, str):
        return load_mocks(told)
    return case_from({"id": "mocks", "mocks": told}, "mocks").mocks


def _metric(told: Any) -> MetricLike:
    if isinstance(told, str) or "criterion" in told:
        return criterion_from(told, "metrics")
    return _named(told)


def _named(told: Any) -> Any:
    """What a reference leads to; anything else is itself."""
    match told:
        case {"reference": str(where)}:
            return load_value(where)
        case _:
            return told
