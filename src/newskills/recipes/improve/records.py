# SPDX-License-Identifier: Apache-2.0
"""What an improvement is asked to do, and what it keeps of each round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from newskills.base.benchmark import Benchmark
from newskills.base.records import Row
from newskills.base.store import AppendLog, read_rows
from newskills.recipes.improve.gate import GateTest, GuardCheck
from newskills.run.rewarding.reward import RewardConfig
from newskills.run.training.steps_shown import StepReporter
from newskills.train.data.overlap import SHARE
from newskills.train.settings import Schedule, TrainerSettings

ROUNDS, STAGES = "rounds.jsonl", "stages.jsonl"
EVALUATIONS_FOLDER = "eval"
BASE = "base"


class RoundMixture(Struct, frozen=True, kw_only=True):
    """Where the examples of a round come from.

    factor   times the usual number of samples of each problem
    warmer   is added to the temperature of the samples
    hard     only problems of which at most half of the samples are correct
    earlier  the examples of kept rounds are used again, too
    """

    name: str
    factor: int = 1
    warmer: float = 0.0
    hard: bool = False
    earlier: bool = False


MIXTURES = (
    RoundMixture(name="usual"),
    RoundMixture(name="twice as many samples", factor=2),
    RoundMixture(name="with examples of earlier rounds", factor=2, earlier=True),
    RoundMixture(name="only hard problems", factor=2, hard=True),
    RoundMixture(name="higher temperature", factor=2, warmer=0.3),
)
"""After a round that is not kept the next one follows, and the first after the last."""


class ImproveKeys(Struct, frozen=True, kw_only=True):
    """`++` keys of `ns improve`."""

    problems: Annotated[int, Meta(ge=1, description="training problems per round")] = 200
    samples: Annotated[
        int, Meta(ge=0, description="samples per problem; 0 = none: only --solutions (sft), all problems (grpo)")
    ] = 4
    temperature: Annotated[float, Meta(gt=0, description="temperature of the samples")] = 0.8
    per_problem: Annotated[
        int, Meta(ge=1, description="different correct samples to train on per problem, at most")
    ] = 4
    max_tokens: Annotated[int, Meta(ge=1, description="longest reply in tokens")] = 256
    held_out: Annotated[
        int, Meta(ge=0, description="held-out problems of each benchmark to evaluate on (the first ones); 0 = all")
    ] = 400
    alpha: Annotated[
        float, Meta(gt=0, lt=1, description="probability to keep any round that is no better, over all rounds")
    ] = 0.05
    overlap_share: Annotated[
        float,
        Meta(gt=0, le=1, description="share of common word sequences from which two problems count as the same"),
    ] = SHARE
    epochs: Annotated[float, Meta(gt=0, description="passes over the examples of a round (sft)")] = 2.0
    steps: Annotated[int, Meta(ge=1, description="training steps of a round (grpo)")] = 30
    batch_size: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="examples per step (sft: 16), problems per step (grpo: 8)"),
    ] = None
    group_size: Annotated[int, Meta(ge=2, description="samples per problem in a step (grpo)")] = 8
    learning_rate: Annotated[float, Meta(gt=0, description="peak learning rate")] = 2e-4
    schedule: Annotated[Schedule, Meta(description="schedule of the learning rate after warm-up")] = "linear"
    warmup: Annotated[float, Meta(ge=0, lt=1, description="share of the steps for warm-up")] = 0.0
    weight_decay: Annotated[float, Meta(ge=0, description="weight decay of AdamW")] = 0.0
    max_grad_norm: Annotated[float, Meta(ge=0, description="gradient clipping: largest norm; 0 = none")] = 1.0
    kl: Annotated[
        float, Meta(ge=0, description="weight of the KL divergence from the model of the round before (grpo)")
    ] = 0.0
    checked: Annotated[
        int,
        Meta(
            ge=0, description="training problems of a round that choose its best checkpoint (grpo); 0 = the last"
        ),
    ] = 0
    reward: RewardConfig = RewardConfig()
    save_every: Annotated[int, Meta(ge=0, description="steps between checkpoints; 0 = only at the end")] = 10
    seed: Annotated[int, Meta(description="seed of the choice of problems and of the data order")] = 0
    trainer: TrainerSettings = TrainerSettings()


Method = Literal["sft", "grpo"]
UNNAMED = (
    *("output_dir", "watch", "rounds", "patience", "data_dir", "timeout", "resume_with"),
    *("keys", "stages"),  # by their values
)
"""What of a spec does not name a run as it is."""


class ImproveStage(Struct, frozen=True, kw_only=True):
    """How a round learns, and from what. Its `name` is that of its model and of its evaluation.

    training_data  file of problems; None: the benchmark's split
    solutions      files of replies `{id, generation}` to these, graded and filtered like the model's own
    examples       files of rows for `ns sft`, which are trained on as they are
    prompt_config  asks for replies in this stage, when it is trained and when it is evaluated
    code_tags      how code is marked in its replies, which the sandbox runs then; at most code_executions blocks
    """

    name: str
    keys: ImproveKeys
    method: Method = "sft"
    training_data: Path | None = None
    solutions: tuple[Path, ...] = ()
    examples: tuple[Path, ...] = ()
    prompt_config: str | None = None
    code_tags: str | None = None
    code_executions: int = 5

    @property
    def needs_problems(self) -> bool:
        """Return whether the stage needs problems."""
        return self.method == "grpo" or self.keys.samples > 0 or bool(self.solutions)

    @property
    def can_train(self) -> bool:
        """Return whether there is anything to train on."""
        return self.needs_problems or bool(self.examples)

    def apply_to(self, benchmark: Benchmark, max_tokens: int | None = None) -> Benchmark:
        """Return the benchmark with the stage's way to ask and to answer, in replies of its own length or `max_tokens`.

        Raises ConfigError.
        """
        from newskills.run.rewarding.rollouts import with_code

        max_tokens = max_tokens or self.keys.max_tokens
        changes: Row = {"inference.tokens_to_generate": max_tokens}
        if self.prompt_config is not None:
            changes["prompt_config"] = self.prompt_config
        if self.code_tags is not None:
            changes |= with_code(self.code_tags, self.code_executions, max_tokens)
        return msgspec.structs.replace(benchmark, defaults={**benchmark.defaults, **changes})


class ImproveSpec(Struct, frozen=True, kw_only=True):
    """What to improve, by what, and where.

    split          of the benchmark, whose problems are trained on, unless there is `training_data`
    solutions      files of replies `{id, generation}` to training problems, graded and filtered like the model's own
    stages         the first rounds, each with settings of its own; those after them are like one another
    guards         benchmarks that must not get worse by `margin` points
    patience       rounds in a row that are not kept, after which it ends
    watch          title → what shows a training
    resume_with    the command that goes on with it
    """

    output_dir: Path
    model: str
    benchmark: str
    watch: Callable[[str], AbstractContextManager[StepReporter]]
    split: str = "train"
    training_data: Path | None = None
    solutions: tuple[Path, ...] = ()
    rounds: int = 5
    patience: int = 2
    method: Method = "sft"
    stages: tuple[ImproveStage, ...] = ()
    guards: tuple[str, ...] = ()
    margin: float = 2.0
    backend: str = "cpu"
    server_type: str = "llamacpp"
    server_gpus: int = 0
    data_dir: Path | None = None
    timeout: float = 300.0
    keys: ImproveKeys = ImproveKeys()
    resume_with: str = "ns improve"

    @property
    def tested_tokens(self) -> int:
        """Longest reply in every evaluation: one for all models that are compared, so that none is cut off earlier."""
        return max(self.keys.max_tokens, *(stage.keys.max_tokens for stage in self.stages), 1)

    def identity(self) -> Row:
        """Return the settings that a resumed run must share; there may be more rounds and more patience."""
        trainer = {
            name: value for name, value in msgspec.to_builtins(self.keys.trainer).items() if name != "threads"
        }
        if self.stages:
            stages = {"stages": msgspec.to_builtins(self.stages, enc_hook=str)}
        else:
            stages = {}
        return {
            **{
                name: str(value) if isinstance(value, Path) else value
                for name, value in msgspec.structs.asdict(self).items()
                if name not in UNNAMED
            },
            **stages,
            "solutions": list(map(str, self.solutions)),
            **msgspec.to_builtins(self.keys),
            "trainer": trainer,
        }

    def stage(self, number: int) -> ImproveStage:
        """Return the stage of a round, counted from 1."""
        if number <= len(self.stages):
            return self.stages[number - 1]
        return ImproveStage(
            name=round_name(number),
            keys=self.keys,
            method=self.method,
            training_data=self.training_data,
            solutions=self.solutions,
        )

    def folder(self, number: int) -> Path:
        """Return the folder of a round's data and training."""
        return self.output_dir / "rounds" / self.stage(number).name

    def model_folder(self, name: str) -> Path:
        return self.output_dir / "models" / name


