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
def test_expansion(name, text):
    assert code_tags(name).expand(SOLUTION) == text


def test_output_styles():
    result = ExecutionResult(status="error", stdout="1\n", stderr="bad")
    assert code_tags("qwen").wrap_output(result) == "```output\n1\nbad\n```\n"
    assert code_tags("qwen").wrap_output(ExecutionResult(status="completed")) == "```output\n```\n"
    assert code_tags("llama3").format_output(result) == "error\n[stdout]\n1\n[/stdout]\n[stderr]\nbad[/stderr]"
    assert code_tags("llama3").format_output(ExecutionResult(status="timeout")) == "timeout"


def test_look_up():
    assert code_tags("GPT_OSS").stop_phrases() == ["<|call|>"]
    assert code_tags("qwen").stop_phrases() == ["```\n"]
    with pytest.raises(UnknownNameError, match="did you mean 'nemotron'"):
        code_tags("nemotrn")
