# SPDX-License-Identifier: Apache-2.0
"""`python -m bench reinforce [--tasks …] [--seeds …] [--out FOLDER] [--set key=value …]`: what GRPO does to held-out
problems, step by step, and TRL's trainer with the same problems, rewards and samples.

SmolLM2-135M-Instruct is fine-tuned once a task, by the rule of `bench.reinforce_tasks`; from there every seed is what
`ns grpo` does with its defaults: an epoch, a quarter of the problems held out, evaluated on the way, a loss that lasts
takes the run back, the best state is kept. The start, the kept state and the last one are measured on 400 other
problems, greedily. TRL has the same start, problems, rewards and samples. Every cell (task, trainer, seed) is a file:
what is done is not done again, what was stopped goes on where it was, and several processes share what is left. Seeds
come one after the other, so that each is on all tasks before the next begins.
`--write-docs` takes what is done into bench/reinforce_cells.jsonl, which is in git; from all cells there, it draws
docs/training-curves.svg and writes the figures of docs/training.md and docs/grpo-signal.md.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from textwrap import fill

import msgspec

from bench.__main__ import machine
from bench.measure import ROOT
from bench.reinforce_plot import Cell, cell_of, drawn, judged, read_cells, tabled, write_record
from bench.reinforce_tasks import (
    CHECK_STEPS,
    ENOUGH,
    FIXED,
    ROUNDS,
    SEEDS,
    TASKS,
    TOO_MUCH,
    TUNE_RATE,
    TUNE_STEPS,
    Item,
    split,
)
from bench.reinforce_turns import scorer_of
from newskills.base.store import write_json
from newskills.models.serving.weights import resolve_weights
from newskills.models.tokenizer import HFTokenizer
from newskills.pipelines.training.methods.grpo_options import GrpoKeys
from newskills.pipelines.training.methods.running import config_of
from newskills.train.backends.cpu.local import CpuLocal
from newskills.train.convert.from_gguf import gguf_to_hf
from newskills.train.convert.merge import merge_lora
from newskills.train.loops.evaluation import SCORE, HeldOut, kept_apart, measure, steps_between
from newskills.train.loops.folder import Checkpoint, TrainingFolder
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems
from newskills.train.loops.samples import Problem
from newskills.train.loops.schedule import steps_of
from newskills.train.loops.sft import SftConfig, example
from newskills.train.loops.stepping import Hooks, Progress
from newskills.train.settings import EvalSettings, TrainerSettings
from newskills.train.trainers import Trainer, make_trainer
from newskills.train.verbs import Datum

TOKENS, CURVE_STEPS = 16, 30
"""Longest reply; steps between the states that are measured."""
PAGE, SUMMARY = ROOT / "docs/grpo-signal.md", ROOT / "docs/training.md"
PICTURE = ROOT / "docs/training-curves.svg"
RECORD = ROOT / "bench/reinforce_cells.jsonl"
"""All cells that the pages show, a line each."""
LINE = 146
"""Characters of a line of a page."""
BEGIN, END = "<!-- reinforce: begin -->", "<!-- reinforce: end -->"
SHOWN = ("loss", "reward", "eval_correct")


class Runs:
    """The runs of one task, and the model that all of them begin from."""

    def __init__(self, name: str, out: Path, threads: int) -> None:
        self.name, self.out, self.settings = name, out, TrainerSettings(threads=threads)
        self.items, self.task = split(name), TASKS[name]
        self._base, self.start = out / "base", out / f"{name}-start"
        with alone(out / "base.lock", wait=True):
            if not self._base.is_dir():
                gguf_to_hf(resolve_weights("smollm2", say=print), self._base)
        self.tokenizer = HFTokenizer(str(self._base))
        self.end: int = json.loads((self._base / "config.json").read_text())["eos_token_id"]
        self.scorer = scorer_of(self.task, self.tokenizer, self.end)

    def problem(self, item: Item) -> Problem:
        row = {"question": item.question, "expected_answer": item.answer, "first": item.first}
        return Problem(self.tokenizer.encode(item.question), row)

    def held_out(self, items: Sequence[Item], every: int) -> HeldOut:
        settings = EvalSettings(
            every=every, max_problems=len(items), max_tokens=TOKENS, batch_size=50, final="last"
        )
        return HeldOut(problems=[self.problem(item) for item in items], scorer=self.scorer, settings=settings)

    def prepare(self, *, wait: bool = True) -> None:
        """Fine-tunes by the rule of `bench.reinforce_tasks`; not where another process does so and we do not wait."""
        with alone(self.out / f"{self.name}-start.lock", wait=wait) as free:
            if not free or self.start.is_dir():
                return
            examples = [made for item in self.items.tune for made in self._examples(item)]
            base, rate, every = self._base, TUNE_RATE, CHECK_STEPS
            for number in range(ROUNDS):
                folder = self._tuned(number, base, examples, rate, every)
                checks = folder.scores(SCORE)
                step, right = checks[-1]
                if right > TOO_MUCH and len(checks) > 1:
                    step, rate, every = checks[-2][0], rate / 4, 1
                target = self.start if ENOUGH <= right <= TOO_MUCH or number + 1 == ROUNDS else None
                target = target or self.out / f"{self.name}-tuned-{number}"
                if step:
                    merge_lora(base, folder.path / f"checkpoint-{step:06d}", target)
                    base = target
                folder.close()
                if self.start.is_dir():
                    return

    def _tuned(
        self, number: int, base: Path, examples: Sequence[Datum], rate: float, every: int
    ) -> TrainingFolder:
        """A round of fine-tuning, until its first check with enough right."""
        config = SftConfig(steps=TUNE_STEPS, learning_rate=rate, save_every=every, seed=number)
        reached: list[float] = []

        def watched(progress: Progress) -> None:
            told(progress)
            reached.append(progress.metrics.get(SCORE, 0.0))

        folder = TrainingFolder(
            self.out / f"{self.name}-tuning-{number}", msgspec.to_builtins(config) | {"base": base.name}
        )
        hooks = Hooks(
            on_step=watched,
            held_out=self.held_out(self.items.checked, every),
            stop=lambda: reached[-1] >= ENOUGH,
        )
        if not folder.scores(SCORE) or folder.scores(SCORE)[-1][1] < ENOUGH:
            make_trainer("cpu", base, self.settings).run(config, examples, folder, hooks)
        return folder

    def _examples(self, item: Item) -> list[Datum]:
        """An example for each reply of an item, in the token ids that sampling has."""
        encode, prompt = self.tokenizer.encode, list(self.tokenizer.encode(item.question))
        if self.task.between is None:
            return [example(prompt, [*encode(item.answer), self.end])]
        first = [*encode(item.first), self.end]
        after = [*prompt, *first, *encode(self.task.between(item.first))]
        return [example(prompt, first), example(after, [*encode(item.answer), self.end])]

    def reinforce(self, backend: str, keys: GrpoKeys) -> Cell:
        """Runs it, or goes on with it; what was measured.

        Problems are held out of those to learn from, and evaluated, as `ns grpo` does it. TRL has the same problems to
        learn from, evaluates nothing and ends with its last weights, as its own command does.
        """
        path = self.out / f"{self.name}-{backend}-{keys.seed}"
        trainer: Trainer = make_trainer(backend, self.start, self.settings)
        every = [self.problem(item) for item in self.items.reinforce]
        problems, apart = kept_apart(every, keys.held_out)
        config = config_of(GrpoConfig, keys, keys.steps or steps_of(keys.epochs, len(problems), keys.batch_size))
        folder = TrainingFolder(path, msgspec.to_builtins(config))
        between = steps_between(len(apart), keys.batch_size * keys.group_size)
        asked = msgspec.structs.replace(keys.eval, every=between, max_tokens=TOKENS)
        gate = HeldOut(problems=apart, scorer=self.scorer, settings=asked) if backend == "cpu" else None
        trainer.run(
            config,
            RewardedProblems(problems, self.scorer),
            folder,
            Hooks(on_step=told, remark=print, held_out=gate),
        )
        folder.close()
        rows, kept = list(folder.metric_rows()), 0 if folder.unchanged else step_of(folder.last)
        states = {step_of(state): folder.state_of(state) for state in folder.checkpoints if state.name}
        wanted = sorted({kept, rows[-1]["step"], *(step for step in states if step % CURVE_STEPS == 0)} - {0})
        right = {0: self.before()} | {step: self.measured(path, Path(states[step])) for step in wanted}
        about = self.name, self.task.kind, backend, keys.seed
        groups = sum(1 for _ in folder.sampled())
        return cell_of(about, rows, right, kept, samples=groups * keys.group_size, steps=config.steps)

    def before(self) -> list[float]:
        """The rewards of the model that the runs start from, measured once."""
        path = self.out / f"{self.name}-start.rewards"
        with alone(self.out / f"{self.name}-before.lock", wait=True):
            if not path.is_file():
                write_json(path, self._rewards(self.start))
            return msgspec.json.decode(path.read_bytes(), type=list[float])

    def measured(self, path: Path, state: Path) -> list[float]:
        """The rewards of the model that `ns` would write of a state: its pairs are merged."""
        merged = path / "merged"
        shutil.rmtree(merged, ignore_errors=True)
        merge_lora(self.start, state, merged)
        rewards = self._rewards(merged)
        shutil.rmtree(merged)
        return rewards

    def _rewards(self, model: Path) -> list[float]:
        """The reward of the greedy answer to each of the problems to measure on, by the cpu trainer's sampler whoever
        trained the model."""
        held_out = self.held_out(self.items.held_out, 0)
        with CpuLocal(model, self.settings).client(GrpoConfig) as client:
            return [reward for [reward] in measure(client, held_out, 0).rewards]


def step_of(state: Checkpoint | None) -> int:
    """The step of the weights of a checkpoint, whenever it was noted."""
    return int(state.name.rpartition("-")[2]) if state is not None else 0


@contextmanager
def alone(path: Path, *, wait: bool) -> Iterator[bool]:
    """Whether no other process is in here with this file; several of them share the cells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def told(progress: Progress) -> None:
    values = {name: round(progress.metrics[name], 4) for name in SHOWN if name in progress.metrics}
    print(f"  {time.strftime('%H:%M:%S')} {progress.done}/{progress.steps} {values}", file=sys.stderr, flush=True)


