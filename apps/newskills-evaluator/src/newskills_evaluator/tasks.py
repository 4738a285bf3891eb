# SPDX-License-Identifier: Apache-2.0
"""Tasks of NeMo Evaluator → benchmarks of newskills, and the words of `ns eval` for one.

A name is looked up as it is (the catalog's aliases hold `ns_aime2025`, `adlr_mmlu` …), in the table below, and without
`_chat`, `_instruct` and `_5_shot`. `harness.task` is newskills' own where the harness is `newskills` or `nemo_skills`.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.registry import fold
from newskills.benchmarks import catalog_entries
from newskills.benchmarks.files.names import is_file_name
from newskills_evaluator.config import EvaluationTask, Params
from newskills_evaluator.harness import ALIASES

OWN_HARNESSES = ("newskills", "nemo_skills")
NAMES = {
    "AIME_2024": "aime24",
    "AA_AIME_2024": "aime24",
    "aime_2024": "aime24",
    "aime_2024_nemo": "aime24",
    "AIME_2025": "aime25",
    "aime_2025": "aime25",
    "aime_2025_nemo": "aime25",
    "AIME_2025_aa_v2": "aime25",
    "math_test_500": "math-500",
    "math_test_500_nemo": "math-500",
    "AA_math_test_500": "math-500",
    "adlr_math_500_4_shot_sampled": "math-500",
    "gpqa_diamond": "gpqa",
    "gpqa_diamond_nemo": "gpqa",
    "gpqa_diamond_cot": "gpqa",
    "adlr_gpqa_diamond_cot_5_shot": "gpqa",
    "adlr_mmlu_pro_5_shot_base": "mmlu-pro",
    "adlr_gsm8k_cot_8_shot": "gsm8k",
    "gsm8k_cot": "gsm8k",
    "gsm8k_cot_zeroshot": "gsm8k",
    "adlr_minerva_math_nemo_4_shot": "hendrycks_math",
    "adlr_humaneval_greedy": "human-eval",
    "adlr_commonsense_qa_7_shot": "commonsenseqa",
    "commonsense_qa": "commonsenseqa",
    "adlr_race": "race",
    "humaneval": "human-eval",
    "humanevalplus": "human-eval-plus",
    "mbppplus": "mbpp-plus",
    "mbpp_plus": "mbpp-plus",
    "ifbench": "ifbench",
    "bfclv3": "bfcl_v3",
    "mtbench": "mt-bench",
    "mgsm_cot": "mgsm",
}
LM_EVAL = "lm-eval:"
SHOT_TASKS = {
    "adlr_arc_challenge_llama_25_shot": ("arc_challenge", 25),
    "adlr_winogrande_5_shot": ("winogrande", 5),
}
"""Tasks of NVIDIA's by log-probabilities (launcher 0.2.6, `all_tasks_irs.yaml`) → that of lm-evaluation-harness, and
its examples. Of the first only the name is published (`adlr_arc_challenge_llama`), not the prompt."""
_SHOTS = re.compile(r"_(\d+)_?shot\b")
_ENDINGS = re.compile(r"[_-](chat|instruct|completions|str)\Z")


class MappedTask(Struct, frozen=True, kw_only=True):
    """`benchmark` may carry `:samples`; `params`: settings that the task's name stands for."""

    benchmark: str
    few_shot: int | None = None
    params: Row = {}


def map_task(name: str) -> MappedTask | None:
    """Return newskills' own benchmark of that name; None means that it belongs to NeMo Evaluator alone.

    A path of a benchmark file (`./mine.py`, `module::attr`) stands for itself.
    """
    if "::" in name or is_file_name(name) or name.startswith(("/", "./", LM_EVAL)):
        return MappedTask(benchmark=name)
    harness, dot, rest = name.partition(".")
    bare = name
    if dot and harness in OWN_HARNESSES:
        bare = rest
    head, colon, samples = bare.partition(":")
    if head in SHOT_TASKS:
        task, examples = SHOT_TASKS[head]
        return MappedTask(benchmark=f"{LM_EVAL}{task}", few_shot=examples)
    shots = _SHOTS.search(head)
    few_shot = int(shots[1]) if shots else None
    plain = head.removeprefix("ns_")
    for candidate in (
        head,
        plain,
        NAMES.get(head, ""),
        _ENDINGS.sub("", head),
        NAMES.get(_ENDINGS.sub("", head), ""),
    ):
        if candidate and (own_name := _find_own_benchmark(candidate)):
            params = {}
            if head in ALIASES:
                params = _alias_params(ALIASES[head])
            return MappedTask(benchmark=f"{own_name}{colon}{samples}", few_shot=few_shot, params=params)
    return None


def benchmark_name(benchmark: str) -> str:
    """Return the name of a benchmark without its samples, as its results are called.

    >>> benchmark_name("gsm8k:4"), benchmark_name("lm-eval:winogrande")
    ('gsm8k', 'lm-eval-winogrande')
    """
    if benchmark.startswith(LM_EVAL):
        return benchmark.replace(":", "-")
    return benchmark.partition(":")[0]


def own_names() -> list[str]:
    """List every name that `map_task` knows, for suggestions."""
    return [name for entry in catalog_entries() for name in (entry.name, *entry.aliases)] + [
        *NAMES,
        *SHOT_TASKS,
    ]


def _find_own_benchmark(name: str) -> str | None:
    folded = fold(name)
    return next((e.name for e in catalog_entries() if folded in map(fold, (e.name, *e.aliases))), None)


def _alias_params(alias: Row) -> Row:
    return {key: value for key, value in alias.items() if key != "task"} | {"task": alias["task"]}


