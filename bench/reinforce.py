# SPDX-License-Identifier: Apache-2.0
"""`python -m bench reinforce [--tasks …] [--seeds …] [--out FOLDER] [--set key=value …]`: what GRPO does to held-out
problems, step by step, and TRL's trainer with the same problems, rewards and samples.

SmolLM2-135M-Instruct is fine-tuned once a task, until the rule of `bench.reinforce_tasks` ends that; from there every
seed is a run with the defaults of `ns grpo`, but for lengths. Greedy answers to 400 held-out problems are measured
before, on the way and after. Every cell (task, trainer, seed) is a file: what is done is not done again, and what was
stopped goes on where it was. Seeds come one after the other, so that each is on all tasks before the next begins.
`--write-docs` draws docs/training-curves.svg and puts the table of what is done into docs/grpo-signal.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import msgspec

from bench.measure import ROOT
from bench.reinforce_plot import Cell, cell_of, drawn, judged, tabled
from bench.reinforce_tasks import CHECK_STEPS, ENOUGH, FIXED, MOST_STEPS, TASKS, Item, split
from bench.reinforce_turns import scorer_of
from newskills.base.store import write_json
from newskills.models.serving.weights import resolve_weights
from newskills.models.tokenizer import HFTokenizer
from newskills.pipelines.training.methods.grpo_options import GrpoKeys
from newskills.pipelines.training.methods.running import config_of
from newskills.train.convert.from_gguf import gguf_to_hf
from newskills.train.convert.merge import merge_lora
from newskills.train.loops.evaluation import HeldOut
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems
from newskills.train.loops.samples import Problem
from newskills.train.loops.sft import SftConfig, example
from newskills.train.loops.stepping import Hooks, Progress
from newskills.train.settings import EvalSettings, TrainerSettings
from newskills.train.trainers import Trainer, make_trainer
from newskills.train.verbs import Datum

STEPS, EVERY, TOKENS = 20, 10, 16
PAGE, PICTURE = ROOT / "docs/grpo-signal.md", ROOT / "docs/training-curves.svg"
BEGIN, END = "<!-- reinforce: begin -->", "<!-- reinforce: end -->"
SHOWN = ("loss", "reward", "eval_correct")


class Runs:
    """The runs of one task, and the model that all of them begin from."""

    def __init__(self, name: str, out: Path, threads: int) -> None:
        self.name, self.out, self.settings = name, out, TrainerSettings(threads=threads)
        self.items, self.task = split(name), TASKS[name]
        self._base, self.start = out / "base", out / f"{name}-start"
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

    def prepare(self) -> None:
        """Fine-tunes until the rule of the task ends it."""
        if self.start.is_dir():
            return
        examples = [made for item in self.items.tune for made in self._examples(item)]
        config = SftConfig(steps=MOST_STEPS, learning_rate=1e-3, save_every=0)
        reached: list[float] = []

        def watched(progress: Progress) -> None:
            told(progress)
            reached.append(progress.metrics.get("eval_correct", 0.0))

        folder = TrainingFolder(self.out / f"{self.name}-tuning", msgspec.to_builtins(config))
        hooks = Hooks(
            on_step=watched,
            held_out=self.held_out(self.items.checked, CHECK_STEPS),
            stop=lambda: reached[-1] >= ENOUGH,
        )
        make_trainer("cpu", self._base, self.settings).run(config, examples, folder, hooks)
        assert folder.last is not None
        merge_lora(self._base, Path(folder.state_of(folder.last)), self.start)
        folder.close()

    def _examples(self, item: Item) -> list[Datum]:
        """An example for each reply of an item, in the token ids that sampling has."""
        encode, prompt = self.tokenizer.encode, list(self.tokenizer.encode(item.question))
        if self.task.between is None:
            return [example(prompt, [*encode(item.answer), self.end])]
        first = [*encode(item.first), self.end]
        after = [*prompt, *first, *encode(self.task.between(item.first))]
        return [example(prompt, first), example(after, [*encode(item.answer), self.end])]

    def reinforce(self, backend: str, config: GrpoConfig) -> Cell:
        """Runs it, or goes on with it; what was measured."""
        path = self.out / f"{self.name}-{backend}-{config.seed}"
        trainer: Trainer = make_trainer(backend, self.start, self.settings)
        folder = TrainingFolder(path, msgspec.to_builtins(config))
        held_out = self.held_out(self.items.held_out, EVERY)
        problems = [self.problem(item) for item in self.items.reinforce]
        hooks = Hooks(on_step=told, held_out=held_out)
        trainer.run(config, RewardedProblems(problems, self.scorer), folder, hooks)
        folder.close()
        drawn_groups = sum(1 for _ in folder.sampled())
        about = self.name, self.task.kind, backend, config.seed
        rows, evaluations = list(folder.metric_rows()), folder.evaluations()
        return cell_of(about, rows, evaluations, drawn_groups * config.group_size)


def told(progress: Progress) -> None:
    values = {name: round(progress.metrics[name], 4) for name in SHOWN if name in progress.metrics}
    print(f"  {time.strftime('%H:%M:%S')} {progress.done}/{progress.steps} {values}", file=sys.stderr, flush=True)


def write_docs(out: Path) -> None:
    """The picture, and the table between the markers of the page."""
    PICTURE.write_text(drawn(out))
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE} lacks the markers {BEGIN} and {END}")
    PAGE.write_text(f"{before}{BEGIN}\n{tabled(out)}\n\n{judged(out, FIXED)}\n{END}{after}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench reinforce", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(FIXED))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--backends", nargs="*", choices=["cpu", "trl"], default=["cpu", "trl"])
    parser.add_argument("--threads", type=int, default=0, help="0 = one a core")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/reinforce")
    parser.add_argument("--set", nargs="*", default=[], metavar="key=value", help="other settings of GRPO")
    parser.add_argument("--write-docs", action="store_true", help="table and picture from what is done so far")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    changed = {key: json.loads(value) for key, _, value in (pair.partition("=") for pair in options.set)}
    for name in options.tasks:
        Runs(name, options.out, options.threads).prepare()
    for backend, seed, name in product(options.backends, options.seeds, options.tasks):
        cell = options.out / f"{name}-{backend}-{seed}.json"
        if cell.is_file():
            continue
        keys = GrpoKeys(max_tokens=TOKENS, seed=seed, save_every=EVERY)
        config = msgspec.structs.replace(config_of(GrpoConfig, keys, STEPS), **changed)
        print(f"{name}, {backend}, seed {seed}", file=sys.stderr, flush=True)
        write_json(cell, Runs(name, options.out, options.threads).reinforce(backend, config))
    if options.write_docs:
        write_docs(options.out)
    print(f"{tabled(options.out)}\n\n{judged(options.out, FIXED)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
