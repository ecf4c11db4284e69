"""`make docs` builds a site from the pages: whole, searchable, and quiet."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .browser.chromium import browser_path, chromium

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with every warning as an error: dead links, pages that nothing links to."""
    pytest.importorskip("sphinx", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", "-c", "docs"]
    built = subprocess.run(
        [*command, "-d", str(folder / "trees"), ".", str(folder / "out")],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder / "out"


def test_every_page_of_the_documentation_is_in_the_side_bar(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT).with_suffix(".html") for path in ROOT.glob("docs/**/*.md")]
    linked = set(re.findall(r'href="([^"#]+)"', front))
    missing = [page.as_posix() for page in pages if page.as_posix() not in linked]
    assert [page for page in missing if not page.startswith("docs/decisions/0")] == []


@pytest.mark.skipif(browser_path() is None, reason="there is no Chromium")
def test_the_search_finds_a_page_and_asks_no_one_outside(site: Path) -> None:
    asked: list[str] = []
    with chromium() as browser:
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{(site / 'search.html').as_uri()}?q=middleware")
        # Results are added one after the other.
        page.get_by_text("Code around model and tool calls").first.wait_for()
    assert [url for url in asked if not url.startswith("file:")] == []
