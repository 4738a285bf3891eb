# SPDX-License-Identifier: Apache-2.0
"""Rows as text in a chat template's form: what training reads is what the model would have read and said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.train.data.building import made, write

from newskills.base.errors import DataError
from newskills.base.records import Row

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FORGETFUL = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content.split('</think>')[-1] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]<think>\n{% endif %}"
)
SILENT = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"
PROMPT = "user: 'Solve: {problem}'\nsystem: Be brief.\n"
ROW = {"problem": "2 + 2?", "generation": "It is \\boxed{4}.", "symbolic_correct": True, "expected_answer": 4}


@pytest.fixture
def tokenizer(tmp_path: Path) -> Callable[[str], str]:
    """`tokenizer(template)` makes the folder of one that has a token for each word."""
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    def make(template: str) -> str:
        folder = tmp_path / "tokenizer"
        folder.mkdir(exist_ok=True)
        words = tokenizers.Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        words.pre_tokenizer = WhitespaceSplit()
        words.save(str(folder / "tokenizer.json"))
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
        return str(folder)

    return make


def rendered(folder: Path, template: str, rows: list[Row], recipe: str = "math_sft", **values: Any) -> list[Row]:
    prompt = folder / "prompt.yaml"
    prompt.write_text(PROMPT)
    file = write(folder / "in.jsonl", rows)
    values = {"prompt_config": str(prompt), "tokenizer": template, "do_shuffle": False, **values}
    return made(folder, [file], recipe, values=values)[0]


def test_input_and_output_are_the_template(tmp_path: Path, tokenizer: Callable[[str], str]) -> None:
    cut = {**ROW, "generation": "It is", "finish_reason": "length"}
    thought = {**ROW, "reasoning_content": "Two and two.", "finish_reason": "stop"}
    rows = [
        ROW,
        cut,
        {**thought, "problem": "3 + 1?"},
        {**thought, "problem": "1 + 3?", "finish_reason": "length"},
    ]
    found = rendered(tmp_path, tokenizer(CHATML), rows)
    asked = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nSolve: 2 + 2?<|im_end|>\n"
    begin = f"{asked}<|im_start|>assistant\n"
    assert found[0] == {"input": begin, "output": "It is \\boxed{4}.<|im_end|>\n", "expected_answer": "4"}
    assert found[1]["output"] == "It is"
    assert found[2]["output"] == "<think>\nTwo and two.\n</think>\n\nIt is \\boxed{4}.<|im_end|>\n"
    assert found[3]["output"] == "<think>\nTwo and two.\n</think>\n\nIt is \\boxed{4}."
    assert "1 + 3?" in found[3]["input"]


def test_a_template_that_drops_thoughts_does_not_drop_them_here(
    tmp_path: Path, tokenizer: Callable[[str], str]
) -> None:
    raw = {**ROW, "generation": "Two.\n</think>\n\nIt is \\boxed{4}."}
    apart = {**ROW, "reasoning_content": "Two.", "problem": "other"}
    found = rendered(tmp_path, tokenizer(FORGETFUL), [raw, apart])
    assert found[0]["input"].endswith("[assistant]<think>\n")
    assert {row["output"] for row in found} == {"Two.\n</think>\n\nIt is \\boxed{4}.</s>"}


def test_an_end_of_ones_own(tmp_path: Path, tokenizer: Callable[[str], str]) -> None:
    rows = [ROW, {**ROW, "problem": "cut", "finish_reason": "length"}]
    found = rendered(tmp_path, tokenizer(SILENT), rows, assistant_end="<END>", system_message="Own.")
    assert [row["output"] for row in found] == ["It is \\boxed{4}.<END>", "It is \\boxed{4}."]
    assert found[0]["input"] == "Solve: 2 + 2?"
    with pytest.raises(DataError, match=r"does not show what the assistant says.*\+\+assistant_end"):
        rendered(tmp_path, tokenizer(SILENT), rows)


def test_variables_of_the_template(tmp_path: Path, tokenizer: Callable[[str], str]) -> None:
    template = "{{ mood }}" + CHATML
    [row] = rendered(tmp_path, tokenizer(template), [ROW], chat_template_kwargs={"mood": "glad "})
    assert row["input"].startswith("glad <|im_start|>")
    assert row["output"] == "It is \\boxed{4}.<|im_end|>\n"


def test_lengths_in_tokens(tmp_path: Path, tokenizer: Callable[[str], str]) -> None:
    rows = [{**ROW, "problem": "a " * n + "b"} for n in (0, 3, 700)]
    values = {"tokenizer": tokenizer(CHATML), "filters.remove_len_outlier_problems": True, "min_problem_length": 2}
    file = write(tmp_path / "in.jsonl", rows)
    found, card = made(tmp_path, [file], values={**values, "max_problem_length": 600})
    assert [row["input"] for row in found] == ["a a a b"]
    assert [(step.name, step.removed) for step in card.steps if step.removed] == [
        ("remove_len_outlier_problems", 2)
    ]


def test_conversations_begin_with_the_prompt(tmp_path: Path, tokenizer: Callable[[str], str]) -> None:
    turns = [{"role": "assistant", "content": "x"}, {"role": "tool", "content": "y", "tool_call_id": "1"}]
    rows = [{**ROW, "serialized_output": turns, "tools": [{"name": "f"}]}, {**ROW, "problem": "other"}]
    found = rendered(tmp_path, tokenizer(CHATML), rows, "stem_sft")
    begin = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Solve: 2 + 2?"}]
    assert found[0] == {"messages": [*begin, *turns], "tools": [{"name": "f"}], "expected_answer": "4"}
    assert found[1]["messages"][2:] == [{"role": "assistant", "content": "It is \\boxed{4}."}]


def test_problems_for_reinforcement_learning(tmp_path: Path, tokenizer: Callable[[str], str]) -> None:
    rows = [
        ROW,
        {**ROW, "problem": "None?", "expected_answer": None},
        {**ROW, "problem": "Empty?", "expected_answer": ""},
    ]
    [row] = rendered(tmp_path, tokenizer(CHATML), rows, "math_rl", metadata={"task_name": "sums"})
    assert row["input"].endswith("Solve: 2 + 2?<|im_end|>\n<|im_start|>assistant\n")
    assert {key: row[key] for key in row if key != "input"} == {
        "problem": "2 + 2?",
        "expected_answer": "4",
        "task_name": "sums",
    }


def test_a_field_that_the_prompt_asks_for_is_kept_for_it(tmp_path: Path, tokenizer: Callable[[str], str]) -> None:
    prompt = tmp_path / "own.yaml"
    prompt.write_text("user: '{context}: {problem}'\n")
    [row] = rendered(tmp_path, tokenizer(CHATML), [{**ROW, "context": "Sums"}], prompt_config=str(prompt))
    assert "Sums: 2 + 2?" in row["input"]
    with pytest.raises(DataError, match="no field 'context'"):
        rendered(tmp_path, tokenizer(CHATML), [ROW], prompt_config=str(prompt))
