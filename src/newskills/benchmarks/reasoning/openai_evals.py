# SPDX-License-Identifier: Apache-2.0
"""Six small sets of the collection OpenAI Evals (github.com/openai/evals), each graded by the form of its answers."""

import re
from collections.abc import Callable
from typing import Any

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_OPTION = re.compile(r"^\([A-D]\).*$", re.MULTILINE)
_LETTER = re.compile(r"\(([A-D])\)")


def conversation_text(raw: Row) -> str:
    """Return the messages of an item as one text; roles add nothing, since there is one turn."""
    return "\n\n".join(message["content"].strip() for message in raw["input"])


def row(raw: Row, index: int) -> Row:
    ideal = raw["ideal"] if isinstance(raw["ideal"], list) else [raw["ideal"]]
    return {
        "problem": conversation_text(raw),
        "question": conversation_text(raw),
        "expected_answer": ideal[0].strip(),
        "accepted_answers": [answer.strip() for answer in ideal[1:]],
    }


def lettered_row(raw: Row, index: int) -> Row:
    """Read the letter from the first of several spellings of "the correct answer is (B)"; others of them hold broken
    LaTeX."""
    letter = _LETTER.search(raw["ideal"][0])
    if letter is None:
        raise ValueError(f"no letter in {raw['ideal'][0]!r}")
    problem = raw["input"][-1]["content"].strip()
    options = "\n".join(_OPTION.findall(problem))
    return {"problem": problem, "expected_answer": letter[1], "options": options, "ideal": raw["ideal"]}


def _benchmark(
    name: str, title: str, file: str, sha256: str, items: int, rows: Callable[[Row, int], Row] = row, **rest: Any
) -> Benchmark:
    return Benchmark(
        name=f"openai-evals.{name}",
        category="reasoning",
        title=title,
        aliases=(f"openai-evals/{name}",),
        sources=(
            Source(
                url=f"https://github.com/openai/evals/raw/main/evals/registry/data/{name}/{file}",
                sha256=sha256,
            ),
        ),
        row=rows,
        items={"test": items},
        licence="MIT",
        homepage="https://github.com/openai/evals",
        **rest,
    )


_BOXED: dict[str, Any] = {
    "prompt": "generic/general-boxed",
    "grader": "exact",
    "grader_config": {"extract": "answer", "loose": True},
    "metric": "generic",
}

BENCHMARKS = (
    _benchmark(
        "2d_movement",
        "OpenAI Evals: where a walk on a grid ends",
        "samples.jsonl",
        "a599e52030f1dd1bf110785c54ed27a297546412974b8dbe1e88a50250d007e7",
        100,
        **_BOXED,
    ),
    _benchmark(
        "jee-math",
        "OpenAI Evals: mathematics of Indian entrance examinations",
        "samples.jsonl",
        "f2bb27c843f653859fa203ba7816161ab256fdc2e841f249f21a1d9e8ffeb37a",
        434,
        lettered_row,
        prompt="eval/aai/mcq-4choices",
        grader="multichoice",
        metric="multichoice",
        chance=0.25,
        traps=("Only the letter of the gold answers is used: some of their spellings are broken LaTeX.",),
    ),
    _benchmark(
        "logic-grid",
        "OpenAI Evals: logic grids, all tuples",
        "logic-grid.jsonl",
        "619979d97a57187412cd7fa63683bec91d052f7088f15bcf269d48891863605c",
        90,
        **{**_BOXED, "grader_config": {"extract": "tail", "loose": True}},
    ),
    _benchmark(
        "math-derivatives",
        "OpenAI Evals: derivatives",
        "questions.jsonl",
        "c010a2a72af22d41a09d9774a721b9003b17bffc45fb7f759778d58994818f3f",
        31,
        prompt="generic/math",
        traps=("Graded as mathematics, not as text: other forms of the same derivative are right.",),
    ),
    _benchmark(
        "music_theory_scale_modes",
        "OpenAI Evals: modes of musical scales",
        "samples.jsonl",
        "96756e5689686dd68024d04af921b0a39a44cf0abd912907b1ae04bb84157ffa",
        336,
        **_BOXED,
    ),
    _benchmark(
        "simple_physics_engine",
        "OpenAI Evals: where a ball comes to rest",
        "samples.jsonl",
        "f206525d4a084b6288cf20e539ba3d0bc9d4de55eaee143761d05ceb62ea13c6",
        15,
        **{**_BOXED, "grader_config": {"extract": "tail", "loose": False}},
        traps=("Only 15 items: look at the interval.",),
    ),
)
