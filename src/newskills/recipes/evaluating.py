# SPDX-License-Identifier: Apache-2.0
"""An evaluation within a recipe: the model is served for it, and nothing of it is printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from newskills.base.errors import NewskillsError
from newskills.config.layers import Layer
from newskills.models.serving import ServeSpec
from newskills.models.serving.spec import DEFAULT_SLOTS
from newskills.run.engine.execute import SIGNAL_EXIT_BASE
from newskills.run.evaluate import EvaluationSpec, evaluate, plan_evaluation
from newskills.run.hosting.roles import HostedServers
from newskills.run.planning.plan import BenchmarkRun
from newskills.train.loops.stopping import StoppedError


class RecipeServer(Struct, frozen=True, kw_only=True):
    """How a recipe serves its models, and the command that resumes it. `timeout`: seconds until a server is ready."""

    resume_with: str
    server_type: str = "llamacpp"
    num_gpus: int = 0
    timeout: float = 300.0


def evaluate_quietly(
    name: str,
    weights: Path,
    runs: Sequence[BenchmarkRun],
    out: Path,
    server: RecipeServer,
    settings: dict[str, Any] | None = None,
) -> dict[str, list[Path]]:
    """Evaluate `weights`, continuing where `out` was left, and return the files of each benchmark, one for each seed.

    `settings` win over those of the benchmarks. Raises StoppedError (a signal came), NewskillsError (it failed).
    """
    fixed = {
        "server.server_type": server.server_type,
        "server.model": str(weights),
        "max_concurrent_requests": DEFAULT_SLOTS,
    }
    spec = EvaluationSpec(
        runs=runs,
        output_dir=out,
        layers=[Layer(server.resume_with, {**fixed, **(settings or {})})],
        hosting=HostedServers(
            spec=ServeSpec(model=str(weights), server_type=server.server_type, num_gpus=server.num_gpus),
            log=out / "eval-logs/server.log",
            timeout=server.timeout,
        ),
        log_dir=str(out / "eval-logs"),
        resume_with=server.resume_with,
    )
    return _evaluated_files(name, spec)


def evaluate_endpoint_quietly(
    name: str, runs: Sequence[BenchmarkRun], out: Path, settings: dict[str, Any], resume_with: str
) -> dict[str, list[Path]]:
    """Evaluate a model that is served already; `settings` say where (`server.*`). Continues, returns and raises as
    `evaluate_quietly`."""
    layers = [Layer(resume_with, settings)]
    log_dir = str(out / "eval-logs")
    return _evaluated_files(
        name,
        EvaluationSpec(runs=runs, output_dir=out, layers=layers, log_dir=log_dir, resume_with=resume_with),
    )


def _evaluated_files(name: str, spec: EvaluationSpec) -> dict[str, list[Path]]:
    plan = plan_evaluation(spec)
    evaluation = evaluate(plan, say=lambda _: None)
    if evaluation.exit_code > SIGNAL_EXIT_BASE:
        raise StoppedError(evaluation.message)
    if evaluation.exit_code:
        raise NewskillsError(f"The evaluation of {name} failed: {evaluation.message}")
    files: dict[str, list[Path]] = {}
    for piece in plan.answers:
        files.setdefault(piece.unit.name, []).append(piece.unit.merged)
    return files
