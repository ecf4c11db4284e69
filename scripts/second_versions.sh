#!/bin/sh
# The tests of google-adk against the oldest version we play, in an environment of its own. Where
# that cannot be installed it says so; where a test fails, it fails.
cd "$(dirname "$0")/.." || exit 1
folder=.envs/adk-1.25
python=$folder/bin/python

install() {
    [ -x "$python" ] || ${PYTHON:-python3} -m venv "$folder" || return 1
    "$python" -m pip install -qq --disable-pip-version-check 'google-adk==1.25.*' \
        'click>=8.1' 'jsonschema-rs>=0.60' 'msgspec>=0.20' 'pydantic>=2.11' 'pyyaml>=6.0.1' 'rich>=13' \
        'anyio>=4.5' 'httpx>=0.27' 'hypothesis>=6.100' 'pytest>=8.3' 'pytest-asyncio>=1.0' ||
        return 1
    # Our own dependencies were named above: the second version must not be replaced by the first.
    "$python" -m pip install -qq --disable-pip-version-check --no-deps -e . || return 1
    touch "$folder/.done"
}

if [ ! -e "$folder/.done" ] || [ pyproject.toml -nt "$folder/.done" ]; then
    if ! told=$(install 2>&1); then
        printf '%s\n' "$told" | tail -n 3 >&2
        echo "google-adk 1.25 cannot be installed here: its tests are skipped" >&2
        exit 0
    fi
fi

# What we rely on in it is as it was kept.
"$python" -W ignore scripts/adk_surface.py || exit 1

# It warns of what it calls experimental, and of names that it uses itself.
exec "$python" -m pytest -q -rs \
    -W 'ignore:[EXPERIMENTAL]:UserWarning' -W 'ignore:MCPTool class is deprecated:DeprecationWarning' \
    tests/backends/adk tests/backends/test_adk.py tests/backends/conformance/test_adk.py
