# SPDX-License-Identifier: Apache-2.0
"""No reply that does not depend on the question scores above the most frequent right answer's share, by any grader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.night import NIGHTLY
from tests.run.hedge_rows import KINDS, KNOWN, ROWS, benchmark

from newskills.base.benchmark import Benchmark
from newskills.benchmarks import get_benchmark, list_benchmarks
from newskills.benchmarks.pages import benchmark_pages
from newskills.pipelines.notices import warn_of_hedges
from newskills.run.validation.checks import Validation, ValidationSampling, check_benchmarks
from newskills.run.validation.hedges import ALWAYS, LETTERS, NUMBERS

SEEDS = range(5 if NIGHTLY else 1)


def _validated(benchmarks: Sequence[Benchmark], folder: Path) -> list[Validation]:
    return list(check_benchmarks(benchmarks, ValidationSampling(data_dir=folder)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_no_grader_believes_a_hedge(seed: int, tmp_path: Path) -> None:
    found = _validated([benchmark(name, seed) for name in KINDS], tmp_path)
    assert {one.benchmark: one.problems for one in found if one.problems} == {}
    graded = [one for one in found if not one.left_out]
    assert all(len(one.hedges) > len(ALWAYS) for one in graded)
    assert all(share.of == ROWS for one in graded for name, share in one.hedges.items() if name in ALWAYS)


@pytest.mark.parametrize("name", KNOWN)
def test_graders_that_look_for_the_right_text_anywhere_are_found_and_may_be_known(
    name: str, tmp_path: Path
) -> None:
    (found,) = _validated([benchmark(name, 0)], tmp_path)
    assert len(found.problems) == 1
    assert found.problems[0].startswith("hedge: ")
    (known,) = _validated([benchmark(name, 0, hedgeable="it may stand anywhere")], tmp_path)
    assert known.problems == []
    assert any(
        note.endswith("hedges earn more than chance, as its page says: it may stand anywhere")
        for note in known.notes
    )


def test_options_are_hedged_by_letters_and_others_by_numbers(tmp_path: Path) -> None:
    letters, numbers = _validated([benchmark("choice", 0), benchmark("squad", 0)], tmp_path)
    assert letters.hedges.keys() >= LETTERS.keys() | ALWAYS.keys()
    assert numbers.hedges.keys() >= NUMBERS.keys() | ALWAYS.keys()
    assert not letters.hedges.keys() & NUMBERS.keys()
    assert {"options in a list", "question", "all answers in a box"} <= letters.hedges.keys()


def test_what_may_be_hedged_is_told_on_pages_and_where_it_is_a_reward(capsys: pytest.CaptureFixture[str]) -> None:
    hedgeable = [made for entry in list_benchmarks() if (made := get_benchmark(entry.name)).hedgeable]
    assert {"ruler", "ruler2", "locomo", "ocrbench", "infinitebench", "legalbench.rule", "bfcl_v4.memory_kv"} <= {
        made.name for made in hedgeable
    }
    written = "\n".join(benchmark_pages().values())
    for made in hedgeable:
        assert made.hedgeable in written
        warn_of_hedges(made)
        assert f"note: {made.name} rewards replies that name many answers" in capsys.readouterr().err
    warn_of_hedges(get_benchmark("gsm8k"))
    assert capsys.readouterr().err == ""
