# SPDX-License-Identifier: Apache-2.0
"""Research problems of natural sciences, to be programmed step by step (Tian et al. 2024, arXiv:2407.13168)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_HOME = (
    "https://raw.githubusercontent.com/scicode-bench/SciCode/a722196832c4f1c69250f139b27794b8d879c3c9/eval/data/"
)
_COMMIT = "a722196832c4f1c69250f139b27794b8d879c3c9"
_FILES = {
    "test": ("problems_all", "38797fef78f434720be6d053b4f3a86839d6f8ea5fb9115450677cd3a6edf81d"),
    "dev": ("problems_dev", "193968aff23b7ed931c8f6d196b611e2f6694adb49e6cc085444a60ad2fc4f7b"),
}
_FIELDS = (
    *("problem_id", "problem_name", "problem_description_main", "problem_background_main", "problem_io"),
    *("required_dependencies", "sub_steps", "general_tests"),
)


def row(raw: Row, index: int) -> Row:
    return {"id": raw["problem_id"], **{name: raw.get(name, "") for name in _FIELDS}}


BENCHMARK = Benchmark(
    name="scicode",
    category="science",
    title="SciCode: scientific programs in steps",
    aliases=("ns_scicode",),
    sources=(
        *(
            Source(split=split, url=f"{_HOME}{name}.jsonl", revision=_COMMIT, sha256=sha256)
            for split, (name, sha256) in _FILES.items()
        ),
        Source(split="test_aai", url=f"{_HOME}{{problems_all,problems_dev}}.jsonl", revision=_COMMIT),
    ),
    row=row,
    prompt="eval/scicode/background",
    solver="scicode",
    grader="scicode",
    metric="scicode",
    items={"test": 65, "dev": 15, "test_aai": 80},
    licence="Apache-2.0",
    homepage="https://scicode-bench.github.io",
    citation="arXiv:2407.13168",
    needs_sandbox=True,
    traps=(
        "The targets of the tests (test_data.h5, 1 GB) are not part of the data: get them from the authors' page and "
        "give their folder as ++sandbox.data_dir; without them, or without h5py, answers are unscored.",
        "Three steps are given, as by the authors (13.6, 62.1, 76.3), and not counted: 288 of 291. Imports in answers "
        "are taken out, as by them: a step has those that its problem names.",
        "A step has 30 CPU seconds, as in NeMo-Skills; the authors wait half an hour: ++eval_config.timeout=1800.",
        "Some steps call functions that newer releases of SciPy have renamed (simps): use SciPy below 1.14.",
        "The tests and their targets share a process with the answer, guarded but not sealed: see "
        "[Grading code](../grading-code.md).",
    ),
)
