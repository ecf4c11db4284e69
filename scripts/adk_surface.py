"""What our adapter relies on in google-adk, kept as data; says what another version has changed.

    python scripts/adk_surface.py            compare the installed version with the newest one kept
    python scripts/adk_surface.py --write    keep the installed version's surface too

Where something is missing or other than it was, it is printed, one line each, and the script fails.
"""

import importlib
import inspect
import json
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_name("adk_surface.json")
RELIED_ON = (
    "google.adk.agents:BaseAgent",
    "google.adk.agents:LlmAgent",
    "google.adk.agents:BaseAgent.run_async",
    "google.adk.agents:LlmAgent._run_impl",
    "google.adk.apps:App",
    "google.adk.agents.context:Context.run_node",
    "google.adk.events:Event",
    "google.adk.events:EventActions",
    "google.adk.evaluation.eval_case:EvalCase",
    "google.adk.evaluation.eval_case:Invocation",
    "google.adk.evaluation.eval_metrics:EvalMetric",
    "google.adk.evaluation.eval_metrics:PrebuiltMetrics",
    "google.adk.evaluation.eval_set:EvalSet",
    "google.adk.evaluation.eval_result:EvalCaseResult",
    "google.adk.flows.llm_flows.functions:_call_tool_async",
    "google.adk.flows.llm_flows.functions:__call_tool_async",
    "google.adk.flows.llm_flows.functions:_call_tool_in_thread_pool",
    "google.adk.models.base_llm:BaseLlm.generate_content_async",
    "google.adk.models.base_llm:BaseLlm.connect",
    "google.adk.models.llm_request:LlmRequest",
    "google.adk.models.llm_response:LlmResponse",
    *(
        f"google.adk.plugins.base_plugin:BasePlugin.{name}"
        for name in (
            "on_user_message_callback",
            "before_run_callback",
            "on_event_callback",
            "after_run_callback",
            "before_agent_callback",
            "after_agent_callback",
            "before_model_callback",
            "after_model_callback",
            "on_model_error_callback",
            "before_tool_callback",
            "after_tool_callback",
            "on_tool_error_callback",
        )
    ),
    "google.adk.runners:Runner.__init__",
    "google.adk.runners:Runner.run_async",
    "google.adk.sessions:Session",
    "google.adk.sessions:InMemorySessionService.create_session",
    "google.adk.sessions:InMemorySessionService.append_event",
    "google.adk.tools.base_tool:BaseTool.run_async",
    "google.adk.tools.base_tool:BaseTool.process_llm_request",
    "google.adk.tools.base_toolset:BaseToolset.get_tools_with_prefix",
    "google.adk.tools.function_tool:FunctionTool._invoke_callable",
    "google.adk.workflow:Workflow",
    "google.adk.workflow:FunctionNode.__init__",
    "google.adk.workflow:JoinNode",
)


def surface() -> dict[str, Any]:
    """What the installed version has of each."""
    return {name: described(name) for name in RELIED_ON}


def described(name: str) -> Any:
    """The fields of a model, the values of an enumeration, the signature of a function; None if missing."""
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    fields = getattr(found, "model_fields", None)
    if fields is not None:
        return sorted(fields)
    if hasattr(found, "__members__"):
        return sorted(str(member.value) for member in found)
    parameters = inspect.signature(found).parameters.values()
    return [re.sub(r" at 0x\w+", "", one.name) for one in parameters]


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What has changed from one version to another, one line each."""
    lines: list[str] = []
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if old is None or new is None:
            lines.append(f"{name}: {'is new' if old is None else 'is gone'}")
            continue
        gone = [one for one in old if one not in new]
        added = [one for one in new if one not in old]
        said = [f"without {', '.join(gone)}"] if gone else []
        said += [f"with {', '.join(added)}"] if added else []
        lines.append(f"{name}: {'; '.join(said) or 'in another order'}")
    return lines


def main() -> int:
    """Compare, or keep."""
    kept: dict[str, dict[str, Any]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    installed, now = version("google-adk"), surface()
    if "--write" in sys.argv[1:]:
        kept[installed] = now
        KEPT.write_text(f"{json.dumps(dict(sorted(kept.items())), indent=1)}\n")
        return 0
    versions = sorted(kept, key=lambda one: [int(n) for n in re.findall(r"\d+", one)])
    against = installed if installed in kept else versions[-1]
    lines = differences(kept[against], now)
    if lines:
        lines.append(
            f"google-adk {installed} is other than {against} was, in {len(lines)} places that the "
            f"adapter relies on. Look at each, run the tests of tests/backends/adk, then keep it: "
            f"python scripts/adk_surface.py --write"
        )
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
