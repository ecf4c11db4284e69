"""What the documents say of the backends is what the backends declare."""

import pytest

from backends.declarations import BEGIN, END, PAGE, backends, written
from greenroom import Case, evaluate
from greenroom.backends.backend import FEATURES
from greenroom.errors import BadAgent
from greenroom.metrics import contains


def test_the_table_in_the_documents_is_up_to_date():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    assert written(page) == page, "run: python tests/backends/declarations.py"


def test_every_feature_is_offered_by_some_backend():
    offered = {feature for backend in backends() for feature in backend.supports}
    assert offered == set(FEATURES)


async def test_a_backend_that_does_not_say_all_it_must_is_refused_by_what_it_lacks() -> None:
    class Half:
        name = "half"
        snapshot = "half"
        digest = "half"

        async def advance(self, ledger: object, world: object) -> None: ...

    with pytest.raises(BadAgent, match="lacks models, resumes, supports, tool_calls, tools"):
        await evaluate(Half(), Case("c", "Hi", metrics=[contains("x")]), store=False)
