"""What the adapter relies on in google-adk is kept, and what a version changes is named."""

import runpy
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[3] / "scripts" / "adk_surface.py"
surface: dict[str, Any] = runpy.run_path(str(SCRIPT), run_name="surface")


def test_the_installed_version_has_what_was_kept_of_it() -> None:
    assert surface["main"]() == 0


def test_what_is_gone_new_or_changed_is_named() -> None:
    before = {"a": ["x", "y"], "b": ["x"], "c": None, "d": ["x", "y"]}
    now = {"a": ["x", "z"], "b": None, "c": ["x"], "d": ["y", "x"]}
    assert surface["differences"](before, now) == [
        "a: without y; with z",
        "b: is gone",
        "c: is new",
        "d: in another order",
    ]
