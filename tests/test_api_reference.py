"""The page of public names is what the source says."""

import re
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


def _sections() -> list[tuple[str, str]]:
    """Every entry of the page, with what stands below its heading."""
    parts = re.split(r"^### `(\w+)`$", PAGE, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def test_every_public_name_says_what_it_promises() -> None:
    silent = [
        name for name, text in _sections() if not re.search(r"^```\n\n\w|^```\n\n`", text, re.M)
    ]
    assert silent == []


def test_every_public_method_says_what_it_promises() -> None:
    silent = [
        f"{name}: {row}"
        for name, text in _sections()
        for row in re.findall(r"^\| `.*\|$", text, re.M)
        if not re.search(r"\| \S.*\S \|$", row)
    ]
    assert silent == []
