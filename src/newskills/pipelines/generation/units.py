# SPDX-License-Identifier: Apache-2.0
"""From the options of `ns generate` to units of work, with all settings."""

from __future__ import annotations

from pathlib import Path

from newskills.base.benchmark import Judge
from newskills.base.errors import ConfigError
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows
from newskills.config.command_line import Parsed
from newskills.config.ids import parse_ids
from newskills.config.layers import Layer
from newskills.config.values import Text
from newskills.models.kinds import MODELS
from newskills.pipelines.arguments import chunk_count, chunk_ids, default_output, prompt_layer, user_layer
from newskills.pipelines.generation.options import GenerateOptions
from newskills.pipelines.generation.passed_rows import file_of_rows
from newskills.pipelines.models import ModelChoice, choose_models
from newskills.pipelines.options import check_log_samples
from newskills.pipelines.placement.cluster import ClusterPaths
from newskills.pipelines.placement.packaged_code import at_repository
from newskills.pipelines.units.modules import module_layer
from newskills.pipelines.units.sandbox import check_sandbox, sandbox_layer
from newskills.run.judging.generation import judge_layer
from newskills.run.planning.config import AUTOFORMALIZE, BEST_OF_N, CHAT, PROVER, SELECTING, GenerationConfig
from newskills.run.planning.plan import PlannedUnit, WorkPieces, file_units, folder_units
from newskills.solve.generation_modules import solver_of_module

BENCHMARK_KEYS = ("dataset", "split")
MATH_JUDGE = "math_judge"
CONTAMINATION, CONTAMINATION_PROMPT = "check_contamination", "judge/check-contamination"
LEAN_PROMPTS = {AUTOFORMALIZE: "lean4/autoformalization", PROVER: "lean4/goedel-prover-v2"}
SEVERAL_MODELS = (AUTOFORMALIZE, BEST_OF_N)
"""Solvers of our own that ask other models beside the first."""
CONTAMINATION_KEYS = ("retrieve_key", "check_both_ways", "top_k")


def plan_generation(parsed: Parsed[GenerateOptions], *, there: ClusterPaths | None = None) -> list[PlannedUnit]:
    """Resolve all units; `there`: the paths of a cluster. Raises NewskillsError for anything that does not fit."""
    if there is None:
        parsed = at_repository(parsed)
    options = parsed.options
    check_log_samples(options)
    choice = choose_models(options, parsed.overrides, elsewhere=there is not None)
    user = user_layer(_solver_overrides(parsed), consumed=BENCHMARK_KEYS)
    layers = [
        *_speech_layers(choice),
        *_kind_layers(options, there),
        choice.layer,
        sandbox_layer(options),
        *prompt_layer(options.prompt_source),
        user,
    ]
    pieces = WorkPieces(
        seeds=_chosen_seeds(options),
        num_chunks=chunk_count(options),
        chunk_ids=chunk_ids(options),
    )
    folder = _output_dir(parsed)
    if there is not None:
        folder = Path(there.path_in_job(str(folder), "--output_dir"))
    passed = file_of_rows(parsed, folder, elsewhere=there is not None)
    if options.input_dir:
        if options.input_file:
            raise ConfigError("Give --input_file or --input_dir, not both.")
        if there is not None:
            source = there.path_in_job(options.input_dir, "--input_dir")
        else:
            source = options.input_dir
        planned = folder_units(Path(source), output_dir=folder, pieces=pieces, layers=layers)
    else:
        planned = file_units(passed or _input_file(parsed, there), output_dir=folder, pieces=pieces, layers=layers)
    check_sandbox(options, planned)
    _check_models(planned[0].unit.config)
    return planned


def generation_kind(options: GenerateOptions) -> str | None:
    """Return `--generation_type`, or the kind that a module of NeMo-Skills stands for. Raises ConfigError."""
    solver = solver_of_module(options.generation_module or "")
    kind = solver if solver in (MATH_JUDGE, CONTAMINATION, *LEAN_PROMPTS) else None
    if solver is not None and options.generation_type not in (None, kind):
        raise ConfigError(
            f"--generation_type={options.generation_type} and --generation_module={options.generation_module} "
            "exclude each other.",
            hint="Leave out one of them.",
        )
    return kind or options.generation_type