class EvalCall(Struct, frozen=True, kw_only=True):
    """What `ns` is told for one task, without the address: `--server_address` is added by who knows it.

    notes  what of the task newskills does otherwise, for people
    """

    prepare: tuple[str, ...]
    evaluate: tuple[str, ...]
    notes: tuple[str, ...] = ()


USED_EXTRA = ("num_repeats", "args", "dataset_split", "judge", "server_type", "tokenizer", "system_prompt", "task")


def eval_call(task: EvaluationTask, *, model: str, key_name: str | None, output_dir: str) -> EvalCall:
    """Return the words after `ns`, for a task of newskills' own. Raises ConfigError for settings that mean nothing."""
    params, extra = task.params, task.params.extra
    name, _, samples = (task.benchmark or "").partition(":")
    if (task.benchmark or "").startswith(LM_EVAL):
        name, samples = task.benchmark or "", ""
    repeats = extra.get("num_repeats")
    if not repeats and samples.isdecimal():
        repeats = int(samples)
    if params.task and not ("::" in name or is_file_name(name)):
        wanted = params.task.partition(":")[0]
        if _find_own_benchmark(wanted):
            name = wanted
    benchmarks = f"--benchmarks={name}"
    if repeats:
        benchmarks += f":{repeats}"
    words = [
        "eval",
        benchmarks,
        f"--output_dir={output_dir}",
        f"--server_type={_text_setting(extra, 'server_type') or 'openai'}",
        f"--model={model}",
    ]
    if split := _text_setting(extra, "dataset_split"):
        words.append(f"--split={split}")
    if key_name:
        words.append(f"++server.api_key_env_var={key_name}")
    words += _setting_words(task, params, repeats or 1)
    if name.startswith(LM_EVAL) and task.few_shot is not None:
        words.append(f"++num_fewshot={task.few_shot}")
    words += _judge_words(extra.get("judge"))
    if args := _text_setting(extra, "args"):
        words += _split_args(args, task.name)
    return EvalCall(prepare=("prepare_data", name), evaluate=tuple(words), notes=tuple(_difference_notes(task)))


def _setting_words(task: EvaluationTask, params: Params, repeats: int) -> list[str]:
    endpoint_type, tokens = None, params.max_new_tokens
    if task.endpoint_type == "completions":
        endpoint_type, tokens = "text", tokens or 2048
    limit = params.limit_samples
    if limit is not None and limit < 1:
        raise ConfigError(f"Task {task.name}: limit_samples: expected a number of problems, got {limit}.")
    values = {
        "inference.endpoint_type": endpoint_type,
        "inference.tokens_to_generate": tokens,
        "inference.temperature": params.temperature,
        "inference.top_p": params.top_p or None,
        "inference.timeout": params.request_timeout,
        "server.max_retries": params.max_retries,
        "max_concurrent_requests": max(params.parallelism // repeats, 1) if params.parallelism else None,
        "max_samples": None if limit is None else int(limit),
        "tokenizer": _text_setting(params.extra, "tokenizer"),
        "system_message": _text_setting(params.extra, "system_prompt"),
    }
    return [f"++{key}={value}" for key, value in values.items() if value is not None]


def _judge_words(judge: Any) -> list[str]:
    """Return the options of the judge model, where its endpoint is given."""
    if not isinstance(judge, dict) or not judge.get("url") or not judge.get("model_id"):
        return []
    words = [
        f"--judge_model={judge['model_id']}",
        f"--judge_server_address={judge['url']}",
        "--judge_server_type=openai",
    ]
    more = {
        "server.api_key_env_var": judge.get("api_key"),
        "inference.tokens_to_generate": judge.get("max_new_tokens"),
        "inference.temperature": judge.get("temperature"),
        "inference.top_p": judge.get("top_p"),
        "max_concurrent_requests": judge.get("parallelism"),
        "structured_output": "HLE_JUDGE_AA" if judge.get("hle_strict_judge") else None,
    }
    overrides = " ".join(f"++{key}={value}" for key, value in more.items() if value is not None)
    if overrides:
        words.append(f"--extra_judge_args={overrides}")
    return words


def _difference_notes(task: EvaluationTask) -> list[str]:
    notes = []
    if task.few_shot and (task.benchmark or "").startswith(LM_EVAL):
        harness = (task.benchmark or "").removeprefix(LM_EVAL)
        notes.append(
            f"{task.name}: runs as {harness} of lm-evaluation-harness with {task.few_shot} examples, whose prompt may "
            "differ from NVIDIA's; it needs pip install 'newskills[lm-eval]' and log-probabilities of the server"
        )
    elif task.few_shot:
        notes.append(
            f"{task.name}: newskills runs {task.benchmark} without the {task.few_shot} examples in the task's "
            "name; do not compare the two numbers"
        )
    unused = [key for key, value in task.params.extra.items() if key not in USED_EXTRA and value is not None]
    if unused:
        notes.append(f"{task.name}: newskills ignores {', '.join(unused)} of params.extra")
    if task.params.top_p == 0:
        notes.append(f"{task.name}: top_p 0 is left out: only NeMo's servers accept it, and temperature decides")
    return notes


def _text_setting(extra: Row, key: str) -> str | None:
    """Return the text of `key`; `None` as text means that there is none."""
    value = extra.get(key)
    if value in (None, "", "None", "none", "null"):
        return None
    return str(value)


def _split_args(args: str, name: str) -> list[str]:
    try:
        return shlex.split(args)
    except ValueError as error:
        raise ConfigError(f"Task {name}: cannot read params.extra.args ({error}): {args}") from error
