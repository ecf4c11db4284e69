"""Reports worth looking at: one with a bit of everything, and one with very many cases."""

from dataclasses import replace
from random import Random
from typing import Any

from greenroom import Case, Expect, Ledger, NotApplicable, Report, Score, Unmeasured, call
from greenroom.ledger import (
    AgentSaid,
    Answer,
    Answered,
    Change,
    Decided,
    Event,
    ModelReplied,
    NodeEnded,
    NodeFailed,
    NodeStarted,
    Noted,
    RunEnded,
    RunStarted,
    Spending,
    StateChanged,
    ToolBlocked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    Usage,
    UserSaid,
    YieldOpened,
)
from greenroom.results import CaseResult, Problem
from greenroom.results.blame import Blame

BEGIN = 1_760_000_000.0


def ledger_of(*timed: tuple[float, Event]) -> Ledger:
    """A ledger with each event at its second."""
    ledger = Ledger()
    for at, event in timed:
        ledger.append(event, at=BEGIN + at)
    return ledger


DESK: dict[str, Any] = {
    "id": "desk", "kind": "sequence", "name": "desk", "parts": {
        "0": {"id": "triage", "kind": "route", "name": "triage", "on": "intent", "parts": {
            "refund": {"id": "clerk", "kind": "agent", "name": "clerk", "model": "gpt-4o-mini",
                       "tools": ["ask", "lookup_order", "refund", "send_mail"]},
            "travel": {"id": "agency", "kind": "agent", "name": "agency", "model": "gpt-4o-mini", "tools": ["cancel_flight"]}}},
        "1": {"id": "closer", "kind": "step", "name": "closer"}},
}  # fmt: skip
"""The agent of the sample reports, as its backend describes it."""


def refund_run(
    order: str = "A-7", amount: int = 120, chat: str = "", bye: str = "You will see it in 3 days."
) -> Ledger:
    """A customer wants their money back; the agent asks, looks it up and pays."""
    reply: dict[str, Any] = {"model": "gpt-4o-mini", "node": "clerk", "source": "live"}
    return ledger_of(
        (0.0, RunStarted(run_id="r1", agent=DESK, state={"session": {"orders": {"A-7": "delivered"}}})),
        (0.0, UserSaid(text=f"Hi, my parcel arrived broken. I want my money back! {chat}".strip())),
        (0.01, NodeStarted(node="clerk", path="@1/clerk")),
        (0.9, ModelReplied(**reply, text="", calls=(call("ask", question="Which order?"),),
                           usage=Usage(412, 31), cost=0.00021, seconds=0.88)),
        (0.91, ToolCalled(call_id="c0", tool="ask", args={"question": "Which order?"})),
        (0.92, YieldOpened(yield_id="y1", type="tool", tool="ask", call_id="c0", prompt="Which order?")),
        (1.6, Answered(answers=(Answer(yield_id="y1", value=order, tool="ask"),),
                       changes=(Change("session", ("order",), "set", order),))),
        (2.4, ModelReplied(**reply, calls=(call("lookup_order", order=order),),
                           usage=Usage(520, 24), cost=0.00026, seconds=0.75)),
        (2.41, ToolCalled(call_id="c1", tool="lookup_order", args={"order": order})),
        (2.7, ToolReturned(call_id="c1", tool="lookup_order", source="mock", seconds=0.29,
                           value={"order": order, "items": [{"sku": f"SKU-{n}", "price": 12.5 * n,
                                  "name": f"Part number {n} of the set"} for n in range(1, 8)]})),
        (2.71, Decided(path="@1/route", choice="refund")),
        (3.3, ToolCalled(call_id="c2", tool="refund", args={"order": order, "amount": amount})),
        (3.45, ToolReturned(call_id="c2", tool="refund", source="mock", value="ok", seconds=0.14,
                            changes=(Change("session", ("orders", order), "set", "refunded"),))),
        (3.5, ToolCalled(call_id="c3", tool="send_mail", args={"to": "sam@example.com"})),
        (3.8, ToolFailed(call_id="c3", tool="send_mail", error="mailbox full", source="mock",
                         error_type="MailError", seconds=0.3)),
        (3.9, StateChanged(changes=(Change("user", ("mood",), "set", "relieved"),))),
        (4.0, Noted(name="guardrail", data={"pii": False})),
        (4.6, ModelReplied(**reply, text="Done", usage=Usage(610, 44), cost=0.00033, seconds=0.6)),
        (4.61, NodeEnded(node="clerk", path="@1/clerk")),
        (4.62, AgentSaid(text=f"I have refunded ${amount} for order {order}.\n{bye}")),
        (5.0, ModelReplied(model="claude-haiku", voice="user", text="Thanks!", usage=Usage(200, 5),
                           cost=0.0001, seconds=0.35)),
        (5.1, UserSaid(text=f"Thanks! That was quick. {chat[::-1]}".strip())),
        (5.2, RunEnded(reason="completed")),
    )  # fmt: skip


