# SPDX-License-Identifier: Apache-2.0
import pytest

from newskills.base.errors import UnknownNameError
from newskills.base.protocols import ExecutionResult
from newskills.prompts.code_tags import code_tags

SOLUTION = "A {x}\n{code_begin}\nprint(2)\n{code_end}\n{code_output_begin}\n2\n{code_output_end}\nB"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("qwen", "A {x}\n```python\nprint(2)\n```\n```output\n2\n```\nB"),
        ("openmath", "A {x}\n<llm-code>\nprint(2)\n</llm-code>\n<llm-code-output>\n2\n</llm-code-output>\nB"),
        ("nemotron", "A {x}\n<tool_call>print(2)\n</tool_call>\n```output\n2\n```\nB"),
        (
            "llama3",
            "A {x}\n<|python_tag|>print(2)\n<|eom_id|><|start_header_id|>ipython<|end_header_id|>\n\n"
            "completed\n[stdout]\n2\n[/stdout]<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nB",
        ),
    ],
)
def test_expansion(name: str, text: str) -> None:
    assert code_tags(name).expand(SOLUTION) == text


def test_output_styles() -> None:
    result = ExecutionResult(status="error", stdout="1\n", stderr="bad")
    assert code_tags("qwen").wrap_output(result) == "```output\n1\nbad\n```\n"
    assert code_tags("qwen").wrap_output(ExecutionResult(status="completed")) == "```output\n```\n"
    assert code_tags("llama3").format_output(result) == "error\n[stdout]\n1\n[/stdout]\n[stderr]\nbad[/stderr]"
    assert code_tags("llama3").format_output(ExecutionResult(status="timeout")) == "timeout"


def test_look_up() -> None:
    assert code_tags("GPT_OSS").stop_phrases() == ["<|call|>"]
    assert code_tags("qwen").stop_phrases() == ["```\n"]
    with pytest.raises(UnknownNameError, match="did you mean 'nemotron'"):
        code_tags("nemotrn")


@pytest.mark.parametrize(
    ("name", "lead", "text", "closed", "code"),
    [
        ("qwen", "", "a\n```python\nx\n```\n", "a\n```python\nx\n```\n", "x\n"),
        ("qwen", "", "```python\nx\n", "```python\nx\n```\n", "x\n"),
        ("qwen", "", "```python\nx\n```", "```python\nx\n```\n", "x\n"),
        ("qwen", "Begin:\n```python\n", "x\n", "x\n```\n", "x\n"),
        ("qwen", "", "```python\nx\n```\nmore", "```python\nx\n```\nmore", None),
        ("qwen", "", "```json\n{}\n```\n", "```json\n{}\n```\n", None),
        ("qwen", "", "no code", "no code", None),
        ("qwen", "", "```python\na\n```\n```python\nb\n```\n", "```python\na\n```\n```python\nb\n```\n", "b\n"),
        ("nemotron", "", "<tool_call>x", "<tool_call>x</tool_call>", "x"),
        (
            "gpt-oss",
            "4<|end|><|start|>assistant",
            "<|channel|>analysis to=python code<|message|>x",
            "<|channel|>analysis to=python code<|message|>x<|call|>",
            "x",
        ),
    ],
)
def test_the_block_that_a_text_ends_with(name: str, lead: str, text: str, closed: str, code: str | None) -> None:
    tags = code_tags(name)
    assert tags.close_block(text, lead) == closed
    assert tags.last_block(closed, lead) == code


def test_a_note_follows_the_output_and_never_begins_the_next_turn() -> None:
    result = ExecutionResult(status="completed", stdout="1\n")
    assert code_tags("qwen").wrap_output(result, "[note]\n") == "```output\n1\n```\n[note]\n"
    for name in ("llama3", "gpt-oss"):
        tags = code_tags(name)
        assert tags.wrap_output(result, "[note]\n").endswith(f"[note]\n{tags.output_end}")


def test_code_that_ended_badly_without_a_word_shows_its_status() -> None:
    assert code_tags("qwen").wrap_output(ExecutionResult(status="crashed")) == "```output\ncrashed\n```\n"
