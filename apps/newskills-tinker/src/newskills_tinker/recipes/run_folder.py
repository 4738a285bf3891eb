# SPDX-License-Identifier: Apache-2.0
"""What both Tinker recipes share: options, the folder of a run, how it goes on, rates from the model. The
loops are those of `newskills.train.loops`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import AppendLog, read_rows, write_json, write_rows
from newskills.models.hub import hub_folder
from newskills.train.backends.tinker.client import TinkerClient
from newskills.train.loops.folder import Saver
from newskills.train.loops.groups import Group
from newskills.train.verbs import TrainingClient
from newskills_tinker.recipes.settings import RunConfig

METRICS, SAMPLES, CHECKPOINTS, SETTINGS = "metrics.jsonl", "samples.jsonl", "checkpoints.jsonl", "config.json"
SCHEME = "tinker://"
TOKENIZER_FILES = ["config.json", "generation_config.json", "tokenizer*", "chat_template*"]
BASE_RATE, LORA_FACTOR, WIDTH = 5e-5, 10.0, 2000
EXPONENTS = {"qwen": 0.0775, "llama": 0.781}
OWN = ("step", "seconds", "loss", "learning_rate", "tokens")
"""Metrics of every loop."""
NOT_THE_RUN = ("log_dir", "wandb_project", "wandb_name", "verbose", "resume_from")
"""Options that change no number."""


class Checkpoint(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of checkpoints.jsonl. `batch`: how many are done."""

    name: str
    batch: int
    epoch: int | None = None
    final: bool | None = None
    state_path: str | None = None
    sampler_path: str | None = None


