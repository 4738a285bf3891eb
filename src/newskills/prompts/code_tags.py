# SPDX-License-Identifier: Apache-2.0
"""How a model marks code that is to be run, and how the output is handed back: one row per model family."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from newskills.base.errors import UnknownNameError
from newskills.base.protocols import ExecutionResult
from newskills.base.registry import fold

DEFAULT_CODE_TAGS = "qwen"


class CodeTags(Struct, frozen=True, kw_only=True):
    """`style`: qwen hands back the raw output, llama a status line and labelled blocks."""

    name: str
    begin: str
    end: str
    output_begin: str
    output_end: str
    style: Literal["qwen", "llama"] = "qwen"

    def stop_phrases(self) -> list[str]:
        """What ends a generation that asks for code to be run."""
        return [self.end]

    def format_output(self, result: ExecutionResult) -> str:
        """The text between the output tags."""
        if self.style == "qwen":
            return result.stdout + result.stderr
        text = result.status
        for label, content in (("stdout", result.stdout), ("stderr", result.stderr)):
            if content:
                text += f"\n[{label}]\n{content}[/{label}]"
        return text

    def wrap_output(self, result: ExecutionResult) -> str:
        """The output between its tags, as it is appended to the conversation."""
        return self._between(self.format_output(result))

    def expand(self, text: str) -> str:
        """Puts these tags in the places `{code_begin}` … `{code_output_end}` of an example's solution.

        What stands between the output places is re-formatted in this style. Other braces stay as they are.
        """
        pieces = text.split("{code_output_begin}")
        done = [pieces[0]]
        for piece in pieces[1:]:
            output, _, rest = piece.partition("{code_output_end}")
            result = ExecutionResult(status="completed", stdout=output.removeprefix("\n"))
            done += [self.wrap_output(result), rest.removeprefix("\n")]
        return "".join(done).replace("{code_begin}\n", self.begin).replace("{code_end}\n", self.end)

    def _between(self, output: str) -> str:
        if self.style == "llama":
            return f"{self.output_begin}{output}{self.output_end}"
        newline = "" if not output or output.endswith("\n") else "\n"
        return f"{self.output_begin}{output}{newline}{self.output_end}"


_TABLE = (
    CodeTags(name="qwen", begin="```python\n", end="```\n", output_begin="```output\n", output_end="```\n"),
    CodeTags(name="qwen-lean", begin="```lean4\n", end="```\n", output_begin="```output\n", output_end="```\n"),
    CodeTags(
        name="openmath",
        begin="<llm-code>\n",
        end="</llm-code>\n",
        output_begin="<llm-code-output>\n",
        output_end="</llm-code-output>\n",
    ),
    CodeTags(
        name="nemotron",
        begin="<tool_call>",
        end="</tool_call>",
        output_begin="\n```output\n",
        output_end="```\n",
    ),
    CodeTags(
        name="llama3",
        begin="<|python_tag|>",
        end="<|eom_id|>",
        output_begin="<|start_header_id|>ipython<|end_header_id|>\n\n",
        output_end="<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        style="llama",
    ),
    CodeTags(
        name="gpt-oss",
        begin="<|start|>assistant<|channel|>analysis to=python code<|message|>",
        end="<|call|>",
        output_begin="<|start|>python code to=assistant<|channel|>analysis<|message|>",
        output_end="<|end|><|start|>assistant",
    ),
)
CODE_TAGS: dict[str, CodeTags] = {tags.name: tags for tags in _TABLE}


def code_tags(name: str) -> CodeTags:
    """Raises UnknownNameError."""
    for tags in _TABLE:
        if fold(tags.name) == fold(name):
            return tags
    raise UnknownNameError("code tags", name, CODE_TAGS)
