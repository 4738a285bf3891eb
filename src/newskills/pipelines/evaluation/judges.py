# SPDX-License-Identifier: Apache-2.0
"""From the `--judge_*` options to what judges each benchmark: which model, where it is served, with which settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.benchmark import Judge
from newskills.base.errors import ConfigError, UnknownNameError
from newskills.benchmarks.trained_judges import MEASURES, REPLY, measure_of
from newskills.config.command_line import build, parse
from newskills.config.fields import leaves
from newskills.config.layers import Layer
from newskills.config.values import Text
from newskills.metrics import make_metric
from newskills.models.serving import ServeSpec
from newskills.pipelines.arguments import prompt_layer, read_json, user_layer
from newskills.pipelines.evaluation.judge_options import JudgeOptions
from newskills.pipelines.evaluation.judge_panels import panel_judge, panel_names, split_list
from newskills.pipelines.evaluation.options import EvalOptions
from newskills.pipelines.models import choose_models, hosting_of
from newskills.pipelines.notices import print_note
from newskills.pipelines.options import WorkOptions
from newskills.prompts.official.table import PromptSource
from newskills.run.judging.generation import LOGS_FOLDER, JudgeSettings
from newskills.run.planning.config import JUDGES
from newskills.run.planning.plan import BenchmarkRun
from newskills.solve.generation_modules import solver_of_module

SERVER = (
    "model",
    "server_type",
    "server_address",
    "server_gpus",
    "server_nodes",
    "server_args",
    "server_entrypoint",
    "server_container",
)
PLACE = ("partition", "account", "qos", "time_min", "sbatch_kwargs", "exclusive", "heterogeneous")
JOBS = ("server_timeout", "main_container", "installation_command", "dependent_jobs", "num_jobs")
PIPELINE = (*SERVER, *PLACE, *JOBS)
"""Options of the judge's jobs that `--judge_pipeline_kwargs` may change."""
KIND = "generation_type"
OWN, STEP = "own", "step"
EITHER = ("llm", "math_judge")
"""Kinds of judges that may stand in for each other."""
_SHARED = ("max_concurrent_requests", "most_concurrent_requests", "batch_size", "prompt_source")
USUAL = Judge(kind="math_judge")
"""Of benchmarks that are judged beside their grader, because the user wants that."""


class _NoOptions(Struct, frozen=True):
    """No options: only `++` words are taken."""


class JudgePlan(Struct, frozen=True, kw_only=True):
    """One benchmark's judge: `host` is the server to start for it, `more` are those of further judges of a panel,
    by role; `options` are those of its jobs."""

    judging: JudgeSettings
    options: WorkOptions
    host: ServeSpec | None = None
    more: dict[str, ServeSpec] = {}


def judge_plans(
    options: EvalOptions,
    runs: Sequence[BenchmarkRun],
    logs: Path,
    keys: Mapping[str, Text] = MappingProxyType({}),
    *,
    elsewhere: bool,
) -> dict[str, JudgePlan]:
    """Return benchmark → its judge, for those that are judged; `elsewhere`: on a cluster.

    Of the evaluation's `++` keys, limits of how much is asked at once and the source of prompts hold
    for the judge as well.

    Raises ConfigError: no judge is named for a benchmark that needs one, or it is of a kind that is not there.
    """
    kwargs = _pipeline_kwargs(options)
    kind = _judge_kind(options, kwargs)
    chosen = {run.name: judge for run in runs if (judge := _judge_of(run, options, kind)) is not None}
    if not chosen:
        _print_unused_options(options)
        return {}
    shared = {name: value for name, value in keys.items() if name in _SHARED}
    overrides = {**shared, **_extra_judge_overrides(options)}
    unnamed = [name for name, judge in chosen.items() if not _is_judge_named(judge, options, kwargs, overrides)]
    if unnamed:
        raise ConfigError(
            f"{', '.join(unnamed)}: a model judges the answers, but no judge is named. Give --judge_model and "
            "--judge_server_type, and --judge_server_address for a running judge or --judge_server_gpus to "
            "start one.",
            hint="For example: --judge_model=gpt-4.1 --judge_server_type=openai",
        )
    return {
        name: _plan_judge(
            judge,
            _judge_options(judge, options, kwargs),
            overrides,
            logs,
            options.prompt_source,
            elsewhere=elsewhere,
        )
        for name, judge in chosen.items()
    }


