# SPDX-License-Identifier: Apache-2.0
"""`--generation_type` and `--generation_module`: how answers are produced."""

from __future__ import annotations

from newskills.base.errors import ConfigError
from newskills.config.layers import Layer
from newskills.pipelines.placement.cluster import ClusterPaths
from newskills.run.planning.config import CHAT
from newskills.solve.generation_modules import solver_of_module

GENERATE = "generate"


def module_layer(module: str, there: ClusterPaths | None) -> Layer:
    """Return what a module or a file with `SOLVER`, or what else makes a solver behind `::`, stands for."""
    if there is not None:
        module = there.code_in_job(module)
    where, _, maker = module.partition("::")
    return Layer("--generation_module", {"solver": f"{where}::{maker or 'SOLVER'}"})


def solver_layers(kind: str | None, module: str | None, there: ClusterPaths | None) -> list[Layer]:
    """Return how all benchmarks are answered instead of in their own ways. Raises ConfigError where both are given."""
    if kind is not None and module is not None:
        raise ConfigError("--generation_type and --generation_module exclude each other.", hint="Leave out one.")
    if kind == GENERATE:
        kind = CHAT
    if kind is not None:
        return [Layer("--generation_type", {"solver": kind})]
    if module is None:
        return []
    solver = solver_of_module(module)
    if solver is None:
        return [module_layer(module, there)]
    return [Layer("--generation_module", {"solver": solver})]
