"""The page about the architecture says what the code says."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "architecture.py"))
PAGE = (ROOT / "docs" / "why" / "architecture.md").read_text(encoding="utf-8")


def test_the_walk_counts_the_lines_there_are() -> None:
    assert SCRIPT["counted"](PAGE) == PAGE, "run scripts/architecture.py"


def test_the_drawing_shows_the_rooms_of_the_import_contract() -> None:
    drawn = (ROOT / "docs" / "why" / "rooms.svg").read_text(encoding="utf-8")
    assert drawn == SCRIPT["drawing"](), "run scripts/architecture.py"


def test_every_room_that_is_built_is_drawn() -> None:
    built = {path.stem for path in (ROOT / "src" / "greenroom").iterdir()}
    drawn = {name for floor in SCRIPT["rooms"]() for name in floor}
    assert drawn == built - {"__init__", "__pycache__", "py"}


def test_the_folders_inside_the_rooms_are_listed_as_their_packages_describe_them() -> None:
    assert SCRIPT["listed"](PAGE) == PAGE, "run scripts/architecture.py"
    assert "| `suite/workers/ray` |" in PAGE
