# SPDX-License-Identifier: Apache-2.0
"""Which code of a reply is put into a program (DS-1000); tests/agreement has more, beside the authors' program."""

from __future__ import annotations

import pytest

from newskills.graders.code.snippet import extract_snippet

CODE = "result = df.iloc[order]"


@pytest.mark.parametrize(
    "reply",
    [
        CODE,
        f"<code>\n{CODE}\n</code>\nEND SOLUTION",
        f"{CODE}\n```\nEND SOLUTION\n</code>\nThe rows change their order.",
        f"```python\n{CODE}\nEND SOLUTION\n```",
        f"```python\n{CODE}\n```\n```python\nEND SOLUTION\n```\n```python\nprint(result)\n```",
        f"Solution: take the rows.\n\n```py\n{CODE}\n```\n\nIt prints\n\n```text\n   a  b\n0  1  2\n```",
        f"Take the rows:\n<code>\n{CODE}\n</code>",
        f"<think>```python\nx = 1\n```</think>\n```\n{CODE}\n```",
        f"```python\nresult = 0\n```\nBetter:\n```python\n{CODE}\n```\nIt prints\n```\n   a  b\n```",
    ],
)
def test_the_program(reply: str) -> None:
    assert extract_snippet(reply).code == CODE


def test_the_indentation_of_a_function_is_kept() -> None:
    for reply in ("{}", "```python\n{}\n```", "<code>\n{}\n### END SOLUTION\n</code>"):
        code = extract_snippet(reply.format("    x = 1\n    return x")).code
        assert code.startswith("    x = 1\n    return x")


@pytest.mark.parametrize(
    ("reply", "how"),
    [
        ("```python\nresult = 1", "unclosed"),
        ("<think>result = 1", "thinking"),
        ("", "empty"),
        ("```python\n\n```", "unclosed"),
    ],
)
def test_no_code(reply: str, how: str) -> None:
    extracted = extract_snippet(reply)
    assert (extracted.code, extracted.how) == ("", how)


@pytest.mark.parametrize("filler", ["```\n", "<code>", "</code>", "END SOLUTION\n", "(", "-", "[" * 9, "x = 1\n"])
def test_hostile_replies_cost_linear_time(filler: str) -> None:
    for text in (f"x{filler * 50_000}", f"Here:\n```python\n{filler * 50_000}\n```"):
        assert extract_snippet(text).how in ("whole", "language", "empty", "unclosed")
