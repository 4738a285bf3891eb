# SPDX-License-Identifier: Apache-2.0
"""The folder of a training run: settings, metrics, samples, checkpoints; what a killed run goes on from."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError, storage_error
from newskills.base.records import Row
from newskills.base.store import AppendLog, read_rows, write_json, write_rows
from newskills.train.loops.evaluation import P_VALUE, SCORE, best_of, change_text
from newskills.train.loops.groups import Group, sample_rows
from newskills.train.verbs import Saved, TrainingClient

METRICS, SAMPLES, CHECKPOINTS, SETTINGS = "metrics.jsonl", "samples.jsonl", "checkpoints.jsonl", "settings.json"
EVALUATIONS = "evaluations.jsonl"
"""The rewards of each held-out problem, a line an evaluation."""
EXAMPLES = "examples.jsonl"
"""The first examples of a fine-tuning, as pieces of text with and without a loss."""


class Checkpoint(Struct, frozen=True, kw_only=True):
    """A line of checkpoints.jsonl. `state_path` is a folder beside it, or what the service calls it.

    state_path    empty: the weights that the run began with, which no step has made better
    sampler_path  what a service calls the weights to sample from
    final         the run has ended with this one
    """

    name: str
    step: int
    state_path: str
    sampler_path: str = ""
    final: bool = False


class Saver(Protocol):
    def save_state(self, folder: Path) -> Saved | None: ...


class TrainingLog(Protocol):
    """What a loop goes on from and writes to: a `TrainingFolder`, or a folder of another form."""

    @property
    def finished(self) -> bool: ...

    def resume(self, client: TrainingClient) -> int:
        """Load the last checkpoint into `client`; return how many steps are done."""
        ...

    def scores(self, name: str) -> list[tuple[int, float]]:
        """Return (step, value) of a metric, where it was measured, in order."""
        ...

    def groups(self, groups: Sequence[Group], step: int) -> None:
        """Log the samples of a step."""
        ...

    def sampled(self) -> Iterable[Row]:
        """Return the rows that `groups` has written, up to the last checkpoint, in order."""
        ...

    def metrics(self, row: Row) -> None:
        """Log those of a step: `step`, `seconds`, what the loop tells and what the optimizer told."""
        ...

    def write(self) -> None:
        """Write what a step has logged, so that it survives a kill."""
        ...

    def save(self, client: Saver, step: int, *, final: bool = False, best: int | None = None) -> object:
        """Save a checkpoint after `step` steps. `best`: the step whose weights the run ends with, where not this
        one's."""
        ...


@runtime_checkable
class EvaluationsLog(Protocol):
    """A folder that keeps what each held-out problem was worth."""

    def evaluated(self, step: int, rewards: Sequence[Sequence[float]]) -> None:
        """Log the rewards of each problem's answers after so many steps."""
        ...

    def evaluations(self) -> dict[int, list[list[float]]]:
        """Return them by step."""
        ...


@runtime_checkable
class KeptStateLog(Protocol):
    """A folder that knows which weights are kept so far."""

    def kept_state(self) -> str:
        """Return the state of the best weights by held-out problems; empty: those before any training."""
        ...


