# SPDX-License-Identifier: Apache-2.0
import re
import subprocess
import sys

import msgspec
import pytest

from newskills.base.errors import ConfigError
from newskills.prompts.code_tags import CODE_TAGS, CodeTags
from newskills.prompts.examples import built_in_examples, few_shot_names
from newskills.prompts.renderer import PromptOverrides, load_prompt

NAMES = few_shot_names()
SOLVED = [
    name
    for name in NAMES
    if name.startswith(("gsm8k_", "math_")) and not name.endswith(("augmentation", "fewshot"))
]
WITH_CODE = [name for name in NAMES if "with_code" in name]
BLOCK = re.compile(
    r"\{code_begin\}\n(.*?)\{code_end\}\n\{code_output_begin\}\n(.*?)\{code_output_end\}", re.DOTALL
)

RUN_ALL = """
import contextlib, io, json, sys
outputs = []
for blocks in json.load(sys.stdin):
    space = {}
    for block in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(block, space)
        outputs.append(out.getvalue())
json.dump(outputs, sys.stdout)
"""


def test_the_names_of_the_contract() -> None:
    subjects = ["algebra", "geometry", "number_theory", "probability"]
    subjects += ["prealgebra", "intermediate_algebra", "precalculus"]
    assert {
        "gsm8k_standard_few_shot",
        "gsm8k_text_detailed",
        "gsm8k_text_with_code",
        "gsm8k_problem_augmentation",
        "math_standard_few_shot",
        "math_text_detailed",
        "math_text_with_code",
        "math_problem_augmentation",
        "minif2f_deepseek_fewshot",
        "math_to_lean4_fewshot",
        "lean4_false_fewshots",
        "nat_nat_judgment_fewshots",
        *(f"math_text_with_code_{subject}" for subject in subjects),
    } <= set(NAMES)


@pytest.mark.parametrize("name", SOLVED)
def test_solutions_end_in_the_right_answer(name: str) -> None:
    rows = built_in_examples(name)
    assert 4 <= len(rows) <= 5
    for row in rows:
        assert set(row) == {"problem", "solution", "expected_answer"}
        assert f"\\boxed{{{row['expected_answer']}" in row["solution"][-60:]
        assert row["solution"].count("\\boxed") == 1
        assert row["solution"] == row["solution"].strip()


@pytest.mark.parametrize("name", [name for name in NAMES if "mcq" in name])
def test_choice_examples_hold_their_options(name: str) -> None:
    options = "ABCDEFGHIJ"[: 4 if "four" in name else 10]
    for row in built_in_examples(name):
        assert re.findall(r"^([A-Z])\) ", row["problem"], re.MULTILINE) == list(options)
        assert row["expected_answer"] in options
        assert row["solution"].endswith(f"Answer: {row['expected_answer']}")


@pytest.mark.parametrize("name", [name for name in NAMES if "aug" in name])
def test_augmented_examples_are_new(name: str) -> None:
    for row in built_in_examples(name):
        assert set(row) == {"problem", "augmented_problem"}
        assert row["problem"] != row["augmented_problem"]


@pytest.mark.parametrize("name", ["minif2f_deepseek_fewshot", "lean4_false_fewshots"])
def test_formal_examples_go_on_from_statement_to_proof(name: str) -> None:
    for row in built_in_examples(name):
        assert set(row) == {"header", "informal_prefix", "formal_statement", "formal_proof"}
        whole = "".join(row[part] for part in ("header", "informal_prefix", "formal_statement", "formal_proof"))
        assert re.search(r":= by\n  \S", whole)
        assert "sorry" not in whole


def test_translated_examples_are_statements_and_verdicts() -> None:
    for row in built_in_examples("math_to_lean4_fewshot"):
        assert row["formal_statement"].startswith("theorem ")
        assert row["formal_statement"].endswith(":= by sorry")
    verdicts = [row["judgement"].rpartition(" ")[2] for row in built_in_examples("nat_nat_judgment_fewshots")]
    assert set(verdicts) == {"Yes", "No"}


