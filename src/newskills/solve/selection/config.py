# SPDX-License-Identifier: Apache-2.0
"""Settings of answers that are chosen out of several. Apart from the solvers, so that a help page loads no engine."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

Positive = Annotated[int, Meta(ge=1)]
JUDGMENT = r"Judg[e]?ment: (\d+)"
SYNTHESIS = r"(?s)<NEW_SOLUTION>((?:(?!<NEW_SOLUTION>).)*?)</NEW_SOLUTION>"
"""Does not look beyond the next begin, so that a text that repeats it takes time linear in its length."""
LARGEST = 32
"""Solutions in one prompt above which the choice of a model becomes unstable (https://arxiv.org/abs/2504.16891)."""


def _check_regex(regex: str) -> None:
    try:
        groups = re.compile(regex).groups
    except re.error as error:
        raise ValueError(f"regex {regex!r} is not a valid regular expression: {error}") from error
    if groups < 1:
        raise ValueError(f"regex {regex!r} needs a group in parentheses for the text to extract")


class GenSelectPrompt(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the best solution is asked for (`++parallel_thinking.genselect.*`)."""

    prompt_config: Annotated[str, Meta(description="prompt with {problem}, {solutions}, {num_solutions}")] = (
        "generic/genselect"
    )
    regex: Annotated[
        str,
        Meta(
            description="regular expression; its last match in the reply gives the number of the chosen solution"
        ),
    ] = JUDGMENT

    def __post_init__(self) -> None:
        _check_regex(self.regex)


class GenSynthesisPrompt(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a solution made of all of them is asked for (`++parallel_thinking.gensynthesis.*`)."""

    prompt_config: Annotated[str, Meta(description="prompt with {problem}, {solutions}, {num_solutions}")] = (
        "generic/gensynthesis"
    )
    regex: Annotated[
        str, Meta(description="regular expression; its last match in the reply gives the solution")
    ] = SYNTHESIS

    def __post_init__(self) -> None:
        _check_regex(self.regex)


class Selection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How solutions are shown to the model that compares them, and how it answers."""

    temperature: Annotated[float, Meta(ge=0, description="sampling temperature of a comparison")] = 0.6
    tokens_to_generate: Annotated[
        Positive | None, Meta(description="longest comparison in new tokens; default: as for a solution")
    ] = None
    parse_reasoning: Annotated[
        bool, Meta(description="look for the choice only after the reasoning of a comparison")
    ] = False
    parse_reasoning_solutions: Annotated[
        bool, Meta(description="show only the part of each solution after its reasoning")
    ] = True
    solution_length_cap: Annotated[
        Positive | None, Meta(description="longest solution to compare, in characters; null = any length")
    ] = 16384
    filter_incomplete_solutions: Annotated[bool, Meta(description="leave out solutions without text")] = True


class ParallelThinking(Selection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several solutions of each row, and one made or chosen out of them (`++parallel_thinking.*`)."""

    mode: Annotated[
        Literal["genselect", "gensynthesis"] | None,
        Meta(description="genselect: choose the best solution; gensynthesis: write one solution from all"),
    ] = None
    window_size: Annotated[int, Meta(ge=2, description="largest number of solutions in one comparison")] = 8
    solution_key: Annotated[
        str, Meta(min_length=1, description="field with the solution to show, such as summary")
    ] = "generation"
    genselect: GenSelectPrompt = GenSelectPrompt()
    gensynthesis: GenSynthesisPrompt = GenSynthesisPrompt()
    generation_dir: Annotated[
        str | None, Meta(description="folder with the solutions, in output-rs*.jsonl; default: generate them")
    ] = None
    num_initial_solutions: Annotated[
        Positive | None,
        Meta(
            description="number of solutions to generate, or to take from generation_dir; default: "
            "window_size, or all"
        ),
    ] = None


class RepeatedSelection(Selection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Many solutions, compared in several draws whose results vote (https://arxiv.org/abs/2504.16891)."""

    samples: Annotated[Positive, Meta(description="solutions per row")] = 16
    window_size: Annotated[
        int, Meta(ge=2, le=LARGEST, description="largest number of solutions in one comparison")
    ] = 16
    repeats: Annotated[
        Positive, Meta(description="number of comparisons, each in another order; their answers vote")
    ] = 8


class GenSelectConfig(RepeatedSelection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of `solver=genselect`."""

    groups: Annotated[
        Literal["random", "tournament"],
        Meta(
            description="random: each comparison takes window_size of them; tournament: all solutions, "
            "winners against winners"
        ),
    ] = "random"
    prompt_config: Annotated[str, Meta(description="prompt of a comparison")] = "generic/genselect"
    regex: Annotated[
        str, Meta(description="regular expression; its last match gives the number of the chosen solution")
    ] = JUDGMENT

    def __post_init__(self) -> None:
        _check_regex(self.regex)


class GenSynthesisConfig(RepeatedSelection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of `solver=gensynthesis`."""

    samples: Annotated[Positive, Meta(description="solutions per row")] = 8
    window_size: Annotated[
        int, Meta(ge=2, le=LARGEST, description="largest number of solutions shown at once")
    ] = 8
    repeats: Annotated[
        Positive, Meta(description="number of solutions to write from them; their answers vote")
    ] = 1
    prompt_config: Annotated[str, Meta(description="prompt that asks for the solution")] = "generic/gensynthesis"
    regex: Annotated[str, Meta(description="regular expression; its last match gives the solution")] = SYNTHESIS

    def __post_init__(self) -> None:
        _check_regex(self.regex)


class VoteConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of `solver=majority` and `solver=weighted_vote`."""

    samples: Annotated[Positive, Meta(description="answers per row")] = 16
    early_stop_votes: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        Meta(description="stop early, and abort the other requests, when so many answers agree (4 or 5 of 16)"),
    ] = None

    def __post_init__(self) -> None:
        if self.early_stop_votes is not None and self.early_stop_votes > self.samples:
            raise ValueError(
                f"early_stop_votes {self.early_stop_votes} must not be larger than samples {self.samples}"
            )


class BestOfNConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of `solver=best_of_n`."""

    samples: Annotated[Positive, Meta(description="answers per row")] = 16
    scorer: Annotated[
        Literal["reward", "judge"],
        Meta(
            description="reward: ++models.reward scores the answers (server_type vllm_classify, vllm_score, "
            "vllm_pooling); judge: a chat model scores them (++models.reward, otherwise the "
            "model itself)"
        ),
    ] = "judge"
    prompt_config: Annotated[str, Meta(description="prompt of the judge, with {problem} and {solution}")] = (
        "generic/score-solution"
    )
    regex: Annotated[
        str, Meta(description="regular expression; its last match in the judge's reply gives the score")
    ] = r"Score: (-?\d+(?:\.\d+)?)"
    tokens_to_generate: Annotated[
        Positive | None, Meta(description="longest reply of the judge in new tokens")
    ] = None
    parse_reasoning_solutions: Annotated[
        bool, Meta(description="score only the part of each answer after its reasoning")
    ] = True

    def __post_init__(self) -> None:
        _check_regex(self.regex)
