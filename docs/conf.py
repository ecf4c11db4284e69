"""How `make docs` builds the documentation as a site: Sphinx over the pages as they are.

The pages are plain Markdown that code hosts render too, so nothing in them is Sphinx's own. The
side bar is read from the lists in docs/README.md: a page that is not linked there is an error.
"""

import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent
HEADING = re.compile(r"^\*\*(?P<title>[^*]+?):?\*\*", re.M)
LINK = re.compile(r"\]\((?P<page>[^)#:\s]+\.md)\)")

project = "Greenroom"
project_copyright = ""
extensions = ["myst_parser", "sphinx_copybutton"]
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**", "examples/**"]
root_doc = "README"
source_suffix = {".md": "markdown"}

myst_heading_anchors = 6
myst_enable_extensions = ["smartquotes"]
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

html_theme = "furo"
html_title = "Greenroom"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f6f4a", "color-brand-content": "#1f6f4a"},
    "dark_css_variables": {"color-brand-primary": "#7bd3a8", "color-brand-content": "#7bd3a8"},
}
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True


def side_bar(index: Path) -> str:
    """The contents tree of the site: one part for each bold heading of the documentation's index."""
    text = index.read_text(encoding="utf-8")
    starts = [*HEADING.finditer(text)]
    ends = [*(start.start() for start in starts[1:]), len(text)]
    parts: list[str] = []
    for start, end in zip(starts, ends, strict=True):
        pages = [match["page"] for match in LINK.finditer(text, start.end(), end)]
        if not parts:
            pages.insert(0, index.name)
        lines = [f":caption: {start['title']}", ":hidden:", "", *map(_docname, pages)]
        parts.append("\n".join(["```{toctree}", *lines, "```"]))
    return "\n\n".join(parts)


def _docname(page: str) -> str:
    return (ROOT / "docs" / page).resolve().relative_to(ROOT).with_suffix("").as_posix()


def add_side_bar(_: Sphinx, docname: str, source: list[str]) -> None:
    if docname == root_doc:
        source[0] += "\n\n" + side_bar(ROOT / "docs/README.md")
    elif docname == "docs/decisions/README":
        pages = sorted(page.stem for page in (ROOT / "docs/decisions").glob("0*.md"))
        source[0] += "\n\n" + "\n".join(["```{toctree}", ":hidden:", "", *pages, "```"])


def add_front_page(app: Sphinx, failed: Exception | None) -> None:
    """A folder is opened at index.html: the front page is that of the repository."""
    if failed is None:
        shutil.copyfile(Path(app.outdir, "README.html"), Path(app.outdir, "index.html"))


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_side_bar)
    app.connect("build-finished", add_front_page)
