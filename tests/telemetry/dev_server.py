"""Runs a rehearsal next to google-adk's own development server, and prints what its pages show of it."""

import asyncio
import json
import sys
from pathlib import Path

from google.adk.cli.fast_api import get_fast_api_app
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from starlette.testclient import TestClient

from backends.test_middleware_order import adk
from greenroom import Case, simulate
from telemetry.collector import Seen

server = TestClient(get_fast_api_app(agents_dir=sys.argv[1], web=True))
provider = trace.get_tracer_provider()
assert isinstance(provider, TracerProvider)
seen = Seen(provider)
Path(sys.argv[1], "shop").mkdir()
case = Case("c", says="Hi", mocks={"weather": "fine"})
asyncio.run(simulate(case, adk(lambda _: None), middleware=[seen.middleware()]))
calls = [*seen.named("generate_content"), *seen.named("execute_tool")]
ids = [attributes["gcp.vertex.agent.event_id"] for attributes in calls]
shown = [server.get(f"/dev/apps/shop/debug/trace/{one}").json() for one in ids]
print(json.dumps([one.get("greenroom.source") for one in shown]))
