"""A Ray cluster as the place of worker processes: found, given the project, and asked for room."""

import asyncio
import logging
import os
import platform
from collections.abc import Callable
from math import ceil
from pathlib import Path
from socket import create_connection
from time import time
from typing import Any, Final

import msgspec

from greenroom import __version__
from greenroom.errors import BadInput
from greenroom.ledger.plain import Json, is_object
from greenroom.simulation.fence import opening_for
from greenroom.store.configuration import is_server, withheld
from greenroom.suite.workers.ray.library import errors, ray
from greenroom.suite.workers.ray.relay import Relay
from greenroom.suite.workers.ray.settings import Ray
from greenroom.suite.workers.ray.shipment import EXCLUDED, Parcel, pack, project_root, variables
from greenroom.suite.workers.ray.stations import RayProcess, Station
from greenroom.world.rates import Rates

_CONNECTING: Final = 10.0
_MOST_PROCESSES: Final = 8
_SKEW: Final = 1.0
_LOG: Final = logging.getLogger("ray._private.worker")
_SUBMITTED: Final = "RAY_JOB_CONFIG_JSON_ENV_VAR"
_ADDRESS: Final = "RAY_ADDRESS"


class Cluster:
    """Worker processes on the nodes of a Ray cluster."""

    starts_together = False

    def __init__(self, given: Ray, rates: Rates, store: str = "") -> None:
        self.given = given
        self.here = Path.cwd()
        self.root = project_root(self.here)
        self.values = variables(given.env)
        self._rates = rates
        self._store = store
        self._stations: list[Station] = []
        self._planned, self._each = 1, 1
        self._is_ours = False
        self._note: Callable[[str], None] = lambda _: None
        self._numbers = 0

    async def connect(self, count: int | None) -> int:
        """Find the cluster; how many workers to start there, of `count` or one for each of its CPUs."""
        # In a thread: it may take seconds, and in the main thread Ray would take SIGTERM for itself.
        await asyncio.to_thread(self._connect)
        found = [node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]]
        nodes = [cpus for cpus in found if cpus >= self.given.cpus]
        workers = count or max(1, int(sum(nodes) / self.given.cpus))
        most = min((int(cpus / self.given.cpus) for cpus in nodes), default=1)
        usual = min(_MOST_PROCESSES, most, ceil(workers / max(1, len(nodes))))
        self._each = self.given.processes or max(1, usual)
        self._planned = ceil(workers / self._each)
        return workers

    def _connect(self) -> None:
        if ray.is_initialized():
            self._check_connection()
            return
        _check_reachable(self.given.address or os.environ.get(_ADDRESS, ""))
        # Ray warns that it cannot handle SIGTERM in a thread; that is intended, so the warning is hidden.
        level, _ = _LOG.level, _LOG.setLevel(logging.ERROR)
        try:
            with opening_for(processes=True):
                ray.init(
                    self.given.address or "auto",
                    runtime_env=self._runtime_env(),
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
        except ConnectionError as error:
            raise BadInput(_nowhere(self.given.address, error)) from error
        except (errors.RayError, ValueError, RuntimeError) as error:
            raise BadInput(f"the Ray cluster cannot be used: {error}") from error
        finally:
            _LOG.setLevel(level)
        self._is_ours = True

    def _check_connection(self) -> None:
        """Use the connection that the caller's program has; it must have sent the code."""
        if not ray.get_runtime_context().runtime_env.get("working_dir"):
            raise BadInput(
                "this program has connected to Ray without sending its code: give "
                "ray.init(runtime_env={'working_dir': '.'}), or leave the connection to Greenroom."
            )

    def _runtime_env(self) -> dict[str, Any]:
        """What Ray sends to the nodes and shows to everyone: the project's folder, never a value of the environment."""
        pip = {"pip": [*self.given.pip]} if self.given.pip else {}
        submitted: Json = msgspec.json.decode(os.environ.get(_SUBMITTED, "{}"))
        sent = submitted.get("runtime_env") if is_object(submitted) else None
        if is_object(sent) and sent.get("working_dir"):
            return pip  # `ray job submit` has sent it
        excludes = [*EXCLUDED, *self._omitted()]
        return {**pip, "working_dir": str(self.root), "excludes": excludes}

    def _omitted(self) -> list[str]:
        """The folder of the store, if it would be sent with the project."""
        if not self._store or is_server(self._store):
            return []
        folder = Path(os.path.normpath(self.here / self._store))
        if folder == self.root or not folder.is_relative_to(self.root):
            return []
        return [f"/{folder.relative_to(self.root)}"]

    def open(self, note: Callable[[str], None]) -> None:
        """Prepare for the workers of a run."""
        self._note = note
        if not ray.is_initialized():
            self._connect()

    def hire(self) -> RayProcess:
        """Another worker process: next to a relay that has room, else next to a new one or a full one."""
        stations = self._stations = [one for one in self._stations if not one.lost]
        ready = [one for one in stations if one.is_ready]
        free = [one for one in ready if len(one.links) < self._each]
        if not free and len(stations) < self._planned:
            free = [self._new_station()]
        # A worker too many for a node is better than one that waits for room.
        station = min(free or ready or stations, key=lambda one: len(one.links))
        self._numbers += 1
        return RayProcess(station, self._numbers, self.pack, self.values)

    def _new_station(self) -> Station:
        share = {model: rate / self._planned for model, rate in self._rates.items()}
        with opening_for(processes=True):
            actor = (
                ray.remote(Relay)
                .options(
                    num_cpus=self.given.cpus * self._each,
                    max_restarts=0,
                    max_task_retries=0,  # a call that is made twice is a tool that acts twice
                    max_concurrency=1000,
                    scheduling_strategy="SPREAD",
                )
                .remote(share)
            )
        station = Station(actor, self.given.patience, self._check_node)
        self._stations.append(station)
        return station

    def pack(self, briefing: Any) -> Parcel:
        """The briefing with paths as the nodes have them."""
        return pack(briefing, self.root, self.here, withheld(self._store))

    def _check_node(self, found: dict[str, Any], asking: float) -> None:
        """Check that a node has the same Python and Greenroom, else BadInput; a clock that is wrong is noted."""
        python = ".".join(platform.python_version_tuple()[:2])
        ways = {"Python": "", "Greenroom": f", or give Ray(pip=['greenroom=={__version__}'])"}
        for what, ours in (("Python", python), ("Greenroom", __version__)):
            if (theirs := found[what.lower()]) != ours:
                raise BadInput(
                    f"a node of the cluster has {what} {theirs}, but this process {ours}. Ledgers and digests "
                    f"would differ: use the same image for both{ways[what]}."
                )
        if abs(found["now"] - time()) > _SKEW + asking:
            self._note("the clocks of the nodes differ from this one's by more than a second")

    def close(self, *, at_once: bool) -> None:  # noqa: ARG002 - every process has been closed before
        """End the relays, and the connection if it is ours."""
        for station in self._stations:
            station.close()
        self._stations = []
        if self._is_ours and ray.is_initialized():
            self._is_ours = False
            ray.shutdown()


def _check_reachable(address: str) -> None:
    """BadInput if nothing answers at an address: Ray would wait for minutes."""
    if address == "local":
        raise BadInput(_nowhere("", ConnectionError(f"{_ADDRESS} is {address!r}")))
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        with opening_for(), create_connection((host.strip("[]"), int(port)), timeout=_CONNECTING):
            pass
    except OSError as error:
        raise BadInput(_nowhere(address, error)) from error


def _nowhere(address: str, error: Exception) -> str:
    where = address or os.environ.get(_ADDRESS, "")
    asked = f"no Ray cluster answers at {where}" if where else "no Ray cluster runs on this machine"
    return (
        f"{asked} ({error}). Greenroom starts none unasked: start one with `ray start --head`, or name one "
        f"with `--on ray://HOST:10001`."
    )
