# SPDX-License-Identifier: Apache-2.0
"""The page on the library: its code runs as it stands, in TRL's own function, and in threads of Ray's workers."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import newskills_math

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "math-library.md").read_text(encoding="utf-8")
README = (ROOT / "libs" / "newskills-math" / "README.md").read_text(encoding="utf-8")
SOLUTIONS = [r"\frac{1}{3}", r"\frac{1}{3}", "$x+1$", "52_8"]
REPLIES = [r"It is \boxed{2/6}.", r"It is \boxed{\frac{1}{2}}.", r"So $\boxed{1+x}$.", r"\boxed{52_9}"]
WORTH = [1.0, 0.0, 1.0, 0.0]


def block(heading: str) -> dict[str, Any]:
    """What the code below a heading of the page defines."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, f"{heading} on the page", "exec"), names)
    return names


def completions() -> list[list[dict[str, str]]]:
    return [[{"role": "assistant", "content": reply}] for reply in REPLIES]


def in_threads(work: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(4) as pool:
        return [job.result() for job in [pool.submit(work) for _ in range(4)]]


@pytest.mark.parametrize("text", [PAGE, README], ids=["page", "README"])
def test_the_first_lines_work(text: str) -> None:
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    names: dict[str, Any] = {}
    checked = 0
    for line in filter(None, code.splitlines()):
        program, _, result = line.partition("  # ")
        if result:
            assert repr(eval(program, names)) == result
            checked += 1
        else:
            exec(program, names)
    assert checked == 2


@pytest.mark.parametrize("trainer", ["TRL", "open-r1"])
def test_reward_functions_of_completions(trainer: str) -> None:
    reward = block(trainer)["accuracy_reward"]
    for rewards in in_threads(lambda: reward(completions(), solution=SOLUTIONS)):
        assert rewards == WORTH


def test_what_is_undecided_gets_no_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    names = block("TRL")
    names["compare"] = lambda gold, answer: newskills_math.AnswerComparison(None, "no time left")
    assert names["accuracy_reward"](completions()[:1], solution=SOLUTIONS[:1]) == [None]


def test_the_score_of_verl() -> None:
    score = block("verl")["compute_score"]
    assert [score("math", reply, gold) for reply, gold in zip(REPLIES, SOLUTIONS, strict=True)] == WORTH


def test_the_metric_of_nemo_rl() -> None:
    names = block("NeMo-RL")
    assert (names["score"], names["extracted"]) == (1.0, ([r"\frac{1}{4}"], ["0.25"]))
    scores = [
        names["verify_func"]([rf"\boxed{{{gold.strip('$')}}}"], [reply])[0]
        for reply, gold in zip(REPLIES, SOLUTIONS, strict=True)
    ]
    assert scores == WORTH


def test_the_functions_stand_in_for_those_of_trl(monkeypatch: pytest.MonkeyPatch) -> None:
    rewards = pytest.importorskip(
        "trl.rewards.accuracy_rewards", reason="no TRL here: pip install 'newskills[trl]'"
    )
    pytest.importorskip("math_verify", reason="no math-verify here: pip install 'newskills[math]'")
    for name in ("LatexExtractionConfig", "parse", "verify"):
        monkeypatch.setattr(rewards, name, getattr(newskills_math, name))
    for result in in_threads(lambda: rewards.accuracy_reward(completions(), SOLUTIONS)):
        assert result == WORTH
