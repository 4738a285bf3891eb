# SPDX-License-Identifier: Apache-2.0
"""FollowBench: replies to instructions that a rule decides on, and texts of judges for the others."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from tests.official.recording import Case, commit, write

SOURCE = "github.com/YJiangcm/FollowBench"
_KINDS = ("content", "situation", "style", "format", "example", "mixed")
_RULED = 900
"""Of the attempts that rules decide on: those that are kept."""
_SUMMARIES = (
    "Potter turns older today. The actor will not waste cash. New films have come out.",
    "Potter turns older today.  The lavish actor will wait. The films has been made",
    "Police are running an operation near the town",
    "Police are running an operation near Newton Stewart.",
    "They put off their stuff all day.",
    "They procrastinate over stuff, again!",
    "two people were found alive in a forest",
    "two people were found alive in a bus",
    "Two people were found, alive in it. Now",
    "We show that activations of a network can be sparse",
    "We show that activations of a transformer can be sparse.",
    "In this work we show little. It is short",
)
_PARAGRAPHS = tuple(
    "\n\n".join(f"{start}{' '.join(['word'] * words)}{end}" for _ in range(number)) + tail
    for number in (2, 3, 4)
    for start, words in (("", 5), ("1. ", 25), ("", 25))
    for end in (".", " and more! Then stop.", "")
    for tail in ("", "\n\nThose are suggestions", " Those are suggestions")
)
_POINTS = tuple(
    "\n".join(
        f"{open_}{number}. Growth:{close} {' '.join(['plan'] * words)}{end}" for number in range(1, count + 1)
    )
    for count in (4, 5)
    for open_, close in (("**", "**"), ("", ""), ("**", ""))
    for words in (4, 10, 18)
    for end in (".", ". And more.", "")
)


def replies(row: Case, others: list[str], draw: random.Random) -> list[str]:
    """Right ones, near ones and wrong ones."""
    target, rule = str(row["expected_answer"]), row["rule"]
    if rule == "format-22":
        return list(_PARAGRAPHS)
    if rule == "format-30":
        return list(_POINTS)
    if rule in ("cnn_dailymail", "xsum", "samsum", "gigaword", "arxiv"):
        return list(_SUMMARIES)
    if rule == "example":
        form = target.replace("{instruction}\n", "").replace("{{", "{").replace("}}", "}")
        whole = form.replace("{answer}", "Paris (France).")
        return [
            whole,
            whole.lower(),
            whole + "\n",
            f"The answer: {whole}",
            form,
            form.replace("{answer}", "a\nb"),
            "x",
        ]
    elements = re.findall(r"'([^']*)'", target) or target.split("\n")
    made = [
        target,
        *elements[:2],
        target.lower(),
        f"{target} ",
        f" {target}",
        f"{target}.",
        "",
        "\n".join(elements),
    ]
    made += [
        f"The answer is {target}.",
        f"{target} or (B) or 01/01/2020 or $7",
        f"(A) then {target}",
        "\n".join(elements[:2]),
    ]
    return made + draw.sample(others, min(2, len(others)))


def judge_texts(level: int) -> list[str]:
    yes, no = ["YES"] * level, ["YES"] * (level - 1) + ["NO"]
    return [
        *(f"1) …\n2) …\n{listed}" for listed in (yes, no, ["NO"] * level, yes[:-1], [*yes, "YES"])),
        f"```\n{json.dumps(no)}\n```",
        f"3) {yes}",
        f"{yes}\nI am done.",
        str(["PARTIAL"] * level),
        str(["yes"] * level),
        "[YES, NO]",
        "Judgement: YES",
        "['YES' 'NO']",
        "",
    ]


def rows(checkout: Path) -> Iterator[Case]:
    from newskills.graders.instructions.followbench import rule_of

    for kind in _KINDS:
        for raw in json.loads((checkout / f"data/{kind}_constraints.json").read_text(encoding="utf-8")):
            if raw["level"] and (rule := rule_of(kind, raw["example_id"], raw["source"])):
                yield {"rule": rule, "level": raw["level"], "expected_answer": raw["target"]}


def _original(checkout: Path) -> tuple[ModuleType, ModuleType]:
    """Its two files; what they import for plots and nothing else is left away."""
    sys.path.insert(0, str(checkout / "code"))
    for name in ("matplotlib", "matplotlib.pyplot"):
        sys.modules[name] = SimpleNamespace(pyplot=None)  # type: ignore[assignment]
    import gpt4_based_evaluation  # type: ignore[import-not-found]
    import rule_based_evaluation  # type: ignore[import-not-found]

    return rule_based_evaluation, gpt4_based_evaluation


def record(checkout: Path) -> int:
    rules, judges = _original(checkout)
    draw = random.Random(7)
    known = list(rows(checkout))
    targets = [str(row["expected_answer"]) for row in known]
    cases: list[Case] = []
    for row in known:
        for reply in dict.fromkeys(replies(row, targets, draw)):
            cases.append({**row, "generation": reply, "official": bool(_verdict(rules, row, reply))})
    cases = draw.sample(cases, _RULED)
    for level in range(1, 6):
        for text in judge_texts(level):
            hard, soft = judges.paring_discriminative_generation(text, level)
            cases.append({"level": level, "judgement": text, "official": None if hard == -1 else [hard, soft]})
    return write("followbench", SOURCE, commit(checkout), cases)


def _verdict(rules: Any, row: Case, reply: str) -> bool:
    rule, target, level = row["rule"], row["expected_answer"], row["level"]
    if rule == "example":
        return bool(rules.check_match(target.replace("{instruction}\n", ""), reply))
    if rule.startswith("format-"):
        try:
            return bool(rules.rule_evaluation_format(reply, int(rule.removeprefix("format-")), level))
        except IndexError:
            return False
    return bool(getattr(rules, f"rule_evaluation_{rule}")(reply, target, level))
