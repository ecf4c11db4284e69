"""What a version of google-adk lacks is known by its lacking graphs, and by nothing less."""

import runpy
import sys

import pytest

from backends.adk.versions import HAS_GRAPHS
from greenroom.backends.adk import versions


@pytest.mark.skipif(not HAS_GRAPHS, reason="this version has no graphs")
@pytest.mark.parametrize("gone", ["tools._node_tool", "workflow._graph", "events.request_input"])
def test_a_version_with_graphs_that_lacks_a_name_is_not_opened(
    monkeypatch: pytest.MonkeyPatch, gone: str
):
    monkeypatch.setitem(sys.modules, f"google.adk.{gone}", None)
    with pytest.raises(ImportError, match=gone):
        runpy.run_path(versions.__file__)


def test_a_version_without_graphs_has_classes_that_nothing_is_an_instance_of(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = runpy.run_path(versions.__file__)
    assert (found["START"], found["Workflow"]().__doc__) == (None, "This version has none.")
