"""A simulated user's goals: how the user says that one is reached, and what proves it.

A user marks a goal inside its reply: `<done 2>Your money is on its way.</done>`, with the agent's own
words between. The mark is a claim. Only words that the agent said make it a shown goal.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from greenroom.cases.words import is_whole
from greenroom.ledger.events import AgentSaid, InvocationEnded
from greenroom.ledger.ledger import Ledger

_OPEN = re.compile(r"<done\s+#?[\"']?(\d{1,4})[\"']?\s*>", re.IGNORECASE)
_CLOSE = re.compile(r"</done\s*>", re.IGNORECASE)
_AROUND = " \t\r\n\"'“”„«»"
_SHORTEST = 2


class Said(Struct, frozen=True):
    """A simulated user's reply, taken apart: its words, the goals it marks, whether it is the last.

    `marked` pairs the number of a goal, from 1, with the words that should show it.
    """

    message: str
    marked: tuple[tuple[int, str], ...] = ()
    is_last: bool = False


def read_reply(text: str, stop_signal: str) -> Said:
    """Parse a simulated user's text, separating the marks that are not meant for the agent."""
    message: list[str] = []
    marked: list[tuple[int, str]] = []
    at = 0
    while opened := _OPEN.search(text, at):
        closed = _CLOSE.search(text, opened.end())
        if closed is None:
            break
        message.append(text[at : opened.start()])
        marked.append((int(opened[1]), text[opened.end() : closed.start()].strip(_AROUND)))
        at = closed.end()
    message.append(text[at:])
    said = "".join(message).strip() if marked else text
    return Said(said, tuple(marked), stop_signal in said)


class Claim(Struct, frozen=True):
    """A goal that the user called reached, with the words quoted for it.

    `shown` says whether the agent had said these words by then.
    """

    goal: str
    quote: str
    shown: bool


def claims(ledger: Ledger, goals: Sequence[str], stop_signal: str) -> list[Claim]:
    """The goals that the user called reached in this trial, in order, from marks in the user's replies."""
    found: list[Claim] = []
    heard: list[str] = []
    for event in ledger:
        if isinstance(event, AgentSaid) and event.voice == "agent":
            heard.append(event.text)
        elif isinstance(event, InvocationEnded) and event.voice == "user":
            said = read_reply(event.output, stop_signal) if isinstance(event.output, str) else None
            for number, quote in said.marked if said else ():
                if 1 <= number <= len(goals):
                    found.append(Claim(goals[number - 1], quote, quoted(quote, heard)))
    return found


def shown_goals(found: Iterable[Claim]) -> list[str]:
    """The goals that at least one claim shows, each once."""
    return list(dict.fromkeys(claim.goal for claim in found if claim.shown))


def quoted(quote: str, texts: Iterable[str]) -> bool:
    """Whether this quote occurs in one of the texts, as whole words, ignoring spacing."""
    wanted = _spaced(quote)
    if len(wanted) < _SHORTEST:
        return False
    places = re.compile(f"(?=({re.escape(wanted)}))")
    return any(
        is_whole(spaced, *found.span(1))
        for spaced in map(_spaced, texts)
        for found in places.finditer(spaced)
    )


def _spaced(text: str) -> str:
    return " ".join(text.split())
