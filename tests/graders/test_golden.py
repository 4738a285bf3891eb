# SPDX-License-Identifier: Apache-2.0
"""Graders say of each case of the golden files what they said; `python -m tests.graders.golden --write` writes anew."""

from pathlib import Path

import pytest
from tests.graders.golden.replay import FOLDER, cases, files, wrong

MOST = 400_000
"""Bytes of all golden files, so that they can be read."""
SHOWN = 5
_INSTRUCTIONS = ("langdetect", "emoji", "syllapy")
NEEDS = {
    **dict.fromkeys(("if", "ifbench", "koifeval", "multi-if"), _INSTRUCTIONS),
    **{f"instructions.{name}": _INSTRUCTIONS for name in ("language", "multi_if")},
    **dict.fromkeys(("math_multilingual", "multichoice_multilingual", "multilingual"), _INSTRUCTIONS),
    "json_schema": ("jsonschema",),
    "reasoning_gym": ("reasoning_gym",),
    "translation": ("sacrebleu",),
}
"""Golden file → packages of others without which its graders say nothing."""


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_graders_say_what_they_said(path: Path) -> None:
    for package in NEEDS.get(path.stem, ()):
        pytest.importorskip(package, reason=f"these graders need {package}")
    different = list(wrong(path))
    assert not different, f"{len(different)} cases\n" + "\n".join(different[:SHOWN])


def test_golden_files_are_small_and_name_no_case_twice() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.jsonl")) <= MOST
    for path in files():
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(set(lines)) == len(lines), path.name
        assert all(case.grader or case.call for case in cases(path)), path.name
