# SPDX-License-Identifier: Apache-2.0
"""Problems of programming contests, as chosen by DeepScaleR from CodeContests (Li et al. 2022, arXiv:2203.07814)."""

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

READ_AND_PRINT = "Read the input from standard input and print the answer to standard output."


def row(raw: Row, index: int) -> Row:
    return {
        "id": str(index),
        "question_content": raw["problem"].strip(),
        "formatting_message": READ_AND_PRINT,
        "starter_code": "",
        "tests": {"inputs": raw["tests"]["inputs"], "outputs": raw["tests"]["outputs"]},
    }


BENCHMARK = Benchmark(
    name="code_contests-deepscaler",
    category="code",
    title="CodeContests (165): programs that read and print",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/agentica-project/rllm/main/rllm/data/test/code/code_contests.json",
            format="json",
            revision="874daa4acb7f451dc2a4b2b6e8ce28f5aa88d1f5",
            sha256="0e3c580698270ab930268cbc63ea6b9cf920874ac40de4a06bdbebc7c2eade71",
        ),
    ),
    row=row,
    prompt="eval/livecodebench/default_reasoning",
    grader="livecodebench",
    grader_config={"float_tolerance": 1e-6},
    metric="livecodebench",
    items={"test": 165},
    licence="CC-BY-4.0",
    homepage="https://github.com/google-deepmind/code_contests",
    citation="arXiv:2203.07814",
    needs_sandbox=True,
    traps=(
        "Some problems accept several outputs, the tests only one: right programs fail them.",
        "No reference solutions come with this file.",
        "Fractions may be off by 1e-6.",
    ),
)
