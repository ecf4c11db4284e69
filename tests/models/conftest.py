import pytest

from greenroom.world.pacer import paces

VARIABLES = [
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    *("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "OLLAMA_BASE_URL"),
    *("OLLAMA_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY"),
]


@pytest.fixture(autouse=True)
def nobody_knows_a_key(monkeypatch, tmp_path):
    """No key, address or price of this machine, and no pace of another test."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    paces.clear()
