"""The function that runs each kind of flow."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from greenroom.agents.approvals import Approved
from greenroom.agents.boundaries import Apart
from greenroom.agents.flow import Fallback, Flow, Parallel, Sequence, Step
from greenroom.agents.forks import MapOver, Race
from greenroom.agents.guards import Timeout
from greenroom.agents.handoffs import Team
from greenroom.agents.remote import Remote
from greenroom.agents.routes import Loop, Route
from greenroom.agents.transforms import Transform
from greenroom.backends.native.approvals import run_approved
from greenroom.backends.native.boundaries import run_apart
from greenroom.backends.native.forks import run_map, run_parallel, run_race
from greenroom.backends.native.guards import run_fallback, run_timeout
from greenroom.backends.native.handoffs import run_team
from greenroom.backends.native.remotes import run_remote
from greenroom.backends.native.sequences import (
    run_loop,
    run_route,
    run_sequence,
    run_step,
    run_transform,
)
from greenroom.backends.native.walk import NodeRunner

KINDS: Final[Mapping[type[Flow], NodeRunner]] = MappingProxyType(
    {
        Step: run_step,
        Transform: run_transform,
        Sequence: run_sequence,
        Parallel: run_parallel,
        Race: run_race,
        MapOver: run_map,
        Fallback: run_fallback,
        Timeout: run_timeout,
        Apart: run_apart,
        Loop: run_loop,
        Route: run_route,
        Approved: run_approved,
        Team: run_team,
        Remote: run_remote,
    }
)
