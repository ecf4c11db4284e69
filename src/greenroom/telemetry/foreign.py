"""The spans of frameworks: finds the one that represents the current call."""

import sys
from typing import Any, Final, Literal

from opentelemetry import trace
from opentelemetry.trace import Span

Operation = Literal["chat", "execute_tool"]

OURS: Final = "greenroom"
"""The name under which our own spans are written."""

_NAMES: Final = {
    "chat": frozenset(("chat", "generate_content", "text_completion", "call_llm")),
    "execute_tool": frozenset(("execute_tool",)),
}
_KINDS: Final = {"chat": "LLM", "execute_tool": "TOOL"}
COUNTS_TOKENS: Final = frozenset(("gcp.vertex.agent", "pydantic-ai"))
"""Scopes of frameworks that record the tokens of a call as a metric themselves."""
TAKES_TIMES: Final = frozenset(("gcp.vertex.agent",))
"""Scopes of frameworks that record the duration of a call themselves."""
MAY_TRACE: Final = frozenset(("google-adk", "pydantic-ai", "langgraph"))
"""Backends whose frameworks may write their own spans."""
ALWAYS_TRACES: Final = frozenset(("google-adk",))
"""Backends whose frameworks write spans whenever the process has a provider."""


def scope_of(span: Span) -> str:
    """The instrumentation scope of a span."""
    return str(getattr(getattr(span, "instrumentation_scope", None), "name", ""))


def is_foreign(span: Span) -> bool:
    """Whether a span was opened by another tracer, and is being recorded."""
    return span.is_recording() and scope_of(span) != OURS


def span_for(operation: Operation, name: str) -> Span | None:
    """The framework's own span of the current call; None if it has none."""
    current = trace.get_current_span()
    if is_foreign(current) and _stands_for(current, operation, name):
        return current
    # OpenInference's spans for LangChain, which are never made the current span.
    module = sys.modules.get("openinference.instrumentation.langchain")
    get_current_span: Any = getattr(module, "get_current_span", None)
    found = None if get_current_span is None else get_current_span()
    return found if found is not None and is_foreign(found) else None


def _stands_for(span: Span, operation: Operation, name: str) -> bool:
    attributes: Any = getattr(span, "attributes", None) or {}
    first, _, rest = str(getattr(span, "name", "")).partition(" ")
    said = attributes.get("gen_ai.operation.name")
    if said is not None:
        if said not in _NAMES[operation]:
            return False
    elif first not in _NAMES[operation]:
        # google-adk writes the kind of a tool's span only at its end; until then its name shows it.
        return attributes.get("openinference.span.kind") == _KINDS[operation]
    return operation != "execute_tool" or rest in ("", name)
