# SPDX-License-Identifier: Apache-2.0
"""What commands that train or convert share: options, the extra they need, and what shows the steps of a training."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.commands._options import AtLeastOne, DryRun, doc
from newskills.config.command_line import Parsed
from newskills.config.layers import Layer, explain, resolve
from newskills.recipes.training import trained
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.stepping import Progress, Told
from newskills.train.trainers import Trainer, TrainerSettings, make_trainer

S = TypeVar("S", bound=Struct)
PLAIN_EVERY = 10.0
WIDTH = 24
SHOWN = ("loss", "reward")
STOPPED = 130
"""Exit code of a training that was asked to stop."""
FINAL = "final_hf_model"
"""Where the trained model lies below the output folder."""


class LocalOptions(Struct, frozen=True, kw_only=True):
    """Options of every training on this machine."""

    model: Annotated[str, doc("Hugging Face folder, .gguf file, or smollm2")]
    output_dir: Annotated[str, doc("folder of checkpoints and metrics; the same folder goes on where it was")]
    backend: Annotated[str, doc("cpu: LoRA, for small Llama models; trl: any model, GPUs (newskills[trl])")] = (
        "cpu"
    )
    dry_run: DryRun = False


class StepKeys(Struct, frozen=True, kw_only=True):
    """`++` keys of every training on this machine."""

    epochs: Annotated[float, Meta(gt=0, description="passes over the data, unless steps is set")] = 1.0
    steps: Annotated[AtLeastOne | None, Meta(description="batches to learn from")] = None
    learning_rate: Annotated[float, Meta(gt=0, description="at its highest")] = 2e-4
    warmup_steps: Annotated[int, Meta(ge=0, description="steps up to the learning rate")] = 0
    weight_decay: Annotated[float, Meta(ge=0, description="of AdamW")] = 0.0
    max_grad_norm: Annotated[float, Meta(ge=0, description="longer gradients are cut to this; 0 = never")] = 1.0
    seed: Annotated[int, Meta(description="of the order of the data and of the samples")] = 0
    trainer: TrainerSettings = TrainerSettings()


def config_of(kind: type[S], keys: StepKeys, steps: int) -> S:
    """The settings of a loop: the keys that it has, and so many steps."""
    given = {name: value for name, value in msgspec.structs.asdict(keys).items() if name in kind.__struct_fields__}
    return kind(**{**given, "steps": steps})


def learnt(
    options: LocalOptions,
    keys: StepKeys,
    base: Path,
    settings: dict[str, Any],
    learn: Callable[[Trainer, TrainingFolder], bool],
) -> int:
    """Trains in the output folder, says where the model is or how to go on; the exit code. `settings` name the run."""
    out = Path(options.output_dir)
    trainer = make_trainer(options.backend, base, keys.trainer)
    folder = TrainingFolder(out, settings | {"model": options.model, "backend": options.backend})
    if trained(trainer, folder, out / FINAL, lambda one: learn(one, folder)):
        sys.stdout.write(f"{out / FINAL}\n")
        return 0
    at = folder.last.step if folder.last else 0
    sys.stdout.write(f"stopped after step {at}; the same command goes on from there\n")
    return STOPPED


def require_train(*modules: str, instead: str = "") -> None:
    """Raises ConfigError where an extra is missing; `instead`: what works without it."""
    if missing := [module for module in modules if find_spec(module) is None]:
        raise ConfigError(
            f"This needs {', '.join(missing)}, which this environment lacks.",
            hint="Run: pip install 'newskills[train,local]' (without a GPU, install torch from its CPU index first). "
            f"{instead}".strip(),
        )


def steps_shown(title: str) -> Told:
    """A bar with what is left on a terminal, a line now and then elsewhere."""
    began = last = time.monotonic()
    first: int | None = None
    terminal = sys.stderr.isatty()

    def told(progress: Progress) -> None:
        nonlocal last, first
        now = time.monotonic()
        first = progress.done - 1 if first is None else first
        ended = progress.done == progress.steps
        if terminal:
            sys.stderr.write(f"\r\x1b[2K{title} {_bar(progress)} {_words(progress, now - began, first)}")
            sys.stderr.write("\n" if ended else "")
        elif ended or now - last >= PLAIN_EVERY:
            last = now
            sys.stderr.write(f"{title} {progress.done}/{progress.steps} {_words(progress, now - began, first)}\n")
        sys.stderr.flush()

    return told


def _bar(progress: Progress) -> str:
    full = WIDTH * progress.done // progress.steps
    return f"{'━' * full}{' ' * (WIDTH - full)} {progress.done}/{progress.steps}"


def _words(progress: Progress, seconds: float, first: int) -> str:
    pace = seconds / (progress.done - first)
    left = pace * (progress.steps - progress.done)
    values = [f"{name} {progress.metrics[name]:.3g}" for name in SHOWN if name in progress.metrics]
    return " · ".join([*values, f"{pace:.1f} s a step", f"{left // 60:.0f} min {left % 60:.0f} s left"])


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """Whether the run should write a checkpoint and end: Slurm's warning before the limit, or the first Ctrl-C."""
    asked: list[int] = []

    def ask(number: int, _: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        sys.stderr.write("\nstopping after this step; once more stops at once\n")

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    before = [signal.signal(number, ask) for number in signals]
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def keys_of(kind: type[S], parsed: Parsed[Any]) -> S | None:
    """The `++` keys; None where only their origin was to be shown, which is done. Raises ConfigError."""
    resolved = resolve(kind, [Layer("command line", parsed.overrides)])
    if not parsed.explain:
        return resolved.value
    for key, value, source in explain(resolved):
        sys.stdout.write(f"++{key} = {value}  ({source})\n")
    return None
