import pytest


@pytest.fixture(params=[1, pytest.param(5, marks=pytest.mark.heavy)], ids=["", "longer"])
def times(request: pytest.FixtureRequest) -> int:
    """How many times its usual rounds a simulation goes on."""
    return request.param
