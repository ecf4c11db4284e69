"""Shell completion: click knows the words, the shell needs a script to ask for them."""

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

_SHELLS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete,
    "zsh": ZshComplete,
    "fish": FishComplete,
}
_VARIABLE = "_GREENROOM_COMPLETE"


def script(shell: str) -> str:
    """The script for one shell."""
    made = _SHELLS[shell](click.Group(), {}, "greenroom", _VARIABLE)
    # `source()` of bash asks a bash for its version first, which need not be installed here.
    return made.source_template % made.source_vars()
