# SPDX-License-Identifier: Apache-2.0
"""Seconds a step of SFT and GRPO on a CPU, SmolLM2-135M, LoRA r16 on all projections, beside plain TRL."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from bench.measure import ROOT, Line, Options, run, scratch
from bench.peers import TRL, venv

STEPS, BATCH, LENGTH = 5, 8, 128
PROMPTS, SAMPLES, TOKENS = 8, 4, 32
TARGETS = {"sft": 0.6, "grpo": 0.4}
THROUGH = 1.05
SHOWN = {
    "sft": f"SFT, {BATCH} × {LENGTH} tokens, half of them completion",
    "grpo": f"GRPO, {PROMPTS} × {SAMPLES} completions of ≤ {TOKENS} tokens",
}
ORDINARY = range(1_000, 20_000)
"""Token ids of plain words."""


def bench(options: Options) -> Iterator[Line]:
    from newskills.models.serving.weights import resolve_weights
    from newskills.train.convert.from_gguf import gguf_to_hf

    with scratch() as folder:
        gguf_to_hf(resolve_weights("smollm2", say=lambda text: print(text, file=sys.stderr)), folder / "model")
        (folder / "work.json").write_text(json.dumps(_work(2 if options.quick else STEPS)))
        words = [str(folder / "model"), str(folder / "work.json")]
        ours = _last_line([sys.executable, "-m", "bench.training_ours", *words], ROOT)
        through: dict[str, float] = {}
        if find_spec("trl") is not None:
            through = _last_line([sys.executable, "-m", "bench.training_through", *words], ROOT)
        theirs: dict[str, float] = {}
        if options.peers:
            script = str(Path(__file__).with_name("training_trl.py"))
            theirs = _last_line([str(venv(TRL) / "python"), script, *words], folder)
    for name, seconds in ours.items():
        yield _line(SHOWN[name], seconds, theirs.get(name), TARGETS[name])
    for name, seconds in through.items():
        yield _line(f"{SHOWN[name]}, by --backend=trl", seconds, theirs.get(name), THROUGH)


def _line(what: str, ours: float, theirs: float | None, target: float) -> Line:
    line = Line(bench="training", what=what, ours=ours, unit="s a step", better="less")
    if theirs is not None:
        line.beside, line.theirs = TRL.shown, theirs
        line.target = f"≤ {target} × TRL"
        line.met = ours <= target * theirs
    return line


def _work(steps: int) -> dict[str, object]:
    """Random words, so that no two sequences of SFT begin alike."""
    draw = random.Random(0)

    def words(count: int) -> list[int]:
        return draw.choices(ORDINARY, k=count)

    half = LENGTH // 2
    return {
        "dtype": "bfloat16",
        "samples": SAMPLES,
        "tokens": TOKENS,
        "sft": [[[words(half), words(half)] for _ in range(BATCH)] for _ in range(steps)],
        "grpo": [[words(48) for _ in range(PROMPTS)] for _ in range(steps)],
    }


def _last_line(argv: list[str], cwd: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads(run(argv, cwd=cwd).output.strip().splitlines()[-1])
    return found
