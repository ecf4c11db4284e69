"""What the documents say of the backends is what the backends declare."""

from backends.declarations import BEGIN, END, PAGE, backends, written
from greenroom.backends.backend import FEATURES


def test_the_table_in_the_documents_is_up_to_date():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    assert written(page) == page, "run: python tests/backends/declarations.py"


def test_every_feature_is_offered_by_some_backend():
    offered = {feature for backend in backends() for feature in backend.supports}
    assert offered == set(FEATURES)
