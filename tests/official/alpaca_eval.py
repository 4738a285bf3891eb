# SPDX-License-Identifier: Apache-2.0
"""AlpacaEval's length-controlled win rate: invented models of many lengths and strengths against a baseline."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.official.recording import write

SOURCE = "alpaca_eval (PyPI)"
SIZES = (120, 300, 805)
MODELS = 9
Columns = dict[str, list[Any]]


def invented(seed: int) -> tuple[Columns, Columns]:
    """Games of a model, and those of the baseline with itself; by the same seed the same on every machine."""
    draw = random.Random(seed)
    size = SIZES[seed % len(SIZES)]
    difficulty = [round(draw.gauss(0, 1), 6) for _ in range(size)]
    gamed: Columns = {"index": [], "instruction_difficulty": [], "preference": [], "std_delta_len": []}
    for shift in (-1.2, 0.7):
        for index in range(size):
            delta = draw.gauss(shift, 0.6)
            noise = draw.gauss(0, 0.8)
            gamed["index"].append(index)
            gamed["instruction_difficulty"].append(difficulty[index])
            gamed["preference"].append(round(1 / (1 + math.exp(0.9 * math.tanh(delta) - noise)), 6))
            gamed["std_delta_len"].append(round(delta, 6))
    skill, slope, length = draw.uniform(-3, 2), draw.uniform(-0.6, 0.6), draw.uniform(0.3, 2.5)
    games: Columns = {"preference": [], "baseline_length": [], "model_length": [], "difficulty": difficulty}
    for index in range(size):
        baseline = int(draw.lognormvariate(7.2, 0.6)) + 1
        model = int(baseline * length * draw.lognormvariate(0, 0.4)) + 1
        linear = skill + slope * difficulty[index] + 1.1 * math.tanh((model - baseline) / 1500) + draw.gauss(0, 1)
        share = 1 / (1 + math.exp(-linear))
        quarters = round(4 * share) / 4
        games["preference"].append(None if draw.random() < 0.01 else quarters if seed % 2 else round(share, 6))
        games["baseline_length"].append(baseline)
        games["model_length"].append(model)
    return games, gamed


def record(python: Path) -> int:
    """`python` has alpaca_eval; what it would download is made here."""
    run = [str(python), "-W", "ignore", "-m", "tests.official.alpaca_eval"]
    lines = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    release, *rates = lines
    cases = [{"seed": seed, "official": float(rate)} for seed, rate in enumerate(rates)]
    return write("alpaca_eval", SOURCE, release, cases)


def _originals() -> Iterator[str]:
    """Runs in the other Python, which has none of this repository."""
    from importlib.metadata import version

    import alpaca_eval.metrics.glm_winrate as original  # type: ignore[import-not-found]
    import pandas  # type: ignore[import-untyped]

    yield version("alpaca_eval")
    for seed in range(MODELS):
        games, gamed = invented(seed)
        file = Path("/tmp") / f"gamed-{seed}.csv"
        pandas.DataFrame({"model": "gamed", **gamed, "not_gamed_baseline": False}).to_csv(file, index=False)
        original.hf_hub_download = lambda file=file, **_: str(file)
        frame = pandas.DataFrame(
            {
                "output_1": ["x" * length for length in games["baseline_length"]],
                "output_2": ["x" * length for length in games["model_length"]],
                "preference": [math.nan if p is None else 1 + p for p in games["preference"]],
                "generator_1": "baseline",
                "generator_2": "model",
                "annotator": "a",
            }
        )
        rates = original.get_length_controlled_winrate(frame, save_weights_dir=None)
        yield repr(float(rates["length_controlled_winrate"]))
        file.unlink()


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in _originals())
