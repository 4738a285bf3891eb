# SPDX-License-Identifier: Apache-2.0
"""`vllm bench serve` without vLLM: `python load_vllm.py SOURCES PORT KIND VALUE REQUESTS TOKENS` prints JSON.

Runs the package's own `benchmark()`, with its client, schedule and metrics, from the folder SOURCES, which has
`vllm/benchmarks` of the wheel. What it imports beyond that (data sets, tokenizers, utilities) needs torch and is not
used once the requests are made, so that empty modules stand in its place. Imports nothing of the bench.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import io
import json
import logging
import resource
import sys
import types
from pathlib import Path
from typing import Any


def stand_in(name: str, **members: Any) -> None:
    """Put a module that has only these members in the place of one of vLLM."""
    module = types.ModuleType(name)
    module.__dict__.update(members)
    module.__path__ = []
    sys.modules[name] = module


def load(name: str, path: Path) -> Any:
    """The real module at `path`."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def serving(sources: Path) -> Any:
    """`vllm.benchmarks.serve`, with its own client and metrics."""
    for name in ("vllm", "vllm.benchmarks", "vllm.benchmarks.lib", "vllm.utils"):
        stand_in(name)
    stand_in("vllm.logger", init_logger=logging.getLogger)
    stand_in("vllm.benchmarks.datasets", SampleRequest=object, add_dataset_parser=None, get_samples=None)
    stand_in("vllm.tokenizers", TokenizerLike=object, get_tokenizer=None)
    stand_in("vllm.utils.argparse_utils", FlexibleArgumentParser=object)
    stand_in("vllm.utils.gc_utils", freeze_gc_heap=lambda: None)
    stand_in("vllm.utils.network_utils", join_host_port=None)
    for module in ("endpoint_request_func", "ready_checker", "utils"):
        load(f"vllm.benchmarks.lib.{module}", sources / "vllm/benchmarks/lib" / f"{module}.py")
    return load("vllm.benchmarks.serve", sources / "vllm/benchmarks/serve.py")


def main() -> None:
    sources, port, kind, value, requests, tokens = sys.argv[1:]
    module, url = serving(Path(sources)), f"http://127.0.0.1:{port}"
    prompts = [f"{number} " + "the word " * 200 for number in range(int(requests))]
    samples = [
        types.SimpleNamespace(
            prompt=prompt,
            prompt_len=400,
            expected_output_len=int(tokens),
            multi_modal_data=None,
            request_id=None,
            request_overrides=None,
            chat_messages=None,
            timestamp=None,
        )
        for prompt in prompts
    ]
    before = resource.getrusage(resource.RUSAGE_SELF)
    with contextlib.redirect_stdout(io.StringIO()):
        result = asyncio.run(
            module.benchmark(
                task_type=module.TaskType.GENERATION,
                endpoint_type="openai-chat",
                api_url=f"{url}/v1/chat/completions",
                base_url=url,
                model_id="double",
                model_name="double",
                tokenizer=lambda text, **_: types.SimpleNamespace(input_ids=text.split()),
                input_requests=samples,
                logprobs=None,
                request_rate=float(value) if kind == "rate" else float("inf"),
                burstiness=1.0,
                disable_tqdm=True,
                num_warmups=0,
                profile=False,
                selected_percentile_metrics=["ttft", "tpot", "itl", "e2el"],
                selected_percentiles=[50, 90, 99],
                ignore_eos=True,
                goodput_config_dict={"ttft": 350.0, "tpot": 17.0},
                max_concurrency=int(value) if kind == "concurrency" else None,
                lora_modules=None,
                extra_headers=None,
                extra_body={"temperature": 0.0},
                ready_check_timeout_sec=0,
            )
        )
    after = resource.getrusage(resource.RUSAGE_SELF)
    figures = {name: value for name, value in result.items() if not isinstance(value, list)}
    figures["cpu"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
