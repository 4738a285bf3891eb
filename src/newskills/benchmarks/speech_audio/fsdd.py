# SPDX-License-Identifier: Apache-2.0
"""Digits spoken by six people, one word a recording (Jackson et al., the Free Spoken Digit Dataset)."""

from pathlib import PurePosixPath

from newskills.base.benchmark import Asset, Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.media import audio_messages, seconds_of

_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def row(raw: Row, index: int) -> Row:
    file = PurePosixPath(raw["_file"])
    digit, speaker, _ = file.stem.split("_")
    data = raw["asset"].data
    seconds = seconds_of(data)
    return {
        "id": f"fsdd-{file.stem}",
        "messages": audio_messages(
            "Write down the digit that is said, as a word.", Asset(file.name, data), seconds=seconds
        ),
        "question": "Write down the digit that is said, as a word.",
        "expected_answer": _WORDS[int(digit)],
        "task_type": "ASR",
        "duration": seconds,
        "subset_for_metrics": speaker,
    }


BENCHMARK = Benchmark(
    name="fsdd",
    category="speech-audio",
    title="Free Spoken Digit Dataset: one digit a recording",
    aliases=("free-spoken-digit-dataset",),
    sources=(
        Source(
            github="Jakobovski/free-spoken-digit-dataset",
            ref="master",
            revision="26eb9aaf76e81b692f806f9140c2d2777410d7a1",
            members="recordings/*_[0-4].wav",
            format="asset",
        ),
    ),
    row=row,
    prompt="",
    defaults={"prompt_format": "openai"},
    grader="audio",
    metric="audio",
    items={"test": 300},
    chance=0.1,
    licence="CC-BY-SA-4.0",
    homepage="https://github.com/Jakobovski/free-spoken-digit-dataset",
    citation="Jackson et al. 2018",
    requires="newskills[media]",
    traps=(
        "The official test set: recordings 0 to 4 of each speaker and digit.",
        "Recordings last less than a second at 8 kHz; `7` and `seven` are the same.",
    ),
)