def _plan_judge(
    judge: Judge,
    options: WorkOptions,
    overrides: Mapping[str, Text],
    logs: Path,
    source: PromptSource | None,
    *,
    elsewhere: bool,
) -> JudgePlan:
    try:
        choice = choose_models(options, overrides, elsewhere=elsewhere)
    except ConfigError as error:
        raise _judge_error(error) from error
    if len(options.model) > 1:
        judge = panel_judge(judge, options.model)
    if judge.model in (*options.model, overrides.get("server.model")):
        judge = replace(judge, defaults={**judge.defaults, **judge.model_defaults})
    layers = [
        Layer("--judge_*", choice.layer.values),
        *prompt_layer(source),
        replace(user_layer(overrides), source="--extra_judge_args"),
    ]
    hosting = None
    if not elsewhere:
        hosting = hosting_of(choice, options, logs / LOGS_FOLDER)
    judging = JudgeSettings(judge=judge, layers=layers, hosting=hosting)
    return JudgePlan(judging=judging, options=options, host=choice.host, more=choice.more)


def _judge_of(run: BenchmarkRun, options: EvalOptions, kind: str | None) -> Judge | None:
    judge = run.benchmark.judge
    if kind in MEASURES:
        return _trained_judge(run, options, MEASURES[kind])
    if judge is None and options.judge_all:
        metric = make_metric(options.metric_type or run.benchmark.metric)
        if USUAL.generation_key not in metric.fields:
            print_note(f"{run.name} is not judged: its metric does not use a judge")
            return None
        judge = USUAL
    if judge is None or kind is None:
        return judge
    if kind in (OWN, STEP):
        return _user_judge(judge, options, kind)
    if judge.kind in EITHER:
        return replace(judge, kind=kind)
    return judge


def _trained_judge(run: BenchmarkRun, options: EvalOptions, judge: Judge) -> Judge | None:
    """Return `judge` where the benchmark has what it measures, else the benchmark's own judge."""
    metric = make_metric(options.metric_type or run.benchmark.metric)
    if judge.kind == "comet":
        what = "translations"
        fits = "comet" in metric.fields
    else:
        what = "choices"
        fits = run.benchmark.grader == "multichoice"
    if fits:
        return judge
    print_note(f"{run.name} is not judged by {judge.kind}: it has no {what}")
    return run.benchmark.judge


def _user_judge(judge: Judge, options: EvalOptions, kind: str) -> Judge:
    """Return the benchmark's judge with the user's solver, or with a function in place of a model."""
    if kind == OWN:
        where, _, maker = str(options.judge_generation_module).partition("::")
        spec = f"{where}::{maker or 'SOLVER'}"
        return replace(judge, kind=OWN, defaults={**judge.defaults, "solver_config": {"module": spec}})
    return replace(judge, kind=STEP, prompt=REPLY, model=str(options.judge_step_fn), server_type=STEP)


def _judge_kind(options: JudgeOptions, kwargs: Mapping[str, Any]) -> str | None:
    """Return the kind of judge that the user wants; None: the benchmark's own. Raises ConfigError."""
    named = [name for name in ("judge_generation_module", "judge_step_fn") if getattr(options, name)]
    if len(named) > 1 or (named and (options.judge_type or options.judge_generation_type)):
        raise ConfigError(f"--{named[0]} already sets how to judge; leave out the other options that set it.")
    if options.judge_generation_module:
        return _module_kind(options.judge_generation_module)
    if options.judge_step_fn:
        return _step_kind(options.judge_step_fn, options.judge_model)
    kind = options.judge_type or options.judge_generation_type or kwargs.get(KIND)
    if kind in ("arena", "turns", "rubric"):
        raise ConfigError(
            f"--judge_type={kind}: only benchmarks that ask for it can be judged this way (arena-hard, "
            "mt-bench, healthbench); others lack what it asks about."
        )
    if kind not in (None, "generate", *JUDGES):
        raise ConfigError(f"--judge_pipeline_kwargs: {KIND} is '{kind}'; expected generate or math_judge.")
    if kind == "generate":
        return "llm"
    return kind


def _module_kind(module: str) -> str:
    """Return the kind of judge of a module: one of NeMo-Skills', or the user's own. Raises ConfigError."""
    solver = solver_of_module(module)
    if solver is None:
        return OWN
    if (kind := {"chat": "llm", "math_judge": "math_judge"}.get(solver)) is None:
        raise ConfigError(
            f"--judge_generation_module={module}: only benchmarks that ask for it can be judged this way."
        )
    return kind


