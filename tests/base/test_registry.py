# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

from newskills.base.errors import ConfigError, UnknownNameError, boundary, guard, suggest
from newskills.base.registry import Registry, load_attr

TABLE = {"json": "json:loads", "un-used": "no_such_module_at_all:x"}


def registry() -> Registry:
    return Registry("codec", TABLE, group="newskills.tests.none", aliases={"JavaScript": "json"})


def test_names_are_folded_and_lazy() -> None:
    found = registry()
    assert found.names() == ["json", "un-used"]
    assert found.get("JSON")("[1]") == [1]
    assert found.resolve("un_used") == "un-used"
    assert found.resolve("javascript") == "json"
    assert "no_such_module_at_all" not in sys.modules
    with pytest.raises(ImportError):
        found.get("un-used")


def test_unknown_names_suggest() -> None:
    with pytest.raises(UnknownNameError, match="Unknown codec 'jsn'; did you mean 'json'"):
        registry().get("jsn")
    with pytest.raises(UnknownNameError, match="the choices are JavaScript, json"):
        registry().get("zzzzzz")


def test_objects_from_files_and_modules(tmp_path: Path) -> None:
    plug = tmp_path / "plug.py"
    plug.write_text("def answer():\n    return 42\n")
    assert load_attr(f"{plug}::answer")() == 42
    assert registry().get("json::dumps")([1]) == "[1]"
    with pytest.raises(UnknownNameError, match="did you mean 'answer'"):
        load_attr(f"{plug}::anser")
    with pytest.raises(ConfigError, match="There is no file"):
        load_attr(f"{tmp_path}/none.py::x")
    (tmp_path / "broken.py").write_text("def (:")
    with pytest.raises(ConfigError, match="Cannot load"):
        load_attr(f"{tmp_path}/broken.py::x")


def test_a_module_that_raises_is_named_with_its_line_and_forgotten(tmp_path: Path) -> None:
    plug = tmp_path / "plugin.py"
    plug.write_text("value = 1\nvalue = 1 / 0\n")
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"ZeroDivisionError: division by zero \(.*plugin\.py, line 2\)"):
            load_attr(f"{plug}::value")
    plug.write_text("import no_such_thing\n")
    with pytest.raises(ConfigError, match=r"No module named 'no_such_thing' \(.*plugin\.py, line 1\)"):
        load_attr(f"{plug}::value")
    plug.write_text("value = 2\n")
    assert load_attr(f"{plug}::value") == 2


def test_the_boundary_attributes() -> None:
    assert guard(lambda: 3) == 3
    failure = guard(lambda: 1 / 0)
    assert (failure.kind, failure.cause) == ("ZeroDivisionError", "harness")
    assert boundary(TimeoutError()).cause == "timeout"
    assert boundary(ConfigError("x")).message == "x"


def test_suggestions_are_bounded() -> None:
    assert suggest("a", [f"name{i}" for i in range(40)]).count(",") == 12
    assert suggest("a", []) == "."


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        ("incorrect", ["correct", "wrong"], False),
        ("not_correct", ["correct", "wrong"], False),
        ("scored", ["unscored", "wrong"], False),
        ("not-paired", ["paired", "other"], False),
        ("corect", ["correct", "wrong"], True),
        ("incorect", ["incorrect", "wrong"], True),
        ("unscord", ["correct", "unscored"], True),
    ],
)
def test_the_opposite_is_never_suggested(typed: str, known: list[str], meant: bool) -> None:
    said = suggest(typed, known)
    assert ("did you mean" in said) == meant
    assert meant or f"the choices are {', '.join(sorted(known))}" in said


def test_a_file_of_ones_own_leaves_nothing_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "alone.py").write_text("VALUE = 3\n")
    assert load_attr(f"{tmp_path}/alone.py::VALUE") == 3
    assert [path.name for path in tmp_path.iterdir()] == ["alone.py"]
