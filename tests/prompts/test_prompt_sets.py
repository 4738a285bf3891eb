# SPDX-License-Identifier: Apache-2.0
import re
from pathlib import Path

import pytest

from newskills.base.errors import ConfigError, UnknownNameError
from newskills.prompts.prompt_sets import Variant, load_prompt_set, prompt_set_names
from newskills.prompts.renderer import load_prompt

BUILT_IN = "robustness/prompt_set_config"
FIELD = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")
CHOICES = load_prompt_set(BUILT_IN)["gpqa"]


def test_the_built_in_set() -> None:
    found = load_prompt_set("prompt_set_config")
    assert prompt_set_names() == [BUILT_IN]
    sizes = {name: len(variants) for name, variants in found.items()}
    assert (sizes["gpqa"], sizes["comp-math-24-25"], sizes["livecodebench"]) == (10, 10, 7)
    kinds = ("generic/math", "eval/aai/mcq-10choices", "generic/codegen", "generic/short-answer")
    assert all(sizes[name] >= 5 for name in kinds), "math, choices, code, short answers"


def test_wordings_show_what_the_prompt_that_they_stand_for_shows() -> None:
    """But for examples, which only the usual prompts have."""
    for name, variants in load_prompt_set(BUILT_IN).items():
        if "/" not in name:
            continue
        usual = load_prompt(name).template
        wanted = set(FIELD.findall(f"{usual}")) - {"examples"}
        for variant in variants:
            assert set(FIELD.findall(f"{load_prompt(variant.prompt_config).template}")) == wanted, variant


@pytest.mark.parametrize("variant", [v for v in CHOICES if v.extract_regex], ids=lambda v: v.prompt_config)
def test_the_regex_finds_the_form_that_the_prompt_asks_for(variant: Variant) -> None:
    (message,) = load_prompt(variant.prompt_config).messages({"problem": "…"})
    form = re.search(r'"([^"]*\bX\b[^"]*)"|(<<X>>)', message.content)
    reply = "First, option A is wrong. " + form.group(form.lastindex).replace("X", "C")
    assert re.findall(variant.extract_regex, reply) == ["C"]
    assert (
        re.findall(variant.extract_regex, "The final answer is a good one, the correct option is Cadmium.") == []
    )


def test_own_file_with_both_spellings(tmp_path: Path) -> None:
    path = tmp_path / "set.yaml"
    path.write_text(
        "gsm8k:\n  - prompt: math\n    extract_regex: '(\\d+)'\n  - prompt_config: generic/math-base\n"
    )
    assert load_prompt_set(str(path)) == {
        "gsm8k": (
            Variant(prompt_config="math", extract_regex=r"(\d+)"),
            Variant(prompt_config="generic/math-base"),
        )
    }


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("gsm8k: math", ConfigError, "expected benchmark"),
        ("gsm8k: [{prompt: math, regex: a}]", ConfigError, "regex"),
        ("gsm8k: [{prompt: math, extract_regex: '('}]", ConfigError, "unterminated|missing"),
        ("gsm8k: [{prompt: generic/mth}]", UnknownNameError, "generic/math"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, error: type[Exception], said: str) -> None:
    path = tmp_path / "set.yaml"
    path.write_text(text)
    with pytest.raises(error, match=said):
        load_prompt_set(str(path))


def test_unknown_set() -> None:
    with pytest.raises(UnknownNameError, match=BUILT_IN):
        load_prompt_set("robustness/prompt_set_confg")
