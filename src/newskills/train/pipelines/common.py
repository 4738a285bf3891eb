# SPDX-License-Identifier: Apache-2.0
"""What all trainers are told: model, data, machines, Weights & Biases, and when to stop."""

from __future__ import annotations

from msgspec import Struct

from newskills.base.errors import ConfigError

CHECKPOINTS, FINAL, LOGS, STEPS = "checkpoints", "final_hf_model", "training-logs", "hf_steps"
"""Names below the output folder."""
MARGIN = 900
"""Seconds between the last save and the time limit; for limits below an hour a quarter of the limit."""
LONGEST_WANDB = 128
"""Characters of a name in Weights & Biases."""


class TrainerRun(Struct, frozen=True, kw_only=True):
    """Paths are those that the job sees.

    limit  seconds that a job may take; None: no limit is known
    """

    name: str
    model: str
    output_dir: str
    nodes: int = 1
    gpus: int = 8
    limit: int | None = None
    wandb: Wandb | None = None

    @property
    def checkpoints(self) -> str:
        return f"{self.output_dir}/{CHECKPOINTS}"

    @property
    def save_by(self) -> int | None:
        """Seconds after its start when the last checkpoint has to be there."""
        if self.limit is None:
            return None
        return self.limit - min(MARGIN, self.limit // 4)


class Wandb(Struct, frozen=True, kw_only=True):
    """Where a run is shown in Weights & Biases."""

    project: str
    name: str
    group: str | None = None

    @property
    def id(self) -> str:
        """The same for all jobs of a chain, so that they continue one run."""
        return "-".join(part for part in (self.name, self.group, self.project) if part)

    def check(self) -> None:
        """Raise ConfigError for names that the service refuses, before hours have been spent."""
        artifact = f"git-diffs-{self.project}-{self.id}"
        if len(artifact) > LONGEST_WANDB:
            raise ConfigError(
                f"Weights & Biases allows names of {LONGEST_WANDB} characters; '{artifact}', which NeMo-RL uses, has "
                f"{len(artifact)}.",
                hint="Give a shorter --expname or --wandb_project, or --disable_wandb.",
            )
        if bad := sorted(set(self.project) & set("/\\#?%:")):
            raise ConfigError(f"--wandb_project={self.project}: {' '.join(bad)} cannot be part of a project name.")


def format_clock(seconds: int) -> str:
    """Format seconds as DD:HH:MM:SS, as NeMo-RL's `checkpoint_must_save_by` wants it."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days:02d}:{hour:02d}:{minute:02d}:{second:02d}"


def steps_of(text: str | None, option: str) -> list[int]:
    """Parse `100,200` → [100, 200], each once. Raises ConfigError."""
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    if any(not part.isascii() or not part.isdigit() for part in parts):
        raise ConfigError(f"{option}={text}: expected step numbers, separated by commas.")
    return list(dict.fromkeys(map(int, parts)))


def step_range(text: str) -> str:
    """Parse `A:B` with 1 ≤ A < B. Raises ConfigError."""
    first, colon, last = text.partition(":")
    if not (colon and first.isdigit() and last.isdigit() and 1 <= int(first) < int(last)):
        raise ConfigError(f"--profile_step_range={text}: expected A:B, with 1 ≤ A < B (B is not profiled).")
    return f"{int(first)}:{int(last)}"
