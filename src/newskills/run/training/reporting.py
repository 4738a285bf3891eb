# SPDX-License-Identifier: Apache-2.0
"""Metrics of a training, step by step, to TensorBoard, Weights & Biases and Trackio; whatever trainer makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from newskills.base.errors import ConfigError
from newskills.run.reporting.tracking import Tracking, resume_run
from newskills.train.loops.stepping import OnStep, Progress

TENSORBOARD = "tensorboard"
"""Folder of the events below that of the run."""


@contextmanager
def report_steps(
    on_progress: OnStep,
    folder: Path,
    *,
    tensorboard: bool,
    tracking: Tracking | None,
    trackio: Tracking | None = None,
) -> Iterator[OnStep]:
    """Yield a function that passes progress to `on_progress` and then to TensorBoard and the trackers. Raises
    ConfigError where the package tensorboard or trackio is missing."""
    with ExitStack() as stack:
        tells: list[OnStep] = [on_progress]
        if tensorboard:
            tells.append(stack.enter_context(_open_tensorboard(folder / TENSORBOARD)))
        if tracking is not None:
            tells.append(stack.enter_context(_open_tracking_run(tracking)))
        if trackio is not None:
            tells.append(stack.enter_context(_open_trackio(trackio)))
        yield lambda progress: _call_all(tells, progress)


def _call_all(tells: Sequence[OnStep], progress: Progress) -> None:
    for tell in tells:
        tell(progress)


@contextmanager
def _open_tensorboard(folder: Path) -> Iterator[OnStep]:
    if find_spec("tensorboard") is None:
        raise ConfigError(
            "++report_to=[tensorboard] needs tensorboard.", hint="Run: pip install 'newskills[trl]' or tensorboard"
        )
    from torch.utils.tensorboard import SummaryWriter

    writers: list[Any] = []

    def write_events(progress: Progress) -> None:
        if not writers:
            # What a killed run has told of the steps that are done again is hidden.
            writers.append(SummaryWriter(str(folder), purge_step=progress.done))
        for name, value in progress.metrics.items():
            writers[0].add_scalar(name, value, progress.done)
        writers[0].flush()

    try:
        yield write_events
    finally:
        for writer in writers:
            writer.close()


@contextmanager
def _open_tracking_run(tracking: Tracking) -> Iterator[OnStep]:
    run = resume_run(tracking)
    try:
        yield lambda progress: run.log(dict(progress.metrics), step=progress.done)
    finally:
        run.finish()


@contextmanager
def _open_trackio(tracking: Tracking) -> Iterator[OnStep]:
    """Log to Trackio's files on this machine, or where TRACKIO_SPACE_ID or TRACKIO_SERVER_URL says."""
    if find_spec("trackio") is None:
        raise ConfigError("++report_to=[trackio] needs trackio.", hint="Run: pip install trackio")
    import trackio

    run = trackio.init(
        project=tracking.project, name=tracking.name, group=tracking.group, resume="allow", embed=False
    )
    try:
        yield lambda progress: run.log(dict(progress.metrics), step=progress.done)
    finally:
        run.finish()