REFUND = Case(
    "refund-broken-parcel",
    says="Hi, my parcel arrived broken. I want my money back!",
    expect=Expect(
        tools=["ask", call("lookup_order", order="A-7"), call("refund", order="A-7", amount=99)],
        response="I have refunded $99 for order A-7.",
    ),
    name="A broken parcel is refunded once",
    tags=["refunds", "smoke"],
)

_TOOLS = Score(
    0.67, False, threshold=1.0, name="expected_tools",
    reason="turn 1: wrong arguments refund(order='A-7', amount=120) instead of refund(order='A-7', amount=99)",
    evidence=["turn 1: ask(question='Which order?')", "turn 1: lookup_order(order='A-7')",
              "turn 1: refund(order='A-7', amount=120)"],
    details=[{"turn": 1, "value": 0.67, "missing": [], "extra": ["send_mail(to='sam@example.com')"], "misplaced": [],
              "wrong_arguments": ["refund(order='A-7', amount=120) instead of refund(order='A-7', amount=99)"]}],
)  # fmt: skip
_TRAJECTORY = Score(
    0.5, False, threshold=1.0, name="trajectory",
    reason="missing verify(); extra send_mail(to='sam@example.com')",
    evidence=["turn 1:   lookup_order(order='A-7')", "turn 1: - verify()", "turn 1: ~ refund(order='A-7', amount=120)",
              "turn 1: + send_mail(to='sam@example.com')"],
    details={"match_type": "EXACT", "scope": "turn", "compared": [{
        "turn": 1, "value": 0.5,
        "expected": [{"tool": "lookup_order", "args": {"order": "A-7"}}, {"tool": "verify", "args": {}}],
        "actual": [{"tool": "lookup_order", "args": {"order": "A-7"}},
                   {"tool": "send_mail", "args": {"to": "sam@example.com"}}],
        "missing": ["verify()"], "extra": ["send_mail(to='sam@example.com')"], "misplaced": [],
        "wrong_arguments": []}]},
)  # fmt: skip
_RESPONSE = Score(
    0.0, False, threshold=1.0, name="expected_response",
    reason="turn 1: said 'I have refunded $120 for order A-7.'; expected 'I have refunded $99 for order A-7.'",
    evidence=["turn 1: I have refunded $120 for order A-7."],
)  # fmt: skip
_JUDGE = Score(
    1.0, True, threshold=0.7, name="politeness", reason="2 of 3 votes pass: The agent thanks and explains.",
    details={"reasoning": "The agent thanks and explains.", "votes": [True, False, True],
             "reasonings": ["The agent thanks and explains.", "It never apologises for the damage.", "Warm tone."],
             "agreement": 2 / 3, "samples": 3, "attempts": 3, "cached": 0, "model": "gpt-4o",
             "usage": {"input": 1800, "output": 160}, "cost": 0.0061},
    measured=2,
)  # fmt: skip
_RUBRICS = Score(
    0.5, False, threshold=0.8, name="rubric_quality", reason="1 of 2 rubrics failed: apologises",
    details={"rubrics": {
        "apologises": {"value": 0.0, "passed": False, "reasoning": "No word of regret.", "votes": ["no", "no"],
                       "agreement": 1.0, "text": "The agent apologises for the damage."},
        "concise": {"value": 1.0, "passed": True, "reasoning": "Two sentences.", "votes": ["yes", "yes"],
                    "agreement": 1.0, "text": "The answer is short."}},
        "rubric_scores": {"apologises": 0.0, "concise": 1.0}, "agreement": 1.0, "samples": 2,
        "attempts": 4, "cached": 1, "model": "gpt-4o", "usage": {"input": 900, "output": 80}, "cost": 0.003},
)  # fmt: skip


_NODES = {
    "seq.0/clerk": Spending(Usage(1442, 89), 0.0007, {"gpt-4o-mini": 2}, 0.0007),
    "seq.1/closer": Spending(Usage(100, 10), 0.0001, {"gpt-4o-mini": 1}, 0.0001),
}


def _played(case_id: str, ledger: Ledger, **given: Any) -> CaseResult:
    usual: dict[str, Any] = {
        "status": "passed", "ended": "completed", "turns": 3, "seconds": 5.2, "usage": Usage(1542, 99),
        "cost": 0.0008, "user_usage": Usage(200, 5), "user_cost": 0.0001,
        "models": {"gpt-4o-mini": 3}, "nodes": _NODES, "user_models": {"claude-haiku": 1}, "kept": ledger,
    }  # fmt: skip
    return CaseResult(case_id=case_id, **{**usual, **given})


