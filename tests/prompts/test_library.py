# SPDX-License-Identifier: Apache-2.0
import re
from pathlib import Path
from typing import Any

import pytest
from tests.prompts.files import picture, sound

from newskills.base.records import Message
from newskills.prompts.names import prompt_files, prompt_names
from newskills.prompts.renderer import Prompt, PromptOverrides, load_prompt
from newskills.prompts.schema import read_source


def text_of(messages: list[Message]) -> str:
    parts = [m.content if isinstance(m.content, str) else m.content[-1]["text"] for m in messages]
    return "\n".join(parts)


MEDIA = {"image_path": "picture.png", "audio_path": "sound.wav"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sound.wav").write_bytes(sound())
    (tmp_path / "picture.png").write_bytes(picture())
    return tmp_path


def row_for(prompt: Prompt) -> dict[str, str]:
    row = {name: f"«{name}: {{x}} }}{{ \\frac{{1}}{{2}} é»" for name in prompt.fields}
    return row | {name: file for name, file in MEDIA.items() if name in row}


@pytest.mark.parametrize("name", prompt_names())
def test_every_prompt_shows_all_its_fields_and_no_leftover_braces(name: str, folder: Path) -> None:
    prompt = load_prompt(name, PromptOverrides(data_dir=str(folder)))
    row = row_for(prompt)
    text = text_of(prompt.messages(row))
    assert text == text.rstrip()
    for field, value in row.items():
        assert field in MEDIA or value in text
        text = text.replace(value, "")
    assert "{{" not in text
    assert "}}" not in text


@pytest.mark.parametrize("name", prompt_names())
def test_every_prompt_begins_with_the_licence_line(name: str) -> None:
    assert prompt_files()[name].read_text(encoding="utf-8").startswith("# SPDX-License-Identifier: Apache-2.0\n")


def test_no_two_prompts_are_the_same_text() -> None:
    seen: dict[Any, Any] = {}
    for name, path in prompt_files().items():
        config = read_source(name, path).config
        other = seen.setdefault((config.system, config.user, config.image_field), name)
        assert other == name, f"{name} repeats {other}"


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("generic/math", r"\boxed{}"),
        ("eval/aai/math", r"\boxed{}"),
        ("eval/matharena/aime", "integer from 0 to 999"),
        ("eval/aai/mcq-4choices", '"Answer: X"'),
        ("eval/aai/mcq-4choices-boxed", r"\boxed{X}"),
        ("eval/aai/mcq-10choices", "I or J"),
        ("eval/korean/mcq-5choices", "정답: X"),
        ("generic/genselect", '"Judgment: "'),
        ("generic/gensynthesis", "</NEW_SOLUTION>"),
        ("qwen3/math-cot-think", "/think"),
        ("qwen3/math-cot-non-think", "/no_think"),
        ("judge/math", '"Judgement: Yes"'),
        ("judge/imo_answerbench", r"\boxed{Incorrect}"),
        ("judge/imo_proofbench", "<points>N out of 7</points>"),
        ("judge/ugphysics", "## Equivalence Judgement"),
        ("judge/mt-bench/turn1", "[[5]]"),
        ("judge/mt-bench/turn1_with_ref", "[[5]]"),
        ("judge/mt-bench/turn2", "[[5]]"),
        ("judge/mt-bench/turn2_with_ref", "[[5]]"),
        ("judge/code", '"Judgement: Yes"'),
        ("unit_test/code", "`assert`"),
        ("eval/hotpotqa", '{"answer": "the answer in a few words", "supporting_facts"'),
    ],
)
def test_prompts_ask_for_the_form_that_graders_read(name: str, asked: str) -> None:
    prompt = load_prompt(name)
    assert asked in text_of(prompt.messages(dict.fromkeys(prompt.fields, "x")))


def test_aai_math_repeats_the_rule_after_the_problem() -> None:
    text = text_of(load_prompt("eval/aai/math").messages({"problem": "PROBLEM"}))
    before, after = text.split("PROBLEM")
    assert "\\boxed{}" in before
    assert "\\boxed{}" in after


def test_qwen_asks_in_the_system_message() -> None:
    system, user = load_prompt("qwen/math-cot").messages({"problem": "PROBLEM"})
    assert re.search(r"step by step.*\\boxed\{\}", system.content, re.DOTALL)
    assert user.content == "PROBLEM"


def test_golden_math() -> None:
    (message,) = load_prompt("generic/math").messages({"problem": "What is 1 + 1?"})
    assert message.role == "user"
    assert message.content == (
        "Solve the following math problem. Give the final answer, and nothing but the answer, inside \\boxed{}.\n"
        "\n"
        "What is 1 + 1?"
    )


def test_golden_math_with_two_examples() -> None:
    overrides = PromptOverrides(examples_type="gsm8k_standard_few_shot", few_shot_examples={"num_few_shots": 1})
    (message,) = load_prompt("generic/math", overrides).messages({"problem": "What is 1 + 1?"})
    assert message.content == (
        "Solve the following math problem. Give the final answer, and nothing but the answer, inside \\boxed{}.\n"
        "\n"
        "Some solved problems come first.\n\n"
        "Problem:\nA bakery sells rolls at 3 for $2. Nora buys 18 rolls and pays with a $20 bill. How many "
        "dollars does she get back?\n\n"
        "Solution:\n18 rolls are 18 / 3 = 6 packs of three, which cost 6 * 2 = 12 dollars. She gets back 20 - 12 "
        "= 8 dollars. The answer is \\boxed{8}.\n\n"
        "Now the problem to solve:\n\n"
        "What is 1 + 1?"
    )


def test_golden_base_model_completion() -> None:
    overrides = PromptOverrides(examples_type="math_standard_few_shot", few_shot_examples={"num_few_shots": 1})
    text = load_prompt("generic/math-base", overrides).text({"problem": "What is $1+1$?"}, None)
    assert text == (
        "Math problems with their solutions. Each solution ends with the answer inside \\boxed{}.\n\n"
        "Problem:\nFind the sum of all real numbers $x$ with $|2x-5|=9$.\n\n"
        "Solution:\nEither $2x-5=9$, so $x=7$, or $2x-5=-9$, so $x=-2$. The sum is $7+(-2)=\\boxed{5}$.\n\n"
        "Problem:\nWhat is $1+1$?\n\nSolution:"
    )
