"""Answers that are reused when the very same question is asked: kept on disk, or found in a ledger.

    cache = AnswerCache(".greenroom/judges")
    world = CachedWorld(world, cache)

The key is a digest of the whole request and of how often it was asked before, so that five votes
stay five. Each answer is its own file, written atomically, so any number of processes may share a
folder. A file that is incomplete, foreign or altered counts as absent.
"""

import json
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import Any, cast

from msgspec.structs import replace

from greenroom.errors import BadFile, StoreFailed
from greenroom.ledger.events import ModelCalled, ModelReplied
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Message, Usage
from greenroom.ledger.ownership import check_ownership
from greenroom.ledger.plain import Json, as_object, is_object, plain
from greenroom.ledger.private_folders import make_home
from greenroom.ledger.text_files import text_of
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta, send_piece
from greenroom.world.records import answer_model, given_again
from greenroom.world.world import Around, World

Accepts = Callable[[ModelReply], bool]

PLACE = ".greenroom/judges"
PLACE_VARIABLE = "GREENROOM_JUDGES"
_FORMAT = 1
_LARGEST = 4_000_000


class AnswerCache:
    """A folder of answers. Without a path: `$GREENROOM_JUDGES`, else `.greenroom/judges`."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path or os.environ.get(PLACE_VARIABLE) or PLACE)
        # The owner of the folder could answer in a judge's place.
        check_ownership(self.path)

    @classmethod
    def of(cls, given: "AnswerCache | str | Path | None") -> "AnswerCache | None":
        """The given cache, or the one in the given folder; None stays None."""
        return cls(given) if isinstance(given, str | Path) else given

    def get(self, key: str) -> ModelReply | None:
        """The answer kept under `key`; None if there is none, or none that can be read."""
        try:
            place = self._place(key)
            check_ownership(self.path, folders=[place.parent], files=[place])
            data = json.loads(text_of(place, _LARGEST))
            if not is_object(data) or data.get("format") != _FORMAT or data.get("key") != key:
                return None
            kept = cast("Mapping[str, Any]", data)
            text, model = kept.get("text"), kept.get("model")
            if not isinstance(text, str) or not isinstance(model, str):
                return None
            if kept.get("seal") != _seal(key, text, model):
                return None  # it was edited
            return ModelReply(text, (), None, None, "", model)
        except (BadFile, StoreFailed, ValueError, RecursionError):
            return None

    def put(self, key: str, reply: ModelReply) -> bool:
        """Keep an answer; False if it holds a secret, or the folder cannot be written to.

        That does no harm: it is asked for again.
        """
        from greenroom.ledger.redaction import without_secrets  # loaded where it is used

        if without_secrets(reply.text) != reply.text or reply.attachments:
            return False  # judges quote what they read, and an entry is stored as plain text
        place = self._place(key)
        try:
            make_home(self.path)
            place.parent.mkdir(parents=True, exist_ok=True)
            seal = _seal(key, reply.text, reply.model)
            data = {"format": _FORMAT, "key": key, "text": reply.text, "model": reply.model}
            # Written atomically: readers see the whole file or nothing.
            text = json.dumps({**data, "seal": seal})
            draft = place.with_name(f"{place.stem}.{os.getpid()}.{get_ident()}.tmp")
            try:
                draft.write_text(text, encoding="utf-8")
                draft.replace(place)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
        except (OSError, ValueError):
            return False
        return True

    def clear(self) -> int:
        """Forget every answer, and say how many there were; other files are left alone."""
        places = list(self._places())
        for place in (*places, *self.path.glob("??/*.tmp")):
            place.unlink(missing_ok=True)
        return len(places)

    def __len__(self) -> int:
        return sum(1 for _ in self._places())

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"AnswerCache({str(self.path)!r})"

    def _place(self, key: str) -> Path:
        return self.path / key[:2] / f"{key}.json"

    def _places(self) -> Iterator[Path]:
        return (p for p in self.path.glob("??/*.json") if _is_key(p.stem, p.parent.name))


class CachedWorld(Around):
    """A world whose models are asked once: earlier answers are reused.

    Only replies that pass `accepts` are kept, and those found are asked for again unless they pass
    it too. `key` is for one question that may need several requests; without it each request has its
    own key.
    """

    def __init__(
        self,
        inner: World,
        answers: AnswerCache,
        *,
        key: str = "",
        accepts: Accepts | None = None,
    ) -> None:
        super().__init__(uncached(inner))
        self.answers = answers
        self.answered = 0
        self._key = key
        self._accepts = accepts

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """The answer given before, labelled `cached`; else the model's, which is kept."""
        found = self._found(request)
        if found is not None:
            self.answered += 1
            request = replace(request, digest=key_of(request, 0))
            return await answer_model(self.inner, request, _again(found), on_delta, "cached")
        reply = await self.inner.call_model(request, body, on_delta)
        if self._is_accepted(reply):
            self.answers.put(self._key_of(request), reply)
        return reply

    def knows(self, request: ModelRequest) -> bool:
        """Whether a usable answer to this request is kept."""
        return self._found(request) is not None

    def _found(self, request: ModelRequest) -> ModelReply | None:
        found = self.answers.get(self._key_of(request))
        return found if found is not None and self._is_accepted(found) else None

    def _key_of(self, request: ModelRequest) -> str:
        return self._key or key_of(request, request.n)

    def _is_accepted(self, reply: ModelReply) -> bool:
        # Tool calls belong to one run; a reply with calls must not be reused in another.
        return not reply.calls and (self._accepts is None or self._accepts(reply))


