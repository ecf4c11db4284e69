"""Tools called past any World: who answers for them, and who refuses them.

| the work that calls | what happens |
|---|---|
| of a case | its host answers: mock, named body or refusal |
| of a metric or hook | refused by the guard of its enclosure |
| of no case, while a rehearsal is open | refused; every open case ends as an error |
| of no case, and none is open | nothing: the tool runs |
"""

from greenroom.errors import ToolRefused
from greenroom.simulation.fence.probes import where
from greenroom.simulation.fence.scope import Breach, answerable, fenced, stray
from greenroom.world.bodies import watch_everywhere
from greenroom.world.presence import Host, find_hosts_by


def watch_tools() -> None:
    """Ask about every tool that is called past a World, ours and those of frameworks."""
    watch_everywhere(check_body)
    find_hosts_by(host_here, check_body)


def host_here() -> Host | None:
    """Who answers for agents that come alive in the running work."""
    scope = answerable()
    return scope.host() if scope is not None and scope.host is not None else None


def check_body(origin: object, name: str) -> None:
    """Refuse a tool that is called directly, unless whoever answers for this work lets it run."""
    scope = answerable()
    if scope is not None:
        if scope.body_guard is not None:
            scope.body_guard(origin, name)
    elif fenced():
        breach = Breach("a call of the tool", name, where())
        stray(breach)
        raise ToolRefused(
            f"another task of this process tried {breach} while a rehearsal was open; it was not "
            f"run. No case started this work, so every case that is open ends as an error."
        )