def write_docs(cells: Sequence[Cell]) -> None:
    """The record and the picture; between the markers of their pages, the table, and what it comes to."""
    write_record(cells, RECORD)
    PICTURE.write_text(drawn(cells))
    between_markers(PAGE, tabled(cells))
    when = max(cell.date for cell in cells)
    text = f"{judged(cells, FIXED)} Measured until {when} on {machine()}, shared, one thread a run."
    between_markers(SUMMARY, fill(text, LINE, break_on_hyphens=False))


def between_markers(page: Path, text: str) -> None:
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} lacks the markers {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench reinforce", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(FIXED))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument(
        "--backends", nargs="*", choices=["cpu", "trl"], default=["cpu", "trl"], help="none: run nothing"
    )
    parser.add_argument("--threads", type=int, default=0, help="0 = one a core")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/reinforce")
    parser.add_argument("--set", nargs="*", default=[], metavar="key=value", help="other ++ keys of ns grpo")
    parser.add_argument("--write-docs", action="store_true", help="table and picture from what is done so far")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    changed = {key: json.loads(value) for key, _, value in (pair.partition("=") for pair in options.set)}
    wanted = list(product(options.backends, options.seeds, options.tasks))
    for name in dict.fromkeys(name for _, _, name in wanted):
        Runs(name, options.out, options.threads).prepare(wait=False)
    for backend, seed, name in wanted:
        cell = options.out / f"{name}-{backend}-{seed}.json"
        with alone(cell.with_suffix(".lock"), wait=False) as free:
            if not free or cell.is_file():
                continue
            print(f"{name}, {backend}, seed {seed}", file=sys.stderr, flush=True)
            runs = Runs(name, options.out, options.threads)
            runs.prepare()
            keys = msgspec.convert({"max_tokens": TOKENS, "seed": seed, **changed}, GrpoKeys)
            write_json(cell, runs.reinforce(backend, keys))
        for state in cell.with_suffix("").glob("checkpoint-*"):
            shutil.rmtree(state)  # measured; those of all cells are 12 GB
    cells = read_cells(options.out, RECORD)
    if options.write_docs:
        write_docs(cells)
    print(f"{tabled(cells)}\n\n{judged(cells, FIXED)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
