# SPDX-License-Identifier: Apache-2.0
"""DS-1000 (arXiv:2211.11501): which program a reply gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from newskills.base.records import Row
from newskills.graders.code.snippet import extract_snippet
from tests.agreement.compare import EXTRACTION, Comparison, Verdict
from tests.agreement.originals import defined

_PROGRAMS = (
    "result = df.iloc[order]",
    "df['sum'] = df['a'] + df['b']\nresult = df",
    "import numpy as np\nresult = np.where(a > 0, a, 0)",
    "def g(df):\n    return df.dropna()\n\nresult = g(df.copy())",
    "    total = sum(values)\n    return total / len(values)",
    "    # means of columns\n    return df.mean()",
    "for name in names:\n    if name:\n        result.append(name)\n\nprint(result)",
    "result = [x for x in a\n          if x > 2]",
    "plt.plot(x, y)\nplt.xlabel('x')",
    "text = 'a `b` c'\nresult = text.split()",
    "result = pd.merge(left, right,\n\n                  on='key')",
    "model.fit(X, y)\npredict = model.predict(X_test)",
    "x, y = y, x",
    "assert a.shape[0]\nresult = a.reshape(-1, 3)",
    "a[a < 0] = 0",
)
_PROSE = "We take the rows in that order, with the index kept."


def rows() -> Iterator[Row]:
    for program in _PROGRAMS:
        yield {"program": program}


def forms(row: Row) -> Mapping[str, str]:
    code = row["program"]
    return {
        "alone": code,
        "line ends": f"\n{code}\n\n",
        "carriage returns": code.replace("\n", "\r\n"),
        "tags": f"<code>\n{code}\n</code>",
        "end tag": f"{code}\n</code>",
        "end tag, mark": f"{code}\n</code>\nEND SOLUTION",
        "tags, mark, twice": f"<code>\n{code}\n</code>\nEND SOLUTION\n</code>\nEND SOLUTION\n</code>",
        "another tag": f"{code}\n<code>",
        "mark": f"{code}\nEND SOLUTION",
        "mark, prose": f"{code}\nEND SOLUTION\n\n{_PROSE}",
        "tags, prose": f"<code>\n{code}\n</code>\n{_PROSE}",
        "fence": f"```python\n{code}\n```",
        "fence, prose": f"```python\n{code}\n```\n\n{_PROSE}",
        "fence, mark in a fence": f"```python\n{code}\n```\n```python\nEND SOLUTION\n```",
        "fence, mark, print": f"```python\n{code}\n```\n```python\nEND SOLUTION\n```\n```python\nprint(df)\n```",
        "fence with the mark": f"```python\n{code}\nEND SOLUTION\n```",
        "fence with tags": f"```python\n<code>\n{code}\n</code>\n```",
        "tag, stray fence": f"<code>\n{code}\n```\nEND SOLUTION\n</code>\n{_PROSE}\n</code>\nEND SOLUTION\n</code>",
        "tag, fence, end tag": f"<code>\n```python\n{code}\n</code>\n</code>\nEND SOLUTION\n</code>",
        "prose, fence": f"{_PROSE}\n\n```python\n{code}\n```",
        "prose, plain fence": f"{_PROSE}\n\n```\n{code}\n```",
        "prose, tags": f"{_PROSE}\n<code>\n{code}\n</code>",
        "thought, fence": f"<think>{_PROSE}\n```python\nresult = 0\n```</think>\n```python\n{code}\n```",
        "plain fence": f"```\n{code}\n```",
        "fence, better fence": f"```python\nresult = 0\n```\nNo, it is:\n```python\n{code}\n```",
        "fence that never ends": f"```python\n{code}",
        "prose alone": _PROSE,
    }


def _same(code: str, row: Row) -> float:
    return float(code.replace("\r", "").strip("\n").rstrip() == row["program"])


def original(folder: Path) -> Verdict:
    """Of the copy of the authors' program, which is not in any archive that could be had, in this repository."""
    cleaned = defined(folder / "DS-1000-dataset" / "test_ds1000.py", "postprocess", List=list)
    return lambda row, reply: _same(cleaned.postprocess([reply]), row)


def ours(row: Row, reply: Any) -> float:
    return _same(extract_snippet(reply).code, row)


_BEFORE = (
    "the original takes all before the first mark, so that words, thoughts or a fence without a name spoil it"
)
COMPARISON = Comparison(
    name="ds-1000",
    benchmarks=("ds-1000",),
    scorer="DS-1000 `test_ds1000.py`, in a fork: the program of a reply",
    compared=EXTRACTION,
    repository="Soul22238/EECS487GroupProject",
    rows=rows,
    forms=forms,
    original=original,
    ours=ours,
    known={
        **dict.fromkeys(
            ("prose, fence", "prose, plain fence", "prose, tags", "thought, fence", "plain fence"), _BEFORE
        ),
        "fence, better fence": "the original takes the first block, ours the last that is a program",
        "fence that never ends": "ours takes it for cut off; the authors' calls stop before its end",
    },
    left_out=(
        "xlang-ai/DS-1000 itself, of which no copy of the repository could be had; the fork has its "
        "`test_ds1000.py` with another order of rows. What programs are worth was compared apart (`tests/official`): "
        "333 in its form, and 90 replies of models to its own tasks, are judged alike."
    ),
)
