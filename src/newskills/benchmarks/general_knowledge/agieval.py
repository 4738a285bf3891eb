# SPDX-License-Identifier: Apache-2.0
"""Examinations for people, English and Chinese, in 21 tasks (Zhong et al. 2023, arXiv:2304.06364)."""

import re
from collections.abc import Callable
from functools import partial

from newskills.base.benchmark import Benchmark, Drop, Group, Source
from newskills.base.records import Row
from newskills.benchmarks.text import choices

_SEVERAL = "(More than one option may be right: give the letters of all right ones.)"
_OWN_LETTER = re.compile(r"\A\s*(?:\(([A-G])\)|([A-G])(?:[?.．、:]|\s))\s*")


def options_of(raw: list[str]) -> list[str]:
    """Return the options in the order of the letters that they carry, without these letters.

    A letter counts where all options have one or it stands in brackets: `A cat` may be a text. Where two have the same
    one, the places count.
    """
    marks = [_OWN_LETTER.match(option) for option in raw]
    if not all(marks):
        marks = [mark if mark and mark[1] else None for mark in marks]
    texts = [option[mark.end() if mark else 0 :].strip() for option, mark in zip(raw, marks, strict=True)]
    order = [(mark[1] or mark[2]) if mark else "ABCDEFG"[place] for place, mark in enumerate(marks)]
    if len(set(order)) < len(order):
        return texts
    return [text for _, text in sorted(zip(order, texts, strict=True))]


def choice_row(task: str, raw: Row, index: int) -> Row | Drop:
    label = "".join(sorted(set("".join(raw["label"])) & set("ABCDEFG")))
    if not label:
        return Drop("the source marks no option as right")
    passage = f"{raw['passage'].strip()}\n\n" if raw["passage"] else ""
    several = f"\n{_SEVERAL}" if task in _MULTIPLE else ""
    question = f"{passage}{raw['question'].strip()}{several}"
    return {
        "expected_answer": label,
        **choices(question, options_of(raw["options"])),
        "subset_for_metrics": task,
    }


def cloze_row(task: str, raw: Row, index: int) -> Row:
    return {
        "problem": raw["question"],
        "expected_answer": raw["answer"].replace(";", ", "),
        "subset_for_metrics": task,
    }


_URL = "https://raw.githubusercontent.com/ruixiangcui/AGIEval/main/data/v1/"
_COMMIT = "5c77d073fda993f1652eaae3cf5d04cc5fd21d40"
_MULTIPLE = ("gaokao-physics", "jec-qa-ca", "jec-qa-kd")
_CLOZE = ("gaokao-mathcloze", "math")

# Task → rows and digest of its file.
_TASKS = {
    "aqua-rat": (254, "cff42e946e6082dacb27285dae19cb4be98408ab760fe43c6c462e543be50572"),
    "gaokao-biology": (210, "198fd16479ae8640403d6332e986370a66df91c6bdafbc5edc6d6348664af25c"),
    "gaokao-chemistry": (207, "5b81e042c69bf923caa50b7466b06937639b957f37643318de98060efacb397d"),
    "gaokao-chinese": (246, "1ddcf8fa15e07a25589796dc1c72a341c2d874af8de41970262d66693f95285f"),
    "gaokao-english": (306, "2de1b1e5d9718d908ffb46665e949bff83bef956ad8b7de16ea412e058162b01"),
    "gaokao-geography": (199, "1170cb39171d6dfc35bd52a52505e5a120cf400abc697f282d0739db6181713b"),
    "gaokao-history": (235, "27350771d399814fc69dd6d7e6ce115b7913ae208e04e385a7e6fcdf51a6b8b7"),
    "gaokao-mathcloze": (118, "088675c147794970a3ed25c7147a3bbc59715d6813837d5f483f46dcb1b5008d"),
    "gaokao-mathqa": (351, "d246f12752d121289ef55cbf1bcf954243cefb65d110f71d09358e24065c808f"),
    "gaokao-physics": (200, "a8cbc26d9edce4a280c5ffd9d026c5a6ca1eb6a9d801f04283861e69b3318fd5"),
    "jec-qa-ca": (1000, "580550e17856d8b08cf8b0b821fbc0f872b51f0e174bebfa332cf1ee96df4259"),
    "jec-qa-kd": (999, "e3c66086b3f02eb6bc38e6a811d625246e25daa65488354c23bd9df38df5319e"),
    "logiqa-en": (651, "63d0e8efaca1944e7eac5037903650f92ca9c036155a66b4e95bf2aa06da1702"),
    "logiqa-zh": (651, "bae5d51cd3510995d417819e75c89245988dbabeeb3830aa23f6309142f2ffae"),
    "lsat-ar": (230, "3b3e3fe09a07c695326adb82f38da0d67d5bbaadab41551f198c3102f1ea9dc8"),
    "lsat-lr": (510, "c6acb4d843db7b515da4d853e52bb8e6e5f776910f2e35a1805634db24bf94ea"),
    "lsat-rc": (269, "0eed491b3099d66b8110d4fabb98ce43285a6ac61ea5643285eec11b8abce202"),
    "math": (1000, "43e783af2025318125a96a970a0df37941124a5c0dabea382a12ce1b04651a11"),
    "sat-en": (206, "33fe87b32ff16ae7ba52b27bb398190b082253b3617a3eb9737005262ba12dd4"),
    "sat-en-without-passage": (206, "77eb57bb6f6f39466d5d169de5253e77755ef521ad6692f582307672affbf593"),
    "sat-math": (220, "9cde4c0522b6196852a5562db6e72bf8817b4802822db0fc10013d1becdab3c3"),
}
_SEVERAL_RIGHT = dict.fromkeys(
    (f"agieval.gaokao-mathqa-test-{place}" for place in (148, 149, 245, 246, 247, 285, 286)),
    "several options are right, and the original reads one letter",
)
_FIVE = ("aqua-rat", "lsat-ar", "lsat-lr", "lsat-rc")


def _benchmark(task: str, items: int, sha256: str) -> Benchmark:
    row: Callable[[str, Row, int], Row | Drop]
    row, prompt, grader, metric, chance = choice_row, "eval/aai/mcq-10choices", "multichoice", "multichoice", 0.25
    if task in _CLOZE:
        row, prompt, grader, metric, chance = cloze_row, "generic/math", "math", "math", 0.0
    elif task in _MULTIPLE:
        prompt, grader, chance = "generic/general-boxed", "option_set", 1 / 15
    if task in _FIVE:
        chance = 0.2
    return Benchmark(
        name=f"agieval.{task}",
        category="general-knowledge",
        title=f"AGIEval: {task.replace('-', ' ')}",
        sources=(Source(url=f"{_URL}{task}.jsonl", revision=_COMMIT, sha256=sha256),),
        row=partial(row, task),
        prompt=prompt,
        grader=grader,
        metric=metric,
        items={"test": items},
        licence="MIT (repository); examinations keep their own terms",
        homepage="https://github.com/ruixiangcui/AGIEval",
        citation="arXiv:2304.06364",
        chance=chance,
        misprints=_SEVERAL_RIGHT if task == "gaokao-mathqa" else {},
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
