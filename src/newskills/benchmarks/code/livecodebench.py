# SPDX-License-Identifier: Apache-2.0
"""Problems of recent programming contests, dated (Jain et al. 2024, arXiv:2403.07974)."""

import calendar
import re
from functools import partial
from typing import Any

from msgspec.structs import replace

from newskills.base.benchmark import OTHER_SPLIT, Benchmark, Drop, Option, RowMapper, Source
from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.benchmarks.contest_tests import contest_prompt_fields, decode_metadata, pack_tests
from newskills.benchmarks.options import single_value

_HUB = "https://huggingface.co/datasets/livecodebench/code_generation_lite/resolve/main/"
_RELEASES = {"v5": "{test,test2,test3,test4,test5}.jsonl", "v6": "{test,test2,test3,test4,test5,test6}.jsonl"}
_WINDOWS = ("v6_2408_2505", "v5_2408_2502", "v5_2407_2412", "v5_2410_2502")
_CPP = ("v6_2408_2505", "v5_2408_2501")
_PRO = {
    "25q2": "quater_2025_4_6",
    "25q1": "quater_2025_1_3",
    "24q4": "quater_2024_10_12",
    "25q3": "quater_2025_7_9",
}


def row(raw: Row, index: int) -> Row:
    return {
        "id": raw["question_id"],
        "task_id": raw["question_id"],
        "question": raw["question_content"],
        **contest_prompt_fields(raw),
        **{name: raw[name] for name in ("question_title", "platform", "difficulty")},
        "contest_date": raw["contest_date"],
        "subset_for_metrics": raw["difficulty"],
        "tests": pack_tests(raw, decode_metadata(raw)),
    }


def release_address(version: str) -> str:
    """Return the address of the files of a release, v5 or v6."""
    return f"{_HUB}{_RELEASES[version]}"


def in_window(name: str) -> RowMapper:
    """Return the mapping for a window of months: `v6_2408_2505` is August 2024 to May 2025, both whole."""
    version, first, last = name.split("_")
    begin = f"20{first[:2]}-{first[2:]}-01"
    end = f"20{last[:2]}-{last[2:]}-{calendar.monthrange(2000 + int(last[:2]), int(last[2:]))[1]:02d}"

    def mapped(raw: Row, index: int) -> Row | Drop:
        if not begin <= raw["contest_date"][:10] <= end:
            return OTHER_SPLIT
        return {**row(raw, index), "release_version": f"release_{version}"}

    return mapped


def _with_window(place: int, benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
    """Return the benchmark with one split in place of the usual ones, named by release and months. Raises
    ConfigError."""
    value = single_value("a release or a month", values).removeprefix("release_")
    if place and not (month := re.fullmatch(r"(?:20)?(\d\d)-?(0[1-9]|1[0-2])", value)):
        raise ConfigError(f"{value!r} is not a month; write 2024-08 or 2408.")
    parts = benchmark.split.removeprefix("test_").split("_")
    parts[place] = month[1] + month[2] if place and month else value
    name = "_".join(parts)
    return replace(
        benchmark,
        sources=(Source(split=f"test_{name}", url=f"{_HUB}{_RELEASES[parts[0]]}"),),
        variants={f"test_{name}": in_window(name)},
        split=f"test_{name}",
    )


_WINDOW = {
    "release_version": Option(
        meaning="release, for a split test_<release>_<first month>_<last month>",
        apply=partial(_with_window, 0),
        known=("v5", "v6", "release_v5", "release_v6"),
    ),
    "start_date": Option(meaning="its first month (2024-08)", apply=partial(_with_window, 1)),
    "end_date": Option(meaning="its last month (2025-05)", apply=partial(_with_window, 2)),
}


def pro_row(raw: Row, index: int) -> Row:
    raw = {**raw, "question_content": raw["problem_statement"]}
    names = ("problem_id", "problem_title", "difficulty", "platform")
    return {
        "id": str(raw["problem_id"]),
        "question": raw["problem_statement"],
        **{name: raw[name] for name in names},
        **contest_prompt_fields(raw),
        "subset_for_metrics": raw["difficulty"],
    }


def _benchmark(name: str, title: str, **more: Any) -> Benchmark:
    return Benchmark(
        name=name,
        category="code",
        title=title,
        prompt="eval/livecodebench/default_reasoning",
        citation="arXiv:2403.07974",
        needs_sandbox=True,
        unverified=True,
        **more,
    )


BENCHMARKS = (
    _benchmark(
        "livecodebench",
        "LiveCodeBench: contest problems by date, in Python",
        aliases=("lcb", "ns_livecodebench", "ns_livecodebench_v5", "ns_livecodebench_aa"),
        sources=tuple(Source(split=f"test_{window}", url=f"{_HUB}{_RELEASES[window[:2]]}") for window in _WINDOWS),
        variants={f"test_{window}": in_window(window) for window in _WINDOWS},
        split=f"test_{_WINDOWS[0]}",
        options=_WINDOW,
        grader="livecodebench",
        metric="livecodebench",
        licence="unstated",
        homepage="https://livecodebench.github.io",
        traps=(
            "Always name release and window of dates (the split): problems before a model's training leak.",
            "Private tests are pickled in the source; only the text in them is read, nothing is unpickled.",
            "Each test is a run of its own with 6 s of CPU.",
        ),
    ),
    _benchmark(
        "livecodebench-cpp",
        "LiveCodeBench in C++",
        sources=tuple(
            Source(split=window, hf="nvidia/LiveCodeBench-CPP", hf_split=window, format="parquet")
            for window in _CPP
        ),
        variants={window: in_window(window) for window in _CPP},
        split=_CPP[0],
        grader="livecodebench",
        grader_config={"language": "cpp"},
        metric="livecodebench",
        licence="unstated",
        homepage="https://huggingface.co/datasets/nvidia/LiveCodeBench-CPP",
        traps=(
            "Where the problem gives the head of a function, it is called with the types of that head; heads with "
            "types that JSON has no values for (pointers) leave answers unscored.",
        ),
    ),
    _benchmark(
        "livecodebench-pro",
        "LiveCodeBench Pro: hard contest problems in C++",
        sources=tuple(
            Source(
                split=f"test_{split}",
                hf="QAQAQAQAQ/LiveCodeBench-Pro",
                hf_split=quarter,
                format="parquet",
                gated=True,
                note="Accept the conditions on its page, https://huggingface.co/datasets/QAQAQAQAQ/LiveCodeBench-Pro, "
                "and set HF_TOKEN.",
            )
            for split, quarter in _PRO.items()
        ),
        row=pro_row,
        split="test_25q2",
        items={"test_24q4": 207, "test_25q1": 166, "test_25q2": 167, "test_25q3": 144},
        grader="livecodebench_pro",
        grader_config={"language": "cpp"},
        metric="livecodebench_pro",
        licence="unstated",
        homepage="https://livecodebenchpro.com",
        traps=(
            "The tests (15 GB) are a data set of their own, "
            "https://huggingface.co/datasets/QAQAQAQAQ/LiveCodeBench-Pro-Testcase: give its "
            "folder of <problem_id>.zip as ++eval_config.test_dir; without it answers are unscored.",
            "Checkers are made with testlib.h, which is not ours to bring: ++eval_config.testlib=FILE.",
            "Interactive problems are unscored.",
        ),
    ),
)
