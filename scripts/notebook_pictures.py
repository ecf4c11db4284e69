"""Draw the pictures of docs/how-to/notebooks.md: a real notebook, run by a kernel and shown in a browser.

Needs the `dev` extra, nbconvert and a Chromium. Run it after what a notebook shows has changed.
"""

import asyncio
import copy
import shutil
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).parents[1] / "docs" / "how-to" / "pictures"
WIDTH = 860
NOTEBOOKS: Any = nbformat.v4

SETTING = """
import asyncio
from greenroom import Agent, Case, Expect, evaluate
from greenroom.metrics import contains
from greenroom.models import ModelReply

class Clerk:
    name = "clerk-1"
    asked = 0
    async def respond(self, request, on_delta=None):
        self.asked += 1
        await asyncio.sleep(0.15)
        return ModelReply("Which order?" if self.asked % 4 == 0 else "Your refund is on its way.",
                          cost=0.0004, prices="demo")

agent = Agent("clerk", model=Clerk())
cases = [Case(name, says="Money back, please.", metrics=[contains("refund")],
              expect=Expect(response="Your refund is on its way."))
         for name in ("polite", "angry", "in-a-hurry", "twice", "foreign", "quiet")]
"""
SHOWN = "report = await evaluate(agent, cases, concurrency=1, store=False)\nreport"


class Watched(NotebookClient):
    """A client that keeps the cell as it looked in the middle of the run."""

    middle: Any = None

    def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
        """Take a message in, as usual."""
        found = super().process_message(msg, cell, cell_index)
        if "4 of 6" in str(msg["content"].get("data", "")):
            self.middle = copy.deepcopy(cell)
        return found


def main() -> None:
    """Run the notebook, and draw it in the middle and at its end."""
    notebook = NOTEBOOKS.new_notebook()
    notebook.cells = [NOTEBOOKS.new_code_cell(SETTING), NOTEBOOKS.new_code_cell(SHOWN)]
    client = Watched(notebook, kernel_name="python3")
    asyncio.run(client.async_execute())
    PICTURES.mkdir(exist_ok=True)
    draw(client.middle, PICTURES / "notebook-progress.png")
    draw(notebook.cells[1], PICTURES / "notebook-report.png")


def draw(cell: Any, target: Path) -> None:
    """A picture of one cell with its output."""
    page = NOTEBOOKS.new_notebook(cells=[cell])
    html, _ = HTMLExporter(template_name="lab").from_notebook_node(page)
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if browser is None:
        sys.exit("there is no Chromium; scripts/install_browser.sh installs one.")
    with sync_playwright() as engine:
        opened = engine.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        shown = opened.new_page(viewport={"width": WIDTH, "height": 600})
        shown.route("http*://**", lambda route: route.abort())
        shown.set_content(html, wait_until="domcontentloaded")
        shown.locator(".jp-Cell").first.screenshot(path=target)
        opened.close()


if __name__ == "__main__":
    main()
