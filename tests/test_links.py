"""Every link between the pages leads to a file, and to a heading that is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("examples/*.md")),
]
LINK = re.compile(r"\]\((?!\w+:)(?P<path>[^)#\s]*)(?:#(?P<heading>[^)\s]+))?\)")
FENCED = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
HEADING = re.compile(r"^#{1,6} +(?P<text>.+?)\s*$", re.M)


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The names that headings can be linked by, made as code hosts make them."""
    texts = [match["text"].lower() for match in HEADING.finditer(prose(page))]
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", t)).replace(" ", "-") for t in texts}


def broken_links(page: Path) -> list[str]:
    broken: list[str] = []
    for link in LINK.finditer(prose(page)):
        target = page.parent / link["path"] if link["path"] else page
        missing = not target.exists()
        if missing or (link["heading"] and link["heading"] not in anchors(target)):
            broken.append(link[0])
    return broken


def test_every_link_of_a_page_leads_somewhere() -> None:
    broken = {page.relative_to(ROOT).as_posix(): broken_links(page) for page in PAGES}
    assert {page: links for page, links in broken.items() if links} == {}


def test_a_link_to_a_missing_page_or_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`, c\n[x](#a-b-c) [y](#d) [z](gone.md) [w](https://example.org/gone)\n")
    assert broken_links(page) == ["](#d)", "](gone.md)"]
