# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.preferences [--tasks …] [--seeds …] [--ways …] [--out FOLDER]`: what DPO, distillation and reward
models do to held-out problems, on models of about 120,000 parameters that are trained here from nothing.

For each task and seed a model is trained until it is correct now and then, and eight samples of it are drawn to each
of 300 problems. From there each way to learn is a run of the loops and the trainer of `ns`; greedy answers to 1,000
held-out problems are compared with those before. What is done is not done again.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import msgspec
import torch
from msgspec import Struct
from transformers import LlamaConfig, LlamaForCausalLM

from bench.measure import ROOT
from newskills.base.paired import paired_difference
from newskills.base.records import Row
from newskills.base.store import atomic_folder, read_rows, write_json
from newskills.base.tables import markdown_table
from newskills.run.training.preferences import held_out_pairs
from newskills.train.backends.cpu.llama import LoraConfig
from newskills.train.backends.cpu.reward import CpuRewardModel
from newskills.train.backends.cpu.trainer import CpuTrainer, CpuTrainerConfig
from newskills.train.loops.distill import Distillation, DistillConfig, distill
from newskills.train.loops.dpo import DpoConfig, Pair, dpo
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.reward_model import RewardModelConfig, train_reward_model
from newskills.train.loops.samples import Problem
from newskills.train.loops.schedule import steps_of
from newskills.train.loops.sft import SftConfig, example, sft
from newskills.train.verbs import Datum, Sampled, SamplingParams

SEP, END, FIRST = 1, 2, 3
"""Token ids: between question and answer, after the answer, of the first symbol."""
LENGTH, HELD_OUT, PROBLEMS, SAMPLES, PER_PROBLEM = 6, 1000, 300, 8, 2
TRAINER = CpuTrainerConfig(lora=LoraConfig(rank=16, alpha=32), dtype="float32", threads=1)
STUDENT, TEACHER = 0.5, 0.85
"""Share of held-out problems that a first model, and a teacher, answer correctly at least."""


class SmallItem(Struct, frozen=True):
    question: tuple[int, ...]
    answer: tuple[int, ...]


def sort(draw: random.Random) -> SmallItem:
    digits = [draw.randrange(10) for _ in range(LENGTH)]
    return _item(digits, sorted(digits))


def backwards(draw: random.Random) -> SmallItem:
    letters = [draw.randrange(26) for _ in range(LENGTH)]
    return _item(letters, letters[::-1])


def _item(question: Sequence[int], answer: Sequence[int]) -> SmallItem:
    return SmallItem((*(FIRST + n for n in question), SEP), (*(FIRST + n for n in answer), END))


TASKS: Mapping[str, Callable[[random.Random], SmallItem]] = {"sort": sort, "backwards": backwards}


