"""Text that tries to act: hundreds of payloads, and a report with one in every field that holds text."""

from itertools import product

from browser.sample_reports import ledger_of
from greenroom import Ledger, NotApplicable, Report, Score, Unmeasured
from greenroom.ledger import (
    AgentSaid,
    Answer,
    Answered,
    BranchCancelled,
    Change,
    Corrected,
    Decided,
    ModelFailed,
    ModelReplied,
    NodeEnded,
    NodeFailed,
    NodeStarted,
    Noted,
    RunEnded,
    RunStarted,
    StateChanged,
    StateConflicted,
    ToolBlocked,
    ToolCall,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    UserSaid,
    YieldOpened,
)
from greenroom.ledger.plain import Json
from greenroom.results import CaseResult, Problem
from greenroom.results.blame import Blame

CANARY = "window.__pwned=1"

_ACTS = (
    f"<script>{CANARY}</script>",
    f"<img src=x onerror={CANARY}>",
    f"<svg onload={CANARY}>",
    f"<svg><script>{CANARY}</script></svg>",
    "<iframe srcdoc='<script>parent.__pwned=1</script>'></iframe>",
    f"<iframe src=javascript:{CANARY}></iframe>",
    f"<details open ontoggle={CANARY}>x</details>",
    f"<input autofocus onfocus={CANARY}>",
    f"<video><source onerror={CANARY}></video>",
    f"<a href=javascript:{CANARY}>x</a>",
    f"<form action=javascript:{CANARY}><button>x</button></form>",
    f"<object data=javascript:{CANARY}></object>",
    f"<embed src=javascript:{CANARY}>",
    f"<math><mtext></mtext><mglyph><style><!--</style><img title='--><img src=x onerror={CANARY}>'>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href=https://evil.example/>",
    "<style>@import 'https://evil.example/x.css';*{background:url(https://evil.example)}</style>",
    "<img src=https://evil.example/pixel.png>",
    f"javascript:{CANARY}",
    f"data:text/html,<script>{CANARY}</script>",
    f"';{CANARY};//",
    f"\\u003cscript>{CANARY}</script>",
    f"&lt;script&gt;{CANARY}&lt;/script&gt;",
    f"&#60;script&#62;{CANARY}&#60;/script&#62;",
    f"${{{CANARY}}}",
    f"{{{{constructor.constructor('{CANARY}')()}}}}",
)
_AROUND = (
    "{}",
    "</script>{}",
    "</SCRIPT\t>{}",
    "</title>{}",
    "</style>{}",
    "</textarea></noscript>{}",
    "--><!--{}",
    "]]>{}",
    "\"'>{}",
    "' autofocus onfocus=window.__pwned=1 x='{}",
    "\u202e\x00\u2028{}\u2029\ufeff",
    "</td></tr></table></section>{}",
)

PAYLOADS = tuple(around.format(act) for act, around in product(_ACTS, _AROUND))
SOME_PAYLOADS = tuple(
    around.format(act)
    for (m, act), (n, around) in product(enumerate(_ACTS), enumerate(_AROUND))
    if (m + n) % 4 == 0
)
"""A quarter of them, in which every act and everything around one occurs several times."""


