# SPDX-License-Identifier: Apache-2.0
"""The chain of filters, declared once, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from newskills.base.protocols import Tokenizer
from newskills.train.data.filters.answers import DropNoneAnswers, MajorityFilter
from newskills.train.data.filters.arithmetic import DropIncorrectArithmetic, SplitArithmetic
from newskills.train.data.filters.base import Filter
from newskills.train.data.filters.contamination import RemoveContaminated, read_contaminated
from newskills.train.data.filters.executions import AddCodeExecutionCounts
from newskills.train.data.filters.lengths import RemoveLenOutliers
from newskills.train.data.filters.solutions import (
    DropIncorrectCodeBlocks,
    DropMultiBoxed,
    TrimPrefix,
    TrimSolutions,
)
from newskills.train.data.filters.words import (
    CODE,
    CODE_ERRORS,
    PLOTS,
    VERIFICATION,
    DropWith,
    DropWithout,
    DropWithoutThinking,
)
from newskills.train.data.job import BuildJob
from newskills.train.data.overlap import read_index

_Maker = Callable[[BuildJob, str, Callable[[], Tokenizer]], Filter]


def _drop_with(name: str, words: tuple[str, ...]) -> _Maker:
    return lambda job, key, tokens: DropWith(name=name, key=key, words=words)


def _drop_without(name: str, words: tuple[str, ...]) -> _Maker:
    return lambda job, key, tokens: DropWithout(name=name, key=key, words=words)


def _length_filter(name: str, which: str, *, of_input: bool) -> _Maker:
    """Return the maker of a length filter; `which`: the word in `min_…_length` and `max_…_length`."""

    def make(job: BuildJob, key: str, tokens: Callable[[], Tokenizer]) -> Filter:
        config = job.config
        return RemoveLenOutliers(
            name=name,
            key=config.input_key if of_input else key,
            least=getattr(config, f"min_{which}_length"),
            most=getattr(config, f"max_{which}_length"),
            chars=config.use_chars_for_min_length,
            tokenizer=tokens(),
        )

    return make


def _contamination_filter(job: BuildJob, key: str, tokens: Callable[[], Tokenizer]) -> Filter:
    file = job.config.contamination_file
    contaminated = read_contaminated(Path(file))[0] if file else frozenset()
    return RemoveContaminated(key=job.config.input_key, found=contaminated, index=read_index(job.overlap))


def _majority_filter(job: BuildJob, key: str, tokens: Callable[[], Tokenizer]) -> Filter:
    limits = job.config.majority_filter
    return MajorityFilter(votes=limits.min_majority_votes, share=limits.min_majority_percentage)


CHAIN: Mapping[str, _Maker] = {
    "drop_multi_boxed": lambda job, key, tokens: DropMultiBoxed(key=key),
    "remove_contaminated": _contamination_filter,
    "remove_code_errors": _drop_with("remove_code_errors", CODE_ERRORS),
    "remove_matplotlib": _drop_with("remove_matplotlib", PLOTS),
    "remove_no_code": _drop_without("remove_no_code", CODE),
    "remove_no_think_tags": lambda job, key, tokens: DropWithoutThinking(name="remove_no_think_tags", key=key),
    "remove_verification_code": _drop_with("remove_verification_code", VERIFICATION),
    "majority_filter": _majority_filter,
    "trim_prefix": lambda job, key, tokens: TrimPrefix(key=key),
    "trim_solutions": lambda job, key, tokens: TrimSolutions(key=key),
    "drop_incorrect_arithmetic": lambda job, key, tokens: DropIncorrectArithmetic(key=key),
    "split_arithmetic": lambda job, key, tokens: SplitArithmetic(key=key),
    "remove_len_outlier_problems": _length_filter("remove_len_outlier_problems", "problem", of_input=True),
    "remove_len_outlier_solutions": _length_filter("remove_len_outlier_solutions", "solution", of_input=False),
    "remove_len_outlier_inputs": _length_filter("remove_len_outlier_inputs", "input", of_input=True),
    "remove_len_outlier_outputs": _length_filter("remove_len_outlier_outputs", "output", of_input=False),
    "add_code_execution_counts": lambda job, key, tokens: AddCodeExecutionCounts(key=key),
    "drop_incorrect_code_blocks": lambda job, key, tokens: DropIncorrectCodeBlocks(key=key),
    "drop_none_answers": lambda job, key, tokens: DropNoneAnswers(),
}
"""Name → how it is made. The order is that of NeMo-Skills, on which counts of single filters depend."""


def active_filters(job: BuildJob) -> list[str]:
    """Return the names of the filters that the recipe has and the settings switch on, in order."""
    names = []
    for name in CHAIN:
        of = job.config if name == "add_code_execution_counts" else job.config.filters
        if getattr(of, name) and name not in job.recipe.lacks and f"filters.{name}" not in job.recipe.lacks:
            names.append(name)
    return names


def make_chain(job: BuildJob, tokens: Callable[[], Tokenizer]) -> Sequence[Filter]:
    """Make the active filters of a job. Raises DataError, ConfigError for files and tokenizers that filters need."""
    key = job.config.output_key or job.config.input_key
    return [CHAIN[name](job, key, tokens) for name in active_filters(job)]
