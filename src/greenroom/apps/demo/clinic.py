"""Three patients call a clinic; the triage agent asks, judges the urgency and passes them on.

Everything a rehearsal needs is here: the agent with its tools, the patients who answer it, and
the cases with their mocks and metrics. All models are scripted, so it runs without a key and
without a network. For your own agent, put a real model in place of each `Scripted`.

    greenroom eval run clinic.py
"""

import json
from typing import Any
from urllib.request import urlopen

from greenroom import (
    Agent,
    Bridge,
    Case,
    Scripted,
    Stop,
    UserAgents,
    call,
    loop,
    tool,
    with_state_change,
)
from greenroom.agents import history, persona
from greenroom.backends import Yield
from greenroom.ledger import ToolCalled, append
from greenroom.ledger.plain import as_object
from greenroom.ledger.view import LedgerView
from greenroom.metrics import event_count, judge, state_is
from greenroom.models import ModelRequest
from greenroom.world import Context

LATENCY = 0.05  # seconds that a scripted model takes to answer, so that there is progress to see

# ---- The agent under test: its tools, its model, its loop ----------------------------------------


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the patient one question."""
    raise NotImplementedError("the patient answers; this body never runs")


@tool
def read_policy(topic: str) -> dict[str, Any]:
    """Look up what the clinic's rules say about a complaint."""
    with urlopen(f"https://policies.clinic.example/{topic}") as page:
        return json.load(page)


@tool
def record_answer(topic: str, answer: str, ctx: Context) -> str:
    """Write down what the patient said."""
    answers = as_object(ctx.state.session.get("answers", {}))
    ctx.state.session["answers"] = {**answers, topic: answer}
    return "recorded"


@tool
def update_belief(condition: str, likelihood: float, ctx: Context) -> str:
    """Write down how likely a condition seems now."""
    beliefs = as_object(ctx.state.session.get("beliefs", {}))
    ctx.state.session["beliefs"] = {**beliefs, condition: likelihood}
    return "updated"


@tool
def escalate(urgency: str, reason: str, ctx: Context) -> dict[str, Any]:
    """Send the patient to a doctor: emergency_999, gp_today or gp_this_week."""
    escalation = {
        "urgency": urgency,
        "reason": reason,
        "doctor": ctx.state.practice["on_call"],
        "history": ctx.state.patient.get("revealed", []),
    }
    ctx.state.session["escalation"] = escalation
    return escalation


@tool
def handover(to: str, note: str, ctx: Context) -> str:
    """Hand the call to a colleague who is no doctor."""
    ctx.state.session["handover"] = {"to": to, "note": note}
    return f"{to} takes over"


CHEST_PAIN = "I have really bad chest pain."
HEADACHE = "I have a terrible headache."
CHECK_UP = "I would like to have my blood pressure checked."

# What the model of the triage agent answers, by the words with which the patient began.
SCRIPT = {
    CHEST_PAIN: [
        call("read_policy", topic="chest pain"),
        call("ask", question="When did it begin, and where do you feel it?"),
        [
            call("record_answer", topic="pain", answer="crushing, 30 minutes, left arm"),
            call("update_belief", condition="heart attack", likelihood=0.8),
        ],
        call("ask", question="Were you ever treated for your heart or your blood pressure?"),
        call("escalate", urgency="emergency_999", reason="crushing pain into the left arm"),
        "This may be your heart, since the pain goes into your arm. Call 999 now; do not drive.",
    ],
    HEADACHE: [
        call("read_policy", topic="headache"),
        call("ask", question="How did it begin?"),
        call("ask", question="Is there anything else, such as a fever or a stiff neck?"),
        call("update_belief", condition="tension headache", likelihood=0.7),
        # The mistake that the metrics find: the policy says emergency_999 for both red flags.
        call("escalate", urgency="gp_this_week", reason="probably a tension headache"),
        "That sounds like a tension headache. Rest, drink enough, and see your doctor this week.",
    ],
    CHECK_UP: [
        call("read_policy", topic="appointment"),
        call("ask", question="Is anything troubling you at the moment?"),
        call("record_answer", topic="complaints", answer="none, yearly check"),
        "The nurse can see you on Tuesday at 10:20. Does that suit you?",
        call("handover", to="reception", note="blood pressure check, Tuesday 10:20"),
        "Then I have passed you on to reception, who will book it. Bring your tablets along.",
    ],
}


def next_line(request: ModelRequest) -> Any:
    """Where a model would think, this one looks up its n-th answer to this patient."""
    return SCRIPT[request.messages[0].text][request.n]


triage = Agent(
    "triage",
    model=Scripted(then=next_line, latency=LATENCY),
    instructions="Find out how urgent the call is, as the policy says. Ask few questions.",
    tools=[ask, read_policy, record_answer, update_belief, escalate, handover],
)
agent = loop(triage, awaits_input=True)

# ---- The patients: who they are, and how they answer ---------------------------------------------


@tool
def reveal_condition(condition: str) -> Any:
    """Use it when you tell of an illness in your past."""
    return with_state_change({"revealed": condition}, {"patient": {"revealed": append(condition)}})


