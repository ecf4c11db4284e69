"""pytest as a process of its own: with our plug-in and xdist, for others take seconds to load."""

FEW_PLUGINS = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "greenroom.apps.pytest_plugin,xdist.plugin",
}
"""Environment variables; `test_init.py` has pytest find its plug-ins itself."""
