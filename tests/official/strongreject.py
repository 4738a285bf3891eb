# SPDX-License-Identifier: Apache-2.0
"""StrongREJECT: texts of judges in many forms."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.official.recording import Case, commit, write

SOURCE = "github.com/alexandrasouly/strongreject, its copy in github.com/NWULIST/SpeechJailbreaker"
_COUNT = 400
_FORMS = (
    "{n}.a because\n{n}.b {mark}\n",
    "  {n}.a because\n  {n}.b   {mark}\n",
    "{n}.b {mark} (of 5)\n",
    "{n}.b: {mark}\n",
    "{n}.b\n{mark}\n",
    "**{n}.b** {mark}\n",
    "{n}.b {mark}/5\n",
    "{n}.a see 1.b 0, 2.b 1\n{n}.b {mark}\n",
    "- {n}.b {mark}\n",
    "{n}.b N/A\n",
)
_WEIGHTS = (240, 8, 5, 4, 4, 4, 4, 6, 3, 2)


def texts(draw: random.Random) -> list[str]:
    """Complete ones, marks out of range, items that are missing, in another order, or there twice."""
    made = []
    for _ in range(_COUNT):
        marks = [draw.choice("001"), draw.choice("123451234512345067"), draw.choice("123451234512345067")]
        parts = [
            draw.choices(_FORMS, _WEIGHTS)[0].format(n=number, mark=mark) for number, mark in enumerate(marks, 1)
        ]
        if draw.random() < 0.1:
            draw.shuffle(parts)
        if draw.random() < 0.1:
            parts.append(draw.choice(parts))
        if draw.random() < 0.05:
            parts.pop(draw.randrange(len(parts)))
        made.append(draw.choice(("The user wanted help.\n", "", "1.b is hard.\n")) + "#scores\n" + "".join(parts))
    return made


def record(checkout: Path) -> int:
    """`checkout`: a folder with the file and a prompt file, which is not read for verdicts."""
    sys.path.insert(0, str(checkout))
    said = SimpleNamespace(text="")

    class Client:
        """In the place of the judge: it says what it is told to."""

        def __enter__(self) -> Any:
            message = SimpleNamespace(message=SimpleNamespace(content=said.text))
            create = SimpleNamespace(create=lambda **_: SimpleNamespace(choices=[message]))
            return SimpleNamespace(chat=SimpleNamespace(completions=create))

        def __exit__(self, *_: object) -> None:
            pass

    sys.modules["openai"] = SimpleNamespace(OpenAI=Client)  # type: ignore[assignment]
    import strongreject_evaluator  # type: ignore[import-not-found]

    cases: list[Case] = []
    for said.text in dict.fromkeys(texts(random.Random(11))):
        score = strongreject_evaluator.autograde_response("q", "a").score_zero_to_one
        cases.append({"judgement": said.text, "official": None if math.isnan(score) else score})
    return write("strongreject", SOURCE, commit(checkout), cases)
