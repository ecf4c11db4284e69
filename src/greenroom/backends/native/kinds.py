"""Which kind of flow is run by what."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from greenroom.agents.approvals import Approved
from greenroom.agents.flow import Flow, Loop, Parallel, Route, Sequence, Step
from greenroom.agents.transforms import Transform
from greenroom.backends.native.approvals import run_approved
from greenroom.backends.native.forks import run_parallel
from greenroom.backends.native.walk import (
    Run,
    run_loop,
    run_route,
    run_sequence,
    run_step,
    run_transform,
)

KINDS: Final[Mapping[type[Flow], Run]] = MappingProxyType(
    {
        Step: run_step,
        Transform: run_transform,
        Sequence: run_sequence,
        Parallel: run_parallel,
        Loop: run_loop,
        Route: run_route,
        Approved: run_approved,
    }
)
