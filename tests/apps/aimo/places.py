# SPDX-License-Identifier: Apache-2.0
"""A tiny model, and training files in the exact schema of the published sets."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests import forkserver
from tests.train.tiny import VOCAB, tiny_folder, with_tokenizer

from newskills.base.store import write_rows

FAST = ("++cot.lora_rank=4", "++tir.lora_rank=4", "++rl.lora_rank=4")
SMALL = (
    "--force-cpu",
    "--save-steps=1",
    *(f"++{stage}.{key}" for stage in ("cot", "tir") for key in ("batch_size=2", "accumulation=2", "epochs=1")),
    "++rl.batch_size=2",
    "++rl.accumulation=2",
    "++rl.num_generations=2",
    "++rl.max_tokens=4",
    "++cot.eval_steps=0",
    "++decontaminate=[tests.jsonl]",
)
"""Steps of four sequences."""


def cot_rows(count: int) -> list[dict[str, Any]]:
    """Rows of NuminaMath-CoT."""
    return [
        _numina(f"WHAT IS {n} + {n}?", f"IT IS {n} + {n} = \\boxed{{{2 * n}}}.") | {"source": "synthetic_math"}
        for n in range(count)
    ]


def tir_rows(count: int) -> list[dict[str, Any]]:
    """Rows of NuminaMath-TIR; every fourth shows an output that its program does not have."""
    rows = []
    for n in range(count):
        shown = 3 * n + (n % 4 == 3)
        program = f"```python\nprint({n} * 3)\n```\n```output\n{shown}\n```\n"
        rows.append(_numina(f"WHAT IS {n} * 3?", f"{program}SO \\boxed{{{shown}}}."))
    return rows


def hard_rows(count: int) -> list[dict[str, Any]]:
    """Rows of MATH-Hard."""
    return [
        {"problem": f"WHAT IS {n} - 1?", "level": "Level 5", "type": "Algebra", "solution": f"\\boxed{{{n - 1}}}"}
        for n in range(count)
    ]


def _numina(problem: str, solution: str) -> dict[str, Any]:
    turns = [{"role": "user", "content": problem}, {"role": "assistant", "content": solution}]
    return {"problem": problem, "solution": solution, "messages": turns}


def laid_out(folder: Path) -> Path:
    """`model`, `cot.jsonl`, `tir.jsonl`, `rl.jsonl`, and `tests.jsonl` with one problem of cot.jsonl."""
    with_tokenizer(tiny_folder(folder / "model", eos_token_id=VOCAB - 1, max_position_embeddings=512))
    write_rows(folder / "cot.jsonl", cot_rows(13))
    write_rows(folder / "tir.jsonl", tir_rows(17))
    write_rows(folder / "rl.jsonl", hard_rows(12))
    write_rows(folder / "tests.jsonl", [{"problem": "What is 7 + 7?"}])
    return folder


def train_words(*words: str) -> list[str]:
    """`ns aimo train` on these files."""
    data = [f"++{stage}.data_files=[{stage}.jsonl]" for stage in ("cot", "tir", "rl")]
    return ["aimo", "train", *SMALL, *FAST, *data, *words]


def ns(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return forkserver.ns(words, cwd=folder, timeout=240)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
