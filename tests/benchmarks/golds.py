# SPDX-License-Identifier: Apache-2.0
"""What a model would have to say: a right and a wrong reply to a prepared row, by the grader of its benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from string import ascii_uppercase
from typing import Literal, NamedTuple

from newskills.base.benchmark import Benchmark
from newskills.base.records import Row, Score
from newskills.graders import executes, make_grader
from newskills.graders.multichoice import choices
from newskills.prompts.renderer import PromptOverrides, load_prompt

_FAR = "918273645.546372"


class Replies(NamedTuple):
    """`right` and `wrong`: prepared row → reply of a model."""

    right: Callable[[Row], str]
    wrong: Callable[[Row], str]


def _another_option(row: Row) -> str:
    """A letter that the answer does not name, or a number where it is one."""
    answer = str(row["expected_answer"])
    return next(letter for letter in "ABCDE" if letter not in answer) if answer.isalpha() else _FAR


def _other_letter(row: Row) -> str:
    count = choices(row)
    return ascii_uppercase[(ascii_uppercase.index(row["expected_answer"]) + 1) % count]


def _spans(row: Row) -> str:
    answer = row["expected_answer"]
    return ", ".join(answer) if isinstance(answer, list) else str(answer)


REPLIES: dict[str, Replies] = {
    "math": Replies(lambda row: f"\\boxed{{{row['expected_answer']}}}", lambda row: f"\\boxed{{{_FAR}}}"),
    "multichoice": Replies(
        lambda row: f"Answer: {row['expected_answer']}", lambda row: f"Answer: {_other_letter(row)}"
    ),
    "option_set": Replies(
        lambda row: f"\\boxed{{{row['expected_answer']}}}", lambda row: f"\\boxed{{{_another_option(row)}}}"
    ),
    "jeebench": Replies(
        lambda row: f"\\boxed{{{row['expected_answer']}}}", lambda row: f"\\boxed{{{_another_option(row)}}}"
    ),
    "exact": Replies(lambda row: str(row["expected_answer"]), lambda row: f"{_FAR} {row['expected_answer']}"),
    "exact, brackets": Replies(
        lambda row: f"[[{row['expected_answer']}]]", lambda row: f"[[{_FAR} {row['expected_answer']}]]"
    ),
    "short_answer": Replies(lambda row: f"Answer: {_spans(row)}", lambda row: f"Answer: {_FAR}"),
    "json_schema": Replies(
        lambda row: json.dumps(json.loads(row["expected_answer"])["examples"][0]),
        lambda row: json.dumps(f"no such document {_FAR}"),
    ),
    "grid_match": Replies(
        lambda row: json.dumps(row["expected_answer"]),
        lambda row: json.dumps([[[9]], *row["expected_answer"][1:]]),
    ),
}
REPLIES["eq_bench"] = Replies(
    lambda row: str(row["expected_answer"]),
    lambda row: "\n".join(f"{name}: {10 if value < 5 else 0}" for name, value in row["emotions"].items()),
)
REPLIES["answer-judgement"] = Replies(
    lambda row: str(row["expected_judgement"]),
    lambda row: "Judgement: No" if row["expected_judgement"].endswith("Yes") else "Judgement: Yes",
)
REPLIES["gradingbench"] = Replies(
    lambda row: f"All steps hold, so that it is {row['expected_answer']}.",
    lambda row: "partial" if row["expected_answer"] != "partial" else "correct",
)
REPLIES["long_text"] = Replies(
    lambda row: ", ".join(row["answers"][:1]), lambda row: f"{_FAR} nothing of the kind"
)
REPLIES["mrcr"] = Replies(lambda row: str(row["expected_answer"]), lambda row: f"{_FAR} {row['expected_answer']}")
REPLIES["graphwalks"] = Replies(
    lambda row: f"Final Answer: [{', '.join(row['expected_answer'])}]", lambda row: f"Final Answer: [{_FAR}]"
)
REPLIES["translation"] = Replies(lambda row: str(row["reference"]), lambda row: _FAR)
REPLIES["audio"] = Replies(lambda row: row.get("expected_answer", ""), lambda row: f"no {_FAR}")
REPLIES |= dict.fromkeys(("contextasr", "contextual_earnings22"), REPLIES["audio"])
REPLIES |= {f"{name}_multilingual": REPLIES[name] for name in ("math", "multichoice")}
"""Extended by the tests of a grader that is not here, or here by its author."""


JUDGED = {
    "answer_1": "the reply",
    "answer_2": "another",
    "answer": "the reply",
    "conversation": "",
    "reference": "",
}
"""What judges that ask several times add to a row."""


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
    for row in rows:
        for path in media_paths(row):
            _stand_in(folder / path)
        assert asked.messages(row)[-1].content
        if judged:
            answered = {**row, "generation": "the reply", "predicted_answer": "the answer", **JUDGED}
            assert judged.messages(answered)[-1].content


def can_grade(benchmark: Benchmark) -> bool:
    """Whether replies are known for its grader, and it needs neither a sandbox nor a judge."""
    return benchmark.grader in REPLIES and not executes(
        make_grader(benchmark.grader, dict(benchmark.grader_config))
    )


def scores(benchmark: Benchmark, rows: Iterable[Row], *, right: bool) -> dict[str, Score]:
    """id → verdict on the right, or the wrong, reply to each row."""
    grader = make_grader(benchmark.grader, dict(benchmark.grader_config))
    assert not executes(grader)
    replies = REPLIES.get(
        f"{benchmark.grader}, {benchmark.grader_config.get('extract')}", REPLIES[benchmark.grader]
    )
    reply = replies.right if right else replies.wrong
    return {row["id"]: grader.grade({**row, "generation": reply(row)}) for row in rows}
