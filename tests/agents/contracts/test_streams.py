"""What is wrong with a stream is found before the first model call."""

from collections.abc import AsyncIterator
from typing import Any

from greenroom import Agent, Scripted, loop, route, step
from greenroom.agents import by, check, race, timeout


def writer(**options: Any) -> Agent:
    return Agent("writer", model=Scripted("x"), **options)


@step
async def speak(chunks: AsyncIterator[str]) -> None: ...


@step
async def loud(chunks: AsyncIterator[str]) -> AsyncIterator[str]:
    async for piece in chunks:
        yield piece


@step
def plain(input: str) -> str:
    return input


def kinds(flow: Any) -> list[str]:
    streams = ("Streaming", "Structured", "NothingTo")
    return [
        f"{one.severity} {one.kind} {one.node}"
        for one in check(flow)
        if one.kind.startswith(streams)
    ]


def test_a_stream_that_is_heard_has_no_issue() -> None:
    assert kinds(writer() >> by("sentence", hold=16) >> speak) == []
    assert kinds(writer() >> speak) == []
    assert kinds((writer() | writer()) >> by("word") >> (speak | plain)) == []
    assert kinds(writer() >> loud >> by("word") >> timeout(speak, 5)) == []
    assert kinds(loop(writer() >> by("line") >> speak, max_rounds=2)) == []


def test_a_route_cannot_choose_before_it_has_heard_all() -> None:
    chosen = route("session.kind", a=plain, otherwise=plain)
    for wrong in (chosen, chosen >> plain, timeout(chosen, 5), loop(chosen, max_rounds=1)):
        (issue,) = kinds(writer() >> by("token") >> wrong)
        assert issue.startswith("error StreamingRouteConflict seq.1/")
    (issue,) = [one for one in check(writer() >> by("token") >> chosen) if "Route" in one.kind]
    assert issue.says == (
        "comes after by('token'), but decides by what it is given, so it cannot begin before all "
        "of its input has come."
    )
    assert "Remove by('token')" in issue.fix
    assert kinds(writer() >> by("token") >> speak >> chosen) == []


def test_who_takes_no_pieces_needs_none() -> None:
    assert kinds(writer() >> by("word") >> plain) == ["error StreamingConflict seq.1/plain"]
    assert kinds(writer() >> by("word") >> writer()) == ["error StreamingConflict seq.1/writer"]


def test_pieces_that_come_all_at_once_are_pointed_out() -> None:
    structured = writer(output=dict[str, str])
    assert kinds(structured >> speak) == ["error StructuredStream seq.1/speak"]
    assert kinds(plain >> speak) == ["note NothingToStream seq.1/speak"]
    assert kinds(race(writer(), writer()) >> speak) == ["note NothingToStream seq.1/speak"]


def test_what_the_speaker_writes_is_not_there_for_who_listens() -> None:
    @step(reads="draft")
    async def early(chunks: AsyncIterator[str], state: Any) -> None: ...

    @step(reads="draft")
    async def late(input: str, state: Any) -> None: ...

    def missing(flow: Any) -> list[str]:
        return [one.node for one in check(flow).errors if one.place == "session.draft"]

    wrote = writer(writes="draft")
    assert missing(wrote >> late) == []
    assert missing(wrote >> early) == ["seq.1/early"]
    assert missing(plain >> wrote >> early) == ["seq.2/early"]
    assert missing(wrote >> plain >> early) == []
    assert missing(wrote >> loud >> early) == ["seq.2/early"]
    assert missing(wrote >> writer() >> early) == []
