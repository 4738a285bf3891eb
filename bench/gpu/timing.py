# SPDX-License-Identifier: Apache-2.0
"""What is measured of a run, whoever drives it: seconds a step, the curve, the peak of GPU memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import fmean

import torch

from bench.gpu.spec import Work


def even_share(tokens: Sequence[int]) -> float:
    """A reward that any model can learn: the share of even token ids."""
    return sum(token % 2 == 0 for token in tokens) / max(1, len(tokens))


class Timing:
    """`step` is called after every step with what the curve shows and the mean completion."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._ends: list[float] = []
        self._curve: list[float] = []
        self._lengths: list[float] = []
        self._peak = 0.0
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()

    def step(self, value: float, completion: float) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self._ends.append(time.perf_counter())
        self._curve.append(float(value))
        self._lengths.append(float(completion))

    def end(self) -> None:
        if torch.cuda.is_available():
            self._peak = torch.cuda.max_memory_allocated() / 2**30
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def found(self) -> dict[str, object]:
        """seconds a step after the warm ones, GiB at most, mean completion tokens, the curve."""
        warm = min(self._work.warm, len(self._ends) - 2)
        seconds = (self._ends[-1] - self._ends[warm]) / (len(self._ends) - 1 - warm)
        return {
            "seconds": seconds,
            "gib": self._peak,
            "completion": fmean(self._lengths[warm + 1 :]),
            "curve": self._curve,
        }
