"""A server with the answers of the web page's routes written down, so that its scripts can be tried without one."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from msgspec import to_builtins

from browser.sample_reports import DESK, earlier_report, refund_run, rich_report
from browser.trees import index
from greenroom.apps.web.labels_page import blind_rows
from greenroom.reports.html import render_html
from greenroom.reports.page.graph import graph_of
from greenroom.reports.page.shell import POLICY, assets, assets_digest, web_page
from greenroom.reports.page.short_values import Trimmer
from greenroom.reports.page.story import story_of
from greenroom.reports.page.timeline import timeline
from greenroom.results.trials import parting
from local_servers import LocalServer

TOKEN = "secret-token"
RUN, OTHER = "20251009-a1b2", "20251008-9f9f"
TEXT = "cases:\n  # kept\n  - id: refund-happy\n    says: hello\n"


@dataclass
class Answers:
    """What the server answers, and what it was asked to do."""

    acts: list[tuple[str, str, Any]] = field(default_factory=list[tuple[str, str, Any]])
    refused: dict[str, tuple[int, Any]] = field(default_factory=dict[str, tuple[int, Any]])
    stream: list[str] = field(default_factory=list[str])
    streams: list[dict[str, list[str]]] = field(default_factory=list[dict[str, list[str]]])
    over: Event = field(default_factory=Event)

    def get(self, path: str, query: dict[str, list[str]]) -> Any:
        report, whole = rich_report(), _index("compare" in path)
        match path.split("/")[2:]:
            case ["here"]:
                return HERE
            case ["runs"]:
                return {"runs": RUNS, "sets": ["desk"], "agents": ["agent.py:desk"], "at": 7}
            case ["runs", _, "stop"]:
                return {"command": "kill -INT 4711"}
            case ["runs", _, "resume"]:
                return {
                    "command": f"greenroom eval run agent.py:desk --resume {RUN}",
                    "code": ["judges.py:polite"],
                }
            case ["children", _]:
                return {"id": "1", "command": "greenroom eval run", "state": "running", "run": RUN}
            case ["trend"]:
                return {"points": POINTS}
            case ["runs", _] | ["compare"]:
                return {**whole["head"], "at": 7}
            case ["runs", _, "progress"]:
                return {"read": 3, "trials": 12}
            case ["runs", _, "rows"] | ["compare", "rows"]:
                return rows_of(whole["rows"], query)
            case ["runs", _, "story"]:
                found = trial_of(report, query)
                return to_builtins(story_of(found, parted=parting(report.by_case()[found.case_id])))
            case ["compare", "story"]:
                case_id = query["case"][0]
                before = earlier_report().by_case().get(case_id, [])
                found = trial_of(report, {"case": [case_id], "trial": query["trial_b"]})
                return to_builtins(story_of(found, before, beside_baseline=True))
            case ["runs", _, "event"]:
                return {
                    "event": {"kind": "tool_called", "seq": int(query["seq"][0])},
                    "trace": ["4c1f", "90ab"],
                }
            case ["runs", _, "agent"] | ["agents", _]:
                return AGENT
            case ["sets", _]:
                return {"id": "desk", "name": "desk.yaml", "text": TEXT, "digest": "d1", "shape": "yaml",
                        "cases": [{"id": "refund-happy", "line": 3}]}  # fmt: skip
            case ["plays"]:
                return {
                    "plays": [{"id": "p1", "name": "desk", "events": 4, "says": "Hi", "at": 1.0}]
                }
            case ["plays", _]:
                return PLAY
            case ["labels"]:
                return {"labels": [{"name": "polite", "question": "Is the agent polite?", "items": 50, "graded": {"ana": 12}},
                                   {"name": "torn", "why": "items.jsonl, line 3: it is not JSON."}]}  # fmt: skip
            case ["labels", _, "next"]:
                return LABELLED
            case ["labels", _, "agreement"]:
                return {"lines": [{"who": ["ana", "the judge"], "says": "You and the judge agree on 41 of 50 (82 %).", "items": 50}],
                        "notes": ["Cannot tell: 2 (left out)."],
                        "apart": [{"item": "i9", "said": {"ana": "no", "the judge": "yes"}, "run": RUN, "case": "refund-happy", "trial": 1}]}  # fmt: skip
            case _:
                return None

    def act(self, method: str, path: str, body: Any) -> Any:
        self.acts.append((method, path, body))
        if path.endswith("/check"):
            bad = [
                {
                    "text": "`expct` is not a key of a turn.",
                    "line": 4,
                    "column": 5,
                    "hint": "Did you mean `expect`?",
                }
            ]
            return {
                "problems": bad if "expct" in body["text"] else [],
                "cases": [{"id": "refund-happy", "line": 3}],
            }
        if path.endswith("/plan"):
            command = f"greenroom eval run agent.py:desk desk.yaml --trials {body['trials']} --budget {body['budget']}"
            return {"plan": "q1", "command": command, "cases": 7, "trials": 7 * body["trials"], "cost": 0.18,
                    "cost_high": 0.25, "seconds": 120, "based_on": 300}  # fmt: skip
        if path == "/api/runs":
            return {"id": "1", "command": "greenroom eval run", "state": "waiting"}
        if path.endswith("/mocks"):
            return {**PLAY, "mocks": body["mocks"], "missing": {}}
        if path.startswith("/api/plays"):
            return PLAY
        if path.startswith("/api/labels"):
            return {**LABELLED, "item": "i2", "done": LABELLED["done"] + 1, "last": body["item"]}
        return {"digest": "d2"}


@cache
def _index(compared: bool) -> dict[str, Any]:
    return index(render_html(rich_report(), baseline=earlier_report() if compared else None))


def trial_of(report: Any, query: dict[str, list[str]]) -> Any:
    trial = int(query["trial"][0])
    return next(one for one in report.by_case()[query["case"][0]] if one.trial == trial)


def rows_of(rows: list[Any], query: dict[str, list[str]]) -> Any:
    order = ("error", "failed", "flaky", "terminated", "skipped", "passed")
    found = sorted(rows, key=lambda row: order.index(row["status"]))
    if "status" in query:
        found = [row for row in found if row["status"] in query["status"]]
    around = query.get("around", [""])[0]
    place = next((n for n, row in enumerate(found) if row["id"] == around), -1)
    count = int(query["count"][0])
    first = place // count * count if place >= 0 else int(query["from"][0])
    return {
        "total": len(found),
        "rows": found[first : first + count],
        "first": first,
        "place": place,
        "at": 7,
    }


LABELLED: dict[str, Any] = {
    "item": "i1", "question": "Is the agent polite?", "answers": ["yes", "no", "cannot tell"], "done": 12, "total": 50,
    "last": "i0", "command": "greenroom labels grade labels/polite --rater ana", "timeline": blind_rows(refund_run()),
}  # fmt: skip
HERE = {
    "version": "1", "store": ".greenroom", "agents": [{"n": 0, "ref": "agent.py:desk", "name": "desk"}],
    "sets": [{"id": "desk", "name": "desk.yaml", "cases": 7}], "labels": ["polite"], "budget": 1.0,
}  # fmt: skip
RUNS = [
    {"id": RUN, "name": "Support desk", "evalset": "desk", "agent": "agent.py:desk", "digest": "4f1dab", "state": "running",
     "begun": 1_760_000_000.0, "trials": 132, "planned": 300, "counts": {"passed": 120, "failed": 9, "error": 3},
     "rate": {"share": 0.93, "text": "93 % ± 5"}, "cost": 0.12, "mine": True},
    {"id": OTHER, "name": "Refunds and questions at the support desk", "evalset": "desk", "agent": "agent.py:desk", "digest": "77aa01", "state": "finished",
     "begun": 1_759_913_600.0, "seconds": 312.0, "trials": 300, "counts": {"passed": 252, "failed": 27, "error": 21},
     "rate": {"share": 0.84, "text": "84 % ± 4"}, "cost": 0.31},
]  # fmt: skip
POINTS = [
    {"run": f"r{n}", "begun": 1_759_000_000.0 + n * 86_400, "rate": 0.6 + n * 0.04, "low": 0.5 + n * 0.04,
     "high": 0.7 + n * 0.04, "cost": 0.3, "digest": "a" if n < 4 else "b", "set_digest": "xxxzxxyy"[n]}
    for n in range(8)
]  # fmt: skip
TIMELINE = timeline(refund_run(), Trimmer())
AGENT = {
    "ref": "agent.py:desk", "name": "desk", "graph": to_builtins(graph_of(DESK) or graph_of({"name": "none"})),  # type: ignore[arg-type]
    "issues": [{"code": "CannotTell", "text": "closer reads session.refund, which may be missing.",
                "place": "seq.1/route.refund/seq.1/approval", "hint": "Declare what that writes: writes=..., or reads=... if it only reads."}],
    "links": [["clerk", "closer", "session.refund"]], "estimate": "about $0.0011 a case", "mermaid": "flowchart TD\n",
}  # fmt: skip
PLAY: dict[str, Any] = {
    "id": "p1", "agent": 0, "name": "desk", "timeline": TIMELINE, "events": 28, "cost": 0.0021,
    "mocks": {"lookup_order": {"state": "shipped"}}, "tools": ["lookup_order", "refund"],
    "values": [["session.order", "A-7"], ["session.customer.orders", [{"id": f"A-{n}", "items": ["cup", "saucer"]} for n in range(9)]]],
    "waits": [{"id": "y1", "tool": "approve", "prompt": "Refund $120?", "args": {"amount": 120}}],
    "missing": {"refund": "ok"},
}  # fmt: skip


@contextmanager
def served_pages() -> Generator[tuple[str, Answers]]:
    """Where the server is, and its answers."""
    answers = Answers()
    server = LocalServer(("127.0.0.1", 0), _handler(answers))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", answers
    finally:
        answers.over.set()
        server.shutdown()
        server.server_close()


def _handler(answers: Answers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # A page has some thirty scripts: over lines that stay open it loads in a fraction of the time.
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            address = urlsplit(self.path)
            path, query = unquote(address.path), parse_qs(address.query)
            if path.startswith(f"/a/{assets_digest()}/"):
                name = path.rpartition("/")[2]
                kind = "text/css" if name.endswith(".css") else "text/javascript"
                return self._send(200, assets()[name], kind, "immutable, max-age=31536000")
            if not path.startswith("/api/"):
                return self._send(200, web_page(), "text/html")
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                return self._json(401, {"error": "The key to this page is missing."})
            if path == "/api/stream":
                return self._stream(query)
            found = answers.get(path, query)
            return self._json(
                404 if found is None else 200, found or {"error": f"nothing at {path}"}
            )

        def _act(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = urlsplit(self.path).path
            if path in answers.refused:
                return self._json(*answers.refused.pop(path))
            return self._json(200, answers.act(self.command, path, json.loads(body or b"null")))

        do_POST = do_PUT = do_DELETE = _act  # noqa: N815

        def _stream(self, query: dict[str, list[str]]) -> None:
            answers.streams.append(query)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            sent = 0
            while not answers.over.wait(0.02):
                try:
                    for block in answers.stream[sent:]:
                        self.wfile.write(block.encode())
                        sent += 1
                        if block.startswith(": cut"):
                            return
                    self.wfile.flush()
                except OSError:
                    return

        def _json(self, status: int, value: Any) -> None:
            self._send(status, json.dumps(value), "application/json")

        def _send(self, status: int, text: str, kind: str, cache: str = "no-store") -> None:
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("Cache-Control", cache)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler
