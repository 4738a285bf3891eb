# SPDX-License-Identifier: Apache-2.0
"""Facts that are hard to find on the web (Wei et al. 2025, arXiv:2504.12516); the source is encrypted."""

import base64
import hashlib

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row


def decrypt_text(text: str, password: str) -> str:
    """Decrypt base64 of the text XORed with the SHA-256 of the password, repeated. Raises ValueError."""
    data = base64.b64decode(text, validate=True)
    key = hashlib.sha256(password.encode()).digest()
    return bytes(byte ^ key[place % len(key)] for place, byte in enumerate(data)).decode()


def row(raw: Row, index: int) -> Row:
    return {
        "problem": decrypt_text(raw["problem"], raw["canary"]),
        "expected_answer": decrypt_text(raw["answer"], raw["canary"]),
        "subset_for_metrics": raw.get("problem_topic") or "all",
    }


BENCHMARK = Benchmark(
    name="browsecomp",
    category="factuality",
    title="BrowseComp: facts that take long searches",
    sources=(
        Source(
            url="https://openaipublic.blob.core.windows.net/simple-evals/browse_comp_test_set.csv",
            format="csv",
        ),
    ),
    row=row,
    prompt="generic/hle",
    grader="",
    judge=Judge(prompt="judge/hle"),
    metric="hle",
    version="2",
    items={"test": 1266},
    licence="MIT",
    homepage="https://openai.com/index/browsecomp/",
    citation="arXiv:2504.12516",
    unverified=True,
    traps=(
        "Headline: judge_correct, with calibration_error beside it, by yes or no of a judge as the authors' program; "
        "a text without a verdict leaves the sample unscored, where theirs counts it as wrong.",
        "Meant for models with tools that search: ++tool_modules=[…].",
        "The authors ask that questions and answers never appear in plain text: publish neither data nor records.",
    ),
)