def rich_report() -> Report:
    """Every status, several trials, judges, a refused call, a run without its ledger."""
    good = {"expected_tools": Score(1.0, threshold=1.0, reason="as expected"), "politeness": _JUDGE}
    fallen = {"expected_tools": _TOOLS, "expected_response": _RESPONSE, "trajectory": _TRAJECTORY,
              "politeness": _JUDGE, "rubric_quality": _RUBRICS, "safety": NotApplicable("no policy is given")}  # fmt: skip
    refused = ledger_of(
        (0.0, RunStarted(run_id="r2")),
        (0.0, UserSaid(text="Cancel my flight, please.")),
        (0.4, ToolBlocked(tool="cancel_flight", args={"id": "LH-1"}, why="no mock is given for it")),
        (0.5, NodeFailed(node="clerk", attempt=1, error="cancel_flight was refused", error_type="Violation")),
        (0.5, RunEnded(reason="error", phase="agent", error="tool 'cancel_flight' has no mock.\nmocks={\n    'cancel_flight': ...\n}", error_type="UnmockedTool")),
    )  # fmt: skip
    passed = _played("refund-happy", refund_run("A-7", 99), scores=good, tags=["refunds", "smoke"])
    failed = _played(
        REFUND.id, refund_run(), status="failed", scores=fallen, tags=REFUND.tags, name=REFUND.name, asked=REFUND,
    )  # fmt: skip
    return Report(
        [
            passed,
            failed,
            _played("flaky-greeting", refund_run(), scores=good, tags=["smoke"]),
            _played("flaky-greeting", refund_run(), status="failed", scores={**good, "politeness": replace(_JUDGE, value=0.33, passed=False, reason="1 of 3 votes pass: Curt.")}, tags=["smoke"], trial=2),
            _played("flaky-greeting", refund_run(), scores=good, tags=["smoke"], trial=3),
            CaseResult(case_id="cancel-flight", status="error", ended="error", error=Problem("agent", "tool 'cancel_flight' has no mock.\nmocks={\n    'cancel_flight': ...\n}", "UnmockedTool"), tags=["travel"], turns=1, seconds=0.5, kept=refused, blamed=Blame("tool_mock", ["cancel_flight has no mock"])),
            _played("endless-chat", refund_run(), status="terminated", ended="max_turns", scores={"expected_tools": Score(0.4, threshold=1.0, reason="turn 3: never reached"), "politeness": Unmeasured("the judge answered nonsense three times")}, tags=["chat"], cost=None, seconds=75.3),
            CaseResult(case_id="later", status="skipped", notes=["not run: 'smoke' did not pass"], tags=["chat"]),
            replace(passed, case_id="no-ledger", kept=None, steps=tuple(failed.trajectory), tags=["travel"]),
        ],
        name="Support desk", seconds=21.4, id="20251009-a1b2", at=BEGIN,
        notes=["2 judges share the model of the agent: their verdicts may lean its way."],
    )  # fmt: skip


def earlier_report() -> Report:
    """A baseline for the rich report: one case did better, one worse, one is gone, one is new."""
    now = rich_report()
    good = {"expected_tools": Score(1.0, threshold=1.0), "expected_response": Score(1.0), "politeness": replace(_JUDGE, value=0.9)}  # fmt: skip
    kept: list[CaseResult] = []
    for result in now.results:
        if result.case_id == REFUND.id:
            run = refund_run("A-7", 99, bye="It takes 3 days.")
            kept.append(replace(result, status="passed", scores=good, kept=run))
        elif result.case_id == "refund-happy":
            kept.append(
                replace(result, status="failed", scores={"expected_tools": Score(0.2, False)})
            )
        elif result.case_id == "cancel-flight":
            kept.append(replace(result, status="passed", error=None, scores=good))
        elif result.case_id != "no-ledger":
            kept.append(result)
    kept.append(replace(now.results[0], case_id="retired-case"))
    return Report(kept, name="main @ 4f2c", seconds=25.0, at=BEGIN - 86_400)


def chatter(seed: int, words: int = 120) -> str:
    """So many made-up words, different for each seed: what real runs say does not repeat itself."""
    chance = Random(seed)
    letters = "etaoinshrdlucmfwypvbg"
    return " ".join("".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(words))


def many_cases(count: int) -> Report:
    """So many cases, one in ten failed and one in fifty broken."""
    tags = ("refunds", "travel", "chat", "billing")
    found: list[CaseResult] = []
    for n in range(count):
        failed, broken = n % 10 == 3, n % 50 == 7
        tools = Score(0.0 if failed else 1.0, threshold=1.0, reason="turn 1: missing refund()" if failed else "as expected")  # fmt: skip
        polite = Score((n * 37 % 101) / 100, True, threshold=0.0, reason="polite enough")
        found.append(
            _played(
                f"case-{n:05}", refund_run(f"A-{n}", n % 300, chatter(n)),
                status="error" if broken else "failed" if failed else "passed",
                error=Problem("agent", f"connection {n} was reset", "ConnectionError") if broken else None,
                scores={"expected_tools": tools, "politeness": polite}, name=f"Customer number {n} wants a refund",
                tags=[tags[n % len(tags)], f"region-{n % 12}"], seconds=1 + n % 70 / 10, cost=n % 91 / 10_000,
            )
        )  # fmt: skip
    return Report(found, name=f"{count:,} customers", seconds=count / 9, at=BEGIN)
