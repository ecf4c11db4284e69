"""How a case's user answers: a user agent runs on the user's side, and its answer is checked."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct, structs

from greenroom.agents.agent import Agent
from greenroom.agents.flow import Flow, as_flow
from greenroom.backends.backend import Failed, Finished, TurnOver, Yield
from greenroom.backends.native import NativeBackend
from greenroom.backends.task_group import together
from greenroom.cases.case import Case
from greenroom.cases.goals import claims, read_reply, shown_goals
from greenroom.cases.users import Lines, SimulatedUser, UserAgents
from greenroom.errors import BadValue, Refusal, UserAgentFailed
from greenroom.ledger.attachments import attachments_in, message_value
from greenroom.ledger.changes import Change, conflicts, unwrapped
from greenroom.ledger.events import (
    Answer,
    Answered,
    InvocationEnded,
    InvocationStarted,
    NodeEnded,
    ToolReturned,
    UserSaid,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import is_blank
from greenroom.ledger.origin import summarize_error
from greenroom.ledger.paths import within
from greenroom.ledger.plain import Json, as_text, plain
from greenroom.ledger.view import LedgerView
from greenroom.simulation.user.bridge import Bridge, default_prompt
from greenroom.simulation.user.users import played_by
from greenroom.world.world import World


class Reply(Struct, frozen=True):
    """A user agent's answer, and its changes to the agent's state. None: the user is done."""

    value: Json
    asks: tuple[Change, ...] = ()


class UserSide:
    """The user's side of one case."""

    def __init__(self, case: Case, user: UserAgents, ledger: Ledger, world: World) -> None:
        self._case = case
        self._script = case.script
        self._user = user
        self._bridge = case.bridge or Bridge()
        self._ledger = ledger
        self._world = world
        self._cast: dict[int, Agent] = {}
        self.speaking: list[str] = []
        """The user agents that are running; a deadline that passes now counts as theirs."""

    def remember(self, said: str, heard: str, key: str) -> None:
        """Add what the script said to the memory of the agents that play the user."""
        if not self._has_players:
            return
        root = f"script@{key}"
        index = self._ledger.index_of("user")
        if root in index.invocations_ended:
            return
        if root not in index.invocations:
            self._world.record(InvocationStarted(path=root, input=heard or None))
        self._world.record(InvocationEnded(path=root, outcome="turn_over", output=said))

    @property
    def _has_players(self) -> bool:
        roles = (r.last if isinstance(r, Lines) else r for r in self._user.roles)
        return any(map(_is_run, roles))

    def _last_words(self) -> str:
        spoken = list(self._ledger.index_of().spoken.values())
        return spoken[-1].text if spoken else ""

    def _place(self, rank: int = 0) -> int:
        """How much of the script was said; with a blank first turn the agent speaks first."""
        opened = bool(self._script) and self._script[0].is_blank
        return len(user_messages(self._ledger)) + opened + rank

    @property
    def would_speak(self) -> bool:
        """Whether the user might say something more after a finished turn."""
        role, n = self._user.loop, self._place() - len(self._script)
        if n < 0:
            return True
        return role.line(n) is not None if isinstance(role, Lines) else role is not None

    async def next_message(self) -> tuple[Json, tuple[Change, ...]] | None:
        """What the user says after a finished turn, or None when they have nothing to add."""
        place = self._place()
        if place < len(self._script):
            turn = self._script[place]
            self.remember(turn.says, self._last_words(), self._world.new_id("turn", place))
            return turn.message, ()
        speaker = _speaker(self._user.loop, place - len(self._script))
        if speaker is None:
            return None
        wait = Yield(self._world.new_id("turn", place), "message", prompt=self._last_words())
        reply = await self._reply(wait, speaker)
        return None if reply is None else (self._message(reply), reply.asks)

    async def answers(self, yields: Sequence[Yield]) -> list[Reply] | None:
        """One reply to each wait, found concurrently; None when the user leaves for good."""
        for index, wait in enumerate(yields):
            await self._announce(wait, _rank(yields, index))
        replies = await together(
            [self._answer(wait, _rank(yields, index)) for index, wait in enumerate(yields)]
        )
        return None if any(reply is None for reply in replies) else [r for r in replies if r]

    async def _announce(self, wait: Yield, rank: int) -> None:
        """Begin a user agent's run before any other of its round continues, so that none sees another's answer."""
        root = f"{wait.tool or 'loop'}@{wait.id}"
        if wait.type == "message" and self._place(rank) < len(self._script):
            return
        role = _speaker(self._role(wait), self._position(wait, rank))
        if _is_run(role) and root not in self._ledger.index_of("user").invocations:
            with self._waiting_for(wait):
                prompt = await self._format_prompt(wait, role)
            self._world.record(InvocationStarted(path=root, input=prompt))

    def _role(self, wait: Yield) -> object:
        return self._user.loop if wait.type == "message" else self._user.tools.get(wait.tool)

    def _position(self, wait: Yield, rank: int) -> int:
        """How often the one who answers this wait has been asked before."""
        if wait.type == "message":
            return self._place(rank) - len(self._script)
        answers = (a for event in self._ledger.of(Answered) for a in event.answers)
        return sum(answer.tool == wait.tool for answer in answers) + rank

    async def _answer(self, wait: Yield, rank: int) -> Reply | None:
        place = self._place(rank)
        if wait.type == "message" and place < len(self._script):
            turn = self._script[place]
            self.remember(turn.says, wait.prompt, wait.id)
            return Reply(turn.message)
        role = self._role(wait)
        if role is None and not (wait.type == "tool" and wait.tool in self._user.tools):
            raise UserAgentFailed(_missing(self._case, wait))
        speaker = _speaker(role, self._position(wait, rank))
        if speaker is None and isinstance(role, Lines):
            what = f"answer to tool {wait.tool!r}" if wait.tool else "next message"
            raise UserAgentFailed(
                f"the agent of case {self._case.id!r} waits for the user's {what}, but {role!r} is "
                f"used up. Add a line, or give Lines(..., then=...)."
            )
        reply = await self._reply(wait, speaker)
        return (
            structs.replace(reply, value=self._message(reply)) if reply and not wait.tool else reply
        )

    async def _reply(self, wait: Yield, role: object) -> Reply | None:
        """Ask the role, and once more with the reason if its answer cannot be used."""
        with self._waiting_for(wait):
            try:
                return await self._fitting(wait, role)
            except _Misfit as misfit:
                if not _is_run(role):
                    raise UserAgentFailed(misfit.problem) from None
                ask_again = str(misfit)
            try:
                return await self._fitting(wait, role, ask_again)
            except _Misfit as misfit:
                raise UserAgentFailed(misfit.problem) from None

    @contextmanager
    def _waiting_for(self, wait: Yield) -> Generator[None]:
        """Keep those asked on the list while they speak, and after a timeout: then the time was theirs."""
        who = _asked_by(wait)
        self.speaking.append(who)
        try:
            yield
        except Exception:
            self.speaking.remove(who)
            raise
        self.speaking.remove(who)

    async def _fitting(self, wait: Yield, role: object, problem: str = "") -> Reply | None:
        reply = await self._ask(wait, role, wait.tool or "loop", problem)
        return self._checked(wait, reply) if reply else None

    def _checked(self, wait: Yield, reply: Reply) -> Reply:
        if wait.check is None or self._user.validate == "off":
            return reply
        try:
            return structs.replace(
                reply, value=wait.check(reply.value, self._user.validate == "strict")
            )
        except ValueError as error:
            raise _Misfit(
                f"Your answer {reply.value!r} does not fit: {error}. Answer again.",
                f"the user's answer {reply.value!r} to tool {wait.tool!r} does not fit what the tool "
                f"declares: {error}",
            ) from error

    async def _ask(self, wait: Yield, role: Any, who: str, problem: str = "") -> Reply | None:
        if not _is_run(role):
            reply = await self._formed(Reply(role), wait)
            if self._has_players:
                heard = default_prompt(LedgerView(self._ledger), wait)
                self.remember(as_text(reply.value), heard, wait.id)
            return reply
        if isinstance(role, SimulatedUser):
            said = await self._ask_person(wait, role, who, problem)
        else:
            said = await self._run(wait, role, as_flow(role), who, problem)
        return None if said is None else await self._formed(said, wait)

    async def _ask_person(
        self, wait: Yield, person: SimulatedUser, who: str, problem: str
    ) -> Reply | None:
        """What the person says; None when they have said goodbye or reached all their goals."""
        if id(person) not in self._cast:
            self._cast[id(person)] = played_by(person)
        reply = await self._run(wait, person, self._cast[id(person)], who, problem)
        for called in self._ledger.index_of("user").issued:
            if within(called.path, self._root(who, wait, problem)):
                raise UserAgentFailed(
                    f"the simulated user {person.name!r} of case {self._case.id!r} called the tool "
                    f"{called.tool!r}, but people have no tools. Let its model answer with text."
                )
        if reply is None:
            return None
        said = read_reply(str(reply.value), person.stop_signal)
        if said.is_last:
            return None
        found = claims(self._ledger, person.goals, person.stop_signal) if person.goals else []
        if person.goals and len(shown_goals(found)) == len(person.goals):
            return None
        if not said.message:
            raise _Misfit(
                f"You said nothing to the assistant. Answer with your next message, or with "
                f"{person.stop_signal}.",
                f"the user agent of case {self._case.id!r} answered {reply.value!r}, which says "
                f"nothing to the agent.",
            )
        return structs.replace(reply, value=said.message)

    def _root(self, who: str, wait: Yield, problem: str) -> str:
        """Where the run of a user agent is recorded; it may be asked a second time."""
        return f"{who}@{wait.id}~2" if problem else f"{who}@{wait.id}"

    async def _run(
        self, wait: Yield, role: object, flow: Flow, who: str, problem: str
    ) -> Reply | None:
        """Run a user agent on the user's side, keyed by the wait it answers.

        One that has no more messages to say returns None, and the user is done.
        """
        root = self._root(who, wait, problem)
        begun = self._ledger.index_of("user").invocations.get(root)
        given = problem or (begun.input if begun else await self._format_prompt(wait, role))
        outcome = await NativeBackend(flow).invoke(self._ledger, self._world, root, given)
        match outcome:
            case TurnOver(None) | Finished(None) if wait.type == "message":
                return None
            case TurnOver(output) | Finished(output):
                return Reply(output, self._asked(root))
            case Failed(error):
                raise UserAgentFailed(
                    f"{_asked_by(wait)} failed in case {self._case.id!r}: {error}"
                ) from error
            case _:
                raise UserAgentFailed(
                    f"{_asked_by(wait)} waits for an answer itself; user agents must answer."
                )

    async def _format_prompt(self, wait: Yield, role: object) -> Json:
        """The prompt for the user agent; a simulated person also gets the agent's attachments."""
        try:
            prompt = await self._bridge.prompt(self._ledger, wait)
            is_own = wait.type != "message" or self._bridge.format_prompt is not None
            spoken = list(self._ledger.index_of().spoken.values())
            if is_own or not spoken or not isinstance(role, SimulatedUser):
                return prompt
            return message_value(prompt, spoken[-1].attachments)
        except (Refusal, UserAgentFailed):
            raise
        except Exception as error:
            raise _broken("format_prompt", error) from error

    async def _formed(self, reply: Reply, wait: Yield) -> Reply:
        """The reply as the bridge passes it on."""
        try:
            value = await self._bridge.response(reply.value, self._ledger, wait)
            value, more = unwrapped(value)
            answer = plain(value, f"the answer to {wait.tool or 'the agent'}")
            return Reply(answer, (*reply.asks, *more))
        except (Refusal, UserAgentFailed):
            raise
        except BadValue as error:
            raise UserAgentFailed(f"the user of case {self._case.id!r}: {error}") from error
        except Exception as error:
            raise _broken("format_response", error) from error

    def _asked(self, root: str) -> tuple[Change, ...]:
        """The state changes that this one run of a user agent asked for, each once."""
        return tuple(
            change
            for event in self._ledger
            if event.voice == "user" and isinstance(event, ToolReturned | NodeEnded)
            if within(event.path, root)
            for change in event.asks
        )

    def _message(self, reply: Reply) -> Json:
        if isinstance(reply.value, str) and not is_blank(reply.value):
            return reply.value
        if not isinstance(reply.value, str) and attachments_in(reply.value):
            return reply.value
        raise UserAgentFailed(
            f"the user agent of case {self._case.id!r} answered {reply.value!r}, but a user's "
            f"message must be a string."
        )

    def round_event(self, yields: Sequence[Yield], replies: Sequence[Reply]) -> Answered:
        """All answers of one round and the changes they ask for, as one event."""
        found = conflicts(reply.asks for reply in replies)
        if found and self._user.conflicts == "error":
            places = ", ".join(f"{c.scope}.{'.'.join(c.path)}" for c in found)
            raise UserAgentFailed(f"the user's answers disagree about the state at {places}.")
        return Answered(
            answers=tuple(
                Answer(yield_id=wait.id, value=reply.value, tool=wait.tool)
                for wait, reply in zip(yields, replies, strict=True)
            ),
            changes=tuple(change for reply in replies for change in reply.asks),
        )


