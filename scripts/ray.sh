#!/bin/sh
# The tests that need a real Ray, in an environment of its own. Where it cannot be installed it says
# so; where a test fails, it fails.
cd "$(dirname "$0")/.." || exit 1
folder=.envs/ray
python=$folder/bin/python

install() {
    [ -x "$python" ] || ${PYTHON:-python3} -m venv "$folder" || return 1
    "$python" -m pip install -qq --disable-pip-version-check 'ray>=2.60' \
        'httpx>=0.27' 'hypothesis>=6.100' 'pytest>=8.3' 'pytest-asyncio>=1.0' -e . || return 1
    touch "$folder/.done"
}

if [ ! -e "$folder/.done" ] || [ pyproject.toml -nt "$folder/.done" ]; then
    if ! told=$(install 2>&1); then
        printf '%s\n' "$told" | tail -n 3 >&2
        echo "Ray cannot be installed here: its tests are skipped" >&2
        exit 0
    fi
fi

exec "$python" -m pytest -q -rs -m heavy tests/simulation/test_ray.py
