# SPDX-License-Identifier: Apache-2.0
"""Word problems as ToRA publishes them: MAWPS (Koncel-Kedziorski et al. 2016), GSM-Hard (Gao et al. 2022)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.text import number_text

_DATA = "https://raw.githubusercontent.com/microsoft/ToRA/main/src/data/"
_COMMIT = "213c1c995038c73fab10343814df7a42f990f026"


def row(raw: Row, index: int) -> Row:
    return {"problem": raw["input"], "expected_answer": number_text(raw["target"])}


def mawps_row(raw: Row, index: int) -> Row:
    return row(raw, index) | {"type": raw["_file"].removesuffix(".jsonl")}


BENCHMARKS = (
    Benchmark(
        name="mawps",
        category="math-natural",
        title="MAWPS: elementary word problems of four collections",
        sources=(
            Source(
                url=f"{_DATA}mawps/{{addsub,singleeq,singleop,multiarith}}.jsonl",
                revision=_COMMIT,
                sha256="476fa1d63832958b44a2176ef0b8d5ef5b353c85fa380a7cdf120b8bd3ef97e3",
            ),
        ),
        row=mawps_row,
        prompt="generic/math",
        items={"test": 2065},
        licence="MIT",
        homepage="https://github.com/microsoft/ToRA",
        citation="doi:10.18653/v1/N16-1136",
        traps=(
            "The collections overlap: some questions occur more than once.",
            "Some answers are rounded (3.33333).",
        ),
    ),
    Benchmark(
        name="gsm-hard",
        category="math-natural",
        title="GSM-Hard: grade-school problems with large numbers",
        sources=(
            Source(
                url=f"{_DATA}gsm-hard/test.jsonl",
                revision=_COMMIT,
                sha256="45db606263a4902580aba3974e8b7fb3f66012877889209af206b1c1b2f208f5",
            ),
        ),
        row=row,
        prompt="generic/math",
        grader_config={"absolute_tolerance": 0.005},
        items={"test": 1319},
        licence="MIT",
        homepage="https://github.com/microsoft/ToRA",
        citation="arXiv:2211.10435",
        traps=(
            "Answers are floats, some negative or fractional where that makes no sense for the story; they may be "
            "rounded to two decimals.",
            "The numbers were replaced by a program: not every question still has a sensible answer.",
        ),
    ),
)