class SmallTask:
    """Held-out problems and others, and the models that runs begin from; the same for one seed."""

    def __init__(self, name: str, seed: int, out: Path) -> None:
        self.name, self.seed, self._out = name, seed, out
        draw, items = random.Random(f"{name}-{seed}"), dict[tuple[int, ...], SmallItem]()
        while len(items) < HELD_OUT + PROBLEMS:
            item = TASKS[name](draw)
            items.setdefault(item.question, item)
        self.held_out, self.problems = list(items.values())[:HELD_OUT], list(items.values())[HELD_OUT:]
        self.student = CpuTrainer(self._first(STUDENT), TRAINER)
        self.before = self.scores(self.student)

    def client(self) -> CpuTrainer:
        return CpuTrainer(self._first(STUDENT), TRAINER)

    def reward_client(self) -> CpuRewardModel:
        return CpuRewardModel(self._first(STUDENT), TRAINER)

    def teacher(self) -> CpuTrainer:
        return CpuTrainer(self._first(TEACHER), TRAINER)

    def scores(self, client: CpuTrainer) -> list[float]:
        """Greedy answers to the held-out problems: 1 for each that is correct."""
        params = SamplingParams(max_tokens=LENGTH + 2, stop=[END], temperature=0.0)
        groups = client.sample([item.question for item in self.held_out], 1, params)
        return [
            float(tuple(group[0].tokens) == item.answer) for item, group in zip(self.held_out, groups, strict=True)
        ]

    def pairs(self) -> list[Pair]:
        """Correct samples beside wrong ones, as `ns dpo --input_files` pairs them."""
        params = SamplingParams(max_tokens=LENGTH + 2, stop=[END], seed=self.seed)
        groups = self.student.sample([item.question for item in self.problems], SAMPLES, params)
        return [pair for item, group in zip(self.problems, groups, strict=True) for pair in _paired(item, group)]

    def _first(self, share: float) -> Path:
        """Trained from nothing on fresh problems, none of them held out, until `share` is correct."""
        path = self._out / f"{self.name}-{self.seed}-from-{share:g}"
        if path.is_dir():
            return path
        torch.manual_seed(self.seed)
        shape = LlamaConfig(
            vocab_size=FIRST + 26,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=64,
            tie_word_embeddings=True,
            eos_token_id=END,
            bos_token_id=0,
        )
        model, draw = LlamaForCausalLM(shape), random.Random(f"first-{self.name}-{self.seed}")
        forbidden = {item.question for item in self.held_out}
        adam = torch.optim.AdamW(model.parameters(), lr=2e-3)
        with atomic_folder(path) as unfinished:
            for step in range(1, 4001):
                drawn = (TASKS[self.name](draw) for _ in range(128))
                ids = torch.tensor([[*i.question, *i.answer] for i in drawn if i.question not in forbidden])
                labels = ids.clone()
                labels[:, : LENGTH + 1] = -100
                adam.zero_grad()
                model(input_ids=ids, labels=labels).loss.backward()
                adam.step()
                if step % 20 == 0:
                    model.save_pretrained(unfinished)
                    if fmean(self.scores(CpuTrainer(unfinished, TRAINER))) >= share:
                        break
        return path


def _paired(item: SmallItem, group: Sequence[Sampled]) -> Iterator[Pair]:
    replies = {tuple(sample.tokens) for sample in group}
    wrong = sorted(reply for reply in replies if reply != item.answer)
    if item.answer in replies:
        for reply in wrong[:PER_PROBLEM]:
            yield Pair(chosen=example(item.question, item.answer), rejected=example(item.question, reply))


def prefer(task: SmallTask, folder: TrainingFolder, config: DpoConfig) -> Row:
    client, pairs = task.client(), task.pairs()
    steps = steps_of(config.steps, len(pairs), config.batch_size)
    dpo(client, pairs, msgspec.structs.replace(config, steps=steps, seed=task.seed), folder)
    last = list(read_rows(folder.path / "metrics.jsonl"))[-10:]
    nats = {side: fmean(row[f"rewards/{side}"] for row in last) / config.beta for side in ("chosen", "rejected")}
    accuracy = fmean(row["rewards/accuracies"] for row in last)
    return {**_compared(task, client), "pairs": len(pairs), "accuracy": accuracy, **nats}


def copy_chosen(task: SmallTask, folder: TrainingFolder, config: SftConfig) -> Row:
    """What the SFT loss alone does: no rejected reply counts."""
    client, pairs = task.client(), task.pairs()
    steps = steps_of(config.steps, len(pairs), config.batch_size)
    settled = msgspec.structs.replace(config, steps=steps, seed=task.seed)
    sft(client, [pair.chosen for pair in pairs], settled, folder)
    return {**_compared(task, client), "pairs": len(pairs)}


class FirstModelTeacher:
    """The teacher, computed here."""

    def __init__(self, client: CpuTrainer) -> None:
        self._client = client

    def logprobs(self, data: Sequence[Datum]) -> list[list[float]]:
        return self._client.logprobs(data)


def follow(task: SmallTask, folder: TrainingFolder, config: DistillConfig) -> Row:
    client, teacher = task.client(), task.teacher()
    problems = [Problem(list(item.question), {}) for item in task.problems]
    what = Distillation(problems=problems, teacher=FirstModelTeacher(teacher), stops=[END])
    distill(client, what, msgspec.structs.replace(config, seed=task.seed), folder)
    kl = [row["kl"] for row in read_rows(folder.path / "metrics.jsonl")]
    divergence = {"teacher": fmean(task.scores(teacher)), "kl before": fmean(kl[:5]), "kl after": fmean(kl[-5:])}
    return {**_compared(task, client), **divergence}


