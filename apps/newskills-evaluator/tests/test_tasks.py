# SPDX-License-Identifier: Apache-2.0
"""Names of NeMo Evaluator's tasks, and the words of `ns eval` for one."""

from __future__ import annotations

from typing import Any

import pytest

from newskills.base.errors import ConfigError
from newskills.benchmarks import get_benchmark, get_group
from newskills.commands.loading import load_command
from newskills_evaluator.config import EvaluationTask, Params
from newskills_evaluator.harness import ALIASES
from newskills_evaluator.tasks import NAMES, eval_call, map_task, own_names


@pytest.mark.parametrize(
    ("name", "benchmark"),
    [
        ("adlr_mmlu", "mmlu"),
        ("adlr_arc_challenge_llama_25_shot", "lm-eval:arc_challenge"),
        ("adlr_winogrande_5_shot", "lm-eval:winogrande"),
        ("hellaswag", "hellaswag"),
        ("openbookqa", "openbookqa"),
        ("nemo_skills.ns_gpqa", "gpqa"),
        ("newskills.gsm8k:4", "gsm8k:4"),
        ("gpqa_diamond_cot", "gpqa"),
        ("mmlu_pro_instruct", "mmlu-pro"),
        ("AIME_2025", "aime25"),
        ("./mine.py", "./mine.py"),
        ("pkg.mod::BENCH", "pkg.mod::BENCH"),
    ],
)
def test_names_mean_benchmarks(name: str, benchmark: str) -> None:
    mapped = map_task(name)
    assert mapped is not None
    assert mapped.benchmark == benchmark


@pytest.mark.parametrize("name", ["lm-evaluation-harness.ifeval", "tau2_bench_retail", "", "garak.garak"])
def test_what_is_of_another_harness_is_not_ours(name: str) -> None:
    assert map_task(name) is None


def test_every_name_in_the_tables_means_something() -> None:
    for name in (*NAMES, *ALIASES):
        mapped = map_task(name)
        assert mapped is not None, name
        bare = mapped.benchmark.partition(":")[0]
        assert get_group(bare) or get_benchmark(bare), name
    assert len(own_names()) > 400


def call(task: str, params: Params = Params(), **more: Any) -> tuple[str, ...]:  # noqa: B008 - frozen
    mapped = map_task(task)
    assert mapped is not None
    one = EvaluationTask(index=0, name=task, folder="t.0", benchmark=mapped.benchmark, params=params, **more)
    made = eval_call(one, model="my model", key_name="MY_KEY", output_dir="/out")
    load_command("eval").check(load_command("eval").parse_words([*made.evaluate[1:], "--server_address=http://x"]))
    return made.evaluate


def test_settings_become_options_that_ns_eval_takes() -> None:
    params = Params(
        limit_samples=10,
        max_new_tokens=99,
        max_retries=5,
        parallelism=8,
        temperature=0.6,
        top_p=0.9,
        request_timeout=60,
        extra={"num_repeats": 4, "dataset_split": "test", "args": "++a='b c' ++d=e", "tokenizer": "None"},
    )
    words = call("gsm8k", params)
    assert words == (
        "eval",
        "--benchmarks=gsm8k:4",
        "--output_dir=/out",
        "--server_type=openai",
        "--model=my model",
        "--split=test",
        "++server.api_key_env_var=MY_KEY",
        "++inference.tokens_to_generate=99",
        "++inference.temperature=0.6",
        "++inference.top_p=0.9",
        "++inference.timeout=60",
        "++server.max_retries=5",
        "++max_concurrent_requests=2",
        "++max_samples=10",
        "++a=b c",
        "++d=e",
    )


def test_completions_and_judges() -> None:
    assert "++inference.endpoint_type=text" in call("gsm8k", endpoint_type="completions")
    judge = {"url": "http://judge/v1", "model_id": "j", "api_key": "JUDGE_KEY", "parallelism": 2}
    words = call("truthfulqa", Params(extra={"judge": judge}))
    assert {"--judge_model=j", "--judge_server_address=http://judge/v1", "--judge_server_type=openai"} <= set(
        words
    )
    assert "--extra_judge_args=++server.api_key_env_var=JUDGE_KEY ++max_concurrent_requests=2" in words


def test_what_newskills_does_otherwise_is_said() -> None:
    mapped = map_task("adlr_gsm8k_cot_8_shot")
    assert mapped is not None
    params = Params(top_p=0.0, extra={"tokenizer_backend": "huggingface"})
    task = EvaluationTask(
        index=0, name="w", folder="w.0", benchmark="gsm8k", few_shot=mapped.few_shot, params=params
    )
    notes = "\n".join(eval_call(task, model="m", key_name=None, output_dir="/o").notes)
    assert "without the 8 examples" in notes
    assert "tokenizer_backend" in notes
    assert "top_p 0" in notes


@pytest.mark.parametrize(
    ("name", "task", "shots"),
    [("adlr_winogrande_5_shot", "winogrande", 5), ("adlr_arc_challenge_llama_25_shot", "arc_challenge", 25)],
)
def test_shots_in_a_name_are_shown(name: str, task: str, shots: int) -> None:
    mapped = map_task(name)
    assert mapped is not None
    done = eval_call(
        EvaluationTask(index=0, name=name, folder="w.0", benchmark=mapped.benchmark, few_shot=mapped.few_shot),
        model="m",
        key_name=None,
        output_dir="/o",
    )
    assert done.prepare == ("prepare_data", f"lm-eval:{task}")
    assert f"--benchmarks=lm-eval:{task}" in done.evaluate
    assert f"++num_fewshot={shots}" in done.evaluate
    assert f"{task} of lm-evaluation-harness with {shots} examples" in done.notes[0]


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match="limit_samples"):
        call("gsm8k", Params(limit_samples=0.1))
    with pytest.raises(ConfigError, match=r"params\.extra\.args"):
        call("gsm8k", Params(extra={"args": "'"}))
