# SPDX-License-Identifier: Apache-2.0
"""`gensynthesis`: the model writes one solution out of several; where it does so several times, the answers vote."""

from __future__ import annotations

from newskills.solve.parts import SolverParts
from newskills.solve.selection.config import GenSynthesisConfig
from newskills.solve.selection.selecting import Design, OnlineSource, SelectingSolver


class GenSynthesisSolver(SelectingSolver):
    """Solutions of one model, fixed and put together by itself."""

    Config = GenSynthesisConfig

    def __init__(self, parts: SolverParts, config: GenSynthesisConfig) -> None:
        """Set up the design from `config`. Raises UnknownNameError, ConfigError for the prompt."""
        design = Design(
            mode="gensynthesis",
            settings=config,
            prompt=config.prompt_config,
            regex=config.regex,
            window_size=config.window_size,
            repeats=config.repeats,
        )
        super().__init__(parts, design, OnlineSource(parts, design, config.samples))
