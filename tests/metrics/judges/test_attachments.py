"""A judge sees what was attached, if its model takes it; else it reads the name, and the score says so."""

from typing import Any

from attached_files import BIG_PNG, MP4, PNG
from greenroom import Agent, Case, Scripted, attach, rehearse
from greenroom.cases import Score
from greenroom.errors import ModelUnreachable, RequestRefused
from greenroom.ledger.blobs import known_digest
from greenroom.metrics import judge
from greenroom.models import ModelReply, ModelRequest
from metrics.judges.asked import Asked

YES = {"reasoning": "It shows.", "verdict": True}


class Blind(Asked):
    """A model that takes texts only."""

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> Any:
        if request.messages[0].attachments:
            self.requests.append(request)
            raise RequestRefused("no images, please")
        return await super().respond(request, on_delta)


def judged(model: Any, answer: Any = "A cup.", **options: Any) -> Any:
    looker = Agent("looker", model=Scripted(answer))
    case = Case("cup", says="What is it?", attachments=[attach(PNG, name="cup.png")])
    seen = judge("right", "Is it right?", model=model, **options)
    [result] = rehearse(looker, [case], metrics=[seen], store=False).results
    return result.scores["right"]


def test_a_judge_is_shown_what_the_user_and_the_agent_attached():
    model = Asked(YES)
    found = judged(model, ["Here.", attach(BIG_PNG, name="drawn.png")])
    assert isinstance(found, Score)
    [request] = model.requests
    assert [one.data for one in request.messages[0].attachments] == [PNG, BIG_PNG]
    assert "cup.png (image/png" in request.instructions
    assert "not_shown" not in found.details


def test_an_answer_that_is_only_an_image_can_be_judged():
    assert isinstance(judged(Asked(YES), [attach(BIG_PNG, name="drawn.png")]), Score)


def test_a_judge_whose_model_refuses_it_reads_the_name_and_the_score_says_so():
    model = Blind(then=YES)
    found = judged(model)
    assert isinstance(found, Score)
    first, second = model.requests
    assert first.messages[0].attachments
    assert not second.messages[0].attachments
    assert "cannot be shown to you" in second.instructions
    assert "cup.png" in second.messages[0].text
    assert found.details["not_shown"] == [str(attach(PNG, name="cup.png"))]


def test_a_judge_that_cannot_be_reached_is_not_asked_without_it():
    class Away(Asked):
        async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
            self.requests.append(request)
            raise ModelUnreachable("gone")

    model = Away()
    assert not isinstance(judged(model), Score)
    assert all(request.messages[0].attachments for request in model.requests)


def test_a_judge_of_the_last_words_alone_is_shown_nothing():
    model = Asked(YES)
    judged(model, evidence=["response"])
    assert not model.requests[0].messages[0].attachments


def test_what_no_question_can_hold_is_only_named():
    assert not known_digest(MP4 + b"never attached")
    model = Asked(YES)
    many = [
        attach(bytes([number]) * 9_000_000, "text/plain", name=f"{number}.txt")
        for number in (1, 2, 3)
    ]
    looker = Agent("looker", model=Scripted("Long."))
    case = Case("long", says="Read.", attachments=many)
    seen = judge("right", "Is it right?", model=model)
    rehearse(looker, [case], metrics=[seen], store=False)
    assert [one.name for one in model.requests[0].messages[0].attachments] == ["1.txt", "2.txt"]
