#!/bin/sh
# The tests that need a real Ray, in an environment of its own.
. "$(dirname "$0")/environment.sh"

install() {
    pip_install -c constraints.txt 'httpx>=0.27' 'hypothesis>=6.100' 'pyte>=0.8.2' 'pytest>=8.3' \
        'pytest-asyncio>=1.0' 'ray[default]' -e '.[ray,pydantic-ai]'
}

prepare ray Ray
exec "$python" -m pytest -q -rs -m heavy \
    tests/simulation/test_ray.py tests/suite/test_on_ray.py tests/suite/test_ray_jobs.py
