"""The suite for backends: one that passes it is as safe and as honest as Greenroom's own agents.

    import pytest
    from greenroom.testing import BackendConformance, Blueprint, Bypass

    class MyHarness:
        backend = MyBackend

        def build(self, plan: Blueprint): ...
        async def run_bare(self, agent, says): ...
        def bypasses(self): return {"a hook that calls the tool": Bypass(...)}

    class TestMine(BackendConformance):
        harness = MyHarness()

What a backend declares (`models`, `tool_calls`, `resumes`, `supports`) decides what is tested: a test of
something undeclared is skipped and says so; a declaration that is not true fails.
The tests are plain functions, so no plug-in for async tests is needed.
"""

from greenroom.testing.conformance.events import Events
from greenroom.testing.conformance.gate import TheGate
from greenroom.testing.conformance.hooks import Hooked
from greenroom.testing.conformance.inside import Inside
from greenroom.testing.conformance.limits import Limits
from greenroom.testing.conformance.pauses import Pauses
from greenroom.testing.conformance.recorded import Cutting, Forks, Replays
from greenroom.testing.conformance.repeats import Repeating
from greenroom.testing.conformance.replies import Replies


class BackendConformance(
    TheGate, Events, Replies, Replays, Forks, Pauses, Cutting, Limits, Repeating, Inside, Hooked
):
    """Subclass it with a `harness`, and pytest collects the suite for that backend."""
