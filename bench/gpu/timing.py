# SPDX-License-Identifier: Apache-2.0
"""What is measured of a run, whoever drives it: seconds a step, the curve, the peak of GPU memory."""

from __future__ import annotations

import gc
import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from bench.gpu.spec import MARK, Part, Work


def even_share(tokens: Sequence[int]) -> float:
    """A reward that any model can learn: the share of even token ids."""
    return sum(token % 2 == 0 for token in tokens) / max(1, len(tokens))


class Timing:
    """`step` is called after every step with what the curve shows and the tokens that were trained on."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._ends: list[float] = []
        self._curve: list[float] = []
        self._tokens: list[float] = []
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()

    def step(self, value: float, tokens: float) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self._ends.append(time.perf_counter())
        self._curve.append(float(value))
        self._tokens.append(float(tokens))

    def figures(self) -> dict[str, Any]:
        """Return seconds a step after the warm ones, tokens a second, GB at most (None on a CPU), the curve."""
        warm = min(self._work.warm, len(self._ends) - 2)
        seconds, steps = self._ends[-1] - self._ends[warm], len(self._ends) - 1 - warm
        return {
            "seconds": seconds / steps,
            "tokens_per_second": sum(self._tokens[warm + 1 :]) / seconds,
            "tokens": sum(self._tokens[warm + 1 :]) / steps,
            "gb": torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else None,
            "curve": self._curve,
        }


def clear() -> None:
    """Give back what a part has left on the GPU, so that the next one is measured alone."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def run_parts(measure: Callable[[str, Work, Path], dict[str, Any]]) -> None:
    """Run the parts of `python -m … PARTS.json MODEL DEADLINE`; print each as a line of JSON as soon as it is done."""
    warnings.simplefilter("ignore")
    parts = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=list[Part])
    for part in parts:
        if time.time() + part.seconds > float(sys.argv[3]):
            break
        try:
            line = {"part": part.name, **measure(part.kind, part.work, Path(sys.argv[2]))}
        except Exception as error:  # one that runs out of memory must not hide those after it
            traceback.print_exc()
            line = {"part": part.name, "failed": f"{type(error).__name__}: {str(error)[:500]}"}
        sys.stdout.write(f"{MARK}{json.dumps(line)}\n")
        sys.stdout.flush()
        clear()
