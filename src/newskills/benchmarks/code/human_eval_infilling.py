# SPDX-License-Identifier: Apache-2.0
"""HumanEval solutions with a piece cut out (Bavarian et al. 2022, arXiv:2207.14255)."""

from functools import partial

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_DATA = (
    "https://raw.githubusercontent.com/openai/human-eval-infilling/master/data/HumanEval-{}Infilling{}.jsonl.gz"
)
_COMMIT = "88062ff9859c875d04db115b698ed4b0f0395170"
_SPLITS = {
    "random_span": ("RandomSpan", "", "b4f330d8a8ff97bf85d9def497dffcae4d741e506449386a877236e422e33e8d"),
    "single_line": ("SingleLine", "", "1277073e7ddce163ef68598c2bca777f688a53df99422f097e37362090f88e1f"),
    "multi_line": ("MultiLine", "", "2f341612eee1d35da1357a4f365e0c0b3ba6e2b62eb491e88aaefa4855af0349"),
    "random_span_light": (
        "RandomSpan",
        "Light",
        "1432250ecac0cb56e6f97f8faf0970419ef892a98fda7e1f5aa4c4b87209b760",
    ),
}


def row(split: str, raw: Row, index: int) -> Row:
    return {
        "id": raw["task_id"],
        "prefix": raw["prompt"],
        "language": "python",
        "comment_delimiter": "#",
        "split": split,
        **{name: raw[name] for name in ("task_id", "suffix", "entry_point", "canonical_solution", "test")},
    }


BENCHMARK = Benchmark(
    name="human-eval-infilling",
    category="code",
    title="HumanEval infilling: the missing middle of a function",
    sources=tuple(
        Source(split=split, url=_DATA.format(kind, light), revision=_COMMIT, sha256=sha256)
        for split, (kind, light, sha256) in _SPLITS.items()
    ),
    row=partial(row, "random_span"),
    variants={split: partial(row, split) for split in _SPLITS},
    prompt="generic/fim",
    grader="human_eval_infilling",
    metric="human_eval_infilling",
    split="random_span",
    items={"random_span": 1640, "single_line": 1033, "multi_line": 5815, "random_span_light": 164},
    licence="MIT",
    homepage="https://github.com/openai/human-eval-infilling",
    citation="arXiv:2207.14255",
    needs_sandbox=True,
    traps=(
        "Random spans begin and end within lines: blanks at both ends of the answer count.",
        "An answer that repeats what stands around the gap is tried without the repetition, too.",
    ),
)
