"""Runs the cells of a notebook in a kernel, and prints what that showed; a process of its own.

The kernel's connections are such as the fence cannot see, and a test that loaded them would make every
report of the tests next to it say so.
"""

import json
import sys
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS: Any = nbformat.v4


class Watched(NotebookClient):
    """Remembers what the kernel sent to be shown for each cell."""

    shown: list[list[str]]

    def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] in ("display_data", "update_display_data"):
            self.shown[cell_index].append(msg["content"]["data"].get("text/html", ""))
        return super().process_message(msg, cell, cell_index)


def main() -> None:
    notebook = NOTEBOOKS.new_notebook()
    notebook.cells = [NOTEBOOKS.new_code_cell(cell) for cell in json.load(sys.stdin)]
    client = Watched(notebook, kernel_name="python3", timeout=120, allow_errors=True)
    client.shown = [[] for _ in notebook.cells]
    client.execute()
    left = [
        [str(output.get("data", {}).get("text/html", "")) for output in cell.outputs]
        for cell in notebook.cells
    ]
    errors = [
        [output.ename for output in cell.outputs if output.output_type == "error"]
        for cell in notebook.cells
    ]
    print(json.dumps({"shown": client.shown, "left": left, "errors": errors}))


if __name__ == "__main__":
    main()
