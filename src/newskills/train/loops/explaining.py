# SPDX-License-Identifier: Apache-2.0
"""What one step of a training did: its groups, and how far it pushed the probability of each sampled token.

The step is done again, from the last checkpoint before it: a run that goes on is exactly one that was not stopped.
Nothing of the run is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.train.loops.folder import Checkpoint, Saver, TrainingFolder
from newskills.train.loops.groups import Group, sample_rows
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems, grpo
from newskills.train.loops.samples import Decode
from newskills.train.loops.stepping import Hooks
from newskills.train.loops.traces import TrainingSequence, traces
from newskills.train.verbs import TrainingClient


def explained(
    client: TrainingClient, data: RewardedProblems, config: GrpoConfig, folder: TrainingFolder, step: int
) -> Row:
    """Return what a step of the run in `folder` did: its metrics, and its groups as samples.jsonl has them, each
    response with `tokens`: text, log-probability before and after the step.

    Raises DataError for a step that the run has not done, and what training raises.
    """
    done = max((row["step"] for row in folder.metric_rows()), default=0)
    if not 1 <= step <= done:
        raise DataError(f"{folder.path} has no step {step}: {done} are done.")
    replayed = ReplayedFolder(folder, config, data.scorer.decode, step)
    grpo(client, data.problems, config, replayed, data.scorer, Hooks(stop=lambda: bool(replayed.explanation)))
    return replayed.explanation


class ReplayedFolder:
    """A run up to a checkpoint as the log of a training that writes nothing, and explains one step."""

    finished = False

    def __init__(self, folder: TrainingFolder, config: GrpoConfig, decode: Decode, step: int) -> None:
        self._folder, self._config, self._decode, self._explained = folder, config, decode, step
        states = [state for state in folder.checkpoints if state.step < step and _of_its_step(state)]
        self._state = states[-1] if states else None
        self._first = self._state.step if self._state else 0
        self._rows = [row for row in folder.metric_rows() if row["step"] <= self._first]
        self._client: TrainingClient | None = None
        self._groups: list[Row] = []
        self.explanation: Row = {}

    def resume(self, client: TrainingClient) -> int:
        """Load the checkpoint before the step; return how many steps are done there."""
        self._client = client
        if self._state is not None:
            client.load_state(self._folder.state_of(self._state))
        return self._first

    def scores(self, name: str) -> list[tuple[int, float]]:
        """Return (step, value) of a metric, where it was measured, in order."""
        return [(row["step"], row[name]) for row in self._rows if name in row]

    def sampled(self) -> Iterable[Row]:
        """Return the samples up to the checkpoint."""
        return takewhile(lambda row: row["step"] <= self._first, self._folder.sampled())

    def groups(self, groups: Sequence[Group], step: int) -> None:
        """Explain the groups, where this is the step: its weights have just been changed."""
        if step == self._explained:
            assert self._client is not None
            self._groups = explained_groups(self._client, groups, self._config, self._decode, step)

    def metrics(self, row: Row) -> None:
        """Keep those of a step for what follows."""
        self._rows.append(row)
        if row["step"] == self._explained:
            self.explanation = {**row, "groups": self._groups}

    def write(self) -> None:
        """Write nothing."""

    def save(self, client: Saver, step: int, *, final: bool = False, best: int | None = None) -> None:
        """Save nothing."""


def explained_groups(
    client: TrainingClient, groups: Sequence[Group], config: GrpoConfig, decode: Decode, step: int
) -> list[Row]:
    """Return the rows of groups, with the tokens of each response."""
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    parts = [traces(rollout, [1.0] * len(rollout.turns)) for rollout in rollouts]
    sequences = [sequence for part in parts for sequence in part]
    logprobs: Any = client.logprobs
    data = [sequence.datum for sequence in sequences]
    after = iter(logprobs(data, config.temperature) if config.temperature != 1 else logprobs(data))
    tokens = [[token for sequence in part for token in _pushed(sequence, next(after), decode)] for part in parts]
    rows, shown = sample_rows(groups, step), iter(tokens)
    for row in rows:
        row["responses"] = [{**response, "tokens": next(shown)} for response in row["responses"]]
    return rows


def _pushed(sequence: TrainingSequence, after: Sequence[float], decode: Decode) -> list[tuple[str, float, float]]:
    before, targets = sequence.datum.logprobs or (), sequence.datum.targets
    return [(decode([targets[place]]), before[place], after[place]) for place in sequence.written]


def _of_its_step(checkpoint: Checkpoint) -> bool:
    """Return whether it holds the weights after its step, and not better ones of an earlier one."""
    return bool(checkpoint.state_path) and checkpoint.name.endswith(f"{checkpoint.step:06d}")
