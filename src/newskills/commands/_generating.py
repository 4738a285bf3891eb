# SPDX-License-Identifier: Apache-2.0
"""What `ns generate` does. Apart from its options, so that help and completion load no engine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from newskills.base.benchmark import Judge
from newskills.base.errors import ConfigError, NewskillsError
from newskills.base.terminal import counted
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import load_rows
from newskills.commands._cluster import Paths, placed
from newskills.commands._model import ModelChoice, choose_models, hosting_of
from newskills.commands._options import tracking_of
from newskills.commands._packaged_code import at_repository
from newskills.commands._sandbox import check_sandbox, sandbox_layer
from newskills.commands._submitting import Prepared, finished, run_prepared
from newskills.commands._work import (
    chunk_ids,
    command_line,
    default_output,
    dry_run,
    ledger_line,
    show_explained,
    show_plan,
    user_layer,
)
from newskills.commands.generate import Options
from newskills.config.command_line import Parsed
from newskills.config.ids import parse_ids
from newskills.config.layers import Layer
from newskills.config.values import Text
from newskills.launch.cluster import ClusterConfig
from newskills.launch.experiments import Experiment
from newskills.run.completeness import is_cut
from newskills.run.config import AUTOFORMALIZE, BEST_OF_N, CHAT, PROVER, SELECTING, GenerationConfig
from newskills.run.contamination import contamination_line
from newskills.run.execute import execute
from newskills.run.hosting import address_of, check_units, hosted
from newskills.run.judging import judge_layer
from newskills.run.paths import done_path
from newskills.run.plan import Pieces, PlannedUnit, file_units, folder_units
from newskills.run.spec import RunResult, RunSpec, UnitResult
from newskills.run.tables import finish_counts
from newskills.run.tracking import log_reports
from newskills.solve.generation_modules import solver_of_module
from newskills.solve.speech import SPEECH_SOLVERS

BENCHMARK_KEYS = ("dataset", "split")
MATH_JUDGE = "math_judge"
CONTAMINATION, CONTAMINATION_PROMPT = "check_contamination", "judge/check-contamination"
LEAN_PROMPTS = {AUTOFORMALIZE: "lean4/autoformalization", PROVER: "lean4/goedel-prover-v2"}
SEVERAL_MODELS = (AUTOFORMALIZE, BEST_OF_N)
"""Solvers of our own that ask other models beside the first."""
CONTAMINATION_KEYS = ("retrieve_key", "check_both_ways", "top_k")


def run(parsed: Parsed[Options]) -> int:
    options = parsed.options
    if (cluster := placed(options, parsed.given, options.num_jobs)) is not None:
        ready = prepare(parsed, cluster)
        return run_prepared(ready) if ready is not None else 0
    planned = plan(parsed)
    if parsed.explain:
        show_explained(planned)
        return 0
    if dry_run(options, planned):
        show_plan(planned)
        return 0
    result = work(parsed, planned)
    for unit in result.units:
        counts = f"; {ledger_line(unit.ledger)}" if unit.ledger.total else ""
        if finishes := finish_counts(unit.ledger):
            counts += f"; finish reasons: {finishes}"
        if _kind(options) == CONTAMINATION and unit.status == "done":
            counts = f"; {contamination_line(Path(unit.output))}"
        note = f" ({unit.note})" if unit.note and not result.message else ""
        sys.stdout.write(f"{unit.output}: {unit.status}, {_done(unit)}{counts}{note}\n")
    if result.message:
        sys.stderr.write(f"{result.message}\n")
    return result.exit_code


def _done(unit: UnitResult) -> str:
    """`3 rows`, or `1 of 3 rows` where some have no record yet."""
    done, rows = unit.kept + unit.generated, counted(unit.rows, "row")
    return rows if done == unit.rows else f"{done} of {rows}"


def prepare(parsed: Parsed[Options], cluster: ClusterConfig) -> Prepared | None:
    """The pipeline for `cluster`; None: nothing is left to do. Raises NewskillsError."""
    from newskills.commands import _generate_jobs

    return _generate_jobs.prepare(parsed, cluster)


def result(parsed: Parsed[Options]) -> RunResult | Experiment | None:
    """For Python: None for a dry run; raises NewskillsError where anything is left undone.

    On a cluster: what was submitted, None where nothing is left to do.
    """
    if (cluster := placed(parsed.options, parsed.given, parsed.options.num_jobs)) is not None:
        ready = prepare(parsed, cluster)
        return finished(ready) if ready is not None else None
    planned = plan(parsed)
    if dry_run(parsed.options, planned):
        show_plan(planned)
        return None
    done = work(parsed, planned)
    if done.exit_code:
        raise NewskillsError(done.message)
    return done


def plan(
    parsed: Parsed[Options], address: Layer | None = None, *, there: Paths | None = None
) -> list[PlannedUnit]:
    """All units, resolved; `there`: the paths of a cluster. Raises NewskillsError for anything that does not fit."""
    if there is None:
        parsed = at_repository(parsed)
    options = parsed.options
    choice = choose_models(options, parsed.overrides, elsewhere=there is not None)
    user = user_layer(_overrides(parsed), consumed=BENCHMARK_KEYS)
    layers = [
        *_speech(choice),
        *_layers(options, there),
        choice.layer,
        *([address] if address else []),
        sandbox_layer(options),
        user,
    ]
    pieces = Pieces(
        seeds=_seeds(options),
        num_chunks=options.num_chunks,
        chunk_ids=chunk_ids(options),
    )
    folder = _output_dir(parsed)
    if there is not None:
        folder = Path(there.seen(str(folder), "--output_dir"))
    if options.input_dir:
        if options.input_file:
            raise ConfigError("Give --input_file or --input_dir, not both.")
        source = there.seen(options.input_dir, "--input_dir") if there is not None else options.input_dir
        planned = folder_units(Path(source), output_dir=folder, pieces=pieces, layers=layers)
    else:
        planned = file_units(_input(parsed, there), output_dir=folder, pieces=pieces, layers=layers)
    check_sandbox(options, planned)
    _check_models(planned[0].unit.config)
    return planned


def work(parsed: Parsed[Options], planned: Sequence[PlannedUnit]) -> RunResult:
    """Checks every first prompt, starts the server if one is to be hosted, runs."""
    options = parsed.options
    tracking = tracking_of(
        options.wandb_name, options.wandb_project, options.wandb_group, samples=options.log_samples
    )
    _shell(options.preprocess_cmd, "--preprocess_cmd")
    files = dict.fromkeys(piece.unit.merged for piece in planned)
    cut = {piece.unit.merged for piece in planned if is_cut(piece.unit)}
    waiting = [file for file in files if options.rerun_done or file in cut or not done_path(file).exists()]
    output_dir = planned[0].unit.merged.parent
    logs = Path(options.log_dir or output_dir / "generation-logs")
    hosting = hosting_of(choose_models(options, parsed.overrides), options, logs)
    check_units(planned, hosting)
    with hosted(hosting, planned, rerun_done=options.rerun_done) as server:
        units = tuple(p.unit for p in (plan(parsed, address_of(server)) if server else planned))
        done = execute(
            RunSpec(
                units=units,
                output_dir=str(output_dir),
                rerun_done=options.rerun_done,
                log_dir=str(logs),
                sequential=options.single_node_mode == "sequential",
                resume_with=command_line("generate"),
            )
        )
    for file in waiting:
        if done_path(file).exists():
            _shell(options.postprocess_cmd, "--postprocess_cmd")
    if tracking is not None and done.exit_code == 0:
        log_reports(tracking, [], {"generate": Path(done.units[0].output)})
    return done


def _kind(options: Options) -> str | None:
    """`--generation_type`, or the kind that a module of the reference system stands for. Raises ConfigError."""
    solver = solver_of_module(options.generation_module or "")
    kind = solver if solver in (MATH_JUDGE, CONTAMINATION, *LEAN_PROMPTS) else None
    if solver is not None and options.generation_type not in (None, kind):
        raise ConfigError(
            f"--generation_type={options.generation_type} and --generation_module={options.generation_module} name "
            "two ways to generate.",
            hint="Leave one of them out.",
        )
    return kind or options.generation_type


def _layers(options: Options, there: Paths | None) -> list[Layer]:
    """The settings that `--generation_type` and `--generation_module` stand for. Raises ConfigError."""
    kind, module = _kind(options), options.generation_module
    if kind == MATH_JUDGE:
        layers = [judge_layer(Judge(kind=MATH_JUDGE))]
    elif kind == CONTAMINATION:
        layers = [Layer("--generation_type", {"prompt_config": CONTAMINATION_PROMPT, "solver": CONTAMINATION})]
    elif kind in LEAN_PROMPTS:
        layers = [Layer("--generation_type", {"prompt_config": LEAN_PROMPTS[kind], "solver": kind})]
    else:
        layers = [Layer("--generation_type", {"solver": kind})] if kind in SELECTING else []
    if not module:
        return layers
    solver = solver_of_module(module)
    if solver is None:
        return [*layers, _solver_of(module, there)]
    return layers if solver in (kind, CHAT) else [Layer("--generation_module", {"solver": solver})]


def _overrides(parsed: Parsed[Options]) -> dict[str, Text]:
    """The `++` keys; those of a kind of generation are settings of its solver."""
    own = CONTAMINATION_KEYS if _kind(parsed.options) == CONTAMINATION else ()
    return {f"solver_config.{key}" if key in own else key: text for key, text in parsed.overrides.items()}


def _speech(choice: ModelChoice) -> list[Layer]:
    """What a speech service is asked for, and how, unless told otherwise."""
    kind = SPEECH_SOLVERS.get(str(choice.layer.values.get("server.server_type")))
    return [Layer("--server_type", {"solver": kind, "prompt_config": f"speech/{kind}"})] if kind else []


def _solver_of(module: str, there: Paths | None) -> Layer:
    """`--generation_module`: a module or a file with `SOLVER`, or what else makes one behind `::`."""
    where, _, maker = (module if there is None else there.code(module)).partition("::")
    return Layer("--generation_module", {"solver": f"{where}::{maker or 'SOLVER'}"})


def _check_models(config: GenerationConfig) -> None:
    if (
        config.models
        and "::" not in config.solver
        and (config.selected_by or config.solved_by) not in SEVERAL_MODELS
    ):
        roles = ", ".join(config.models)
        raise ConfigError(
            f"Several models ({roles} besides the first) need a generation module that asks them.",
            hint="Give --generation_module=FILE.py::MAKER: its solver finds them in kit.models by these names.",
        )


def _output_dir(parsed: Parsed[Options]) -> Path:
    if parsed.options.output_dir:
        return Path(parsed.options.output_dir)
    if output := parsed.overrides.get("output_file"):
        return Path(output).parent
    return default_output(parsed.options.expname or "generate")


def _seeds(options: Options) -> tuple[int, ...] | None:
    if options.random_seeds is not None:
        if options.num_random_seeds is not None:
            raise ConfigError("Give --random_seeds or --num_random_seeds, not both.")
        return tuple(parse_ids(options.random_seeds, "--random_seeds"))
    if options.num_random_seeds is None:
        return None
    return tuple(range(options.starting_seed, options.starting_seed + options.num_random_seeds))


def from_benchmark(parsed: Parsed[Options]) -> bool:
    """Whether the input is the prepared data of a benchmark (`++dataset`)."""
    given = parsed.options.input_dir or parsed.options.input_file or parsed.overrides.get("input_file")
    return not given and "dataset" in parsed.overrides


def _input(parsed: Parsed[Options], there: Paths | None) -> Path:
    given = parsed.options.input_file or parsed.overrides.get("input_file")
    if given:
        return Path(given if there is None else there.seen(str(given), "--input_file"))
    if name := parsed.overrides.get("dataset"):
        return load_rows(get_benchmark(str(name)), str(parsed.overrides.get("split", "")))
    raise ConfigError(
        "Which input? Give --input_file, --input_dir or ++dataset=BENCHMARK.", hint="See: ns generate --help"
    )


def _shell(command: str | None, option: str) -> None:
    """Runs the user's own words; no text of a model or of data is ever in them."""
    if command and (code := subprocess.run(["/bin/sh", "-c", command], check=False).returncode):
        raise NewskillsError(f"{option} ended with exit code {code}: {command}")
