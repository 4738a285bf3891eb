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
    """`style`: qwen hands back the raw output, llama a status line and labelled blocks.

    `new_turn`: the output's end tag begins the model's next turn, so that nothing may stand behind it.
    """

    name: str
    begin: str
    end: str
    output_begin: str
    output_end: str
    style: Literal["qwen", "llama"] = "qwen"
    new_turn: bool = False

    def stop_phrases(self) -> list[str]:
        """Return the phrases that end a generation which asks for code to be run."""
        return [self.end]

    def format_output(self, result: ExecutionResult) -> str:
        """Return the text between the output tags; code that ended badly and said nothing leaves its status."""
        if self.style == "qwen":
            output = result.stdout + result.stderr
            if not output and result.status != "completed":
                return f"{result.status}\n"
            return output
        text = result.status
        for label, content in (("stdout", result.stdout), ("stderr", result.stderr)):
            if content:
                text += f"\n[{label}]\n{content}[/{label}]"
        return text

    def wrap_output(self, result: ExecutionResult, note: str = "") -> str:
        """Return the output between its tags, as it is appended to the conversation; `note` (lines) follows the
        output."""
        output = self.format_output(result)
        if not note:
            return self.tag_output(output)
        if self.new_turn:
            if not output.strip():
                return self.tag_output(note)
            return self.tag_output(f"{output.rstrip()}\n{note}")
        return f"{self.tag_output(output)}{note}"

    def close_block(self, text: str, lead: str = "") -> str:
        """Close `text` with the end tag of a block that it leaves open; `lead` is what it goes on from."""
        whole = self._tag_start(lead, text) + text
        if whole.count(self.begin) != whole.count(self.end) + 1:
            return text
        bare = self.end.rstrip()
        if text.endswith(bare):
            return text + self.end[len(bare) :]
        return text + self.end

    def last_block(self, text: str, lead: str = "") -> str | None:
        """Return the code of the block that `text` ends with; None where it ends with something else."""
        whole = self._tag_start(lead, text) + text
        begin = whole.rfind(self.begin)
        if begin < 0 or not whole.endswith(self.end) or begin < whole.rfind(self.end, 0, -len(self.end)):
            return None
        return whole[begin + len(self.begin) : -len(self.end)]

    def _tag_start(self, lead: str, text: str) -> str:
        """Return the part of a begin tag that stands at the end of `lead` and is completed by `text`; '' where there is
        none."""
        for size in range(min(len(lead), len(self.begin)), 0, -1):
            start, rest = self.begin[:size], self.begin[size:]
            if lead.endswith(start) and text.startswith(rest):
                return start
        return ""

    def expand(self, text: str) -> str:
        """Put these tags in the places `{code_begin}` … `{code_output_end}` of an example's solution.

        What stands between the output places is re-formatted in this style. Other braces stay as they are.
        """
        pieces = text.split("{code_output_begin}")
        done = [pieces[0]]
        for piece in pieces[1:]:
            output, _, rest = piece.partition("{code_output_end}")
            result = ExecutionResult(status="completed", stdout=output.removeprefix("\n"))
            done += [self.wrap_output(result), rest.removeprefix("\n")]
        return "".join(done).replace("{code_begin}\n", self.begin).replace("{code_end}\n", self.end)

    def tag_output(self, output: str) -> str:
        """Put `output` between the output tags, which stand on lines of their own where they do so at all."""
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
        new_turn=True,
    ),
    CodeTags(
        name="gpt-oss",
        begin="<|start|>assistant<|channel|>analysis to=python code<|message|>",
        end="<|call|>",
        output_begin="<|start|>python code to=assistant<|channel|>analysis<|message|>",
        output_end="<|end|><|start|>assistant",
        new_turn=True,
    ),
)
CODE_TAGS: dict[str, CodeTags] = {tags.name: tags for tags in _TABLE}


def code_tags(name: str) -> CodeTags:
    """Return the code tags called `name`. Raises UnknownNameError."""
    for tags in _TABLE:
        if fold(tags.name) == fold(name):
            return tags
    raise UnknownNameError("code tags", name, CODE_TAGS)
