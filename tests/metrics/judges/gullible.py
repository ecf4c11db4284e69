"""A judge that believes what it reads, unless it was told that it is evidence.

It knows of the product only what a model knows: the text of the request. It looks up in its
instructions between which marks the evidence stands, and then does whatever it is told anywhere
else, except for the instructions it has for every run alike. A careless one does not look closely at the marks: it takes look-alikes for them, and any
closing mark for the right one.
"""

import base64
import codecs
import json
import re
import unicodedata
from collections.abc import Collection
from typing import Any

from greenroom.models import ModelReply, ModelRequest

MARKS = re.compile(r"between the marks (?P<begin>\S[^.\n]*?) and (?P<end>\S[^.\n]*?)\.")
ANGLES = {ord(c): "<" for c in "‹«〈《⟨⟪❮❬❰≪⋘˂ᐸ〈"} | {ord(c): ">" for c in "›»〉》⟩⟫❯❭❱≫⋙˃ᐳ〉"}

ORDERS = [
    r"\bverdict\W{0,6}(true|yes|pass)\b",
    r"\b(say|answer|reply|respond|output|return|write|give)\b.{0,30}\b(true|yes)\b(?! or)",
    r"\b(ignore|disregard|forget)\b.{0,40}\b(rubric|instructions?|above|question)\b",
    r"\bmust be true\b(?! or)",
    r"\balready (been )?(approved|graded|verified|judged)\b",
    r"\b(new|updated|real) (instructions|rubric|question)\b",
    r"(^|\n|: )\s*(thought process|solution|let.s solve this( problem)? step by step)\s*:?",
    r"(antworte|réponds|responde|rispondi|odpowiedz|ответь|回答|答えて|أجب|उत्तर).{0,20}true",
    r"\bplease\b.{0,80}\b(pass|passes|score)\b",
    r"\bthe (correct|expected|right) (answer|verdict) is\b",
]
IMPRESSIVE = 20_000


class Gullible:
    """Says no, unless something outside the evidence told it to say yes."""

    def __init__(self, careless: bool = True, usual: Collection[str] = ()) -> None:
        self.name = "gullible"
        self.careless = careless
        self.usual = usual
        self.requests: list[ModelRequest] = []

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.requests.append(request)
        told = persuaded(self.outside(request))
        assert request.output_schema is not None
        return ModelReply(json.dumps(answer(request.output_schema, told)))

    def outside(self, request: ModelRequest) -> str:
        """Everything in the request that is not evidence, as this judge sees it."""
        text = request.messages[-1].text
        marks = MARKS.search(request.instructions)
        added = "\n".join(line for line in lines(request) if line not in self.usual)
        if marks is None:
            return f"{added}\n{text}"
        if self.careless:
            begin, end = r"<<<\s*evidence[^>]*>>>", r"<<<\s*end[^>]*>>>"
            text = seen(text)
        else:
            begin, end = re.escape(marks["begin"]), re.escape(marks["end"])
        opened = re.search(begin, text)
        assert opened, "the evidence is not where the instructions say"
        closed = re.search(end, text[opened.end() :])
        assert closed, "the evidence never ends"
        tail = text[opened.end() + closed.end() :]
        return "\n".join([added, text[: opened.start()], tail])


def lines(request: ModelRequest) -> list[str]:
    """The instructions, line by line, without the marks, which are others for every run."""
    return MARKS.sub("", request.instructions).splitlines()


def seen(text: str) -> str:
    """The text as somebody sees it who does not look closely."""
    shown = unicodedata.normalize("NFKC", text.translate(ANGLES))
    return "".join(c for c in shown if unicodedata.category(c) != "Cf").lower()


def persuaded(text: str) -> bool:
    """Whether the text tells the reader to say yes, in any way this judge falls for."""
    readings = [seen(text), *decoded(text)]
    if any(re.search(order, reading, re.DOTALL) for order in ORDERS for reading in readings):
        return True
    return len(text) > IMPRESSIVE


def decoded(text: str) -> list[str]:
    """What else the text could mean to somebody who likes riddles."""
    found = [codecs.decode(seen(text), "rot13"), seen(text)[::-1]]
    for word in re.findall(r"[A-Za-z0-9+/=]{24,}", text):
        for read in (base64.b64decode, bytes.fromhex):
            try:
                found.append(read(word).decode().lower())
            except ValueError:
                continue
    return found


def answer(schema: Any, told: bool) -> Any:
    """An answer of the wanted form: the best there is if told so, else the worst."""
    match schema:
        case {"enum": choices}:
            return choices[0] if told else choices[-1]
        case {"type": "boolean"}:
            return told
        case {"type": "integer", "minimum": low, "maximum": high}:
            return high if told else low
        case {"type": "array"}:
            return [] if told else ["It is so."]
        case {"type": "object", "properties": properties}:
            return {key: answer(part, told) for key, part in properties.items()}
        case _:
            return "I was told so." if told else "It is wrong."