def _step_kind(name: str, model: str | None) -> str:
    """Return the kind of judge of a step: one that NeMo-Skills comes with, or a function of the user's. Raises
    ConfigError."""
    if "::" not in name:
        raise ConfigError(f"--judge_step_fn={name}: the function is missing. Write FILE.py::FUNCTION.")
    if name.startswith("nemo_skills."):
        measure = measure_of(name)
        if measure is None:
            raise ConfigError(
                f"--judge_step_fn={name}: of NeMo-Skills' judge steps, only comet and nvembed exist here."
            )
        return measure
    if model:
        raise ConfigError("--judge_step_fn judges without a model: leave out --judge_model, or --judge_step_fn.")
    return STEP


def _pipeline_kwargs(options: JudgeOptions) -> dict[str, Any]:
    """Return the values of `--judge_pipeline_kwargs`, checked. Raises ConfigError, UnknownNameError."""
    kwargs = read_json(options.judge_pipeline_kwargs, "--judge_pipeline_kwargs")
    names = [name for name in kwargs if name != KIND]
    for name in names:
        if name not in PIPELINE:
            raise UnknownNameError("key of --judge_pipeline_kwargs", name, (*PIPELINE, KIND))
    judge_options = {name: kwargs[name] for name in names}
    built = build(WorkOptions, judge_options, command="eval --judge_pipeline_kwargs")
    return kwargs | {name: getattr(built, name) for name in names}


def _extra_judge_overrides(options: JudgeOptions) -> dict[str, Text]:
    """Return the `++` words of `--extra_judge_args`. Raises ConfigError."""

    try:
        words = shlex.split(options.extra_judge_args)
    except ValueError as error:
        raise ConfigError(f"--extra_judge_args: {error}.") from error
    return parse(_NoOptions, words, command="eval --extra_judge_args").overrides


def _is_judge_named(
    judge: Judge, options: JudgeOptions, kwargs: Mapping[str, Any], overrides: Mapping[str, Text]
) -> bool:
    model = options.judge_model or kwargs.get("model") or overrides.get("server.model") or judge.model
    kind = options.judge_server_type or kwargs.get("server_type") or overrides.get("server.server_type")
    return bool(model) and bool(kind or judge.server_type)


def _judge_options(judge: Judge, options: JudgeOptions, kwargs: Mapping[str, Any]) -> WorkOptions:
    """Return `options` for a generation by the judge: the benchmark's own, then `kwargs`, then `--judge_*`."""
    server_settings: dict[str, Any] = {name: getattr(options, f"judge_{name}") for name in SERVER}
    if judge.kind in (*MEASURES, STEP):  # they run with the judge: there is no server
        server_settings |= dict.fromkeys(SERVER[1:])
        kwargs = {name: value for name, value in kwargs.items() if name not in SERVER[1:]}
    own = {"model": judge.model, "server_type": judge.server_type}
    elsewhere = (
        server_settings["server_type"]
        or server_settings["server_gpus"] is not None
        or {"server_type", "server_gpus"} & set(kwargs)
    )
    if judge.server_address and not elsewhere:
        own["server_address"] = judge.server_address
    values: dict[str, Any] = {name: [] for name in SERVER}
    values |= {"with_sandbox": False, "num_jobs": 1, "work_queue": False, "num_servers": 1}
    values["batch_api"] = options.judge_batch_api
    values |= {name: [value] for name, value in own.items() if value}
    values |= {name: value for name, value in kwargs.items() if name != KIND}
    values |= {name: [value] for name, value in server_settings.items() if value is not None}
    if names := panel_names(options):
        values |= {name: split_list(values[name]) for name in ("server_type", "server_address")}
        values["model"] = names
    if options.judge_container:
        values["main_container"] = options.judge_container
    if options.judge_sbatch_kwargs:
        values["sbatch_kwargs"] = options.judge_sbatch_kwargs
    return replace(options, **values)


def _judge_error(error: ConfigError) -> ConfigError:
    """Return the error about a model with the names of the judge's options."""

    def reworded(text: str) -> str:
        return text.replace("--server_", "--judge_server_").replace("--model", "--judge_model")

    return ConfigError(f"The judge: {reworded(error.message)}", hint=reworded(error.hint or ""))


def _print_unused_options(options: JudgeOptions) -> None:
    usual = {name: leaf.default for name, leaf in leaves(JudgeOptions).items() if "judge" in name}
    idle = [f"--{name}" for name, default in usual.items() if getattr(options, name) != default]
    if idle:
        print_note(
            f"{', '.join(idle)}: no effect, because none of these benchmarks needs a judge (--judge_all "
            "judges them all)"
        )
