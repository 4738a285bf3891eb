# SPDX-License-Identifier: Apache-2.0
"""AlpacaEval 2 with the length-controlled win rate (Dubois et al. 2024, arXiv:2404.04475)."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.chat_judge.arena_hard import arena_judge

_HOME = "https://huggingface.co/datasets/tatsu-lab/alpaca_eval/resolve/main"


def join_baseline_games(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the instructions with the games of the baseline with itself, from the texts of both files; rows stay as
    they are."""
    answers: list[Row] = []
    gamed: dict[int, Row] = {}
    for raw in rows:
        if "text" not in raw:
            answers.append(raw)
        elif raw["_file"].endswith(".csv"):
            gamed = _read_baseline_games(raw["text"])
        else:
            answers += json.loads(raw["text"])
    for index, row in enumerate(answers):
        yield {**row, **gamed.get(index, {})}


def _read_baseline_games(text: str) -> dict[int, Row]:
    """Read index of an instruction → its difficulty, and [preference, difference of lengths] of the games."""
    rows: dict[int, Any] = {}
    for line in csv.DictReader(io.StringIO(text)):
        row = rows.setdefault(
            int(line["index"]),
            {"instruction_difficulty": float(line["instruction_difficulty"]), "gamed_games": []},
        )
        if line["preference"]:
            row["gamed_games"].append([float(line["preference"]), float(line["std_delta_len"])])
    return rows


def row(raw: Row, index: int) -> Row:
    return {
        "question": raw["instruction"],
        "baseline_answer": raw["output"],
        "baseline": raw["generator"],
        "category": raw["dataset"],
        **{name: raw[name] for name in ("instruction_difficulty", "gamed_games") if name in raw},
    }


BENCHMARK = Benchmark(
    name="alpaca_eval",
    category="chat-judge",
    title="AlpacaEval 2: instructions, against GPT-4 Turbo",
    sources=(Source(split="eval", url=f"{_HOME}/{{alpaca_eval_gpt4_baseline.json,df_gamed.csv}}", format="text"),),
    join=join_baseline_games,
    row=row,
    grader="",
    judge=arena_judge(),
    metric="alpaca_eval",
    split="eval",
    chance=0.5,
    items={"eval": 805},
    licence="CC-BY-NC-4.0",
    homepage="https://github.com/tatsu-lab/alpaca_eval",
    citation="arXiv:2404.04475",
    unverified=True,
    version="2",
    traps=(
        "`length_controlled_winrate` is computed as the authors' package does, from the games that they publish with "
        "the data; `win_rate` is the plain one.",
        "The judge reads both orders of the two answers and our prompt, as the authors' text is part of their code; "
        "theirs reads one order at random and weighs the probabilities of its first token. The judge of published "
        "figures is GPT-4 Turbo (1106).",
        "Rows prepared by older versions lack the games: prepare them again for the length-controlled rate.",
    ),
)
