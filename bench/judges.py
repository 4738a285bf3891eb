# SPDX-License-Identifier: Apache-2.0
"""`python judges.py KIND FILE`: grades the pairs of a JSONL file when told to. Runs in any virtual environment.

Prints "ready" after a warm-up, waits for a line, grades, prints {"seconds": …, "right": share that agrees with the
pair's own label}, and waits for another line before it ends, so that its CPU time can be read from outside.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

Judge = Callable[[dict[str, Any]], bool]


def by_newskills() -> Judge:
    from newskills.graders.math.grader import MathGrader

    grader = MathGrader()
    grader.preload()
    return lambda pair: grader.grade(pair).outcome == "correct"


def by_math_verify() -> Judge:
    from math_verify import parse, verify

    return lambda pair: verify(parse(f"${pair['expected_answer']}$"), parse(pair["generation"]))


def by_library() -> Judge:
    from newskills_math import parse, verify

    verify(r"\int_0^1 x^2\,dx", "1/3")  # loads math-verify, as `preload` does
    return lambda pair: verify(parse(pair["expected_answer"]), parse(pair["generation"]))


def by_library_in_threads() -> Judge:
    """Each pair in one of eight threads, which is where trainers call their rewards."""
    from concurrent.futures import ThreadPoolExecutor

    judge, pool = by_library(), ThreadPoolExecutor(8)
    return lambda pair: pool.submit(judge, pair).result()


JUDGES = {
    "newskills": by_newskills,
    "newskills_math": by_library,
    "newskills_math in threads": by_library_in_threads,
    "math_verify": by_math_verify,
}


def main(kind: str, file: str) -> None:
    with open(file) as lines:
        pairs = [json.loads(line) for line in lines]
    judge = JUDGES[kind]()
    for pair in pairs[:20]:
        judge(pair)
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    agreed = sum(judge(pair) == pair["right"] for pair in pairs[20:])
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "agreed": agreed / (len(pairs) - 20)}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
