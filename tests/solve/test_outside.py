# SPDX-License-Identifier: Apache-2.0
"""What is refused because newskills does not run it."""

from __future__ import annotations

from typing import cast

import pytest

from newskills.base.errors import ConfigError
from newskills.benchmarks import get_benchmark
from newskills.solve import make_solver
from newskills.solve.parts import SolverParts


@pytest.mark.parametrize(
    "name",
    ["swe-bench", "swe-bench-multilingual", "swe-bench-pro", "swe-rebench", "swe-lancer", "terminal-bench"],
)
def test_work_of_agents_is_refused_with_what_it_needs(name: str) -> None:
    with pytest.raises(ConfigError, match=r"an agent .* with a container per task"):
        make_solver(get_benchmark(name).solver, cast("SolverParts", None), {})
