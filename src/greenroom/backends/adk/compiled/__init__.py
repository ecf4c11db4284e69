"""Flows of Greenroom as apps of google-adk."""

from collections.abc import Sequence
from typing import Any

from google.adk.apps import App

from greenroom.agents.flow import as_flow
from greenroom.agents.graph import compile_flow
from greenroom.backends.adk.compiled.compiler import START, Compiler
from greenroom.backends.adk.compiled.forms import KINDS, check_forms
from greenroom.backends.adk.compiled.nodes import answer_node
from greenroom.backends.adk.versions import HAS_GRAPHS, Workflow
from greenroom.errors import CannotCompile

__all__ = ["to_adk"]


def to_adk(flow: object, *, name: str = "", plugins: Sequence[Any] = ()) -> App:
    """The flow as an `App` of google-adk, for its `Runner`, `adk run` and `adk web`.

    Agents become `LlmAgent`s, and the flow between them a `Workflow`. `name` is the app's name, `plugins`
    are google-adk plug-ins. CannotCompile lists everything that google-adk has no equivalent for.
    """
    graph = compile_flow(as_flow(flow))
    if not HAS_GRAPHS:
        why = "this version of google-adk has no graphs. Install google-adk 2 or newer."
        raise CannotCompile([(graph.root.id, why)])
    check_forms(graph)
    compiler = Compiler(KINDS)
    called = compiler.layout.name(name or graph.root.segment)
    body = compiler.part(graph.root, "")
    answer = answer_node(compiler, graph)
    root = Workflow(name=called, edges=[(START, body, answer)])
    return App(name=name or called, root_agent=root, plugins=list(plugins))
