# SPDX-License-Identifier: Apache-2.0
"""Constants of NeMo-Skills' benchmark packages → fields of benchmarks, judges and groups."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from newskills.base.benchmark import Group, GroupScore
from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.registry import load_module
from newskills.benchmarks.trained_judges import MEASURES, REPLY, measure_of
from newskills.config.values import parse_value
from newskills.solve import SOLVERS
from newskills.solve.generation_modules import GENERATION_MODULE_MAP, PAGE, PREFIX

Constants = Mapping[str, Any]

_PLAIN = {"EVAL_SPLIT": ("split", str), "NUM_SAMPLES": ("samples", int), "NUM_CHUNKS": ("chunks", int)}
_JUDGE_FIELDS = {
    "generation_type": "kind",
    "model": "model",
    "server_type": "server_type",
    "server_address": "server_address",
}
_JUDGE_MODULES = {"llm_math_judge": "math_judge", "generate": "llm"}


def changed_fields(constants: Constants, file: Path) -> Row:
    """Return the fields of `Benchmark` that the constants set. Raises ConfigError for what cannot be read."""
    args = _parse_arguments(constants, ("EVAL_ARGS", "GENERATION_ARGS"), file)
    if prompt := constants.get("PROMPT_CONFIG"):
        args = {"prompt_config": prompt, **args}
    fields: Row = {}
    for key, field in (("prompt_config", "prompt"), ("eval_type", "grader")):
        if key in args:
            fields[field] = str(args.pop(key))
    if config := {key.partition(".")[2]: args.pop(key) for key in list(args) if key.startswith("eval_config.")}:
        fields["grader_config"] = config
    if args:
        fields["defaults"] = args
    for constant, (field, kind) in _PLAIN.items():
        if constant in constants:
            fields[field] = kind(constants[constant] or 0) if kind is int else kind(constants[constant])
    if module := constants.get("GENERATION_MODULE"):
        fields["solver"] = _solver_name(str(module), file)
    return fields


def changed_judge(constants: Constants, file: Path) -> Row | None:
    """Return the fields of `Judge` that the constants set; None where they speak of no judge.

    GPUs, nodes and arguments of a judge's server are given with `--judge_*`. Raises ConfigError for a judge with a
    program of NeMo-Skills that is not here.
    """
    pipeline = constants.get("JUDGE_PIPELINE_ARGS") or {}
    if not pipeline and not constants.get("JUDGE_ARGS"):
        return None
    args = _parse_arguments(constants, ("JUDGE_ARGS",), file)
    fields = _judge_program(pipeline, file)
    fields |= {field: str(pipeline[key]) for key, field in _JUDGE_FIELDS.items() if pipeline.get(key)}
    for key, field in (("prompt_config", "prompt"), ("generation_key", "generation_key"), ("eval_type", "grader")):
        if key in args:
            fields[field] = str(args.pop(key))
    if args:
        return {**fields, "defaults": {**fields.get("defaults", {}), **args}}
    return fields


def _judge_program(pipeline: Constants, file: Path) -> Row:
    """Return the fields of `Judge` for `generation_module` or `judge_step_fn`. Raises ConfigError."""
    module, step = str(pipeline.get("generation_module") or ""), str(pipeline.get("judge_step_fn") or "")
    if (kind := measure_of(step)) is not None:
        judge = MEASURES[kind]
        return {field: getattr(judge, field) for field in ("kind", "prompt", "grader", "model", "server_type")}
    if (judge_kind := _JUDGE_MODULES.get(module.rpartition(".")[2])) is not None:
        return {"kind": judge_kind}
    if "::" in module and not module.startswith("nemo_skills."):
        return {"kind": "own", "defaults": {"solver_config": {"module": module}}}
    if "::" in step and not step.startswith("nemo_skills."):
        return {"kind": "step", "prompt": REPLY, "model": step, "server_type": "step"}
    if module or step:
        raise ConfigError(
            f"{file}: {module or step} in JUDGE_PIPELINE_ARGS is a program of NeMo-Skills, which is not here.",
            hint="Judge with a prompt (JUDGE_ARGS), or name a module of your own: file.py::MAKER.",
        )
    return {}


def load_group(folder: Path, name: str, constants: Constants) -> Group:
    """Return the group that `folder/__init__.py` describes; members may be sub-folders. Raises ConfigError."""
    file = folder / "__init__.py"
    named = constants.get("BENCHMARKS")
    if not isinstance(named, Mapping) or not named:
        raise ConfigError(f"{file} is a group, but its BENCHMARKS is not a mapping of member → what differs.")
    members, keys = {}, {}
    for member, changes in named.items():
        place = folder / str(member).removeprefix(f"{name}.").removeprefix(f"{folder.resolve().name}.")
        member_name = str(place.resolve()) if (place / "__init__.py").is_file() else str(member)
        members[member_name], keys[member_name] = _member_changes(changes or {}, file), str(member)
    score = constants.get("SCORE_MODULE")
    return Group(
        name=name,
        category=str(constants.get("DATASET_GROUP", "external")),
        title=f"external: {folder}",
        members=members,
        score=_score_with_renamed_members(_compute_score(str(score), folder), keys) if score else None,
    )


def _member_changes(constants: Constants, file: Path) -> Row:
    judge, changes = changed_judge(constants, file), changed_fields(constants, file)
    if judge is not None:
        changes["judge"] = judge
    return changes


def _score_with_renamed_members(score: GroupScore, keys: Mapping[str, str]) -> GroupScore:
    """Return `score` under the names that its author gave to the members."""
    return lambda metrics: score({keys[member]: modes for member, modes in metrics.items()})


def _compute_score(module: str, folder: Path) -> GroupScore:
    """Load `compute_score` of a module, of a file, or of the file beside the constants that has the module's last
    name."""
    path = folder / f"{module.rpartition('.')[2]}.py"
    if module.endswith(".py"):
        path = folder / module
    if path.is_file():
        loaded, where = load_module(str(path.resolve()), "group score"), str(path)
    else:
        loaded, where = load_module(module, "group score"), module
    function: Callable[..., Any] | None = getattr(loaded, "compute_score", None)
    if function is None:
        raise ConfigError(f"{where} has no function compute_score(metrics).")
    return function


def _solver_name(module: str, file: Path) -> str:
    """Return the solver that does what a generation module of NeMo-Skills does, or the user's own."""
    if "::" in module:
        return module
    name = module.removeprefix(PREFIX)
    if (solver_name := GENERATION_MODULE_MAP.get(name)) is not None:
        return solver_name
    name = name.removeprefix("eval.")
    if name not in SOLVERS:
        raise ConfigError(
            f"{file}: GENERATION_MODULE '{module}' is a program of NeMo-Skills, which cannot run here.",
            hint=f"Write a solver and name it as module::Class ({PAGE}), or use one of: "
            + ", ".join(SOLVERS.names()),
        )
    return name


def _parse_arguments(constants: Constants, names: tuple[str, ...], file: Path) -> Row:
    """Parse `++key=value` words of the constants as dotted key → value; later words win."""
    args: Row = {}
    for name in names:
        for word in shlex.split(str(constants.get(name) or "")):
            key, equals, value = word.lstrip("+").partition("=")
            if not equals:
                raise ConfigError(f"{file}: '{word}' in {name} is not of the form ++key=value.")
            args[key] = parse_value(value)
    return args