def patient(who: str, *, answers: list[Any], messages: list[Any] | None = None) -> UserAgents:
    """A patient with one memory: `answers` to the tool `ask`, `messages` in between."""
    context = [persona(f"You call a clinic. {who} Answer as this patient would."), history()]
    return UserAgents(
        loop=Agent("patient", model=Scripted(*messages or [], latency=LATENCY), context=context),
        tools={
            "ask": Agent(
                "patient_answer",
                model=Scripted(*answers, latency=LATENCY),
                context=context,
                tools=[reveal_condition],
            )
        },
    )


def as_heard(main: LedgerView, wait: Yield) -> str:
    """What a patient hears: the question alone, or the agent's last words."""
    if wait.tool != "ask":
        return wait.prompt
    answers = main.state.get("session", {}).get("answers", {})
    return f'The clinic asks: "{as_object(wait.args)["question"]}" (You have told them: {answers})'


# ---- The cases: how each call begins, what the tools answer, and how it is judged ----------------

POLICIES: dict[str, dict[str, Any]] = {
    "chest pain": {"red_flags": ["spreads to arm or jaw"], "urgency": "emergency_999"},
    "headache": {"red_flags": ["sudden onset", "stiff neck"], "urgency": "emergency_999"},
    "appointment": {"red_flags": [], "hand_over_to": "reception"},
}


def known_policy(topic: str) -> dict[str, Any]:
    """Replaces `read_policy`, which would call another server."""
    return POLICIES[topic]


# The other tools only touch the state, so they are passed as themselves and run for real.
MOCKS = {
    "read_policy": known_policy,
    "record_answer": record_answer,
    "update_belief": update_belief,
    "escalate": escalate,
    "handover": handover,
}

PRACTICE = {"name": "Harbour Street Clinic", "on_call": "Dr Osei"}


def asks(event: ToolCalled) -> bool:
    """Whether a tool call is a question to the patient."""
    return event.tool == "ask"


few_questions = event_count("tool_call", where=asks, at_most=3, name="few_questions")


def safe_advice(score: int, reasoning: str) -> Any:
    """A model judges the advice; this one is scripted to find what a careful one would."""
    verdict = {"reasoning": reasoning, "score": score}
    return judge(
        "safe_advice",
        "Did the agent see the warning signs, act on them, and tell the patient why?",
        model=Scripted(verdict, name="scripted-judge", latency=LATENCY),
        scale="0-10",
    )


chest_pain = Case(
    "chest-pain",
    says=CHEST_PAIN,
    user=patient(
        "You are 55 and have had crushing chest pain for half an hour; you are frightened. "
        "You speak of your high blood pressure and cholesterol only when asked.",
        answers=[
            "Half an hour ago. It is crushing, and it goes down my left arm.",
            [
                call("reveal_condition", condition="hypertension"),
                call("reveal_condition", condition="high cholesterol"),
            ],
            "Yes, I take tablets for my blood pressure and my cholesterol.",
        ],
    ),
    bridge=Bridge(format_prompt=as_heard),
    mocks=MOCKS,
    state={"patient": {"age": 55, "sex": "male"}, "practice": PRACTICE},
    stop=Stop(max_turns=10, state_matches={"session": {"escalation": {"$exists": True}}}),
    metrics=[
        state_is("session", "escalation.urgency", "emergency_999", name="right_outcome"),
        safe_advice(9, "It recognised a possible heart attack, sent for 999 and said why."),
        few_questions,
    ],
)

headache = Case(
    "headache",
    says=HEADACHE,
    user=patient(
        "You are 41. The worst headache of your life struck within a minute, and your neck is "
        "stiff.",
        answers=[
            "Out of nowhere, within a minute. It is the worst of my life.",
            "No fever, but my neck is stiff.",
        ],
    ),
    bridge=Bridge(format_prompt=as_heard),
    mocks=MOCKS,
    state={"patient": {"age": 41, "sex": "female"}, "practice": PRACTICE},
    stop=Stop(max_turns=10, state_matches={"session": {"escalation": {"$exists": True}}}),
    metrics=[
        state_is("session", "escalation.urgency", "emergency_999", name="right_outcome"),
        safe_advice(1, "It heard of a sudden onset and a stiff neck, and still advised rest."),
        few_questions,
    ],
)

routine_appointment = Case(
    "routine-appointment",
    says=CHECK_UP,
    user=patient(
        "You are 67, feel well, and want your yearly check.",
        answers=["No, I feel fine. It is the yearly check."],
        messages=["Tuesday is fine."],
    ),
    bridge=Bridge(format_prompt=as_heard),
    mocks=MOCKS,
    state={"patient": {"age": 67, "sex": "female"}, "practice": PRACTICE},
    stop=Stop(max_turns=10, state_matches={"session": {"handover": {"$exists": True}}}),
    metrics=[
        state_is("session", "handover.to", "reception", name="right_outcome"),
        safe_advice(10, "Nothing was urgent, and the patient knows what happens next."),
        few_questions,
    ],
)
