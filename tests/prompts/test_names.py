# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.prompts.names import COLLECTIONS, find_prompt, prompt_files, prompt_names
from newskills.prompts.schema import read_source
from newskills.prompts.template import TextPosition


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("generic/math", "generic/math"),
        ("math", "generic/math"),
        ("default", "generic/default"),
        ("qwen/math-cot", "qwen/math-cot"),
        ("math_cot", "qwen/math-cot"),
        ("aai/math", "eval/aai/math"),
        ("Generic/Math_Base", "generic/math-base"),
        ("mcq-4choices-boxed", "eval/aai/mcq-4choices-boxed"),
        ("generic/math.yaml", "generic/math"),
    ],
)
def test_names_and_their_ends(spec: str, name: str) -> None:
    assert find_prompt(spec) == (name, prompt_files()[name])


def test_an_end_of_several_names_is_refused_with_those_names() -> None:
    with pytest.raises(ConfigError, match=r"eval/aai/mcq-4choices, eval/korean/mcq-4choices"):
        find_prompt("mcq-4choices")


@pytest.mark.parametrize(
    ("spec", "close"), [("generic/mth", "'generic/math'"), ("mth", "'math'"), ("gsm8k", "gsm8k")]
)
def test_unknown_names_are_refused_with_near_ones(spec: str, close: str) -> None:
    with pytest.raises(UnknownNameError, match=close):
        find_prompt(spec)


def test_files_by_absolute_and_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("user: x")
    monkeypatch.chdir(tmp_path)
    assert find_prompt(str(path)) == (str(path), path)
    assert find_prompt("mine.yaml") == ("mine.yaml", Path("mine.yaml"))
    with pytest.raises(ConfigError, match="There is no prompt file"):
        find_prompt(str(tmp_path / "other.yaml"))


@pytest.mark.parametrize("spec", ["./missing.yaml", "../missing.yaml", "~/missing.yaml", "missing.yml"])
def test_a_path_that_leads_nowhere_is_no_unknown_name(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"^There is no prompt file \S*missing\.ya?ml\.$"):
        find_prompt(spec)


@pytest.mark.parametrize(("spec", "close"), [("own/missing.yaml", "ns list prompts"), ("mth.yaml", "'math'")])
def test_what_may_be_a_file_or_a_name_is_told_as_both(spec: str, close: str) -> None:
    with pytest.raises(ConfigError, match=f"There is no prompt file {spec}. Unknown prompt .*{close}"):
        find_prompt(spec)


def test_the_list_is_sorted_and_holds_what_benchmarks_name() -> None:
    names = prompt_names()
    assert names == sorted(names)
    assert {"generic/math", "generic/default", "eval/aai/mcq-4choices-boxed", "judge/math"} <= set(names)


def test_wordings_of_one_kind_share_a_file() -> None:
    name = "robustness/math_prompts/boxed_1"
    path = COLLECTIONS / "math_prompts.yaml"
    assert find_prompt(name) == find_prompt(f"{name}.yaml") == find_prompt("math_prompts/boxed-1") == (name, path)
    assert find_prompt("robustness/math_prompts/boxed_2")[1] == path
    lines = path.read_text(encoding="utf-8").splitlines()
    place = read_source(name, path).place("user")
    assert place == TextPosition(str(path), lines.index("boxed_1:") + 3, 4)
    with pytest.raises(UnknownNameError):
        find_prompt("robustness/math_prompts")
