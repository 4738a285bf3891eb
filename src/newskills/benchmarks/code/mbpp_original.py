# SPDX-License-Identifier: Apache-2.0
"""Mostly basic Python problems: a sentence and three tests each (Austin et al. 2021, arXiv:2108.07732)."""

import re

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row

_URL = "https://raw.githubusercontent.com/deepseek-ai/DeepSeek-Coder/main/Evaluation/MBPP/data/mbpp.jsonl"
_COMMIT = "2f9fd85927c669dae3c0fbb2d607274023af243e"
_SHA256 = "ccf64ceae9c5403bf50a044cb6d505bfd2a2963ee58338ba268fd65beab92a9f"
_SPLITS = {"test": (10, 510), "prompt": (0, 10), "validation": (510, 600), "train": (600, 974), "full": (0, 974)}
_DEFINED = re.compile(r"^(def|class)\s+(\w+)", re.MULTILINE)
_IMPORT = re.compile(r"^(?:import|from)\b.*?(?=\s*$)", re.MULTILINE)
_WORD = re.compile(r"\w+")


def row(raw: Row, index: int) -> Row:
    solution, setup = (_normalize_newlines(raw[name]) for name in ("code", "test_setup_code"))
    names = tested_names(solution, [setup, *raw["test_list"]])
    return {
        "id": f"Mbpp/{raw['task_id']}",
        "question": f'"""\n{raw["text"]}\n{raw["test_list"][0]}\n"""\n',
        "task_id": raw["task_id"],
        "text": raw["text"],
        "entry_point": names[0],
        "names": names,
        # Some tests rely on what the solution imports.
        "test_setup_code": "".join(f"{line}\n" for line in _IMPORT.findall(solution)) + setup,
        "test_list": raw["test_list"],
        "challenge_test_list": raw["challenge_test_list"],
        "canonical_solution": solution,
    }


def _normalize_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def tested_names(solution: str, tests: list[str]) -> list[str]:
    """Return what the tests use of the functions and classes of the solution, functions first."""
    used = set(_WORD.findall("\n".join(tests)))
    definitions = [(kind, name) for kind, name in _DEFINED.findall(solution) if name in used]
    if not definitions:
        raise ValueError("the tests use nothing of the solution")
    return list(dict.fromkeys(name for _, name in sorted(definitions, key=lambda pair: pair[0] == "class")))


BENCHMARK = Benchmark(
    name="mbpp-original",
    category="code",
    title="MBPP as Google published it: short Python programs from a sentence",
    sources=tuple(
        Source(split=split, url=_URL, revision=_COMMIT, sha256=_SHA256, span=span)
        for split, span in _SPLITS.items()
    ),
    row=row,
    prompt="generic/codegen",
    grader="evalplus",
    metric="evalplus",
    items={split: last - first for split, (first, last) in _SPLITS.items()},
    licence="CC-BY-4.0",
    homepage="https://github.com/google-research/google-research/tree/master/mbpp",
    citation="arXiv:2108.07732",
    needs_sandbox=True,
    traps=(
        "The test split is tasks 11 to 510 (500), as its authors cut it; `full` has all 974.",
        "The benchmark mbpp is EvalPlus' release 0.2.0 with 378 of the tasks, some of them repaired: other numbers.",
        "The question shows the first of the three tests, in the form that EvalPlus uses.",
        "Task 123 takes the reference solution about 5 s.",
    ),
)
