# SPDX-License-Identifier: Apache-2.0
"""A reply that does not depend on the question is right no more often than the most frequent answer is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from string import ascii_uppercase

import pytest
from tests.graders.plain import plain_grader

from newskills.base.benchmark import Benchmark
from newskills.base.store import read_rows
from newskills.benchmarks.data import prepare
from newskills.benchmarks.downloads.fetch import Fetcher, FetchOptions
from newskills.benchmarks.downloads.sources import in_mirror
from newskills.benchmarks.generate_catalog import built_in

pytestmark = pytest.mark.mirror

GRADERS = ("multichoice", "multichoice_multilingual", "option_set", "jeebench")
MOST_ROWS = 150
CONSTANT = (
    *("A", "Answer: A, B, C, D", "A or B", "The answer is A. The answer is B. The answer is C. The answer is D."),
    *("\\boxed{A}\\boxed{B}\\boxed{C}\\boxed{D}", "A is correct. B is correct. C is correct. D is correct."),
    *(
        "Answer: all of the above",
        "Answer: none of the above",
        "Yes",
        "No",
        "Yes or no",
        "Answer: yes\nAnswer: no",
    ),
    *("Answer: D\nAnswer: unknown\nAnswer: all of the above\nAnswer: none\nAnswer: C", "答案：A、B、C、D", ""),
    *("\n".join(ascii_uppercase), "Answer: " + " ".join(ascii_uppercase), "Option A is right and so is option B."),
    *('{"answer": ["A", "B", "C", "D"]}', "True. False. True.", "(A) (B) (C) (D)", "The answer is (A)"),
    *("Answer: A B C D", "I do not know.", "\\boxed{ABCD}", "\\boxed{A, B}"),
)


def _choices() -> list[Benchmark]:
    return [benchmark for _, benchmark in built_in() if benchmark.grader in GRADERS]


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", _choices(), ids=lambda benchmark: benchmark.name)
def test_no_constant_reply_beats_the_most_frequent_answer(benchmark: Benchmark, tmp_path: Path) -> None:
    fetcher = Fetcher(tmp_path / "cache", FetchOptions(offline=True))
    sources = [source for source in benchmark.sources if source.split == benchmark.split]
    if not sources or not all(in_mirror(source, fetcher) for source in sources):
        pytest.skip("not in the mirror")
    prepared = prepare(benchmark, data_dir=tmp_path, splits=(benchmark.split,), options=FetchOptions(offline=True))
    rows = list(read_rows(prepared.splits[0].path))[:MOST_ROWS]
    most_frequent = Counter(str(row["expected_answer"]) for row in rows).most_common(1)[0][1]
    grader = plain_grader(benchmark.grader, benchmark.grader_config)
    for reply in CONSTANT:
        right = sum(grader.grade({**row, "generation": reply}).outcome == "correct" for row in rows)
        assert right <= most_frequent, reply
