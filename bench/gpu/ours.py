# SPDX-License-Identifier: Apache-2.0
"""Our trl trainer at the settings of parts: `python -m bench.gpu.ours PARTS.json MODEL DEADLINE`."""

import tempfile
from pathlib import Path
from typing import Any

from bench.gpu.spec import Work
from bench.gpu.timing import Timing, even_share, run_parts
from newskills.train.backends.trl.fitting import estimate_step
from newskills.train.backends.trl.model import TrainingTask
from newskills.train.backends.trl.settings import TrlSettings
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems
from newskills.train.loops.samples import Judged, Problem, Scorer
from newskills.train.loops.sft import SftConfig, example
from newskills.train.loops.stepping import Hooks, Progress
from newskills.train.memory import memory_by_use
from newskills.train.settings import TrainerSettings
from newskills.train.trainers import make_trainer

END = 2


def rewarded(samples: list[tuple[dict[str, object], str, str]]) -> list[Judged]:
    return [Judged(even_share([int(word) for word in text.split()]), correct=False) for _, text, _ in samples]


def measure(kind: str, work: Work, base: Path) -> dict[str, Any]:
    settings = TrainerSettings(
        weights=work.weights,  # type: ignore[arg-type]
        dtype=work.dtype,
        trl=TrlSettings(
            micro_batch_size=work.micro,
            gradient_checkpointing=work.checkpointing,
            packing=work.packing,
            packed_length=work.length,
            sampler=work.sampler,  # type: ignore[arg-type]
        ),
    )
    trainer, folder = make_trainer("trl", base, settings), TrainingFolder(Path(tempfile.mkdtemp()) / "run", {})
    task, timing = TrainingTask(base, settings, folder, Hooks()), Timing(work)
    common = {"steps": work.steps, "learning_rate": work.learning_rate, "schedule": "constant", "save_every": 0}
    if kind == "sft":
        needed = estimate_step(task, work.batch, work.length, work.length)
        trainer.run(
            SftConfig(**common, batch_size=work.batch),  # type: ignore[arg-type]
            [example(tokens[:1], tokens[1:]) for tokens in work.sequences()],
            folder,
            Hooks(on_step=lambda progress: timing.step(progress.metrics["loss"], progress.metrics["tokens"])),
        )
    else:
        samples = work.problems * work.samples
        needed = estimate_step(task, samples, work.prompt + work.tokens, work.tokens, sampled=samples)

        def on_step(progress: Progress) -> None:
            timing.step(progress.metrics["reward"], samples * progress.metrics["completion_tokens"])

        problems = [Problem(prompt, {}) for prompt in work.prompts()]
        scorer = Scorer(rewarded, lambda tokens: " ".join(map(str, tokens)), [END])
        trainer.run(
            GrpoConfig(
                **common,  # type: ignore[arg-type]
                batch_size=work.problems,
                group_size=work.samples,
                max_tokens=work.tokens,
            ),
            RewardedProblems(problems, scorer),
            folder,
            Hooks(on_step=on_step),
        )
    assert needed is not None
    expected = memory_by_use(*needed)
    # What the driver takes is no allocation of PyTorch.
    return timing.figures() | {"estimate": sum(expected.values()) - expected.get("CUDA", 0.0), "parts": expected}


if __name__ == "__main__":
    run_parts(measure)
