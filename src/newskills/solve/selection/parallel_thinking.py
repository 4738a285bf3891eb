# SPDX-License-Identifier: Apache-2.0
"""`++parallel_thinking.mode=…`: any solver's answers, several of them, and one chosen or written out of them."""

from __future__ import annotations

from pathlib import Path

from newskills.solve.parts import SolverParts
from newskills.solve.selection.config import ParallelThinking
from newskills.solve.selection.selecting import CandidateSource, Design, OnlineSource, SelectingSolver
from newskills.solve.selection.stored_solutions import StoredSource


def parallel_thinking(parts: SolverParts, config: ParallelThinking) -> SelectingSolver:
    """Wrap `parts.base` in the selection of `mode`, which must be set. Raises ConfigError, UnknownNameError,
    DataError (generation_dir)."""
    assert config.mode is not None
    selection = config.genselect if config.mode == "genselect" else config.gensynthesis
    design = Design(
        mode=config.mode,
        settings=config,
        prompt=selection.prompt_config,
        regex=selection.regex,
        window_size=config.window_size,
    )
    most, key = config.num_initial_solutions, config.solution_key
    source: CandidateSource = OnlineSource(parts, design, most or config.window_size, key)
    if config.generation_dir:
        source = StoredSource(parts, design, Path(config.generation_dir), key, most)
    return SelectingSolver(parts, design, source)
