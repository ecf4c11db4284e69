"""Writes docs/reference/errors.md from the errors themselves.

    python scripts/errors_reference.py

A test fails while the page says something else than this would write.
"""

import inspect
from pathlib import Path

from greenroom.apps.cli.explain import ERRORS
from greenroom.errors import GreenroomError

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "errors.md"

_TOP = """\
# Errors, by name

<!-- Written by scripts/errors_reference.py from src/greenroom/errors.py; change that, and run it again. -->

Every error has a name, says what is wrong and where, and what to do next. `greenroom explain NAME` prints
the same as this page. Phases and exit codes are described under [outcomes](outcomes.md).
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_TOP, *(_section(name, kind) for name, kind in ERRORS.items())])


def _section(name: str, kind: type[GreenroomError]) -> str:
    parents = [base.__name__ for base in kind.__bases__ if base.__name__ in ERRORS]
    above = "".join(f"*A kind of [{parent}](#{parent.lower()}).*\n\n" for parent in parents)
    return f"## {name}\n\n{above}{inspect.cleandoc(kind.__doc__ or '')}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