def _kind_layers(options: GenerateOptions, there: ClusterPaths | None) -> list[Layer]:
    """Return the settings that `--generation_type` and `--generation_module` stand for. Raises ConfigError."""
    kind, module = generation_kind(options), options.generation_module
    if kind == MATH_JUDGE:
        layers = [judge_layer(Judge(kind=MATH_JUDGE))]
    elif kind == CONTAMINATION:
        layers = [Layer("--generation_type", {"prompt_config": CONTAMINATION_PROMPT, "solver": CONTAMINATION})]
    elif kind in LEAN_PROMPTS:
        layers = [Layer("--generation_type", {"prompt_config": LEAN_PROMPTS[kind], "solver": kind})]
    elif kind in SELECTING:
        layers = [Layer("--generation_type", {"solver": kind})]
    else:
        layers = []
    if not module:
        return layers
    solver = solver_of_module(module)
    if solver is None:
        return [*layers, module_layer(module, there)]
    if solver in (kind, CHAT):
        return layers
    return [Layer("--generation_module", {"solver": solver})]


def _solver_overrides(parsed: Parsed[GenerateOptions]) -> dict[str, Text]:
    """Return the `++` keys; those of a kind of generation become settings of its solver."""
    if generation_kind(parsed.options) != CONTAMINATION:
        return dict(parsed.overrides)
    return {
        f"solver_config.{key}" if key in CONTAMINATION_KEYS else key: text
        for key, text in parsed.overrides.items()
    }


def _speech_layers(choice: ModelChoice) -> list[Layer]:
    """Return a layer with the solver and prompt for a speech service; no layer for other servers."""
    kind = MODELS.properties(str(choice.layer.values["server.server_type"])).solver
    if kind:
        return [Layer("--server_type", {"solver": kind, "prompt_config": f"speech/{kind}"})]
    return []


def _check_models(config: GenerationConfig) -> None:
    if (
        config.models
        and "::" not in config.solver
        and (config.selected_by or config.solved_by) not in SEVERAL_MODELS
    ):
        roles = ", ".join(config.models)
        raise ConfigError(
            f"Several models ({roles} besides the first) need a generation module that uses them.",
            hint="Give --generation_module=FILE.py::MAKER: its solver gets them in kit.models by these names.",
        )


def _output_dir(parsed: Parsed[GenerateOptions]) -> Path:
    if parsed.options.output_dir:
        return Path(parsed.options.output_dir)
    if output := parsed.overrides.get("output_file"):
        return Path(output).parent
    return default_output(parsed.options.expname or "generate")


def _chosen_seeds(options: GenerateOptions) -> tuple[int, ...] | None:
    if options.random_seeds is not None:
        if options.num_random_seeds is not None:
            raise ConfigError("Give --random_seeds or --num_random_seeds, not both.")
        return tuple(parse_ids(options.random_seeds, "--random_seeds"))
    if options.num_random_seeds is None:
        return None
    return tuple(range(options.starting_seed, options.starting_seed + options.num_random_seeds))


def from_benchmark(parsed: Parsed[GenerateOptions]) -> bool:
    """Return whether the input is the prepared data of a benchmark (`++dataset`)."""
    own_input = parsed.options.input_dir or parsed.options.input_file or parsed.overrides.get("input_file")
    return not own_input and "dataset" in parsed.overrides


def _input_file(parsed: Parsed[GenerateOptions], there: ClusterPaths | None) -> Path:
    input_file = parsed.options.input_file or parsed.overrides.get("input_file")
    if input_file:
        if there is not None:
            input_file = there.path_in_job(str(input_file), "--input_file")
        return Path(input_file)
    if name := parsed.overrides.get("dataset"):
        return load_rows(get_benchmark(str(name)), str(parsed.overrides.get("split", "")))
    raise ConfigError(
        "No input is given. Give --input_file, --input_dir or ++dataset=BENCHMARK.", hint="See: ns generate --help"
    )