class RunFolder(ABC):
    """One run, as the log of a loop of `newskills.train.loops`, in the files and names of the Tinker cookbook. A killed
    run loses what came after its last checkpoint, so that its files are those of one that was never killed.
    """

    def __init__(self, config: RunConfig) -> None:
        """Open the folder of a run, which is made where it is missing. Raises ConfigError for a folder that holds a run
        with other options, StorageError."""
        self.path = Path(config.log_dir)
        self.path.mkdir(parents=True, exist_ok=True)
        self._check_settings(config)
        for name in (METRICS, SAMPLES, CHECKPOINTS):
            AppendLog(self.path / name).close()  # takes off a line that a kill has cut
        self.last = _last_checkpoint(self.path)
        done = 0
        if self.last:
            done = self.last.batch
        for name, key in ((METRICS, "progress/batch"), (SAMPLES, "step")):
            _drop_later_rows(self.path / name, key, done)
        self.history = [row for row in _read_if_exists(self.path / METRICS) if "progress/batch" in row]
        self.first = self.total = 0
        self.per_epoch = 1
        self._logs = {name: AppendLog(self.path / name) for name in (METRICS, SAMPLES, CHECKPOINTS)}
        self._wandb = _start_wandb(config)

    @abstractmethod
    def recipe_metrics(self, metrics: Row) -> Row:
        """Return the loop's metrics of a step, by the names that this recipe has for them."""

    @abstractmethod
    def groups(self, groups: Sequence[Group], step: int) -> None: ...

    def sampled(self) -> Iterable[Row]:
        """Return nothing: steps of these recipes do not depend on what was sampled before."""
        return ()

    @property
    def finished(self) -> bool:
        return self.last is not None and bool(self.last.final)

    def begin(self, client: TinkerClient, resume_from: str | None) -> None:
        """Load the run's own last state, else `resume_from`, and keep how many batches are done.

        Raises DataError for a `resume_from` that is no state, and what the service says of one.
        """
        self.first = self._load_start_state(client, resume_from)

    def resume(self, client: TrainingClient) -> int:
        """Return the number of batches that are done. Raises DataError where the state to begin with has seen all
        batches."""
        if self.first >= self.total:
            raise DataError(
                f"The state to start from has already done {self.first} batches; this run has only {self.total}.",
                hint="Raise num_epochs, or begin with the tinker:// path of the state.",
            )
        return self.first

    def scores(self, name: str) -> list[tuple[int, float]]:
        """Return none: a run ends with its last weights, whatever was measured."""
        return []

    def metrics(self, row: Row) -> None:
        batch = row["step"] - 1
        named = {
            "progress/batch": batch + 1,
            "progress/epoch": batch // self.per_epoch,
            "progress/done_frac": (batch + 1) / self.total,
            **self.recipe_metrics(row),
            "time/total": row["seconds"],
        }
        self.history.append(named)
        self._logs[METRICS].append(named)
        if self._wandb is not None:
            self._wandb.log(named, step=batch + 1)

    def samples(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._logs[SAMPLES].append(row)

    def write(self) -> None:
        for name in (SAMPLES, METRICS):
            self._logs[name].write()

    def save(self, client: Saver, step: int, *, final: bool = False, best: int | None = None) -> None:
        """Save the state and append its line, which counts once it is on the disk, after everything that came before
        it."""
        name = "final" if final else f"checkpoint-{step:06d}"
        saved = client.save_state(self.path / name)
        assert saved is not None  # a service keeps states itself
        for log in (METRICS, SAMPLES):
            self._logs[log].sync()
        self.last = Checkpoint(
            name=name,
            batch=step,
            epoch=(step - 1) // self.per_epoch,
            final=final or None,
            state_path=saved.state_path,
            sampler_path=saved.sampler_path,
        )
        self._logs[CHECKPOINTS].append(self.last)
        self._logs[CHECKPOINTS].sync()

    def close(self) -> None:
        for log in self._logs.values():
            log.close()
        if self._wandb is not None:
            self._wandb.finish()

    def _load_start_state(self, client: TinkerClient, resume_from: str | None) -> int:
        if self.last is not None and self.last.state_path:
            client.load_state(self.last.state_path)
            return self.last.batch
        if resume_from is None:
            return 0
        if resume_from.startswith(SCHEME):
            client.load_state(resume_from)
            return 0
        checkpoint = _last_checkpoint(Path(resume_from))
        if checkpoint is None or not checkpoint.state_path:
            raise DataError(
                f"resume_from={resume_from}: expected a {SCHEME} path, or a folder whose {CHECKPOINTS} names a state."
            )
        client.load_state(checkpoint.state_path)
        if checkpoint.final:
            return 0
        return checkpoint.batch

    def _check_settings(self, config: RunConfig) -> None:
        path = self.path / SETTINGS
        settings = {name: value for name, value in msgspec.to_builtins(config).items() if name not in NOT_THE_RUN}
        if not path.is_file():
            write_json(path, settings)
            return
        try:
            earlier = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise DataError(f"{path} cannot be read: {error}.") from error
        if changed := sorted(name for name in {**earlier, **settings} if earlier.get(name) != settings.get(name)):
            raise ConfigError(
                f"{self.path} has a run with other options: {', '.join(changed)}.",
                hint="Use the same options to resume it, or another log_dir.",
            )


def optimizer_metrics(metrics: Row, loop_metrics: Collection[str]) -> Row:
    """Return the metrics of the service's optimizer: all that are not `loop_metrics`, nor every loop's own."""
    own = {*OWN, *loop_metrics}
    return {f"optim/{name}": value for name, value in metrics.items() if name not in own}


def model_files(config: RunConfig, client: TinkerClient) -> Path:
    """Return a local folder with the model's tokenizer and config.json: `model_name`, or what the service or the hub
    has.

    Raises ConfigError where there is none.
    """
    if (local := Path(config.model_name).expanduser()).is_dir():
        return local
    name = client.tokenizer_name()
    if Path(name).is_dir():
        return Path(name)
    return hub_folder(name, TOKENIZER_FILES, "Set model_name to a local folder of the model.")


def rate_for(folder: Path) -> float:
    """Compute 5e-5 · 10 · (2000 / hidden size) ^ P, P by the model's family, the same for every rank of LoRA
    (https://tinker-docs.thinkingmachines.ai, hyperparameters of supervised learning). Raises DataError."""
    try:
        config = msgspec.json.decode((folder / "config.json").read_bytes(), type=Row)
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{folder / 'config.json'} cannot be read: {error}.", hint="Set learning_rate.") from error
    config |= config.get("text_config") or {}
    family, width = str(config.get("model_type", "")).lower(), config.get("hidden_size")
    power = next((power for name, power in EXPONENTS.items() if name in family), None)
    if power is None or not isinstance(width, int) or width < 1:
        raise DataError(
            f"The default learning rate for models of the type '{family}' is not known.", hint="Set learning_rate."
        )
    return float(BASE_RATE * LORA_FACTOR * (WIDTH / width) ** power)


def take_rows(rows: Iterable[Row], limit: int | None, needs: Sequence[str], where: str) -> list[Row]:
    """Return the first `limit` rows, all for None. Raises DataError where there is none, or one lacks a field."""
    checked: list[Row] = []
    for number, row in enumerate(rows, 1):
        if missing := [name for name in needs if not row.get(name)]:
            raise DataError(f"{where}, row {number} has no {', '.join(missing)}; its keys are {', '.join(row)}.")
        checked.append(row)
        if len(checked) == limit:
            break
    if not checked:
        raise DataError(f"{where} has no rows.")
    return checked


def _last_checkpoint(folder: Path) -> Checkpoint | None:
    """Return the last checkpoint that has a state; None where there is none."""
    rows = _read_if_exists(folder / CHECKPOINTS)
    return next((msgspec.convert(row, Checkpoint) for row in reversed(rows) if row.get("state_path")), None)


def _read_if_exists(path: Path) -> list[Row]:
    if path.is_file():
        return list(read_rows(path))
    return []


def _drop_later_rows(path: Path, key: str, done: int) -> None:
    rows = _read_if_exists(path)
    kept = [row for row in rows if row.get(key, done + 1) <= done]
    if len(kept) < len(rows):
        write_rows(path, kept)


def _start_wandb(config: RunConfig) -> Any:
    if config.wandb_project is None:
        return None
    try:
        import wandb
    except ImportError as error:
        raise ConfigError("wandb_project needs W&B.", hint="Run: pip install 'newskills[wandb]'") from error
    return wandb.init(
        project=config.wandb_project,
        name=config.wandb_name,
        config=msgspec.to_builtins(config),
        dir=config.log_dir,
    )
