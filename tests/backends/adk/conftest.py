"""Older versions of google-adk have no graphs, so what is about graphs is left out there."""

from backends.adk.versions import HAS_GRAPHS

_ABOUT_GRAPHS = [
    "test_graphs.py",
    "test_graph_bypasses.py",
    "test_inside_graphs.py",
    "test_to_adk.py",
    "test_to_adk_apps.py",
    "test_to_adk_documents.py",
    "test_to_adk_random.py",
]
collect_ignore = [] if HAS_GRAPHS else _ABOUT_GRAPHS


def pytest_report_header() -> list[str]:
    return [f"google-adk has no graphs here: {file} is left out" for file in collect_ignore]
