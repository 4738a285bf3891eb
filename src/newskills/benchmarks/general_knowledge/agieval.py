# SPDX-License-Identifier: Apache-2.0
"""Examinations for people, English and Chinese, in 21 tasks (Zhong et al. 2023, arXiv:2304.06364)."""

import re
from functools import partial

from newskills.base.benchmark import Benchmark, Group, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices

_SEVERAL = "(More than one option may be right: give the letters of all right ones.)"
_OWN_LETTER = re.compile(r"\A\s*(?:\(([A-G])\)|([A-G])(?:[?.、:]|\s))\s*")


def options_of(raw: list[str]) -> list[str]:
    """The options in the order of the letters that they carry, without them.

    A letter counts where all options have one or it stands in brackets: `A cat` may be a text.
    """
    marks = [_OWN_LETTER.match(option) for option in raw]
    if not all(marks):
        marks = [mark if mark and mark[1] else None for mark in marks]
    texts = [option[mark.end() if mark else 0 :].strip() for option, mark in zip(raw, marks, strict=True)]
    order = [(mark[1] or mark[2]) if mark else "ABCDEFG"[place] for place, mark in enumerate(marks)]
    if len(set(order)) < len(order):
        raise ValueError(f"two options have the same letter: {raw}")
    return [text for _, text in sorted(zip(order, texts, strict=True))]


def choice(task: str, raw: Row, index: int) -> Row:
    label = raw["label"] if isinstance(raw["label"], str) else "".join(sorted(raw["label"]))
    passage = f"{raw['passage'].strip()}\n\n" if raw["passage"] else ""
    several = f"\n{_SEVERAL}" if task in _MULTIPLE else ""
    question = f"{passage}{raw['question'].strip()}{several}"
    return {
        "expected_answer": label,
        **choices(question, options_of(raw["options"])),
        "subset_for_metrics": task,
    }


def cloze(task: str, raw: Row, index: int) -> Row:
    return {
        "problem": raw["question"],
        "expected_answer": raw["answer"].replace(";", ", "),
        "subset_for_metrics": task,
    }


_URL = "https://raw.githubusercontent.com/ruixiangcui/AGIEval/main/data/v1/"
_COMMIT = "5c77d073fda993f1652eaae3cf5d04cc5fd21d40"
_MULTIPLE = ("gaokao-physics", "jec-qa-ca", "jec-qa-kd")
_CLOZE = ("gaokao-mathcloze", "math")

# Task → rows and digest of its file where it was counted, 0 and '' elsewhere.
_TASKS = {
    "aqua-rat": (254, "cff42e946e6082dacb27285dae19cb4be98408ab760fe43c6c462e543be50572"),
    "gaokao-biology": (210, "198fd16479ae8640403d6332e986370a66df91c6bdafbc5edc6d6348664af25c"),
    "gaokao-chemistry": (207, "5b81e042c69bf923caa50b7466b06937639b957f37643318de98060efacb397d"),
    "gaokao-chinese": (0, ""),
    "gaokao-english": (0, ""),
    "gaokao-geography": (0, ""),
    "gaokao-history": (0, ""),
    "gaokao-mathcloze": (118, "088675c147794970a3ed25c7147a3bbc59715d6813837d5f483f46dcb1b5008d"),
    "gaokao-mathqa": (0, ""),
    "gaokao-physics": (200, "a8cbc26d9edce4a280c5ffd9d026c5a6ca1eb6a9d801f04283861e69b3318fd5"),
    "jec-qa-ca": (0, ""),
    "jec-qa-kd": (0, ""),
    "logiqa-en": (651, "63d0e8efaca1944e7eac5037903650f92ca9c036155a66b4e95bf2aa06da1702"),
    "logiqa-zh": (0, ""),
    "lsat-ar": (230, "3b3e3fe09a07c695326adb82f38da0d67d5bbaadab41551f198c3102f1ea9dc8"),
    "lsat-lr": (510, "c6acb4d843db7b515da4d853e52bb8e6e5f776910f2e35a1805634db24bf94ea"),
    "lsat-rc": (0, ""),
    "math": (0, ""),
    "sat-en": (0, ""),
    "sat-en-without-passage": (206, "77eb57bb6f6f39466d5d169de5253e77755ef521ad6692f582307672affbf593"),
    "sat-math": (220, "9cde4c0522b6196852a5562db6e72bf8817b4802822db0fc10013d1becdab3c3"),
}
_FIVE = ("aqua-rat", "lsat-ar", "lsat-lr", "lsat-rc")


def _benchmark(task: str, items: int, sha256: str) -> Benchmark:
    blank, several = task in _CLOZE, task in _MULTIPLE
    return Benchmark(
        name=f"agieval.{task}",
        category="general-knowledge",
        title=f"AGIEval: {task.replace('-', ' ')}",
        sources=(Source(url=f"{_URL}{task}.jsonl", revision=_COMMIT if sha256 else "", sha256=sha256),),
        row=partial(cloze if blank else choice, task),
        prompt="generic/math" if blank else "generic/general-boxed" if several else "eval/aai/mcq-10choices",
        grader="math" if blank else "option_set" if several else "multichoice",
        metric="math" if blank else "multichoice",
        items={"test": items} if items else {},
        licence="MIT (repository); examinations keep their own terms",
        homepage="https://github.com/ruixiangcui/AGIEval",
        citation="arXiv:2304.06364",
        chance=0.0 if blank else 1 / 15 if several else 0.2 if task in _FIVE else 0.25,
        unverified=not items,
        traps=(
            "Options carry their own letters in the source, sometimes out of order: they are put in order here.",
        ),
    )


BENCHMARKS = tuple(_benchmark(task, *settings) for task, settings in _TASKS.items())

GROUP = Group(
    name="agieval",
    category="general-knowledge",
    title="AGIEval: examinations for people, English and Chinese",
    members={benchmark.name: {} for benchmark in BENCHMARKS if not benchmark.name.endswith("without-passage")},
    homepage="https://github.com/ruixiangcui/AGIEval",
    citation="arXiv:2304.06364",
    traps=("sat-en-without-passage, which asks about texts that are not shown, is no member.",),
)