class ExampleCount(Struct, frozen=True, kw_only=True):
    """From replies to examples. A reply that was cut off is not learnt, whatever the grader says."""

    problems: int
    replies: int
    unscored: int
    wrong: int
    cut_off: int
    repeated: int
    too_easy: int
    too_many: int
    earlier: int
    examples: int


class RoundRecord(Struct, frozen=True, kw_only=True):
    """A line of rounds.jsonl: a round that has ended. `test`: None where there was nothing to train on.

    stage       its name where the round has settings of its own
    begun_from  the model that was trained, by name: base or that of a round
    why         why it was kept, or not
    """

    round: int
    mixture: str
    begun_from: str
    kept: bool
    why: str
    examples: ExampleCount
    test: GateTest | None = None
    guards: tuple[GuardCheck, ...] = ()
    tokens_sampled: int = 0
    tokens_trained: int = 0
    stage: str = ""

    @property
    def name(self) -> str:
        return self.stage or round_name(self.round)


def round_name(number: int) -> str:
    return f"round-{number:02d}"


def read_rounds(folder: Path) -> list[RoundRecord]:
    """Read the records of the rounds that have ended. Raises DataError."""
    path = folder / ROUNDS
    AppendLog(path).close()  # takes off a line that a kill has cut
    return [msgspec.convert(row, RoundRecord) for row in read_rows(path)]


def stage_seconds(folder: Path) -> Mapping[int, dict[str, float]]:
    """Round → stage → seconds that its finished work took. Raises DataError."""
    seconds: dict[int, dict[str, float]] = {}
    path = folder / STAGES
    rows = read_rows(path) if path.is_file() else ()
    for row in rows:
        stages = seconds.setdefault(row["round"], {})
        stages[row["stage"]] = stages.get(row["stage"], 0.0) + row["seconds"]
    return seconds
