# SPDX-License-Identifier: Apache-2.0
"""Seconds a step of TRL behind our protocol: `python -m bench.training_through FOLDER ROWS` → one line of JSON."""

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems
from newskills.train.loops.samples import Judged, Problem, Scorer
from newskills.train.loops.sft import SftConfig, example
from newskills.train.loops.stepping import Hooks, Progress
from newskills.train.settings import TrainerSettings
from newskills.train.trainers import make_trainer

WARM = 1
END = 2


class Clock:
    """Seconds between the ends of steps; the first, which has no beginning here, is left out as a warm-up."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def __call__(self, _: Progress) -> None:
        self.ends.append(time.perf_counter())

    def mean(self) -> float:
        return (self.ends[-1] - self.ends[WARM - 1]) / (len(self.ends) - WARM)


def variety(samples: list[tuple[dict[str, object], str, str]]) -> list[Judged]:
    return [Judged(float(len(set(text.split()))), correct=False) for _, text, _ in samples]


def main() -> None:
    warnings.simplefilter("ignore")
    base, work = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    trainer = make_trainer("trl", base, TrainerSettings(dtype=work["dtype"]))
    out = Path(tempfile.mkdtemp(dir=Path(sys.argv[2]).parent))
    sft, grpo = Clock(), Clock()
    batches = work["sft"]
    trainer.run(
        SftConfig(steps=len(batches), batch_size=len(batches[0]), learning_rate=1e-4, save_every=0),
        [example(prompt, completion) for batch in batches for prompt, completion in batch],
        TrainingFolder(out / "sft", {}),
        Hooks(on_step=sft),
    )
    batches = work["grpo"]
    problems = [Problem(prompt, {}) for batch in batches for prompt in batch]
    scorer = Scorer(variety, lambda tokens: " ".join(map(str, tokens)), [END])
    trainer.run(
        GrpoConfig(
            steps=len(batches),
            batch_size=len(batches[0]),
            group_size=work["samples"],
            max_tokens=work["tokens"],
            learning_rate=1e-5,
            save_every=0,
        ),
        RewardedProblems(problems, scorer),
        TrainingFolder(out / "grpo", {}),
        Hooks(on_step=grpo),
    )
    print(json.dumps({"sft": sft.mean(), "grpo": grpo.mean()}))


if __name__ == "__main__":
    main()
