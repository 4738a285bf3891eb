# SPDX-License-Identifier: Apache-2.0
"""`genselect`: the model chooses the best of many solutions, several times; what it chose votes."""

from __future__ import annotations

from newskills.solve.parts import SolverParts
from newskills.solve.selection.config import GenSelectConfig
from newskills.solve.selection.selecting import Design, OnlineSource, SelectingSolver


class GenSelectSolver(SelectingSolver):
    """GenSelect (https://arxiv.org/abs/2504.16891): 16 of the solutions a prompt, 8 draws; above 32 it is unstable."""

    Config = GenSelectConfig

    def __init__(self, parts: SolverParts, config: GenSelectConfig) -> None:
        """Set up the design from `config`. Raises UnknownNameError, ConfigError for the prompt."""
        design = Design(
            mode="genselect",
            settings=config,
            prompt=config.prompt_config,
            regex=config.regex,
            window_size=config.window_size,
            repeats=config.repeats,
            tournament=config.groups == "tournament",
        )
        super().__init__(parts, design, OnlineSource(parts, design, config.samples))
