# SPDX-License-Identifier: Apache-2.0
"""MBPP with the many further inputs of EvalPlus (Liu et al. 2023, arXiv:2305.01210), releases 0.2.0 and 0.1.0.

Answers are compared with what the reference solution returns. The file is JSON; the shapes of arguments that JSON
does not know, and the tasks with other rules of equality, are those of EvalPlus.
"""

from typing import Any

from newskills.base.benchmark import Benchmark, Source
from newskills.base.records import Row
from newskills.benchmarks.differential import check_statements, oracle_code

_HOME = "https://raw.githubusercontent.com/QwenLM/Qwen2.5-Coder/main/qwencoder-eval/base/eval_cache/evalplus"
_EACH = {
    2,
    116,
    132,
    143,
    222,
    261,
    273,
    394,
    399,
    421,
    424,
    429,
    470,
    560,
    579,
    596,
    616,
    630,
    726,
    740,
    744,
    809,
}
_ITEMS = {63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780}
_FIRST_ITEMS = {75, 413, 444, 753}
_FIRST = {250, 307, 405, 446, 617, 720, 763, 808}
_SECOND = {106, 750}
_TWICE = {259, 278, 401, 445}
_DEEP = {580, 615, 791}
_AS_SETS = {
    *("similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly"),
    *("larg_nnum", "intersection_array", "find_dissimilar", "Diff"),
}
_COMBINATIONS, _FEW, _PLACES = 255, 3, 70
"""A task, and with how many colours or places its results are never too large for the sandbox."""
_SLOW = {599: 120}
"""Task → CPU seconds of a suite: to compare, the reference is run, too, and adds up a hundred million numbers."""
_SAME_FINDING = "len({each if isinstance(each, bool) else each is not None for each in (told, wanted)}) == 1"
_FOUND = {"check_str", "text_match_three", "text_starta_endb"}
_OTHER_READINGS = {
    "are_equivalent": "True",
    "sum_div": "told == wanted or told == 0",
    "surface_Area": "told == wanted or abs(told - round(arguments[0] ** 2 + 2 * arguments[0] * "
    "math.sqrt((arguments[0] / 2) ** 2 + arguments[1] ** 2))) <= off",
    "digit_distance_nums": "told == wanted or told == sum(abs(int(one) - int(two)) for one, two in "
    "zip(*(str(number).zfill(99) for number in arguments)))",
}
"""What the text of a task allows beside the result of its reference solution."""


def row(raw: Row, index: int) -> Row:
    number, entry = int(raw["task_id"].rpartition("/")[2]), raw["entry_point"]
    base, plus = (
        check_statements(
            typed_arguments(number, inputs) for inputs in raw[kind] if not _is_too_large(number, inputs)
        )
        for kind in ("base_input", "plus_input")
    )
    fields = {
        "id": raw["task_id"],
        "question": raw["prompt"],
        "task_id": raw["task_id"],
        "entry_point": entry,
        "names": [entry],
        "test_setup_code": oracle_code(raw["canonical_solution"], entry, raw["atol"], _equality_expression(entry)),
        "test_list": base,
        "plus_test_list": plus or base,
        "canonical_solution": raw["canonical_solution"],
    }
    if number in _SLOW:
        fields["cpu_seconds"] = _SLOW[number]
    return fields


def _is_too_large(number: int, inputs: list[Any]) -> bool:
    return number == _COMBINATIONS and len(inputs[0]) > _FEW and inputs[1] > _PLACES


def _equality_expression(entry: str) -> str:
    if entry in _AS_SETS:
        return "set(told) == set(wanted)"
    if entry in _FOUND:
        return _SAME_FINDING
    return _OTHER_READINGS.get(entry, "told == wanted")


def typed_arguments(task: int, inputs: list[Any]) -> list[Any]:
    """Return the arguments of a call in their own types, of which JSON has made lists and texts."""
    if task in _EACH:
        return [tuple(each) for each in inputs]
    if task in _ITEMS:
        return [[tuple(item) for item in each] for each in inputs]
    if task in _TWICE:
        return [tuple(tuple(item) if isinstance(item, list) else item for item in each) for each in inputs]
    if task in _DEEP:
        return [_tuples_from_lists(each) for each in inputs]
    first, *rest = inputs
    if task in _FIRST_ITEMS:
        return [[tuple(item) for item in first], *rest]
    if task in _FIRST:
        return [tuple(first), *rest]
    if task in _SECOND:
        return [first, tuple(rest[0])]
    if task == 115:
        return [[set(item) if isinstance(item, list) and item else {} for item in first]]
    if task == 722:
        return [{key: tuple(value) for key, value in first.items()}, *rest]
    if task == 252:
        return [complex(first)]
    if task == 124:
        return [float(first), complex(rest[0])]
    return inputs


def _tuples_from_lists(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_tuples_from_lists, value))
    return value


_COMMON: dict[str, Any] = {
    "category": "code",
    "row": row,
    "prompt": "generic/codegen",
    "grader": "evalplus",
    "metric": "evalplus",
    "headline": "`passing_plus_tests`: share of programs that pass the original tests and those of EvalPlus",
    "licence": "Apache-2.0",
    "homepage": "https://github.com/evalplus/evalplus",
    "citation": "arXiv:2305.01210",
    "needs_sandbox": True,
    "version": "2",
}
_COMPARED = "The answer is compared with what the reference solution returns, fractions to 1e-6."

BENCHMARKS = (
    Benchmark(
        name="mbpp",
        title="MBPP, the 378 tasks of EvalPlus 0.2.0, with its further tests",
        sources=(
            Source(url="https://github.com/evalplus/mbppplus_release/releases/download/v0.2.0/MbppPlus.jsonl.gz"),
        ),
        items={"test": 378},
        unverified=True,
        traps=(
            "`passing_base_tests` is EvalPlus' MBPP, `passing_plus_tests` its MBPP+; both of 378 repaired tasks.",
            "The 500 tasks as Google published them are mbpp-original; earlier versions called those mbpp.",
            _COMPARED,
        ),
        **_COMMON,
    ),
    Benchmark(
        name="mbpp-plus",
        title="MBPP+ of EvalPlus 0.1.0: short Python programs, many tests",
        sources=(
            Source(
                url=f"{_HOME}/MbppPlus-v0.1.0.jsonl",
                revision="d5ead97fea36bca3744e1a4c49e882f6fa2f406a",
                sha256="a855b9de667baea8e2f8aa61f898767a7336872208a85222b35622545e819fe9",
            ),
        ),
        items={"test": 399},
        misprints={"Mbpp/794": "the reference solution fails one of its tests"},
        traps=(
            "Release 0.1.0 has 399 tasks, 0.2.0 (mbpp) has 378: their numbers cannot be compared.",
            "Of task 255, five inputs are left out, whose results are of 33 MB to 1 GB; task 599 takes much CPU time.",
            _COMPARED,
        ),
        **_COMMON,
    ),
)
