# SPDX-License-Identifier: Apache-2.0
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from newskills.base.benchmark import Benchmark, Judge
from newskills.base.errors import ConfigError, UnknownNameError
from newskills.prompts.names import find_prompt
from newskills.prompts.prompt_sets import USUAL_SET, Variant, load_prompt_set, prompt_set_names
from newskills.prompts.renderer import PromptOverrides, load_prompt
from newskills.prompts.schema import read_source

FIELD = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")
USUAL = load_prompt_set(USUAL_SET)
CHOICES = USUAL.kinds["choices"].wordings
SOLVED = {"problem": "What is 1+1?", "expected_answer": "B", "solution": "It is two."}
PROMPTED = Benchmark(name="mine", category="c", title="t")


def test_the_built_in_set() -> None:
    assert prompt_set_names() == [USUAL_SET]
    assert load_prompt_set("prompt_set_config") == USUAL
    assert not USUAL.lists, "wordings belong to kinds of tasks, not to names"
    sizes = {name: len(kind.wordings) for name, kind in USUAL.kinds.items() if not kind.why_none}
    assert (sizes["choices"], sizes["mathematics"], sizes["contest programs"]) == (10, 10, 7)
    assert min(sizes.values()) >= 4


@pytest.mark.parametrize("name", [name for name, kind in USUAL.kinds.items() if kind.wordings])
def test_wordings_show_the_fields_of_their_kind_and_ask_for_its_form(name: str) -> None:
    kind = USUAL.kinds[name]
    texts = set()
    for variant in kind.wordings:
        source = read_source(*find_prompt(variant.prompt_config))
        config = source.config
        text = f"{config.system or ''}\n{config.user}"
        texts.add(text)
        fields = set(FIELD.findall(text)) | {config.image_field} - {None}
        assert fields - {"examples"} == kind.fields, variant
        if variant.extract_regex is None and not kind.form.startswith(r"\A") and name != "choices":
            assert re.search(kind.form, text), variant
    assert len(texts) == len(kind.wordings), "two of them are the same"


@pytest.mark.parametrize("name", ["mathematics", "any box", "choices"])
def test_wordings_have_the_place_for_few_shots_that_the_usual_prompts_have(name: str) -> None:
    for variant in USUAL.kinds[name].wordings:
        prompt = load_prompt(variant.prompt_config, PromptOverrides(examples_type="solved"), lambda _: [SOLVED])
        (message,) = prompt.messages({"problem": "What is 2+2?"})
        first, second = (str(message.content).index(text) for text in ("What is 1+1?", "What is 2+2?"))
        assert first < second, variant


@pytest.mark.parametrize(
    ("prompt", "changes", "wording"),
    [
        ("Do {problem}. \\boxed{{}} holds the result.", {"grader": "math"}, "robustness/math_prompts/boxed_1"),
        ("Do {problem}. \\boxed{{}} holds it.", {"grader": "exact"}, "robustness/general_prompts/general_1"),
        ("{problem} The last line is Answer: X.", {}, "robustness/mcq_prompts/aai_1"),
        ("{question}", {"grader": "exact"}, "robustness/whole_prompts/whole_1"),
        ("{question}", {"judge": Judge(prompt="judge/simpleqa")}, "generic/default"),
        ("{question}", {"grader": "ifbench"}, "one more instruction"),
        ("{task} \\boxed{{}}", {}, "no kind"),
    ],
)
def test_a_prompt_of_ones_own_gets_the_wordings_of_its_kind(
    prompt: str, changes: dict[str, Any], wording: str, tmp_path: Path
) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(f"user: |-\n  {prompt}\n")
    benchmark = replace(PROMPTED, prompt=str(path), **changes)
    variants, why = USUAL.wordings(benchmark, ["mine"])
    assert wording == variants[0].prompt_config if variants else wording in why


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
    assert load_prompt_set(str(path)).lists == {
        "gsm8k": (
            Variant(prompt_config="math", extract_regex=r"(\d+)"),
            Variant(prompt_config="generic/math-base"),
        )
    }


def test_own_kinds(tmp_path: Path) -> None:
    path = tmp_path / "set.yaml"
    path.write_text("sums: {fields: [sum], form: total, wordings: ['generic/mat*', ./own.yaml]}\n")
    (own := tmp_path / "own.yaml").write_text("user: The total of {sum}?\n")
    path.write_text(path.read_text().replace("./own.yaml", str(own)))
    chosen, _ = load_prompt_set(str(path)).wordings(replace(PROMPTED, prompt=str(own)), [])
    assert chosen is not None
    names = [variant.prompt_config for variant in chosen]
    assert names == ["generic/math", "generic/math-base", "generic/matharena", str(own)]


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("gsm8k: math", ConfigError, "expected benchmark"),
        ("gsm8k: [{prompt: math, regex: a}]", ConfigError, "regex"),
        ("gsm8k: [{prompt: math, extract_regex: '('}]", ConfigError, "unterminated|missing"),
        ("gsm8k: [{prompt: generic/mth}]", UnknownNameError, "generic/math"),
        ("gsm8k: ['generic/zz*']", UnknownNameError, "generic/zz"),
        ("gsm8k: 3", ConfigError, "expected benchmark"),
        ("sums: {wordings: [], why_none: ''}", ConfigError, "either wordings"),
        ("sums: {wording: [math]}", ConfigError, "unknown key `wording`"),
        ("sums: {form: '(', wordings: [math]}", ConfigError, "unterminated|missing"),
        ("sums: {form: 3, wordings: [math]}", ConfigError, "expected"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, error: type[Exception], said: str) -> None:
    path = tmp_path / "set.yaml"
    path.write_text(text)
    with pytest.raises(error, match=said):
        load_prompt_set(str(path))


def test_unknown_set() -> None:
    with pytest.raises(UnknownNameError, match=USUAL_SET):
        load_prompt_set("robustness/prompt_set_confg")
