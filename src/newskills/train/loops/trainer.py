# SPDX-License-Identifier: Apache-2.0
"""A trainer made of the verbs and the loops, whoever holds the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from newskills.train.loops.distill import Distillation, DistillConfig, distill
from newskills.train.loops.dpo import DpoConfig, Pair, dpo
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig, grpo
from newskills.train.loops.samples import Problem, Scorer
from newskills.train.loops.sft import SftConfig, sft
from newskills.train.loops.stepping import Hooks
from newskills.train.verbs import Datum, TrainingClient


class LoopTrainer:
    """`sft`, `dpo`, `grpo` and `distill` of a `newskills.train.trainers.Trainer`; `client` is called once a run that
    is not finished, and closed at its end.
    """

    rolls_out = True

    def __init__(self, client: Callable[[], AbstractContextManager[TrainingClient]]) -> None:
        self._client = client

    def sft(
        self,
        examples: Sequence[Datum],
        config: SftConfig,
        folder: TrainingFolder,
        hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    ) -> bool:
        if folder.finished:
            return True
        with self._client() as client:
            return sft(client, examples, config, folder, hooks)

    def dpo(
        self,
        pairs: Sequence[Pair],
        config: DpoConfig,
        folder: TrainingFolder,
        hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    ) -> bool:
        if folder.finished:
            return True
        with self._client() as client:
            return dpo(client, pairs, config, folder, hooks)

    def grpo(
        self,
        problems: Sequence[Problem],
        config: GrpoConfig,
        folder: TrainingFolder,
        scorer: Scorer,
        hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    ) -> bool:
        if folder.finished:
            return True
        with self._client() as client:
            return grpo(client, problems, config, folder, scorer, hooks)

    def distill(
        self,
        task: Distillation,
        config: DistillConfig,
        folder: TrainingFolder,
        hooks: Hooks = Hooks(),  # noqa: B008 - frozen
    ) -> bool:
        if folder.finished:
            return True
        with self._client() as client:
            return distill(client, task, config, folder, hooks)
