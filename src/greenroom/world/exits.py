"""Code of a case that tries to end the process breaks its case, and nothing else.

Out of a task, `SystemExit` ends the event loop, and an exit code of 0 would look like a pass.
"""

from greenroom.errors import AgentFailed


def tried_to_exit(error: SystemExit) -> AgentFailed:
    """The failure of a case whose code called `sys.exit`."""
    return AgentFailed(f"the code of the case tried to end the process: {error!r}")
