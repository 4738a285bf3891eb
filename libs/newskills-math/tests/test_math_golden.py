# SPDX-License-Identifier: Apache-2.0
"""What the library says of inputs that showed changes of its lines.

Mutants of the library were run on some tens of thousands of pairs, replies and texts; what told one apart is kept in
golden/*.jsonl, beside what the library said of it. After a change that is meant, write the files anew and review the
difference: `python libs/newskills-math/tests/test_math_golden.py --write`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from newskills_math import ExtractionPolicy, extract, parse
from newskills_math.normalise import tidy_answer
from newskills_math.spellings import answer_spellings
from newskills_math.syntax.nodes import Node, TooBig, Unreadable
from newskills_math.syntax.parser import parse as tree_of
from newskills_math.values.equal import Options
from newskills_math.verdict import equal

GOLDEN = Path(__file__).with_name("golden")
_WITHOUT_ALGEBRA = Options(symbolic=False)
_RELAXED = ExtractionPolicy(extract_regex=r"(?!)", relaxed_extraction=True)
Case = dict[str, Any]


def of_pair(case: Case) -> Case:
    """Whether the answer is the gold, and which step decided."""
    verdict, step = equal(case["answer"], case["gold"], _WITHOUT_ALGEBRA)
    return {"equal": verdict, "step": step}


def of_reply(case: Case) -> Case:
    """The answer by the usual rules, by the relaxed ones, and as `parse` reads it."""
    text = case["reply"]
    answers = parse(text)
    return {
        "usual": list(extract(text)),
        "relaxed": list(extract(text, _RELAXED)),
        "parse": [str(answers[0]), answers[0].how] if answers else [],
    }


def of_text(case: Case) -> Case:
    """The normal form, and the tree it is read into."""
    text = tidy_answer(case["text"])
    try:
        tree = _shown(tree_of(text, comma_groups=True))
    except (TooBig, Unreadable, RecursionError) as error:
        tree = type(error).__name__
    return {"tidy": text, "tree": tree}


def of_gold(case: Case) -> Case:
    """Return other spellings of a gold."""
    return {"spellings": list(answer_spellings(case["gold"]))}


OBSERVED: Mapping[str, Callable[[Case], Case]] = {
    "pairs": of_pair,
    "replies": of_reply,
    "readings": of_text,
    "spellings": of_gold,
}
INPUTS = ("gold", "answer", "reply", "text")


def _shown(node: Node) -> str:
    head = f"{node.kind}:{node.name}" if node.name else node.kind
    if node.kind == "num":
        head = str(node.value) + (f"@{node.places}" if node.places >= 0 else "")
    elif node.places != -1:
        head += f"@{node.places}"
    if node.args:
        return f"{head}({', '.join(map(_shown, node.args))})"
    return head


def cases_of(name: str) -> list[Case]:
    lines = (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def inputs_of(case: Case) -> Case:
    return {field: text for field, text in case.items() if field in INPUTS}


@pytest.mark.parametrize("name", OBSERVED)
def test_library_says_what_it_said(name: str) -> None:
    changed = []
    for case in cases_of(name):
        inputs = inputs_of(case)
        try:
            now = inputs | OBSERVED[name](inputs)
        except Exception as error:
            now = inputs | {"raised": repr(error)}
        if now != case:
            changed.append(f"  {inputs}\n    expected {case}\n    got      {now}")
    assert not changed, f"{len(changed)} of {name}.jsonl changed:\n" + "\n".join(changed[:20])


def test_a_degree_behind_a_power_is_read() -> None:
    assert equal(r"10^{2}^\circ", r"100^\circ", _WITHOUT_ALGEBRA)[0] is True
    assert equal(r"10^{2}^\circ", r"10^\circ", _WITHOUT_ALGEBRA)[0] is False


def main() -> None:
    """Write the files anew, with the same inputs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", required=True, help="write golden/*.jsonl anew")
    parser.parse_args()
    for name, observe in OBSERVED.items():
        inputs = [inputs_of(case) for case in cases_of(name)]
        lines = [json.dumps(case | observe(case), ensure_ascii=False) + "\n" for case in inputs]
        (GOLDEN / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
