# SPDX-License-Identifier: Apache-2.0
"""Attacks on the figures: replies that hedge, programs that forge a verdict, servers, disks and kills that fail.

Each attack is a test of the suite, whose data anybody may read and add to; this counts those that were tried and
those that had their way, for docs/trust.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

from bench.measure import ROOT, BenchError, Line, Options

SUITES = {
    "replies that say several things (mathematics)": ("tests/graders/math/test_math_several.py",),
    "notations, units and words that change a value": ("tests/graders/math/test_math_readings.py",),
    "letters: several, denied, quoted, in 97 languages": (
        "tests/graders/choices/test_choice_hedges.py",
        "tests/graders/choices/test_choice_languages.py",
    ),
    "hedges against every grader": ("tests/run/test_hedges.py",),
    "reasoning that never ends, run-on, code fences": (
        "tests/graders/reading/test_reply_reading.py",
        "tests/base/reading/test_reply_text.py",
        "tests/graders/code/test_extract.py",
    ),
    "verdicts that a judge only quotes": (
        "tests/base/test_offered_verdicts.py",
        "tests/graders/judges/test_judgement.py",
    ),
    "Python programs that forge a verdict": ("tests/graders/code/test_python_forgeries.py",),
    "the same in six other languages": (
        "tests/graders/code/test_forgeries.py",
        "tests/graders/code/test_verilog_forgeries.py",
    ),
    "escapes from the sandbox": ("tests/sandbox/hostile",),
    "rate limits, pauses, replies sent twice": (
        "tests/run/engine/test_rate_limits.py",
        "tests/base/http/test_repeated_replies.py",
    ),
    "damaged files, missing files, memory and processes": (
        "tests/run/records/test_damage.py",
        "tests/run/test_shortages.py",
    ),
    "kills": ("tests/run/test_kill.py",),
}
QUICK = ("replies that say several things (mathematics)", "verdicts that a judge only quotes")
_COUNTS = re.compile(r"(\d+) (passed|failed|skipped|error)")


def bench(options: Options) -> Iterator[Line]:
    for what, paths in SUITES.items():
        if options.quick and what not in QUICK:
            continue
        counts = run_suite(paths)
        successes = counts.get("failed", 0) + counts.get("error", 0)
        tried = counts.get("passed", 0) + successes
        skipped = counts.get("skipped", 0)
        yield Line(
            bench="trust",
            what=what,
            ours=successes,
            unit=f"of {tried:,} attacks succeed",
            better="less",
            target="0",
            met=successes == 0,
            note=f"{skipped} skipped here" if skipped else "",
        )


def run_suite(paths: tuple[str, ...]) -> dict[str, int]:
    """Return how many tests of these files passed, failed, were skipped. Raises BenchError where none ran."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    counts = {kind: int(number) for number, kind in _COUNTS.findall(done.stdout.strip().rpartition("\n")[2])}
    if not counts.get("passed"):
        raise BenchError(f"{' '.join(argv)} ran no test:\n{done.stdout[-2000:]}")
    return counts
