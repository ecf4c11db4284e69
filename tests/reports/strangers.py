"""A report in which every text that others may write is the same text."""

from greenroom import Ledger, NotApplicable, Report, Score, Unmeasured
from greenroom.ledger import (
    AgentSaid,
    Answer,
    Answered,
    Change,
    ModelReplied,
    Noted,
    RunEnded,
    RunStarted,
    ToolBlocked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    Usage,
    UserSaid,
    YieldOpened,
)
from greenroom.ledger.trajectory import Step
from greenroom.results import CaseResult, Problem
from greenroom.results.blame import Blame


def talk(text: str) -> Ledger:
    """A run in which everybody says, calls and returns `text`."""
    ledger = Ledger()
    for event in (
        RunStarted(run_id="r", case={"says": text, text: [text]}, state={"session": {text: text}}),
        UserSaid(text=text, changes=(Change("session", ("k",), value=text),)),
        ModelReplied(model=text, text=text, usage=Usage(1, 2), cost=0.1, prices=text),
        ToolCalled(call_id="1", tool=text, args={"a": text, text: [text]}),
        ToolReturned(call_id="1", tool=text, value={"r": text, text: text}, source="mock"),
        ToolCalled(call_id="2", tool=text, args={}),
        ToolFailed(call_id="2", tool=text, error=text, source="live"),
        ToolBlocked(call_id="3", tool=text, args={"a": text}, why=text),
        ToolCalled(call_id="4", tool="ask", args={"prompt": text}),
        YieldOpened(yield_id="4", type="tool", tool="ask", call_id="4", prompt=text),
        Answered(answers=(Answer(yield_id="4", value=text, tool="ask"),)),
        AgentSaid(text=text),
        Noted(name=text, data={"d": text}),
        RunEnded(reason="error", phase="agent", error=text, error_type="Oops"),
    ):
        ledger.append(event, at=0.0)
    return ledger


def result(text: str, case_id: str, **more) -> CaseResult:
    """One whose every text is `text`."""
    return CaseResult(
        case_id=f"{case_id} {text}",
        name=text,
        tags=(text,),
        ended="completed",
        scores={
            text: Score(0.25, reason=text, evidence=[text], details={text: text}, measured=text),
            f"{text} 2": NotApplicable(text),
            f"{text} 3": Unmeasured(text),
        },
        models={text: 1},
        user_models={text: 2},
        notes=(text,),
        usage=Usage(3, 4),
        asked={"id": text, "says": text, "mocks": {text: {"value": text}}, "metadata": {"m": text}},
        blamed=Blame("agent", [text]),
        **more,
    )


def report(text: str) -> Report:
    """Failed, broken, passed and left out, each with `text` everywhere."""
    steps = [
        Step("message", "user", text),
        Step("tool", text, {"a": text}),
        Step("message", "assistant", text),
    ]
    return Report(
        [
            result(text, "a", status="failed", kept=talk(text)),
            result(text, "b", status="error", error=Problem("agent", f"{text}\n{text}", text)),
            result(text, "c", status="terminated", steps=steps),
            result(text, "d", status="passed", kept=talk(text)),
            result(text, "e", status="skipped"),
        ],
        name=text,
        evalset_id=text,
        notes=(text,),
        id="0123",
        at=1.7e9,
    )
