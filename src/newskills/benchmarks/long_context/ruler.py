# SPDX-License-Identifier: Apache-2.0
"""Needles, chains, counts and questions in texts of any length (Hsieh et al. 2024, arXiv:2404.06654)."""

from collections.abc import Iterator

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.benchmarks.ruler.build import OPTIONS, make_ruler


def require_setup(split: str) -> Iterator[Row]:
    """Raise ConfigError always: the rows need a tokenizer and a length, which the message asks for."""
    raise ConfigError(
        "RULER is generated for a tokenizer and a length: give --setup (a name for both), --tokenizer_path and "
        "--max_seq_length.",
        hint="ns prepare_data ruler --setup=mine_32k --tokenizer_path=/models/mine --max_seq_length=32768, then "
        "ns eval --benchmarks=ruler.mine_32k",
    )


BENCHMARK = Benchmark(
    name="ruler",
    category="long-context",
    title="RULER: 13 tasks in texts of any length, generated",
    aliases=("ns_ruler",),
    generate_rows=require_setup,
    build=make_ruler,
    options=OPTIONS,
    prompt="generic/default",
    grader="ruler",
    metric="ruler",
    hedgeable="the right texts may stand anywhere in a reply, as the authors score it",
    items={"test": 1300},
    licence="Apache-2.0",
    homepage="https://github.com/NVIDIA/RULER",
    citation="arXiv:2404.06654",
    traps=(
        "Scores hold for a tokenizer, a length and a seed: they are recorded beside the data.",
        "Kinds and numbers of needles, chains and words are those of the paper, the sentences are ours: scores are "
        "close to published ones, not the same.",
        "The essays of the original are not ours to give: needles hide in generated sentences, or in a text of yours "
        "(--haystack_file).",
        "qa_1 asks about SQuAD, or the 240 paragraphs of XQuAD where that cannot be had; qa_2 about HotpotQA.",
    ),
)
