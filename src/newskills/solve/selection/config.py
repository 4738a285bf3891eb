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
        raise ValueError(f"regex {regex!r} does not compile: {error}") from error
    if groups < 1:
        raise ValueError(f"regex {regex!r} needs a group in parentheses for what is looked for")


class GenSelectPrompt(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the best solution is asked for (`++parallel_thinking.genselect.*`)."""

    prompt_config: Annotated[str, Meta(description="prompt with {problem}, {solutions}, {num_solutions}")] = (
        "generic/genselect"
    )
    regex: Annotated[str, Meta(description="its last match in the reply has the number of the chosen one")] = (
        JUDGMENT
    )

    def __post_init__(self) -> None:
        _check_regex(self.regex)


class GenSynthesisPrompt(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a solution made of all of them is asked for (`++parallel_thinking.gensynthesis.*`)."""

    prompt_config: Annotated[str, Meta(description="prompt with {problem}, {solutions}, {num_solutions}")] = (
        "generic/gensynthesis"
    )
    regex: Annotated[str, Meta(description="its last match in the reply has the solution")] = SYNTHESIS

    def __post_init__(self) -> None:
        _check_regex(self.regex)


class Selection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How solutions are shown to the model that compares them, and how it answers."""

    temperature: Annotated[float, Meta(ge=0, description="sampling temperature of a comparison")] = 0.6
    tokens_to_generate: Annotated[
        Positive | None, Meta(description="new tokens of a comparison; default: those of a solution")
    ] = None
    parse_reasoning: Annotated[
        bool, Meta(description="look for the choice only behind the reasoning of a comparison")
    ] = False
    parse_reasoning_solutions: Annotated[
        bool, Meta(description="show of each solution only what follows its reasoning")
    ] = True
    solution_length_cap: Annotated[
        Positive | None, Meta(description="longer solutions (characters) are not compared; null = all are")
    ] = 16384
    filter_incomplete_solutions: Annotated[bool, Meta(description="solutions without text are not compared")] = (
        True
    )


class ParallelThinking(Selection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several solutions of each row, and one made or chosen out of them (`++parallel_thinking.*`)."""

    mode: Annotated[
        Literal["genselect", "gensynthesis"] | None,
        Meta(description="genselect: choose the best of them; gensynthesis: write one out of all"),
    ] = None
    window_size: Annotated[int, Meta(ge=2, description="solutions that are compared at once, at most")] = 8
    solution_key: Annotated[
        str, Meta(min_length=1, description="field with the solution that is shown, such as summary")
    ] = "generation"
    genselect: GenSelectPrompt = GenSelectPrompt()
    gensynthesis: GenSynthesisPrompt = GenSynthesisPrompt()
    generation_dir: Annotated[
        str | None, Meta(description="folder whose output-rs*.jsonl have the solutions; default: generate them")
    ] = None
    num_initial_solutions: Annotated[
        Positive | None,
        Meta(description="solutions to generate, or to take from generation_dir; default: window_size, or all"),
    ] = None


class RepeatedSelection(Selection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Many solutions, compared in several draws whose results vote (https://arxiv.org/abs/2504.16891)."""

    samples: Annotated[Positive, Meta(description="solutions of each row")] = 16
    window_size: Annotated[
        int, Meta(ge=2, le=LARGEST, description="solutions that are compared at once, at most")
    ] = 16
    repeats: Annotated[Positive, Meta(description="draws, each in an order of its own; their answers vote")] = 8


class GenSelectConfig(RepeatedSelection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of `solver=genselect`."""

    groups: Annotated[
        Literal["random", "tournament"],
        Meta(description="random: a draw compares window_size of them; tournament: all, winners against winners"),
    ] = "random"
    prompt_config: Annotated[str, Meta(description="prompt of a comparison")] = "generic/genselect"
    regex: Annotated[str, Meta(description="its last match has the number of the chosen one")] = JUDGMENT

    def __post_init__(self) -> None:
        _check_regex(self.regex)


class GenSynthesisConfig(RepeatedSelection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of `solver=gensynthesis`."""

    samples: Annotated[Positive, Meta(description="solutions of each row")] = 8
    window_size: Annotated[
        int, Meta(ge=2, le=LARGEST, description="solutions that are shown at once, at most")
    ] = 8
    repeats: Annotated[Positive, Meta(description="solutions written out of them; their answers vote")] = 1
    prompt_config: Annotated[str, Meta(description="prompt that asks for the solution")] = "generic/gensynthesis"
    regex: Annotated[str, Meta(description="its last match has the solution")] = SYNTHESIS

    def __post_init__(self) -> None:
        _check_regex(self.regex)


class VoteConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of `solver=majority` and `solver=weighted_vote`."""

    samples: Annotated[Positive, Meta(description="answers of each row")] = 16
    early_stop_votes: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        Meta(description="stop, and give up those under way, once so many agree (4 or 5 of 16)"),
    ] = None

    def __post_init__(self) -> None:
        if self.early_stop_votes is not None and self.early_stop_votes > self.samples:
            raise ValueError(f"early_stop_votes {self.early_stop_votes} is above samples {self.samples}")


class BestOfNConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++solver_config.*` of `solver=best_of_n`."""

    samples: Annotated[Positive, Meta(description="answers of each row")] = 16
    scorer: Annotated[
        Literal["reward", "judge"],
        Meta(
            description="reward: ++models.reward scores them (server_type vllm_classify, vllm_score, vllm_pooling); "
            "judge: a chat model does (++models.reward, else the model itself)"
        ),
    ] = "judge"
    prompt_config: Annotated[str, Meta(description="prompt of the judge, with {problem} and {solution}")] = (
        "generic/score-solution"
    )
    regex: Annotated[str, Meta(description="its last match in the judge's reply has the score")] = (
        r"Score: (-?\d+(?:\.\d+)?)"
    )
    tokens_to_generate: Annotated[Positive | None, Meta(description="new tokens of a judgement")] = None
    parse_reasoning_solutions: Annotated[
        bool, Meta(description="score of each answer only what follows its reasoning")
    ] = True

    def __post_init__(self) -> None:
        _check_regex(self.regex)