class TrainingFolder:
    """One run. Everything a step writes is kept only up to the checkpoint from which a run goes on, so that the files
    of a run that was killed are those of one that was not.
    """

    def __init__(self, path: Path, settings: Row, *, writes: bool = True, keep: int = 0) -> None:
        """Open the folder of a run. `writes`: False in all but one of several processes that train together. `keep`: so
        many of the latest checkpoints stay, and the best one; 0 = all.

        Raises ConfigError where the folder belongs to a run with other settings, StorageError.
        """
        self.path, self.writes, self.keep = path, writes, keep
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, path) from error
        if writes:
            claim_settings(path, settings)
            for name in (METRICS, SAMPLES, CHECKPOINTS, EVALUATIONS):
                if name != EVALUATIONS or (path / name).is_file():
                    AppendLog(path / name).close()  # takes off a line that a kill has cut
        self.checkpoints = [
            msgspec.convert(row, Checkpoint)
            for row in (read_rows(path / CHECKPOINTS) if (path / CHECKPOINTS).is_file() else ())
        ]
        if writes:
            for name in (METRICS, SAMPLES, EVALUATIONS):
                self._forget(name, self.last.step if self.last else 0)
        names = (METRICS, SAMPLES, CHECKPOINTS) if writes else ()
        self._logs = {name: AppendLog(path / name) for name in names}

    @property
    def last(self) -> Checkpoint | None:
        if self.checkpoints:
            return self.checkpoints[-1]
        return None

    @property
    def finished(self) -> bool:
        return self.last is not None and self.last.final

    @property
    def unchanged(self) -> bool:
        """Whether the run ended with the weights that it began with."""
        return self.finished and self.last is not None and not self.last.state_path

    def resume(self, client: TrainingClient) -> int:
        """Load the last checkpoint into `client`; return how many steps are done."""
        if self.last is None:
            return 0
        client.load_state(self.state_of(self.last))
        return self.last.step

    def state_of(self, checkpoint: Checkpoint) -> str:
        """Return the folder of a checkpoint's state, or what the service calls it."""
        path = checkpoint.state_path
        if "://" in path:
            return path
        return str(self.path / path)

    def kept_state(self) -> str:
        """Return the state of the best weights by held-out problems so far; empty: those before any training."""
        scores = self.scores(SCORE)
        best = best_of(scores) if scores else 0
        saved = [
            checkpoint for checkpoint in self.checkpoints if checkpoint.step == best and checkpoint.state_path
        ]
        if saved:
            return self.state_of(saved[-1])
        return ""

    def scores(self, name: str) -> list[tuple[int, float]]:
        """Return (step, value) of a metric, where it was measured, in order."""
        return [(row["step"], row[name]) for row in self.metric_rows() if name in row]

    def metric_rows(self) -> Iterable[Row]:
        """Return the rows of metrics.jsonl, one at a time. Raises DataError."""
        path = self.path / METRICS
        if path.is_file():
            return read_rows(path)
        return ()

    def evaluated(self, step: int, rewards: Sequence[Sequence[float]]) -> None:
        if self.writes:
            if EVALUATIONS not in self._logs:
                self._logs[EVALUATIONS] = AppendLog(self.path / EVALUATIONS)
            self._logs[EVALUATIONS].append({"step": step, "rewards": rewards})
            self._logs[EVALUATIONS].write()

    def evaluations(self) -> dict[int, list[list[float]]]:
        """Return the rewards of each held-out problem's answers, by step."""
        path = self.path / EVALUATIONS
        return {row["step"]: row["rewards"] for row in (read_rows(path) if path.is_file() else ())}

    def verdict(self) -> str:
        """Return what a run that has ended did to held-out problems, how sure that is, which weights it kept and where
        the last ones are; empty if none were asked."""
        scores = self.scores(SCORE)
        if not scores or self.last is None:
            return ""
        (first, before), (last, after) = scores[0], scores[-1]
        text = f"held-out problems: reward {before:.3f} after step {first}, {after:.3f} after step {last}"
        ended = next(row for row in self.metric_rows() if row["step"] == last)
        if P_VALUE in ended:
            text += f", {change_text(ended, len(self.evaluations().get(last, ())))}"
        kept = 0 if self.unchanged else int(self.last.name.rpartition("-")[2])
        if kept == last:
            return text
        which = f"that of step {kept}" if kept else "the initial model"
        worse = ", worse than before" if after < before else ""
        name = next(
            (
                state.name
                for state in self.checkpoints
                if state.step == last and state.name.endswith(f"{last:06d}")
            ),
            "",
        )
        there = f"; the last one is {name}" if name else ""
        best = f"{dict(scores)[kept]:.3f}), the best of {len(scores)} measured"
        return f"{text}{worse}; the model is {which} ({best}{there}"

    def metrics(self, row: Row) -> None:
        if self.writes:
            self._logs[METRICS].append(row)

    def groups(self, groups: Sequence[Group], step: int) -> None:
        for row in sample_rows(groups, step) if self.writes else ():
            self._logs[SAMPLES].append(row)

    def sampled(self) -> Iterable[Row]:
        """Return the rows of samples.jsonl, one at a time. Raises DataError."""
        path = self.path / SAMPLES
        if path.is_file():
            return read_rows(path)
        return ()

    def write(self) -> None:
        """Write what a step has logged, so that it survives a kill; whoever goes on cuts it back to the last
        checkpoint."""
        for name in (SAMPLES, METRICS) if self.writes else ():
            self._logs[name].write()

    def save(self, client: Saver, step: int, *, final: bool = False, best: int | None = None) -> Checkpoint:
        """Save a checkpoint, which counts once its line is on disk. The one saved at this step already is only marked
        final.

        `best`: the step whose checkpoint the run ends with, where that is not this one; 0: none of them.
        """
        if best == 0:
            return self._note(Checkpoint(name="", step=step, state_path="", final=final))
        if best is not None and best != step:
            kept = next(checkpoint for checkpoint in self.checkpoints if checkpoint.step == best)
            return self._note(msgspec.structs.replace(kept, step=step, final=final))
        name = f"checkpoint-{step:06d}"
        if self.last is not None and self.last.step == step:
            return self._note(msgspec.structs.replace(self.last, final=final))
        if self.writes:
            shutil.rmtree(self.path / name, ignore_errors=True)  # of a run killed before it wrote the line
        saved = client.save_state(self.path / name) or Saved(state_path=name)
        return self._note(
            Checkpoint(
                name=name, step=step, state_path=saved.state_path, sampler_path=saved.sampler_path, final=final
            )
        )

    def _note(self, checkpoint: Checkpoint) -> Checkpoint:
        """Append the line of a checkpoint after what its steps have logged."""
        if self.writes:
            for log in (METRICS, SAMPLES):
                self._logs[log].sync()
            self._logs[CHECKPOINTS].append(msgspec.to_builtins(checkpoint))
            self._logs[CHECKPOINTS].sync()
        self.checkpoints.append(checkpoint)
        if self.writes and self.keep:
            self._prune()
        return checkpoint

    def _prune(self) -> None:
        """Remove all checkpoints but the last `keep` and the best. A folder goes under another name first, so that half
        of one is never taken for a checkpoint."""
        paths = (checkpoint.state_path for checkpoint in self.checkpoints)
        names = list(dict.fromkeys(path for path in paths if path and "://" not in path))
        scores = self.scores(SCORE)
        best = f"checkpoint-{best_of(scores):06d}" if scores else ""
        for name in names[: -self.keep]:
            folder, gone = self.path / name, self.path / f".{name}.gone"
            if name != best and folder.is_dir():
                shutil.rmtree(gone, ignore_errors=True)
                folder.rename(gone)
                shutil.rmtree(gone, ignore_errors=True)

    def close(self) -> None:
        for log in self._logs.values():
            log.close()

    def _forget(self, name: str, step: int) -> None:
        """Take off the lines of steps that will be done again."""
        path = self.path / name
        if path.is_file():
            rows = list(read_rows(path))
            kept = [row for row in rows if row["step"] <= step]
            if len(kept) < len(rows):
                write_rows(path, kept)


def explained_file(folder: Path, step: int) -> Path:
    """Return where the explanation of a step lies."""
    return folder / f"explained-{step:06d}.json"


def claim_settings(folder: Path, settings: Row) -> None:
    """Write the settings of a run into its folder, where there are none yet.

    Raises ConfigError where it has others, DataError where they cannot be read, StorageError.
    """
    path, settings = folder / SETTINGS, msgspec.json.decode(msgspec.json.encode(settings))
    if not path.is_file():
        write_json(path, settings)
        return
    try:
        earlier = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    changed = [name for name in {**earlier, **settings} if earlier.get(name) != settings.get(name)]
    if changed:
        raise ConfigError(
            f"{folder} has a run with other settings: {', '.join(sorted(changed))}.",
            hint="Use the same settings to resume it, or another output folder.",
        )
