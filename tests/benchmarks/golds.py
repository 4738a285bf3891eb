# SPDX-License-Identifier: Apache-2.0
"""Prepared rows with prompts, and with a right and a wrong reply by the grader of their benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from string import ascii_uppercase
from typing import Literal

from tests.graders.plain import plain_grader

from newskills.base.benchmark import Benchmark
from newskills.base.records import Row, Score
from newskills.graders import is_executing
from newskills.graders.gold import gold_reply
from newskills.graders.multichoice import count_choices
from newskills.prompts.prompt_sets import USUAL_SET, load_prompt_set
from newskills.prompts.renderer import PromptOverrides, load_prompt
from newskills.run.validation.inspection import ANSWERED

_FAR = "918273645.546372"


def _another_option(row: Row) -> str:
    """A letter that the answer does not name, or a number where it is one."""
    answer = str(row["expected_answer"])
    return next(letter for letter in "ABCDE" if letter not in answer) if answer.isalpha() else _FAR


def _other_letter(row: Row) -> str:
    count = count_choices(row)
    return ascii_uppercase[(ascii_uppercase.index(row["expected_answer"]) + 1) % count]


def _other_text(row: Row) -> str:
    if row["measure"] == "choice":
        return f"Answer: {_other_letter(row)}"
    return "It is 918273645" if row["measure"] == "last_number" else f"{_FAR} nothing of the kind"


WRONG: dict[str, Callable[[Row], str]] = {
    "math": lambda row: f"\\boxed{{{_FAR}}}",
    "multichoice": lambda row: f"Answer: {_other_letter(row)}",
    "option_set": lambda row: f"\\boxed{{{_another_option(row)}}}",
    "jeebench": lambda row: f"\\boxed{{{_another_option(row)}}}",
    "dsbench": lambda row: f"\\boxed{{{_FAR}}}",
    "exact": lambda row: f"{_FAR} {row['expected_answer']}",
    "exact, brackets": lambda row: f"[[{_FAR} {row['expected_answer']}]]",
    "short_answer": lambda row: f"Answer: {_FAR}",
    "json_schema": lambda row: json.dumps(f"no such document {_FAR}"),
    "grid_match": lambda row: json.dumps([[[9]], *row["expected_answer"][1:]]),
    "document": lambda row: f"{_FAR} is all that this page says.",
    "logic_grid": lambda row: json.dumps(
        {"solution": {"House 1": dict.fromkeys(row["solution"]["header"], _FAR)}}
    ),
    "mark": lambda row: f"Rating: {1 if row['is_right'] else 10}",
    "legalbench": lambda row: _FAR,
    "memory": lambda row: _FAR,
    "table_program": lambda row: f"Program: add({_FAR}, 1)",
    "gaia": lambda row: f"FINAL ANSWER: {_FAR}",
    "eq_bench": lambda row: "\n".join(
        f"{name}: {10 if mark < 5 else 0}" for name, mark in row["emotions"].items()
    ),
    "answer-judgement": lambda row: f"Judgement: {'No' if row['expected_judgement'].endswith('Yes') else 'Yes'}",
    "gradingbench": lambda row: "partial" if row["expected_answer"] != "partial" else "correct",
    "long_text": _other_text,
    "mrcr": lambda row: f"{_FAR} {row['expected_answer']}",
    "graphwalks": lambda row: f"Final Answer: [{_FAR}]",
    "translation": lambda row: _FAR,
    "audio": lambda row: f"no {_FAR}",
}
"""Grader → prepared row → a reply that is wrong; what is right, each grader tells. Extended by authors of graders."""
WRONG |= dict.fromkeys(("contextasr", "contextual_earnings22"), WRONG["audio"])
WRONG |= {f"{name}_multilingual": WRONG[name] for name in ("math", "multichoice")}


def media_paths(row: Row) -> list[str]:
    """Images and sounds of a prepared row."""
    images = row.get("image_path") or []
    found = [images] if isinstance(images, str) else list(images)
    for message in row.get("messages") or ():
        sounds = message.get("audios") or ([message["audio"]] if message.get("audio") else [])
        found += [sound["path"] for sound in sounds]
    return found


def _stand_in(path: Path) -> None:
    """A small file in place of an image or sound that a user has to fetch."""
    from tests.prompts.files import picture, sound

    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sound() if path.suffix in (".wav", ".flac", ".mp3") else picture())


def check_prompts(benchmark: Benchmark, rows: Iterable[Row], folder: Path = Path()) -> None:
    """The prompt fits each row, and that of the judge each row with a reply; `folder`: that of the prepared file."""
    form: Literal["ns", "openai"] = "ns" if benchmark.prompt else "openai"
    asked = load_prompt(benchmark.prompt or None, PromptOverrides(prompt_format=form, data_dir=str(folder)))
    judged = load_prompt(benchmark.judge.prompt) if benchmark.judge else None
    rows = list(rows)
    first = rows[0] if rows else None
    for row in rows:
        for path in media_paths(row):
            _stand_in(folder / path)
        assert asked.messages(row)[-1].content or row.get("context") == ""
        if judged:
            assert judged.messages({**row, **ANSWERED})[-1].content
        if row is first:
            _check_wordings(benchmark, row, folder)


def _check_wordings(benchmark: Benchmark, row: Row, folder: Path) -> None:
    """The usual wordings show of a row what the usual prompt shows."""
    names = (benchmark.name, benchmark.name.partition(".")[0], *benchmark.aliases)
    for variant in load_prompt_set(USUAL_SET).wordings(benchmark, names)[0] or ():
        prompt = load_prompt(variant.prompt_config, PromptOverrides(data_dir=str(folder)))
        parts = [part for message in prompt.messages(row) for part in _texts(message.content)]
        assert all(any(str(row[field]) in part for part in parts) for field in prompt.fields), variant


def _texts(content: object) -> list[str]:
    if isinstance(content, list):
        return [part["text"] for part in content if part["type"] == "text"]
    return [str(content)]


def can_grade(benchmark: Benchmark) -> bool:
    """Whether replies are known for its grader, and it needs neither a sandbox nor a judge."""
    return benchmark.grader in WRONG and not is_executing(
        plain_grader(benchmark.grader, dict(benchmark.grader_config))
    )


def scores(benchmark: Benchmark, rows: Iterable[Row], *, right: bool) -> dict[str, Score]:
    """id → verdict on the right, or the wrong, reply to each row."""
    grader = plain_grader(benchmark.grader, dict(benchmark.grader_config))
    assert not is_executing(grader)
    wrong = WRONG.get(f"{benchmark.grader}, {benchmark.grader_config.get('extract')}", WRONG[benchmark.grader])
    found = {}
    for row in rows:
        reply = gold_reply(grader, row) if right else {"generation": wrong(row)}
        assert reply is not None, f"the grader {benchmark.grader} does not tell what is right for {row['id']}"
        found[row["id"]] = grader.grade({**row, **reply})
    return found