class _Misfit(Exception):
    """An answer that cannot be used: what the user agent is asked again, and the error if it persists."""

    def __init__(self, ask_again: str, problem: str) -> None:
        super().__init__(ask_again)
        self.problem = problem


def _speaker(role: object, n: int) -> object:
    """The agent, line or value that gives the n-th answer of a role; None when it has no more."""
    return role.line(n) if isinstance(role, Lines) else role


def _asked_by(wait: Yield) -> str:
    """Who is asked for an answer, in errors."""
    return f"the user agent for {wait.tool!r}" if wait.tool else "the simulated user"


def _is_run(role: object) -> bool:
    """Whether a role answers by running, and not by a line or a constant."""
    return role is not None and (isinstance(role, Flow | SimulatedUser) or callable(role))


def _broken(part: str, error: Exception) -> UserAgentFailed:
    return UserAgentFailed(f"the bridge's {part} raised {summarize_error(error)}")


def user_messages(ledger: Ledger) -> list[str]:
    """The messages the user has said so far, scripted or not."""
    found: list[str] = []
    for event in ledger.index_of().rounds:
        if isinstance(event, UserSaid):
            found.append(event.text)
        else:
            found += [str(answer.value) for answer in event.answers if not answer.tool]
    return found


def _rank(yields: Sequence[Yield], index: int) -> int:
    """How many waits of the same tool come before this one in the same round."""
    return sum(wait.tool == yields[index].tool for wait in yields[:index])


def _missing(case: Case, wait: Yield) -> str:
    if wait.type == "message":
        return (
            f"the agent of case {case.id!r} waits for the user's next message after "
            f"{wait.prompt[:120]!r}, but the case has no user. Add one: user=Lines(...), or "
            f"user=UserAgents(loop=Agent(...))."
        )
    return (
        f"tool {wait.tool!r} of case {case.id!r} waits for the user's answer, but no user agent was "
        f"given for it.\n  Add one: user=UserAgents(tools={{{wait.tool!r}: Agent(...)}})\n"
        f"  called with: {wait.args!r}"
    )
