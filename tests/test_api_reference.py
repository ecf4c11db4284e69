"""The page of public names is what the source says."""

import runpy
from pathlib import Path

import greenroom

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")


def test_the_page_is_what_the_source_says() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "api_reference.py"))
    assert script["page"]() == PAGE, "run scripts/api_reference.py"


def test_every_first_name_is_on_the_page_with_a_promise() -> None:
    for name in greenroom.__all__:
        [row] = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` | [")]
        assert len(row.split(" | ")[2].strip(" |")) > 10, row


def test_a_named_default_is_shown_as_its_value() -> None:
    assert "concurrency: int = 4," in PAGE
    assert "CONCURRENCY" not in PAGE