def test_the_code_of_the_examples_prints_what_they_show() -> None:
    pytest.importorskip("sympy")
    solutions = [row["solution"] for name in WITH_CODE for row in built_in_examples(name)]
    blocks = [BLOCK.findall(solution) for solution in solutions]
    assert all(blocks)
    programs = msgspec.json.encode([[code for code, _ in found] for found in blocks])
    done = subprocess.run([sys.executable, "-c", RUN_ALL], input=programs, capture_output=True, check=True)
    assert msgspec.json.decode(done.stdout) == [output for found in blocks for _, output in found]


@pytest.mark.parametrize("tags", CODE_TAGS.values(), ids=lambda tags: tags.name)
def test_code_tags_take_their_places(tags: CodeTags) -> None:
    overrides = PromptOverrides(examples_type="math_text_with_code", code_tags=tags.name)
    (message,) = load_prompt("generic/math", overrides).messages({"problem": "{code_begin}"})
    assert message.content.endswith("{code_begin}")
    shown = message.content.removesuffix("{code_begin}")
    assert "{code_" not in shown
    for text in (tags.begin, tags.end, tags.output_begin, tags.output_end):
        assert shown.count(text) >= 5
    assert ("[stdout]" in shown) == (tags.style == "llama")


def test_sets_of_a_provider_are_not_touched() -> None:
    overrides = PromptOverrides(examples_type="mmlu_few_shot_law")
    rows = [{"problem": "{code_begin}\n", "solution": "s"}]
    (message,) = load_prompt("generic/math", overrides, {"mmlu_few_shot_law": rows}.get).messages({"problem": "p"})
    assert "{code_begin}\n" in message.content


def test_a_built_in_set_goes_before_a_provider_and_case_does_not_matter() -> None:
    assert built_in_examples("GSM8K-text-detailed") == built_in_examples("gsm8k_text_detailed")
    assert built_in_examples("mmlu_few_shot_law") is None


def test_examples_become_turns_of_the_chat() -> None:
    overrides = PromptOverrides(
        examples_type="gsm8k_standard_few_shot",
        few_shot_examples={"as_turns": True, "num_few_shots": 2},
        system_message="Be brief.",
        prompt_suffix=" Go.",
    )
    prompt = load_prompt("generic/math", overrides)
    messages = prompt.messages({"problem": "What is 2 + 2?"})
    assert [message.role for message in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    example = (built_in_examples("gsm8k_standard_few_shot") or [])[0]
    alone = load_prompt("generic/math", PromptOverrides(prompt_suffix=" Go."))
    assert messages[1].content == alone.messages(example)[0].content
    assert messages[2].content == example["solution"]
    assert messages[-1].content == alone.messages({"problem": "What is 2 + 2?"})[0].content
    fewer = load_prompt(
        "generic/math",
        PromptOverrides(
            examples_type="gsm8k_standard_few_shot", few_shot_examples={"as_turns": True, "num_few_shots": 1}
        ),
    )
    assert len({prompt.hash, fewer.hash, alone.hash}) == 3


def test_a_prompt_without_a_place_for_examples_takes_turns() -> None:
    overrides = PromptOverrides(
        examples_type="gsm8k_standard_few_shot",
        few_shot_examples={"as_turns": True, "answer": "{expected_answer}", "num_few_shots": 1},
    )
    messages = load_prompt({"user": "{problem}"}, overrides).messages({"problem": "p"})
    assert [message.content for message in messages][1:] == ["8", "p"]


def test_turns_that_cannot_be_made_are_refused() -> None:
    with pytest.raises(ConfigError, match="as_turns, but no few-shot set"):
        load_prompt("generic/math", PromptOverrides(few_shot_examples={"as_turns": True}))
    overrides = PromptOverrides(
        examples_type="gsm8k_standard_few_shot", few_shot_examples={"as_turns": True, "answer": "{nothing}"}
    )
    with pytest.raises(ConfigError, match="have no field 'nothing'"):
        load_prompt("generic/math", overrides).messages({"problem": "p"})