def judge(task: SmallTask, folder: TrainingFolder, config: RewardModelConfig) -> Row:
    training, held_out = held_out_pairs(task.pairs(), 0.2, task.seed)
    steps = steps_of(config.steps, len(training), config.batch_size)
    settled = msgspec.structs.replace(config, steps=steps, eval_every=steps, seed=task.seed)
    train_reward_model(task.reward_client(), training, held_out, settled, folder)
    last = list(read_rows(folder.path / "metrics.jsonl"))[-1]
    return {"pairs": len(training), "held-out pairs": len(held_out.pairs), "accuracy": last["eval_accuracy"]}


def _compared(task: SmallTask, client: CpuTrainer) -> Row:
    after = task.scores(client)
    change = paired_difference([[value] for value in task.before], [[value] for value in after])
    points = {"difference": change.difference, "low": change.low, "high": change.high}
    return {"before": fmean(task.before), "after": fmean(after), **points}


Way = Callable[[SmallTask, TrainingFolder], Row]


def _ways() -> dict[str, Way]:
    """Name → what is learnt; `steps` of the settings of pairs are epochs here."""
    ways: dict[str, Way] = {}
    for rate, beta in ((5e-5, 0.1), (2e-4, 0.1), (2e-4, 0.5), (1e-3, 0.1)):
        for weight in (0.0, 1.0):
            config = DpoConfig(steps=1, learning_rate=rate, sft_weight=weight, beta=beta, save_every=0)
            ways[f"dpo rate={rate:g} sft={weight:g} beta={beta:g}"] = _with(prefer, config)
    for rate in (2e-4, 1e-3):
        chosen = SftConfig(steps=1, batch_size=8, learning_rate=rate, save_every=0)
        ways[f"sft rate={rate:g}"] = _with(copy_chosen, chosen)
    distilled = DistillConfig(steps=40, learning_rate=1e-3, max_tokens=LENGTH + 2, save_every=0)
    ways["distill rate=0.001"] = _with(follow, distilled)
    ways["reward rate=0.001"] = _with(judge, RewardModelConfig(steps=3, learning_rate=1e-3, save_every=0))
    return ways


def _with(learn: Callable[..., Row], config: Struct) -> Way:
    return lambda task, folder: learn(task, folder, config)


WAYS = _ways()


def run(task: SmallTask, way: str, out: Path) -> None:
    """One line of results."""
    path = out / f"{task.name}-{task.seed}-{way.replace(' ', '-')}"
    if (path / "result.json").is_file():
        return
    folder = TrainingFolder(path, {})
    result = WAYS[way](task, folder)
    folder.close()
    write_json(path / "result.json", {"task": task.name, "seed": task.seed, "way": way, **result})


def tabled(out: Path) -> str:
    """Means over the seeds, with the range of what changed."""
    results = [json.loads(path.read_text()) for path in sorted(out.glob("*/result.json"))]
    rows: list[tuple[object, ...]] = [
        ("way", "task", "seeds", "before", "after", "points of each seed", "accuracy")
    ]
    for way, task in sorted({(row["way"], row["task"]) for row in results}):
        own = [row for row in results if (row["way"], row["task"]) == (way, task)]
        changes = ", ".join(f"{100 * row['difference']:+.1f}" for row in own if "difference" in row)
        means = [
            f"{100 * fmean(row[name] for row in own):.1f} %" if name in own[0] else "—"
            for name in ("before", "after", "accuracy")
        ]
        rows.append((way, task, len(own), *means[:2], changes or "—", means[2]))
    return "\n".join(markdown_table(rows))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.preferences", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/preferences")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    for seed in options.seeds:
        for name in options.tasks:
            task = SmallTask(name, seed, options.out)
            for way in options.ways:
                run(task, way, options.out)
                print(f"{name}, seed {seed}: {way}", file=sys.stderr, flush=True)
    print(tabled(options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