def hostile_run(bad: str) -> Ledger:
    """A run in which everything that is text says `bad`."""
    deep: dict[str, Json] = {bad: [bad, {bad: bad}], "long": bad * 20}
    change = (Change(bad, (bad, bad), "set", deep),)
    return ledger_of(
        (0, RunStarted(run_id=bad, case={bad: bad}, agent={bad: bad}, state={bad: {bad: bad}})),
        (0, UserSaid(text=bad, changes=change)),
        (1, NodeStarted(node=bad, path=bad, input=bad)),
        (1, ModelReplied(node=bad, model=bad, text=bad, calls=(ToolCall(bad, {bad: bad}),), seconds=1)),
        (1, ModelFailed(model=bad, error=bad, error_type=bad)),
        (1, Corrected(text=bad)),
        (1, ToolCalled(call_id="1", tool=bad, args=deep)),
        (2, ToolReturned(call_id="1", tool=bad, value=deep, source="mock", changes=change)),
        (2, ToolCalled(call_id="2", tool=bad, args={bad: bad})),
        (2, ToolFailed(call_id="2", tool=bad, error=bad, error_type=bad, source="refused")),
        (2, ToolBlocked(tool=bad, args=deep, why=bad)),
        (2, YieldOpened(yield_id=bad, type="tool", tool=bad, call_id=bad, args=deep, prompt=bad)),
        (3, Answered(answers=(Answer(yield_id=bad, value=bad, tool=bad), Answer(yield_id="x", value=deep)), changes=change)),
        (3, Decided(path=bad, choice=bad)),
        (3, BranchCancelled(path=bad)),
        (3, StateChanged(changes=change)),
        (3, StateConflicted(scope=bad, key=bad, values=[bad, deep])),
        (3, Noted(name=bad, data=deep)),
        (3, NodeFailed(node=bad, path=bad, attempt=1, error=bad, error_type=bad)),
        (3, NodeEnded(node=bad, path=bad, output=bad, changes=change)),
        (4, AgentSaid(text=bad)),
        (4, UserSaid(text=bad, voice="user")),
        (4, RunEnded(reason="error", phase="agent", error=bad, error_type=bad)),
    )  # fmt: skip


def hostile_result(bad: str, case_id: str) -> CaseResult:
    """A result in which everything that is text says `bad`."""
    item = {
        "value": 0.0,
        "passed": False,
        "reasoning": bad,
        "votes": [bad, bad],
        "text": bad,
        bad: bad,
    }
    judged = {bad: bad, "reasoning": bad, "votes": [bad, bad], "reasonings": [bad, bad], "model": bad,
              "rubrics": {bad: item}, "claims": [item], "judges": {bad: {"unmeasured": bad}}, "turns": {bad: [{"label": bad, "reasoning": bad}]}}  # fmt: skip
    called = [{"turn": 1, "value": 0.0, "expected": [{"tool": bad, "args": {bad: bad}}, bad], "actual": [bad],
               "missing": [bad], "extra": [bad], "misplaced": [bad], "wrong_arguments": [bad]}]  # fmt: skip
    scores = {
        bad: Score(0.0, False, reason=bad, evidence=[bad, f"- {bad}", f"turn 1: + {bad}"], details=judged, measured={bad: bad}, name=bad),
        f"{bad}1": Score(0.0, False, reason=bad, details=called, name=bad),
        f"{bad}2": Score(0.0, False, reason=bad, details={"expected": bad, "actual": f"{bad}!", "compared": called}),
        f"{bad}3": NotApplicable(bad),
        f"{bad}4": Unmeasured(bad),
    }  # fmt: skip
    return CaseResult(
        case_id=case_id, status="error", name=bad, tags=[bad], scores=scores, ended="error", notes=[bad],
        error=Problem("agent", bad, bad), models={bad: 1}, user_models={bad: 1}, kept=hostile_run(bad),
        asked={"id": bad, bad: [bad]}, blamed=Blame("agent", [bad]), seconds=4, turns=1,
    )  # fmt: skip


def hostile_report(payloads: tuple[str, ...] = PAYLOADS) -> Report:
    """A case for every payload; its id is hostile too, and it comes with a trial without a ledger."""
    found: list[CaseResult] = []
    for number, bad in enumerate(payloads):
        result = hostile_result(bad, f"{number} {bad}")
        found.append(result)
        if number % 10 == 0:
            found.append(CaseResult(case_id=result.case_id, status="failed", trial=2, scores=result.scores, ended="completed", steps=result.trajectory))  # fmt: skip
    bad = "".join(_ACTS)
    return Report(found, name=bad, notes=[bad, *_ACTS], id=bad, evalset_id=bad, seconds=1, at=1.0)
