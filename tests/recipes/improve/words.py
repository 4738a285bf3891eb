# SPDX-License-Identifier: Apache-2.0
"""A benchmark that a model of three blocks learns in ten steps: to answer with one word, whatever the item is."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from newskills.base.store import write_rows
from newskills.recipes.improve.problems import draw_problems
from newskills.recipes.improve.records import ImproveKeys, ImproveSpec
from newskills.run.training.steps_shown import StepReporter
from newskills.train.settings import TrainerSettings

COUNT = 30
UNTAUGHT = 3
"""Every third held-out problem has an answer that no training problem has, so the gate stays open."""
KEYS = ImproveKeys(
    problems=COUNT,
    samples=1,
    max_tokens=4,
    held_out=COUNT,
    epochs=4,
    batch_size=8,
    learning_rate=5e-3,
    save_every=3,
    trainer=TrainerSettings(threads=1),
)
FILE = """
from newskills.base.benchmark import Benchmark

def rows(split):
    start = {{"train": 1000, "test": 5000}}[split]
    return [
        {{
            "id": f"{{split}}-{{n}}",
            "question": f"{question} {{start + n}}",
            "expected_answer": "perhaps" if split == "test" and n % {untaught} == 0 else "{word}",
        }}
        for n in range({{"train": 2 * {count}, "test": {count}}}[split])
    ]

BENCHMARK = Benchmark(
    name="{name}", category="reasoning", title="One word", generate_rows=rows, prompt="generic/default",
    grader="exact", items={{"train": 2 * {count}, "test": {count}}}, licence="Apache-2.0", homepage="", chance=0.0,
)
"""


def words_benchmark(folder: Path, name: str, question: str, word: str) -> str:
    """A benchmark of the user's own, whose answers are all `word`; what names it."""
    path = folder / f"{name}.py"
    path.write_text(FILE.format(name=name, question=question, word=word, count=COUNT, untaught=UNTAUGHT))
    return str(path)


def write_training(folder: Path, question: str, words: tuple[str, str]) -> None:
    """train.jsonl: problems of two rounds, with the expected answer of each round's, be it right or not; and
    solutions.jsonl: the replies of somebody who knows these."""
    rows = [{"id": f"train-{n}", "question": f"{question} {1000 + n}"} for n in range(2 * COUNT)]
    answers = {
        row["id"]: word
        for number, word in enumerate(words, 1)
        for row in draw_problems(rows, number, COUNT, KEYS.seed)
    }
    write_rows(folder / "train.jsonl", ({**row, "expected_answer": answers[row["id"]]} for row in rows))
    write_rows(folder / "solutions.jsonl", ({"id": name, "generation": word} for name, word in answers.items()))


def spec_for(folder: Path, model: Path, benchmark: str, out: str = "out", **changed: Any) -> ImproveSpec:
    """Of a run whose files are those of `folder`: train.jsonl and solutions.jsonl."""
    settings: dict[str, Any] = {
        "output_dir": folder / out,
        "model": str(model),
        "benchmark": benchmark,
        "watch": lambda _: nullcontext(StepReporter()),
        "training_data": folder / "train.jsonl",
        "solutions": (folder / "solutions.jsonl",),
        "rounds": 2,
        "data_dir": folder / "data",
        "keys": KEYS,
    }
    return ImproveSpec(**{**settings, **changed})
