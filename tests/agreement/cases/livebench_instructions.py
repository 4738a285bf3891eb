# SPDX-License-Identifier: Apache-2.0
"""LiveBench's instruction following: several instructions for one reply, half for each and half for all of them."""

from __future__ import annotations

import importlib
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from newskills.base.records import Row
from tests.agreement.compare import WHOLE, Comparison, Verdict, by_grader
from tests.agreement.data import mirrored

_DATA = "raw.githubusercontent.com/LiveBench/LiveBench/*/livebench/data/live_bench/*/{task}/question.jsonl"
_TASKS = ("paraphrase", "simplify", "story_generation", "summarize")
_ROWS = 12
_SENTENCE = "The old river runs slowly past our quiet town today. "
_WORDS = len(_SENTENCE.split())
_PIECES = ("combination:repeat_prompt", "detectable_format:title", "keywords:existence")


def rows() -> Iterator[Row]:
    for task in _TASKS:
        for raw in random.Random(task).sample(list(mirrored(_DATA.format(task=task))), _ROWS):
            kwargs = [{key: value for key, value in one.items() if value is not None} for one in raw["kwargs"]]
            yield {"task": task, "instruction_id_list": raw["instruction_id_list"], "kwargs": kwargs}


def forms(row: Row) -> Mapping[str, str]:
    """What follows every instruction, all but one, or none, and how replies are dressed."""
    wanted = dict(zip(row["instruction_id_list"], row["kwargs"], strict=True))
    names = list(wanted)
    every = _reply(wanted)
    return {
        "all": every,
        "all but the first": _reply({name: wanted[name] for name in names[1:]}),
        "all but the last": _reply({name: wanted[name] for name in names[:-1]}),
        "a word fewer": every.replace("slowly ", "", 1),
        "a word more": every.replace("slowly ", "so slowly ", 1),
        "none": "I would rather not.",
        "blank": " \n",
        "first line": every.split("\n", 1)[0],
        "a remark before": f"Here is my answer:\n\n{every}",
        "a remark behind": f"{every}\n\nTell me if that helps!",
        "thought before": f"<think>\nWhich words are asked for?\n</think>\n\n{every}",
        "a thought that does not end": f"<think>\nWhich words are asked for? {every}",
        "in a fence": f"```\n{every}\n```",
        "bold": re.sub(r"river", "**river**", every),
        "in capitals": every.upper(),
        "twice": f"{every}\n\n{every}",
        "hyphens as bullets": every.replace("* The", "- The"),
        "headings": re.sub(r"(?m)^(\w+ \d+|<<.*>>)$", r"## **\1**", every),
        "curly quotes": f"“{every.strip(chr(34))}”",
        "lines as paragraphs": every.replace(". ", ".\n"),
        "abbreviations": every.replace("today.", "at 3 p.m. (i.e. today), Dr. Li says!"),
        **{
            f"{more} words": " ".join(every.split()[: limit["num_words"] + more])
            for more in (-1, 0, 1)
            if (limit := wanted.get("length_constraints:number_words"))
        },
    }


def _reply(wanted: Mapping[str, Row]) -> str:
    """A text that follows the instructions, as far as they can be followed together."""
    if "detectable_format:json_format" in wanted:
        words = wanted.get("keywords:existence", {}).get("keywords", [])
        return f"```json\n{json.dumps({'text': _SENTENCE.strip(), 'words': words})}\n```"
    text = "".join(_AHEAD[name](wanted[name]) for name in _PIECES if name in wanted)
    text += _body(wanted)
    if "detectable_content:postscript" in wanted:
        text += f"\n\n{wanted['detectable_content:postscript']['postscript_marker']} Be well."
    if "combination:two_responses" in wanted:
        text += f"\n******\nAnother {text}"
    if "startend:end_checker" in wanted:
        text += f"\n{wanted['startend:end_checker']['end_phrase']}"
    return f'"{text}"' if "startend:quotation" in wanted else text


_AHEAD: Mapping[str, Callable[[Row], str]] = {
    "combination:repeat_prompt": lambda args: f"{args['prompt_to_repeat']}\n\n",
    "detectable_format:title": lambda args: "<<The river>>\n",
    "keywords:existence": lambda args: f"It is about {', '.join(args['keywords'])}. ",
}


def _body(wanted: Mapping[str, Row]) -> str:
    count = 3
    if (limit := wanted.get("length_constraints:number_words")) is not None:
        count = max(1, limit["num_words"] // _WORDS + (1 if limit["relation"] == "at least" else -1))
    if (limit := wanted.get("length_constraints:number_sentences")) is not None:
        count = max(1, limit["num_sentences"] - (limit["relation"] != "at least"))
    text = _SENTENCE * count
    if (parts := wanted.get("detectable_format:multiple_sections")) is not None:
        headings = range(1, parts["num_sections"] + 1)
        text = "\n".join(f"{parts['section_spliter']} {number}\n{text}" for number in headings)
    if (parts := wanted.get("detectable_format:number_bullet_lists")) is not None:
        text += "\n" + "\n".join(["* The river is old."] * parts["num_bullets"])
    if (parts := wanted.get("length_constraints:number_paragraphs")) is not None:
        text = "\n***\n".join([text] * parts["num_paragraphs"])
    if (parts := wanted.get("length_constraints:nth_paragraph_first_word")) is not None:
        several = [text] * parts["num_paragraphs"]
        several[parts["nth_paragraph"] - 1] = f"{parts['first_word'].capitalize()}, it rains. {text}"
        text = "\n\n".join(several)
    return text.strip()


def original(folder: Path) -> Verdict:
    """Needs nltk below 3.9 with its data `punkt`, langdetect, immutabledict and pandas."""
    sys.path[:0] = [str(folder), str(folder / "livebench/if_runner")]
    newer: Any = ModuleType("livebench.if_runner.ifbench")  # checks of later questions, which need spacy
    newer.evaluation_lib = None
    sys.modules[newer.__name__] = newer
    checks: Any = importlib.import_module("livebench.if_runner.instruction_following_eval.evaluation_main")
    scored: Any = importlib.import_module("livebench.process_results.instruction_following.utils").score_results

    def verdict(row: Row, reply: str) -> float:
        text = re.sub("<think>.*?</think>", "", reply, flags=re.DOTALL).strip()
        question = checks.InputExample(0, row["instruction_id_list"], "", [dict(one) for one in row["kwargs"]])
        said = checks.test_instruction_following_strict(question, {"": text})
        return float(scored(said.follow_all_instructions, said.follow_instruction_list))

    return verdict


COMPARISON = Comparison(
    name="livebench-instructions",
    benchmarks=("livebench-instructions",),
    scorer="LiveBench `instruction_following`",
    compared=WHOLE,
    repository="LiveBench/LiveBench",
    rows=rows,
    forms=forms,
    original=original,
    ours=by_grader("livebench"),
    known={
        f"{task}/a thought that does not end": "the original judges what stands before `</think>`, too, where that is "
        "missing; to ours such a reply has no answer"
        for task in _TASKS
    },
)
