"""How to let a refused tool run for real: the one place for these words of a refusal."""

CALL = "a call of the tool"
"""The route in a refusal of a tool that was called where no case answers."""
PERFORM = "perform()"
"""The route in a refusal of a conversation for real inside a rehearsal."""
REHEARSAL = "a rehearsal"
"""The route in a refusal of a rehearsal inside another."""
SECOND_COPY = "a second copy of the module"
"""The route in a refusal of a framework's module that is loaded again."""
_NETWORK = ("socket.", "ssl.", "asyncio.", "uvloop.Loop.create")


def run_by_name(tool: str) -> str:
    """How to let a tool run that reaches nothing outside."""
    return (
        f"if a tool has no side effects, allow it by name: mocks={{{tool!r}: {tool}}} or "
        f"allow_tools=[{tool!r}]"
    )


def run_with_hosts(tool: str, host: str) -> str:
    """How to let a tool run that reaches this host."""
    return f"mocks={{{tool!r}: live({tool!r}, hosts=[{host!r}])}}"


def mend_breach(route: str) -> str:
    """What to do about code of a case that tried to reach the outside by this route."""
    if route == CALL:
        return "Call it from the agent, where a mock can answer."
    if route == PERFORM:
        return "It acts for real, and a rehearsal must not: mock the tool that calls it."
    if route == REHEARSAL:
        return "Rehearse from outside, and pass the agent that the case is about."
    if route == SECOND_COPY:
        return (
            "The tool gate holds the tools of the first copy: load a framework once in a process."
        )
    if not route.startswith(_NETWORK):
        return "Mock the tool that does it."
    return "Mock the tool that does it, or name it: mocks={...: live(tool, hosts=[...])}."
