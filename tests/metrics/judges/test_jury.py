"""Several judges on one question, and how far they agree."""

import pytest

from greenroom.cases import NotApplicable, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger import Usage
from greenroom.metrics import judge
from greenroom.metrics.judges import final_response_match_v2, jury
from greenroom.models import Scripted
from metrics.judges.asked import measured, no, order, yes
from metrics.runs import agent, run, user


def juror(answer, name):
    return Scripted(answer, name=name, usage=Usage(10, 5))


def three(*answers, **options):
    models = [juror(answer, f"m{n}") for n, answer in enumerate(answers)]
    return jury(models, prompt="Was it polite?", **options)


async def test_models_become_judges_of_one_prompt():
    found = await measured(three(yes(), yes(), no(), threshold=0.6))
    assert found.value == pytest.approx(2 / 3)
    assert (found.passed, found.reason) == (True, "2 of 3 judges pass it")
    assert found.details["agreement"] == pytest.approx(2 / 3)
    assert list(found.details["judges"]) == ["jury:m0", "jury:m1", "jury:m2"]
    assert found.details["judges"]["jury:m2"]["passed"] is False


async def test_a_majority_of_judges_decides():
    assert (await measured(three(yes(), yes(), no(), aggregate="majority"))).value == 1.0
    assert (await measured(three(yes(), no(), aggregate="majority"))).passed is False


async def test_a_jury_may_hold_judges_of_different_kinds():
    match = final_response_match_v2(model=Scripted(then=yes("is_correct")))
    tone = judge("tone", "?", form="0-10", model=Scripted({"reasoning": "", "score": 6}))
    found = await measured(jury([match, tone], name="both"))
    assert (found.value, found.passed, found.details["agreement"]) == (0.8, True, 0.5)


async def test_a_jury_may_hold_judges_that_give_labels():
    label = judge(
        "label",
        "?",
        form="label",
        labels={"good": 1, "bad": 0},
        model=juror({"reasoning": "", "label": "bad"}, "m"),
    )
    pair = judge(
        "pair",
        "?",
        form="pairwise",
        baseline={"order": "x"},
        model=Scripted(*({"reasoning": "", "better": place} for place in "AB"), name="n"),
    )
    found = await measured(jury([label, pair]))
    assert (found.value, found.passed) == (0.5, False)


async def test_what_a_jury_took_is_the_sum():
    found = await measured(three(yes(), yes(), yes()))
    assert found.details["usage"] == {"input": 30, "output": 15}
    assert (found.details["attempts"], found.details["cost"]) == (3, 0.0)
    assert found.details["model"] == "m0, m1, m2"


async def test_one_judge_without_a_verdict_leaves_the_jury_unmeasured():
    found = await measured(three(yes(), yes(), ConnectionError("down")))
    assert isinstance(found, Unmeasured)
    assert "2 of 3 judges" in found.why
    assert "jury:m2: the judge 'm2' did not answer: ConnectionError: down" in found.why


async def test_a_quorum_may_do_without_some():
    found = await measured(three(yes(), yes(), ConnectionError("down"), quorum=2))
    assert (found.value, found.passed) == (1.0, True)
    assert "ConnectionError" in found.details["judges"]["jury:m2"]["unmeasured"]


async def test_a_jury_that_lacks_its_reference_does_not_apply():
    match = final_response_match_v2(model=Scripted(then=yes("is_correct")))
    facts = final_response_match_v2(model=Scripted(then=yes("is_correct")), name="facts")
    bare = run(user("Hi"), agent("Hello"))
    assert isinstance(await measured(jury([match, facts]), bare), NotApplicable)


def without_reference(*answers, **options):
    """A jury of one seat that does not apply, and of others that answer so."""
    match = final_response_match_v2(name="match", model=Scripted(then=yes("is_correct")))
    others = [judge(f"j{n}", "?", model=juror(a, f"m{n}")) for n, a in enumerate(answers)]
    return measured(jury([match, *others], **options), run(user("Hi"), agent("Hello")))


async def test_a_seat_that_does_not_apply_hides_no_failing_one():
    found = await without_reference(no())
    assert (found.value, found.passed) == (0.0, False)
    assert "no reference" in found.details["judges"]["match"]["not_applicable"]


async def test_a_seat_that_does_not_apply_sits_out():
    found = await without_reference(yes(), no(), yes(), aggregate="majority")
    assert (found.value, found.reason) == (1.0, "2 of 3 judges pass it")


async def test_a_seat_that_sits_out_does_not_help_to_a_quorum():
    found = await without_reference(yes(), quorum=2)
    assert isinstance(found, Unmeasured)
    assert "1 of 2 judges came to a verdict, 2 must: match: the case gives no" in found.why


async def test_a_seat_that_breaks_does_not_sit_out():
    found = await without_reference(ConnectionError("down"), yes())
    assert isinstance(found, Unmeasured)
    assert "1 of 3 judges came to a verdict, 2 must" in found.why
    assert "match: the case gives no reference" in found.why
    assert "j0: the judge 'm0' did not answer: ConnectionError: down" in found.why


async def test_what_a_judge_without_a_verdict_took_is_paid_too():
    usage = Usage(10, 5)
    vague = Scripted(*["Hm."] * 3, name="vague", usage=usage)
    clear = Scripted(yes(), name="clear", usage=usage)
    found = await measured(jury([clear, vague], prompt="?", quorum=1))
    assert found.passed
    assert found.details["attempts"] == 4
    assert found.details["usage"] == {"input": 40, "output": 20}
    assert found.details["model"] == "clear, vague"


async def test_one_model_twice_is_two_judges():
    model = Scripted(yes(), name="m")
    found = await measured(jury([model, model], prompt="?"), order())
    assert list(found.details["judges"]) == ["jury:m", "jury:m:2"]


@pytest.mark.parametrize(
    "judges, options",
    [
        ([], {}),
        ([Scripted("x")], {"prompt": "?"}),
        ([Scripted("x"), Scripted("y")], {}),
        ([Scripted("x"), 7], {"prompt": "?"}),
        ([Scripted("x"), Scripted("y")], {"prompt": "?", "quorum": 3}),
        ([Scripted("x"), Scripted("y")], {"prompt": "?", "aggregate": "max"}),
        ([Scripted("x"), Scripted("y")], {"prompt": "?", "threshold": 7}),
        ([judge("a", "?", model=Scripted("x"))] * 2, {}),
        ("ab", {"prompt": "?"}),
    ],
)
def test_a_jury_that_could_not_judge_is_refused(judges, options):
    with pytest.raises(BadMetric):
        jury(judges, **options)
