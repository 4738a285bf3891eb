# SPDX-License-Identifier: Apache-2.0
"""Lists what was never tried on its live source, and what of that no public text speaks of.

`python -m newskills.benchmarks.unproven` prints a line for each: its state, its name, and how many texts were compared.
Those without any stand first.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

from newskills.base.benchmark import Benchmark
from newskills.benchmarks.evidence import evidence_of
from newskills.benchmarks.generate_catalog import built_in


def unproven_benchmarks() -> Iterator[Benchmark]:
    """Return the benchmarks whose rows nobody prepared; those that nothing is known of come first."""
    open_ones = [benchmark for _, benchmark in built_in() if benchmark.unverified]
    return iter(sorted(open_ones, key=lambda benchmark: (len(evidence_of(benchmark.name)), benchmark.name)))


def main() -> None:
    """Print the unproven benchmarks, and how many there are of each state."""
    states: Counter[str] = Counter()
    for benchmark in unproven_benchmarks():
        state = "schema checked" if evidence_of(benchmark.name) else "not verified"
        states[state] += 1
        sys.stdout.write(f"{state:<14}  {benchmark.name:<32}  {len(evidence_of(benchmark.name))}\n")
    sys.stdout.write(f"{', '.join(f'{count} {state}' for state, count in states.items())}\n")


if __name__ == "__main__":
    main()
