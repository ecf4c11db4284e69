"""pytest inside a test: with our plug-in and xdist, for others take seconds to load."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest

FEW_PLUGINS = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "greenroom.apps.pytest_plugin,xdist.plugin",
}
"""Environment variables; `test_init.py` has pytest find its plug-ins itself."""

ASYNCIO = "pytest_asyncio.plugin"


@contextmanager
def few_plugins() -> Generator[None]:
    """A pytest that is begun in here loads no others, unless it is told to."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in FEW_PLUGINS.items():
            patch.setenv(name, value)
        yield
