# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.graders.code.extract import extract_code


@pytest.mark.parametrize(
    ("text", "code", "how"),
    [
        ("```python\nx = 1\n```", "x = 1", "language"),
        ("```python\nx = 1\n```\nor rather\n```python\nx = 2\n```", "x = 2", "language"),
        ("```python3\nx = 1\n```", "x = 1", "language"),
        ("```\nx = 0\n```\n```python\nx = 1\n```\n```\nx = 2\n```", "x = 1", "language"),
        ("```\nx = 1\n```\nIt prints\n```\n7\n```", "7", "generic"),
        ("```py\nx = 1\n```\n```output\n7\n```", "x = 1", "generic"),
        ("```python\r\nif x:\r\n    y = 1\r\n```", "if x:\n    y = 1", "language"),
        ("```python\n    return 1\n```", "    return 1", "language"),
        ('```python\nx = """\na ``` b\n"""\n```', 'x = """\na ``` b\n"""', "language"),
        ("```python\nx = 1 ```", "x = 1", "language"),
        ("  ```python\n  x = 1\n  ```", "  x = 1", "language"),
        ("```python\nx = 1", "", "unclosed"),
        ("```python\nx = 1\n```\n```python\nx = 2", "", "unclosed"),
        ("```\nx = 1", "", "unclosed"),
        ("```python\n\n```", "", "empty"),
        ("    return 1\n", "    return 1", "whole"),
        ("", "", "empty"),
        (" \n ", "", "empty"),
        ("<think>```python\nx = 0\n```</think>```python\nx = 1\n```", "x = 1", "language"),
        ("a</think>b</think>```python\nx = 1\n```", "x = 1", "language"),
        ("<think>```python\nx = 0\n```", "", "thinking"),
        ("<think>```python\nx = 0\n```</think>I give up.", "I give up.", "whole"),
    ],
)
def test_programs_in_answers(text: str, code: str, how: str) -> None:
    found = extract_code(text)
    assert (found.code, found.how) == (code, how)


SOLUTION = "def f(x):\n    return x"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"```python\n{SOLUTION}\n```\nTests:\n```python\nassert f(1) == 1\n```", SOLUTION),
        (
            f"```python\ndef f(x):\n    return 0\n```\nBetter:\n```python\n{SOLUTION}\n```\n```python\nf(2)\n```",
            SOLUTION,
        ),
        (f"```python\n{SOLUTION}\n```\n```python\nf = abs\n```", "f = abs"),
        (f"```python\n{SOLUTION}\n```\n```python\n    return 2\n```", "    return 2"),
        (f"```python\n{SOLUTION}\n```\n```python\nf(2)", SOLUTION),
        (f"```python\n{SOLUTION}\n```\nFor example:\n```\nf(2)", SOLUTION),
        (f"```\n{SOLUTION}\n```\n```python\nf(2)\n```", SOLUTION),
        (f"```python\n{SOLUTION}", SOLUTION),
        (f"```python\n{SOLUTION}\n\nThis returns its argument, e.g. f(2) is 2.", SOLUTION),
        (f"```python\n{SOLUTION}\n\nprint(f(2", SOLUTION),
        (f"```python\n{SOLUTION}\n\nclass C:\n    def g(", SOLUTION),
        ("```python\ndef f(x):\n    return (x +", ""),
        ("```python\ndef g(x):\n    return x", ""),
        (f"~~~python\n{SOLUTION}\n~~~", SOLUTION),
        (f"~~~\n{SOLUTION}\n~~~\nfor example", SOLUTION),
        (f"````python\n{SOLUTION}\n````", SOLUTION),
        ("1. ```python\n   def f(x):\n       return x\n   ```", SOLUTION),
        ("- Code:\n\n    ```python\n      def f(x):\n          return x\n    ```", SOLUTION),
        (
            f"```python\n{SOLUTION}\n```<|im_end|>\n<|im_start|>user\n```python\ndef f(x):\n    return 1\n```",
            SOLUTION,
        ),
        (f"[THINK]```python\ndef f(x):\n    return 1\n```[/THINK]```python\n{SOLUTION}\n```", SOLUTION),
        (f"[THINK]```python\n{SOLUTION}\n```", ""),
        (f"```python\n{SOLUTION}  # no <thinking>\n```", f"{SOLUTION}  # no <thinking>"),
        ("```python\nx = 1\n```\n```python\ng(2)\n```", "g(2)"),
        ("1. Return it:\n\n   ```python\n   def f(x):\n       return x\n   ```", SOLUTION),
        ("  ```\n  import m\n\n  def f(x):\n      return x\n  ```", "import m\n\ndef f(x):\n    return x"),
        ("    ```python\n    return x\n    ```", "    return x"),
    ],
)
def test_the_block_that_defines_the_function(text: str, code: str) -> None:
    assert extract_code(text, wanted="f").code == code


def test_an_open_block_without_a_name_is_a_program_only_as_a_whole() -> None:
    assert extract_code(f"```python\n{SOLUTION}\nprint(f(2))").code == f"{SOLUTION}\nprint(f(2))"
    assert extract_code(f"```python\n{SOLUTION}\nprint(f(2").how == "unclosed"


@given(st.integers(0, 60))
def test_a_program_that_was_cut_off_gives_no_more_than_a_whole_function(cut: int) -> None:
    """What is taken of a reply that ends anywhere is Python, and begins as the whole reply does."""
    program = "import math\n\n\ndef f(x):\n    y = math.sqrt(x)\n    return y\n\n\nf(2)"
    code = extract_code(f"```python\n{program[:cut]}", wanted="f").code
    compile(code, "answer", "exec")
    assert program.startswith(code)


PIECES = ["```", "python", "py", "\n", " ", "x", "<think>", "</think>", "\r"]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text(text: str) -> None:
    found = extract_code(text)
    assert found.code in text.replace("\r", "")
    assert bool(found.code) == (found.how in ("language", "generic", "whole"))


@given(st.text(), st.text())
def test_what_stands_in_a_block_is_found(before: str, code: str) -> None:
    code = code.replace("\r", "").replace("`", "").strip("\n").rstrip()
    before = before.replace("`", "").replace("<", "")
    assert extract_code(f"{before}\n```python\n{code}\n```").code == code
