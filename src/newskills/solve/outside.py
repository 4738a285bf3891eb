# SPDX-License-Identifier: Apache-2.0
"""Work of agents that newskills does not run."""

from __future__ import annotations

from typing import NoReturn

from newskills.base.errors import ConfigError
from newskills.solve.parts import SolverParts

AGENT_NEEDED = (
    "This benchmark is work for an agent (SWE-agent, OpenHands, mini-swe-agent) in a container per task, which "
    "newskills does not run, and is judged by its own harness in containers."
)


def software_agent(parts: SolverParts) -> NoReturn:
    """The solver of benchmarks whose tasks are repositories. Raises ConfigError, always."""
    raise ConfigError(
        AGENT_NEEDED,
        hint="`ns prepare_data` writes its tasks; `ns swe_bench` hands patches to the harness of SWE-bench and reads "
        "its verdicts, of which `ns compute_metrics` gives the metrics.",
    )
