# SPDX-License-Identifier: Apache-2.0
"""What the mutation run draws, whom it asks, and how it counts; the mutants themselves are cosmic-ray's."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from bench.measure import ROOT
from bench.mutation import sample
from bench.mutation.sample import AREAS, EQUIVALENT, Equivalent, Mutant, Runner, changed_lines, files, same_program

SOURCE = '''
from __future__ import annotations

def half(value: float | None, limit: int = 2) -> float | None:
    """Return it."""
    inner: int | None = None
    return None if value is None else value / limit
'''


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("value: float | None", "value: float + None", True),
        ("-> float | None", "-> float - None", True),
        ("inner: int | None", "inner: int & None", True),
        ("limit: int = 2", "limit: int = 3", False),
        ("value / limit", "value * limit", False),
        ("is None else", "is not None else", False),
        ("return None", "return not", True),
    ],
)
def test_annotations_that_are_never_evaluated_are_no_mutants(before: str, after: str, same: bool) -> None:
    assert before in SOURCE
    assert same_program(SOURCE, SOURCE.replace(before, after, 1)) is same


def test_what_a_mutant_says_does_not_depend_on_its_line() -> None:
    mutated = SOURCE.replace("value / limit", "value * limit")
    expected = (
        "return None if value is None else value / limit",
        "return None if value is None else value * limit",
    )
    assert changed_lines(SOURCE, mutated) == expected
    assert changed_lines(f"# more\n{SOURCE}", f"# more\n{mutated}") == expected
    decorated = SOURCE.replace("def half", "@cache\ndef half")
    assert changed_lines(decorated, decorated.replace("\n\n@cache", "")) == ("@cache", ""), (
        "blank lines say nothing"
    )


def test_places_are_drawn_and_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator with many replacements is not drawn more often than a number with two."""
    (tmp_path / "a.py").write_text("x = 1 + 2\ny = 3\n")
    listed = [
        {"file": "a.py", "operator": f"core/{name}", "occurrence": 0, "line": 1, "column": 4}
        for name in ("Sub", "Mul", "Div", "ReplaceBinaryOperator_Add_BitOr")
    ]
    listed.append({"file": "a.py", "operator": "core/Number", "occurrence": 0, "line": 2, "column": 4})

    def cosmic(python: Path, copy: Path, words: Sequence[str], given: str = "") -> list[str]:
        if words[0] == "list":
            return [json.dumps(mutant) for mutant in listed]
        asked = [json.loads(line) for line in given.splitlines()]
        texts = {1: "x = 1 - 2\ny = 3\n", 2: "x = 1 + 2\ny = 4\n"}
        return [json.dumps(texts[mutant["line"]]) for mutant in asked]

    monkeypatch.setattr(sample, "cosmic", cosmic)

    def drawn(seed: int, size: int) -> list[tuple[str, str]]:
        chance = random.Random(seed)
        found = sample.drawn(Path(sys.executable), tmp_path, [tmp_path / "a.py"], chance, size)
        assert all("Bit" not in mutant.operator for mutant, _ in found)
        return [(mutant.before, mutant.after) for mutant, _ in found]

    assert sorted(drawn(1, 9)) == [("x = 1 + 2", "x = 1 - 2"), ("y = 3", "y = 4")]
    assert drawn(1, 1) == drawn(1, 1)
    assert {drawn(seed, 1)[0] for seed in range(20)} == {("x = 1 + 2", "x = 1 - 2"), ("y = 3", "y = 4")}


def test_tests_of_a_line_or_of_its_file() -> None:
    reached = {4: {"a", "b"}, 7: {"c"}, 1: set()}
    assert sample.tests_of(reached, 4) == {"a", "b"}
    assert sample.tests_of(reached, 1) == {"a", "b", "c"}
    assert sample.tests_of({}, 4) == set()


@pytest.mark.nightly
def test_a_mutant_is_judged_by_its_tests_and_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    source = tmp_path / "src" / "halves.py"
    source.write_text("def half(x):\n    return x / 2\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_halves.py").write_text(
        "from halves import half\n\ndef test_four():\n    assert half(4) == 2\n\n"
        "def test_zero():\n    assert half(0) == 0\n"
    )
    mutant = Mutant(file="src/halves.py", operator="", occurrence=0, line=2, column=0, before="a", after="b")
    four, zero = (f"tests/test_halves.py::test_{name}" for name in ("four", "zero"))
    mutated = "def half(x):\n    return x * 2\n"
    known = Equivalent(file="src/halves.py", before="a", after="b", reason="…")
    with Runner(tmp_path) as runner:
        assert sample.judged(tmp_path, mutant, mutated, [four], [], runner) == "killed"
        assert sample.judged(tmp_path, mutant, mutated, [zero], [], runner) == "survived"
        assert sample.judged(tmp_path, mutant, mutated, [], [], runner) == "survived"
        assert sample.judged(tmp_path, mutant, mutated, [four], [known], runner) == "equivalent"
        assert sample.judged(tmp_path, mutant, "def half(x:\n", [zero], [], runner) == "killed"
    assert source.read_text() == "def half(x):\n    return x / 2\n"
    reached, failing = sample.reach(tmp_path, ["tests/test_halves.py"], [source])
    assert reached["src/halves.py"][2] == {four, zero}
    assert failing == set()


def test_equivalent_mutants_do_not_count() -> None:
    mutants = [
        Mutant(file="", operator="", occurrence=0, line=0, column=0, status=status)
        for status in ("killed", "killed", "killed", "killed", "survived", "equivalent", "equivalent")
    ]
    line = sample.line_of("stats", mutants)
    assert (line.ours, line.met) == (80.0, True)
    assert sample.line_of("stats", mutants[1:]).met is False


def test_each_area_has_sources_and_tests() -> None:
    for area in AREAS.values():
        assert [pattern for pattern in area.sources if not files(ROOT, (pattern,))] == []
        assert [pattern for pattern in area.tests if not files(ROOT / "tests", (pattern,))] == []


def test_equivalent_mutants_have_a_reason_and_still_exist() -> None:
    for known in msgspec.json.decode(EQUIVALENT.read_bytes(), type=list[Equivalent]):
        assert len(known.reason) > 20, known
        lines = {line.strip() for line in (ROOT / known.file).read_text().splitlines()}
        assert known.before in lines, (
            f"{known.file} has changed: look at this mutant again, or remove it ({known})"
        )
