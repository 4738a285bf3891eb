# SPDX-License-Identifier: Apache-2.0
"""RULER's second version: keys, questions of MMLU and documents of HotpotQA in long texts, in four levels each."""

from collections.abc import Iterator

from newskills.base.benchmark import Benchmark
from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.benchmarks.ruler.build import OPTIONS
from newskills.benchmarks.ruler.second import make_ruler2


def require_setup(split: str) -> Iterator[Row]:
    """Raise ConfigError always: the rows need a tokenizer and a length, which the message asks for."""
    raise ConfigError(
        "RULER 2 is generated for a tokenizer and a length: give --setup (a name for both), --tokenizer_path and "
        "--max_seq_length.",
        hint="ns prepare_data ruler2 --setup=mine_32k --tokenizer_path=/models/mine --max_seq_length=32768, then "
        "ns eval --benchmarks=ruler2.mine_32k",
    )


BENCHMARK = Benchmark(
    name="ruler2",
    category="long-context",
    title="RULER 2: 12 tasks in texts of any length, generated",
    generate_rows=require_setup,
    build=make_ruler2,
    options=OPTIONS,
    prompt="generic/default",
    grader="ruler2",
    metric="ruler2",
    hedgeable="the right texts may stand anywhere in a reply, as the authors score it",
    items={"test": 1200},
    licence="MIT (MMLU), CC-BY-SA-4.0 (HotpotQA)",
    homepage="https://github.com/NVIDIA-NeMo/Skills",
    traps=(
        "Scores hold for a tokenizer, a length and a seed: they are recorded beside the data.",
        "Levels are those of NeMo-Skills, the words are ours; questions to hide among come from MMLU's test "
        "split, documents from HotpotQA's validation split, not from their training splits.",
        "accuracy is the share of right texts in the reply, soft_accuracy counts words (1 − WER); mk_niah_medium and "
        "mk_niah_hard are multiple choice (symbolic_correct).",
        "Folders ruler2/<setup> that NeMo-Skills has made are evaluated as they are.",
    ),
)
