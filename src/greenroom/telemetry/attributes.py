"""Attributes of spans for a trial, an agent and a model: by the conventions, with our own for the rest."""

from typing import Final

from opentelemetry.trace import SpanContext, TraceFlags

from greenroom.ledger.plain import is_object
from greenroom.ledger.questions import Trace, started
from greenroom.ledger.snapshots import called_in
from greenroom.world.middleware.current import Run

Attributes = dict[str, str | int | float]
"""The attributes of a span, by their names in the conventions."""

_PROVIDERS: Final = {
    **{name: name for name in ("openai", "anthropic", "cohere", "deepseek", "groq", "perplexity")},
    **{name: name for name in ("ollama", "openrouter")},
    "google": "gcp.gemini",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
    "grok": "x_ai",
}
"""The prefixes of model names before the colon, and the provider names of the conventions."""


def about_run(run: Run) -> Attributes:
    """Which run it is, and which trial of which case."""
    first = started(run.ledger if run.judged is None else run.judged)
    run_id = run.run_id if first is None else first.run_id
    found: Attributes = {"gen_ai.conversation.id": run_id}
    if run.stored_as:
        found["greenroom.run.id"] = run.stored_as
    if run.backend:
        found["greenroom.backend"] = run.backend
    if run.voice != "agent":
        found["greenroom.voice"] = run.voice
    if first is not None and is_object(first.case):
        found["greenroom.case.id"] = str(first.case.get("id", ""))
        found["greenroom.trial"] = first.trial
        # Each trial of a case, in each run, is a separate conversation.
        found["gen_ai.conversation.id"] = f"{run_id}#{first.trial}@{first.at:.6f}"
    return found


def about_agent(run: Run) -> Attributes:
    """Which agent is running; a flow is named by its parts."""
    first = started(run.ledger)
    name = called_in(first.agent) if first is not None and is_object(first.agent) else ""
    found = {"gen_ai.operation.name": "invoke_agent", **about_run(run)}
    return {**found, "gen_ai.agent.name": name} if name else found


def about_model(model: str) -> dict[str, str]:
    """A model and its provider, if its name contains that."""
    provider, _, name = model.partition(":")
    if not name or provider not in _PROVIDERS:  # "llama3:8b" names no provider
        return {"gen_ai.request.model": model}
    return {"gen_ai.provider.name": _PROVIDERS[provider], "gen_ai.request.model": name}


def context_of(known: Trace) -> SpanContext:
    """The span that a ledger names, as a parent or for a link."""
    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int(known.trace_id, 16), int(known.span_id or "0", 16), True, flags)
