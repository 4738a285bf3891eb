# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.reinforce [--tasks …] [--seeds …] [--out FOLDER] [--set key=value …]`: what GRPO does to held-out
problems, step by step, and TRL with the same problems, rewards and settings.

SmolLM2-135M-Instruct is fine-tuned once a task; from there every seed is a run with the defaults of `ns grpo`.
Greedy answers to 400 held-out problems are measured before, on the way and after. What is done is not done again:
the same command goes on. `--write-docs` draws docs/training-curves.svg and puts the table into docs/training.md.
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
from bench.reinforce_plot import drawn, tabled
from bench.reinforce_tasks import TASKS, TUNE_STEPS, Item, split
from newskills.base.store import read_rows, write_json
from newskills.models.serving.weights import resolve_weights
from newskills.models.tokenizer import HFTokenizer
from newskills.train.convert.from_gguf import gguf_to_hf
from newskills.train.convert.merge import merge_lora
from newskills.train.loops.evaluation import HeldOut
from newskills.train.loops.folder import TrainingFolder
from newskills.train.loops.grpo import GrpoConfig, RewardedProblems
from newskills.train.loops.samples import Judged, Problem, Scorer
from newskills.train.loops.sft import SftConfig, example
from newskills.train.loops.stepping import Hooks, Progress
from newskills.train.settings import EvalSettings, TrainerSettings
from newskills.train.trainers import Trainer, make_trainer

UNSEEN = ("reversal", "backwards", "numerals")
STEPS, EVERY, TOKENS = 40, 20, 12
PAGE, PICTURE = ROOT / "docs/training.md", ROOT / "docs/training-curves.svg"
BEGIN, END = "<!-- reinforce: begin -->", "<!-- reinforce: end -->"
SHOWN = ("loss", "reward", "eval_correct")


class Task:
    """One task with the model that every run of it begins from."""

    def __init__(self, name: str, out: Path, threads: int) -> None:
        self.name, self.out, self.settings = name, out, TrainerSettings(threads=threads)
        self.items = split(name)
        base = out / "base"
        if not base.is_dir():
            gguf_to_hf(resolve_weights("smollm2", say=print), base)
        self._base, self.start = base, out / f"{name}-start"
        self.tokenizer = HFTokenizer(str(base))
        self.end: int = json.loads((base / "config.json").read_text())["eos_token_id"]

    def problem(self, item: Item) -> Problem:
        row = {"question": item.question, "expected_answer": item.answer}
        return Problem(self.tokenizer.encode(item.question), row)

    def prepare(self) -> None:
        """Fine-tunes until the model is right now and then."""
        if self.start.is_dir():
            return
        examples = [
            example(self.tokenizer.encode(item.question), [*self.tokenizer.encode(item.answer), self.end])
            for item in self.items.tune
        ]
        config = SftConfig(steps=TUNE_STEPS[self.name], learning_rate=2e-3, save_every=0)
        folder = TrainingFolder(self.out / f"{self.name}-tuning", msgspec.to_builtins(config))
        make_trainer("cpu", self._base, self.settings).run(config, examples, folder, Hooks(on_step=told))
        assert folder.last is not None
        merge_lora(self._base, Path(folder.state_of(folder.last)), self.start)
        folder.close()

    def reinforce(self, backend: str, config: GrpoConfig) -> list[dict[str, float]]:
        """Steps with what was measured of them."""
        scorer = Scorer(exact, self.tokenizer.decode, [self.end])
        path = self.out / f"{self.name}-{backend}-{config.seed}"
        trainer: Trainer = make_trainer(backend, self.start, self.settings)
        folder = TrainingFolder(path, msgspec.to_builtins(config))
        held_out = HeldOut(
            problems=[self.problem(item) for item in self.items.held_out],
            scorer=scorer,
            settings=EvalSettings(
                every=EVERY, max_problems=len(self.items.held_out), max_tokens=TOKENS, batch_size=50, final="last"
            ),
        )
        problems = [self.problem(item) for item in self.items.reinforce]
        trainer.run(config, RewardedProblems(problems, scorer), folder, Hooks(on_step=told, held_out=held_out))
        folder.close()
        return list(read_rows(path / "metrics.jsonl"))


def exact(samples: Sequence[tuple[dict[str, object], str, str]]) -> list[Judged]:
    return [
        Judged(float(text.strip() == row["expected_answer"]), text.strip() == row["expected_answer"])
        for row, text, _ in samples
    ]


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
    PAGE.write_text(f"{before}{BEGIN}\n{tabled(out)}\n{END}{after}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.reinforce", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(UNSEEN))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--backends", nargs="+", choices=["cpu", "trl"], default=["cpu", "trl"])
    parser.add_argument("--threads", type=int, default=0, help="0 = one a core")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/reinforce")
    parser.add_argument("--set", nargs="*", default=[], metavar="key=value", help="other settings of GRPO")
    parser.add_argument("--write-docs", action="store_true", help="table and picture from what is done so far")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    changed = {key: json.loads(value) for key, _, value in (pair.partition("=") for pair in options.set)}
    for backend, seed, name in product(options.backends, options.seeds, options.tasks):
        task = Task(name, options.out, options.threads)
        task.prepare()
        config = GrpoConfig(**{"steps": STEPS, "max_tokens": TOKENS, "seed": seed, "save_every": 0, **changed})
        print(f"{name}, {backend}, seed {seed}", file=sys.stderr)
        rows = task.reinforce(backend, config)
        write_json(options.out / f"{name}-{backend}-{seed}.json", rows)
    if options.write_docs:
        write_docs(options.out)
    print(tabled(options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
