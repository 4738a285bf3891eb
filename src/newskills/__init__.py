# SPDX-License-Identifier: Apache-2.0
"""newskills: generate data, train, evaluate. The Python API mirrors the commands and is loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from newskills._version import __version__

if TYPE_CHECKING:
    from newskills._api import (
        average_checkpoints,
        compare,
        compute_metrics,
        convert,
        eval,
        evaluate,
        evaluate_async,
        generate,
        grade,
        grpo,
        grpo_nemo_rl,
        plan_eval,
        ppo_verl,
        prepare_data,
        prepare_training_data,
        regrade,
        report,
        retrieve_similar,
        robust_eval,
        run_cmd,
        samples,
        sft,
        sft_nemo_rl,
        start_server,
        summarize_results,
        summarize_robustness,
        train_megatron_lm,
        wrap_arguments,
    )
    from newskills.launch.declarative import Command, CommandGroup, HardwareConfig, Pipeline
    from newskills.launch.scripts.clients import EvalScript, GenerationClientScript, SummarizeScript
    from newskills.launch.scripts.gym_clients import NemoGymRolloutsScript
    from newskills.launch.scripts.script import BaseJobScript, SandboxScript, ServerScript
    from newskills.launch.scripts.unit_clients import EvalClientScript

PIPELINES = {
    "BaseJobScript": "scripts.script",
    "Command": "declarative",
    "CommandGroup": "declarative",
    "EvalClientScript": "scripts.unit_clients",
    "EvalScript": "scripts.clients",
    "GenerationClientScript": "scripts.clients",
    "HardwareConfig": "declarative",
    "NemoGymRolloutsScript": "scripts.gym_clients",
    "Pipeline": "declarative",
    "SandboxScript": "scripts.script",
    "ServerScript": "scripts.script",
    "SummarizeScript": "scripts.clients",
}
"""Objects that pipelines are made of → the module of `newskills.launch` that has them."""

__all__ = [
    "BaseJobScript",
    "Command",
    "CommandGroup",
    "EvalClientScript",
    "EvalScript",
    "GenerationClientScript",
    "HardwareConfig",
    "NemoGymRolloutsScript",
    "Pipeline",
    "SandboxScript",
    "ServerScript",
    "SummarizeScript",
    "__version__",
    "average_checkpoints",
    "compare",
    "compute_metrics",
    "convert",
    "eval",
    "evaluate",
    "evaluate_async",
    "generate",
    "grade",
    "grpo",
    "grpo_nemo_rl",
    "plan_eval",
    "ppo_verl",
    "prepare_data",
    "prepare_training_data",
    "regrade",
    "report",
    "retrieve_similar",
    "robust_eval",
    "run_cmd",
    "samples",
    "sft",
    "sft_nemo_rl",
    "start_server",
    "summarize_results",
    "summarize_robustness",
    "train_megatron_lm",
    "wrap_arguments",
]


def __getattr__(name: str) -> Any:
    if name in PIPELINES:
        from importlib import import_module

        return getattr(import_module(f"newskills.launch.{PIPELINES[name]}"), name)
    if name in __all__:
        from newskills import _api

        return getattr(_api, name)
    raise AttributeError(f"module 'newskills' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
