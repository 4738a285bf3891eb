# SPDX-License-Identifier: Apache-2.0
"""`ns grpo --explain_batch STEP`: what a step of a training did, as text and as a page of the viewer."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import write_json
from newskills.base.terminal import counted
from newskills.pipelines.training.methods.grpo_options import GrpoKeys, GrpoOptions
from newskills.pipelines.training.methods.running import ReadyTraining, settings_of
from newskills.train.loops.explaining import explained
from newskills.train.loops.folder import METRICS, TrainingFolder, claim_settings, explained_file
from newskills.train.loops.trainer import LoopTrainer
from newskills.train.trainers import make_trainer

WIDE = 56
"""Characters of a problem or reply in a line."""
STEP_METRICS = ("reward", "spread", "learning_rate", "grad_norm", "signal", "noise_scale")


def explain_batch(options: GrpoOptions, keys: GrpoKeys, task: ReadyTraining) -> int:
    """Do the step again, write what it did beside the metrics, and print it; return the exit code.

    Raises DataError where the run has no such step, ConfigError for other settings than the run's or a trainer that
    does not run the loop here.
    """
    assert options.explain_batch is not None
    out, step = Path(options.output_dir), options.explain_batch
    trainer = make_trainer(options.backend, task.base, keys.trainer)
    if not isinstance(trainer, LoopTrainer):
        raise ConfigError(
            f"--backend={options.backend} cannot do a step again, which --explain_batch needs.",
            hint="It explains trainings with --backend=cpu.",
        )
    if not (out / METRICS).is_file():
        raise DataError(
            f"{out} has no training to explain.", hint="Train first: the same command without the option."
        )
    claim_settings(out, settings_of(options, keys, task))
    folder = TrainingFolder(out, {}, writes=False)
    with trainer.client(type(task.method)) as client:
        explanation = explained(client, task.data, task.method, folder, step)  # type: ignore[arg-type]
    path = explained_file(out, step)
    write_json(path, explanation)
    sys.stdout.write(
        "\n".join([*explanation_lines(explanation), "", f"{path}; ns view {out} shows every token"]) + "\n"
    )
    return 0


def explanation_lines(explanation: Row) -> Iterator[str]:
    """Yield a line for the step, and for each group one, and one for each of its responses."""
    shown = ", ".join(f"{name} {explanation[name]:.3g}" for name in STEP_METRICS if name in explanation)
    yield f"Step {explanation['step']}: {counted(len(explanation['groups']), 'group')}; {shown}"
    for number, group in enumerate(explanation["groups"], 1):
        parts = [f"Group {number}", "not graded"]
        if group["mean_reward"] is not None:
            parts[1] = f"mean reward {group['mean_reward']:.3g}"
        if not any(reply["advantage"] for reply in group["responses"]):
            parts.append("no spread: nothing is learnt of it")
        if group.get("rejected"):
            parts.append("replaced by a group with spread")
        problem = one_line(group["problem"])
        if group.get("ground_truth") is not None:
            problem += f" → {one_line(group['ground_truth'])}"
        yield ""
        yield f"{', '.join(parts)}: {problem}"
        yield from map(response_line, group["responses"])


def response_line(response: Row) -> str:
    """Return reward and advantage of a response, how far all of it was pushed in nats, and its token that was pushed
    furthest."""
    tokens = response["tokens"]
    change = math.fsum(after - before for _, before, after in tokens)
    reward = "–" if response["reward"] is None else f"{response['reward']:.3g}"
    figures = f"  reward {reward:>5}  advantage {response['advantage']:+6.2f}  pushed {change:+7.3f}"
    line = f"{figures}  {one_line(response['text'])}"
    if not tokens:
        return line
    text, before, after = max(tokens, key=lambda token: abs(token[2] - token[1]))
    return f"{line}  (most: {one_line(text)!r} {math.exp(before):.1%} → {math.exp(after):.1%})"


def one_line(value: object) -> str:
    """Return the beginning of a text on one line."""
    text = " ".join(str(value).split(" ")).replace("\n", "⏎")
    if len(text) <= WIDE:
        return text
    return f"{text[: WIDE - 1]}…"
