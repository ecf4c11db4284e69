"""JSON values, events and ledgers for properties to hold of."""

from hypothesis import strategies as st

from greenroom.ledger import (
    AgentSaid,
    Answer,
    Answered,
    Change,
    Decided,
    Event,
    InvocationEnded,
    Ledger,
    ModelReplied,
    NodeEnded,
    NodeStarted,
    Noted,
    RunEnded,
    RunStarted,
    StateChanged,
    ToolCall,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    Usage,
    UserSaid,
    YieldOpened,
)

TEXTS = st.text(max_size=8)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
ARGS = st.dictionaries(TEXTS, JSON, max_size=3)
KEYS = st.sampled_from(["a", "b", "c"])
CHANGES = st.builds(
    Change,
    scope=st.sampled_from(["session", "patient"]),
    path=st.lists(KEYS, min_size=1, max_size=3).map(tuple),
    op=st.sampled_from(["set", "append", "delete"]),
    value=JSON,
)
SEVERAL = st.lists(CHANGES, max_size=3).map(tuple)
CALLS = st.lists(st.builds(ToolCall, tool=TEXTS, args=ARGS, id=TEXTS), max_size=2).map(tuple)
SECONDS = st.floats(0, 1e9, allow_nan=False)

EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(RunStarted, run_id=TEXTS, case=JSON, agent=JSON, digest=TEXTS),
    st.builds(UserSaid, text=TEXTS, changes=SEVERAL),
    st.builds(AgentSaid, text=TEXTS, path=TEXTS, voice=st.sampled_from(["agent", "user"])),
    st.builds(InvocationEnded, outcome=st.just("failed"), error=TEXTS, phase=st.just("agent")),
    st.builds(NodeStarted, node=TEXTS, input=JSON),
    st.builds(NodeEnded, node=TEXTS, output=JSON, changes=SEVERAL, asks=SEVERAL),
    st.builds(Decided, choice=TEXTS),
    st.builds(
        ModelReplied,
        text=TEXTS,
        calls=CALLS,
        usage=st.none() | st.builds(Usage, input=st.integers(0, 9), output=st.integers(0, 9)),
        cost=st.none() | SECONDS,
        seconds=SECONDS,
    ),
    st.builds(ToolCalled, call_id=TEXTS, tool=TEXTS, args=ARGS, n=st.integers(0, 9)),
    st.builds(
        ToolReturned,
        call_id=TEXTS,
        tool=TEXTS,
        value=JSON,
        source=st.sampled_from(["live", "mock", "user"]),
        changes=SEVERAL,
    ),
    st.builds(ToolFailed, call_id=TEXTS, tool=TEXTS, error=TEXTS, source=st.just("mock")),
    st.builds(YieldOpened, yield_id=TEXTS, type=st.just("tool"), args=ARGS),
    st.builds(
        Answered,
        answers=st.lists(st.builds(Answer, yield_id=TEXTS, value=JSON), max_size=2).map(tuple),
        changes=SEVERAL,
    ),
    st.builds(StateChanged, changes=SEVERAL),
    st.builds(Noted, name=TEXTS, data=JSON),
    st.builds(RunEnded, reason=st.just("error"), phase=st.just("system"), error=TEXTS),
)


def ledger_of(*events: Event, at: float = 0.0) -> Ledger:
    """These events, a second apart."""
    ledger = Ledger()
    for index, event in enumerate(events):
        ledger.append(event, at=at + index)
    return ledger
