#!/bin/sh
# The tests of logs that Inspect itself wrote, in an environment of its own.
. "$(dirname "$0")/environment.sh"

install() {
    pip_install 'inspect-ai>=0.3.285' 'httpx>=0.27' 'hypothesis>=6.100' 'pytest>=8.3' \
        'pytest-asyncio>=1.0' -e '.[inspect]'
}

prepare inspect Inspect
exec "$python" -m pytest -q -rs -m heavy tests/traces/test_formats.py
