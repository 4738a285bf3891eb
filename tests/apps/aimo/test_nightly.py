# SPDX-License-Identifier: Apache-2.0
"""The three stages with a real model of 135M parameters on a CPU: about ten minutes, in nightly runs only."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.apps.aimo.places import laid_out as tiny
from tests.apps.aimo.places import read, train_words
from tests.conftest import CACHE

from newskills.base.store import write_rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.nightly,
]
BENCHMARK = """
from newskills.base.benchmark import Benchmark
from newskills.base.store import read_rows
from pathlib import Path

BENCHMARK = Benchmark(
    name="held-out-sums", category="math-natural", title="Sums", grader="math", metric="math", prompt="qwen/math-cot",
    generate_rows=lambda split: read_rows(Path(__file__).with_name("held_out.jsonl")),
)
"""


def problems(count: int, seed: int) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    pairs = [(a, b) for a in range(10, 60) for b in range(10, 60)]
    draw.shuffle(pairs)
    return pairs[:count]


def numina(a: int, b: int, solution: str) -> dict[str, object]:
    problem = f"What is {a} + {b}?"
    turns = [{"role": "user", "content": problem}, {"role": "assistant", "content": solution}]
    return {"problem": problem, "solution": solution, "messages": turns}


def laid_out(folder: Path) -> None:
    pairs = problems(380, 0)
    cot, tir, rl, held = pairs[:200], pairs[200:280], pairs[280:340], pairs[340:380]
    write_rows(
        folder / "cot.jsonl",
        [numina(a, b, f"{a} + {b} = {a + b}, so \\boxed{{{a + b}}}.") | {"source": "sums"} for a, b in cot],
    )
    program = "```python\nprint({a} + {b})\n```\n```output\n{c}\n```\nSo \\boxed{{{c}}}."
    write_rows(folder / "tir.jsonl", [numina(a, b, program.format(a=a, b=b, c=a + b)) for a, b in tir])
    write_rows(
        folder / "rl.jsonl",
        [
            {
                "problem": f"What is {a} + {b}?",
                "level": "Level 5",
                "type": "Sums",
                "solution": f"\\boxed{{{a + b}}}",
            }
            for a, b in rl
        ],
    )
    held_out = [{"problem": f"What is {a} + {b}?", "expected_answer": str(a + b)} for a, b in held]
    write_rows(folder / "held_out.jsonl", held_out)
    (folder / "sums.py").write_text(BENCHMARK)


def ns(folder: Path, *words: str) -> str:
    env = {**os.environ, "NEWSKILLS_CACHE": CACHE, "NEWSKILLS_DATA_DIR": str(folder / "prepared")}
    argv = [sys.executable, "-m", "newskills", *words]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    return done.stdout


def score(folder: Path, model: str | Path, name: str) -> int:
    words = ("--benchmark=./sums.py", f"--output-dir={name}", "++inference.tokens_to_generate=48")
    ns(folder, "aimo", "evaluate", f"--model={model}", *words)
    rows = read(folder / name / "eval-results/held-out-sums/output.jsonl")
    assert len(rows) == 40
    return sum(row["outcome"] == "correct" for row in rows)


@pytest.mark.local_model
def test_a_real_model_goes_through_all_stages(tmp_path: Path, local_model: Path) -> None:
    laid_out(tmp_path)
    words = ["--stage=full", "--base-model=smollm2", "--force-cpu", "--output-dir=out"]
    for stage, batch, rate in (("cot", 8, 1e-3), ("tir", 8, 5e-4), ("rl", 16, 2e-4)):
        words += [f"++{stage}.data_files=[{stage}.jsonl]", f"++{stage}.batch_size={batch}"]
        words += [f"++{stage}.accumulation=1", f"++{stage}.learning_rate={rate}", f"++{stage}.lora_rank=16"]
        words += [f"++{stage}.lora_alpha=32", f"++{stage}.save_steps=10"]
    words += [
        "++cot.epochs=1",
        "++tir.epochs=1",
        "++cot.eval_steps=0",
        "++rl.eval_batch_size=2",
        "++rl.max_samples=20",
        "++rl.max_tokens=40",
    ]
    said = ns(tmp_path, "aimo", "train", *words, "++decontaminate=[held_out.jsonl]")
    assert "programs: 80 of 80 rows do what they show" in said
    for stage in ("sft_cot", "sft_tir"):
        losses = [row["loss"] for row in read(tmp_path / "out" / stage / "metrics.jsonl")]
        assert losses[-1] < losses[0] / 2
    rewards = [row["reward"] for row in read(tmp_path / "out/rl_math/metrics.jsonl")]
    assert all(-0.5 <= reward <= 1.1 for reward in rewards)
    ns(tmp_path, "prepare_data", "./sums.py")
    before, after = score(tmp_path, "smollm2", "before"), score(tmp_path, "out/sft_cot", "after")
    assert after > before
    answer = ns(
        tmp_path,
        "aimo",
        "generate",
        "--model=out/sft_tir",
        "--strategy=tir",
        "--problem=What is 12 + 13?",
        "++inference.tokens_to_generate=96",
    )
    assert "answer: 25" in answer


def test_two_processes_train_together(tmp_path: Path) -> None:
    """`accelerate launch -m …` of the old documents, with TRL on the CPU."""
    pytest.importorskip("trl")
    tiny(tmp_path)
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes=2"]
    words = [*train_words("--stage=full", "--base-model=model", "--report-to=none", "--no-vllm")[2:]]
    words.remove("--force-cpu")
    argv = [*launcher, "-m", "newskills.aimo.training.train", *words, "--backend=trl"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("$ ns grpo") == 1
    for stage in ("sft_cot", "sft_tir", "rl_math"):
        assert (tmp_path / "outputs" / stage / "final_hf_model/config.json").is_file()
