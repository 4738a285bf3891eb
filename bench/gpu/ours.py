# SPDX-License-Identifier: Apache-2.0
"""Our trl trainer at the settings of a spec: `python -m bench.gpu.ours SPEC.json MODEL` → one line of JSON."""

import json
import sys
import tempfile
import warnings
from pathlib import Path

import msgspec

from bench.gpu.spec import Work
from bench.gpu.timing import Timing, even_share
from newskills.train.backends.trl.settings import TrlSettings
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems
from newskills.train.loops.samples import Judged, Problem, Scorer
from newskills.train.loops.sft import SftConfig, example
from newskills.train.loops.stepping import Hooks, Progress
from newskills.train.settings import TrainerSettings
from newskills.train.trainers import make_trainer

END = 2


def rewarded(samples: list[tuple[dict[str, object], str, str]]) -> list[Judged]:
    return [Judged(even_share([int(word) for word in text.split()]), correct=False) for _, text, _ in samples]


def main() -> None:
    warnings.simplefilter("ignore")
    work, base = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Work), Path(sys.argv[2])
    settings = TrainerSettings(
        weights=work.weights,  # type: ignore[arg-type]
        dtype=work.dtype,
        trl=TrlSettings(micro_batch_size=work.micro, gradient_checkpointing=work.checkpointing),
    )
    trainer, out = make_trainer("trl", base, settings), Path(tempfile.mkdtemp())
    common = {"steps": work.steps, "learning_rate": work.learning_rate, "schedule": "constant", "save_every": 0}
    sft, grpo = Timing(work), Timing(work)
    trainer.run(
        SftConfig(**common, batch_size=work.batch),  # type: ignore[arg-type]
        [example(tokens[:1], tokens[1:]) for tokens in work.sequences()],
        TrainingFolder(out / "sft", {}),
        Hooks(on_step=lambda progress: sft.step(progress.metrics["loss"], 0.0)),
    )
    sft.end()

    def told(progress: Progress) -> None:
        grpo.step(progress.metrics["reward"], progress.metrics["completion_tokens"])

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
        TrainingFolder(out / "grpo", {}),
        Hooks(on_step=told),
    )
    grpo.end()
    print(json.dumps({"sft": sft.found(), "grpo": grpo.found()}))


if __name__ == "__main__":
    main()
