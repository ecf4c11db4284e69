#!/bin/sh
# The tests of google-adk against the oldest version we play, in an environment of its own.
. "$(dirname "$0")/environment.sh"

install() {
    # Our own dependencies are named: the second version must not be replaced by the first.
    pip_install 'google-adk==1.25.*' 'click>=8.1' 'jsonschema-rs>=0.60' 'msgspec>=0.20' \
        'pydantic>=2.11' 'pyyaml>=6.0.1' 'rich>=13' 'anyio>=4.5' 'httpx>=0.27' 'hypothesis>=6.100' \
        'pytest>=8.3' 'pytest-asyncio>=1.0' && pip_install --no-deps -e .
}

prepare adk-1.25 'google-adk 1.25'

# What we rely on in it is as it was kept.
"$python" -W ignore scripts/adk_surface.py || exit 1

# It warns of what it calls experimental, and of names that it uses itself.
exec "$python" -m pytest -q -rs \
    -W 'ignore:[EXPERIMENTAL]:UserWarning' -W 'ignore:MCPTool class is deprecated:DeprecationWarning' \
    tests/backends/adk tests/backends/test_adk.py tests/backends/conformance/test_adk.py
