# SPDX-License-Identifier: Apache-2.0
"""Work of agents that newskills does not run."""

from __future__ import annotations

from typing import NoReturn

from newskills.base.errors import ConfigError
from newskills.solve.parts import SolverParts

AGENT_NEEDED = (
    "This benchmark needs an agent (SWE-agent, OpenHands, mini-swe-agent) with a container per task, which "
    "newskills does not run; its own harness judges it in containers."
)


def software_agent(parts: SolverParts) -> NoReturn:
    """The solver of benchmarks whose tasks are repositories. Raises ConfigError, always."""
    raise ConfigError(
        AGENT_NEEDED,
        hint="`ns prepare_data` writes its tasks; `ns swe_bench` gives patches to the SWE-bench harness and "
        "reads its verdicts; `ns compute_metrics` computes their metrics.",
    )
