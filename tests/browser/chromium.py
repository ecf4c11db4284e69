"""A real Chromium for tests of pages: opened without a network, and listened to."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ON_MACS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


def browser_path() -> str | None:
    """Where this machine keeps a Chromium, if it does."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    return found or next((path for path in _ON_MACS if Path(path).exists()), None)


@dataclass
class Heard:
    """What a page did that a report must not do, apart from what was expected of it."""

    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        """Whether it kept quiet."""
        return not (self.errors or self.requests or self.dialogs)

    def listen_to(self, page: Any) -> None:
        """Note everything from now on; a policy's refusal shows up as an error of the console."""
        page.on(
            "console",
            lambda said: said.type in ("error", "warning") and self.errors.append(said.text),
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._request)
        page.on("dialog", self._dialog)
        page.on("popup", lambda _: self.requests.append("a popup"))

    def _request(self, request: Any) -> None:
        if not (request.is_navigation_request() and request.url.startswith("file://")):
            self.requests.append(request.url)

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()


@contextmanager
def chromium() -> Generator[Any]:
    """A headless Chromium; where none can be had the test is skipped and says so."""
    path = browser_path()
    if path is None:
        pytest.skip("no Chromium on this machine; `make browser` installs one where it may")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(
    browser: Any, file: Path, hash: str = "", **options: Any
) -> Generator[tuple[Any, Heard]]:
    """A page with this file in it, and what was heard of it."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, **options)
    try:
        page = context.new_page()
        heard = Heard()
        heard.listen_to(page)
        page.goto(f"{file.as_uri()}{hash}")
        yield page, heard
    finally:
        context.close()


def until(page: Any, expression: str, tries: int = 12_000) -> Any:
    """The value of an expression once it is true. The page's policy forbids Playwright's own waiting."""
    for _ in range(tries):
        if value := page.evaluate(expression):
            return value
        page.wait_for_timeout(50)
    raise AssertionError(f"never became true: {expression}")