class RememberingWorld(Around):
    """A world that continues after an interruption: it answers from its own ledger first.

    The same question is answered as often as it was answered there. The digest of each question is
    recorded, by which its answer is found again. `trial` names the trial that is asked about.
    """

    def __init__(self, inner: World, trial: str = "") -> None:
        super().__init__(inner)
        self.trial = trial
        self._answers = answers_in(inner.ledger)

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """The answer from before the interruption; else the world inside is asked."""
        digest = key_of(request, 0)
        known = self._answers[digest].popleft() if self._answers.get(digest) else None
        if known is None:
            return await self.inner.call_model(replace(request, digest=digest), body, on_delta)
        await send_piece(on_delta, known.text)
        return given_again(known)


def trial_of(world: World) -> str:
    """The name of the trial that is asked about in a world; "" if it has none."""
    while isinstance(world, Around):
        if isinstance(world, RememberingWorld):
            return world.trial
        world = world.inner
    return ""


def answers_in(ledger: Ledger) -> dict[str, deque[ModelReplied]]:
    """The answers to each question that has a digest, in order."""
    asked: dict[tuple[str, str, int], str] = {}
    found: dict[str, deque[ModelReplied]] = defaultdict(deque)
    for event in ledger:
        if isinstance(event, ModelCalled) and event.digest:
            asked[event.path, event.node, event.n] = event.digest
        elif isinstance(event, ModelReplied):
            digest = asked.pop((event.path, event.node, event.n), "")
            if digest:
                found[digest].append(event)
    return found


def answers_of(world: World) -> AnswerCache | None:
    """The cache a world answers from, if it has one."""
    return world.answers if isinstance(world, CachedWorld) else None


def uncached(world: World) -> World:
    """The world without its cache, so that every question is asked again."""
    return world.inner if isinstance(world, CachedWorld) else world


def key_of(request: ModelRequest, number: int, extra: str = "") -> str:
    """The digest of everything that an answer depends on.

    `number` distinguishes repetitions of one question that should each have their own answer; `extra` is
    what the request does not contain, such as the model's options.
    """
    tools = [[tool.name, tool.description, tool.parameters] for tool in request.tools]
    whole: list[object] = [
        _FORMAT,
        request.model,
        extra,
        request.agent,
        request.node,
        request.path,
        request.instructions,
        [_message_data(message) for message in request.messages],
        plain(tools),
        plain(request.output_schema),
        number,
    ]
    return sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _message_data(message: Message) -> Json:
    data = as_object(plain(message))
    if not message.attachments:
        del data["attachments"]  # so that keys from before attachments existed stay valid
    return data


def _again(reply: ModelReply) -> ModelBody:
    """The kept reply; reusing it costs no tokens and no money."""

    async def body(_: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        await send_piece(on_delta, reply.text)
        return ModelReply(reply.text, (), Usage(), 0.0, "cached", reply.model)

    return body


def _seal(key: str, text: str, model: str) -> str:
    """The digest of an entry, by which an edited one is recognised."""
    return sha256(json.dumps([key, text, model]).encode()).hexdigest()


def _is_key(name: str, folder: str) -> bool:
    return len(name) == 64 and name[:2] == folder and not name.strip("0123456789abcdef")
