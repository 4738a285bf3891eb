# SPDX-License-Identifier: Apache-2.0
"""Raw data in the forms that people publish it in, each read by one short file, from the archive to the table."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from PIL import Image
from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, Script

BEGIN = """
from newskills.base.benchmark import Asset, Benchmark, Judge, Source
from newskills.benchmarks.text import choices
"""
LETTERS = 'prompt="generic/mcq", grader="multichoice", metric="multichoice"'
LIKELY = 'prompt="generic/continuation", solver="loglikelihood", grader="loglikelihood", metric="loglikelihood"'
FORMS = {
    "cells": (
        """
def row(raw, index):
    options = [raw[name] for name in ("a1", "a2", "a3")]
    return {**choices(raw["frage"], options), "expected_answer": options[int(raw["nr"]) - 1]}
""",
        'Source(path="cells.tar", members="*/test/*.csv.gz", format="csv", separator=";", encoding="cp1252")',
        LETTERS,
    ),
    "elements": (
        """
def row(raw, index):
    right, = (option["text"] for option in raw["option"] if option["right"] == "yes")
    return {"id": raw["id"], **choices(raw["stem"], [o["text"] for o in raw["option"]]), "expected_answer": right}
""",
        'Source(path="elements.xml", format="xml", records=("item",))',
        LETTERS,
    ),
    "named": (
        """
def row(raw, index):
    return {**choices(raw["q"], raw["options"]), "expected_answer": ", ".join(raw["right"])}
""",
        'Source(path="named.jsonl")',
        'prompt="generic/mcq-several", grader="option_set", metric="generic"',
    ),
    "paragraphs": (
        """
def row(raw, index):
    for paragraph in raw["paragraphs"]:
        for qa in paragraph["qas"]:
            first, *others = [answer["text"] for answer in qa["answers"]]
            yield {"id": qa["id"], "question": f"{paragraph['context']}\\n\\n{qa['question']}",
                   "expected_answer": first, "accepted_answers": others}
""",
        'Source(path="paragraphs.json", format="json", records=("data",))',
        'prompt="generic/short-answer", grader="short_answer", metric="short_answer"',
    ),
    "pairs": (
        """
def row(raw, index):
    return {"context": "", "continuations": [raw["good"], raw["bad"]], "expected_answer": 0}
""",
        'Source(path="pairs", members="*.jsonl")',
        LIKELY,
    ),
    "shown": (
        """
def row(raw, index):
    return {"text": raw["text"], "expected_answer": ["bad", "good"][raw["label"]]}
""",
        'Source(path="shown/train.jsonl", split="train"), Source(path="shown/validation.jsonl", split="validation")',
        """split="validation", prompt="generic/default", grader="exact", metric="generic",
        grader_config={"loose": True}, defaults={"user_message": "{examples}{text} =>", "examples_type": "train",
        "few_shot_examples.template": "{text} => {expected_answer}\\n"}""",
    ),
    "pictures": (
        """
def row(raw, index):
    return {"image_path": Asset(f"set/{raw['file']}"), **choices("Which colour is it?", raw["colours"]),
            "expected_answer": raw["colour"]}
""",
        'Source(path="pictures.zip", members="*/all.json", assets="*.png", format="json", records=("items",))',
        'prompt="vlm/mmmu-pro", grader="multichoice", metric="multichoice"',
    ),
    "turns": (
        """
def row(raw, index):
    return {"turns": raw["said"], "expected_answer": raw["last"]}
""",
        'Source(path="turns.yaml", format="yaml")',
        'prompt="generic/default", solver="turns", grader="math", metric="math"',
    ),
    "judged": (
        """
def row(raw, index):
    return {"question": raw["q"], "expected_answer": raw["a"]}
""",
        'Source(path="judged.tsv", format="tsv", columns=("q", "a"), quoted=False)',
        'prompt="generic/default", grader="", judge=Judge(prompt="judge/general-judge"), metric="math"',
    ),
}
REPLIES = {
    "Farbe hat Gras": "Answer: B",
    "What do cats eat": "**Answer: (B)**",
    "Which are primes": "Answer: A and C",
    "When was the tower built": "Answer: 1889",
    "good film => good": "Good",
    "Which colour is it": "Answer: A",
    "Add two to it": r"\boxed{9}",
    "Expected answer: Scattering": "Both say it.\nJudgement: Yes",
    "Why is the sky blue": "Scattering of light.",
}


def packed(folder: Path) -> None:
    """The raw data."""
    cells = gzip.compress("frage;a1;a2;a3;nr\nWelche Farbe hat Gras?;rot;grün;blau;2\n".encode("cp1252"))
    with tarfile.open(folder / "cells.tar", "w") as tar:
        info = tarfile.TarInfo("daten/test/wissen.csv.gz")
        info.size = len(cells)
        tar.addfile(info, io.BytesIO(cells))
    (folder / "elements.xml").write_text(
        '<!DOCTYPE quiz SYSTEM "quiz.dtd"><quiz><item id="7"><stem>What do cats eat?</stem>'
        '<option right="no">stones</option><option right="yes">mice</option></item></quiz>'
    )
    options = {"1": "2", "2": "4", "3": "5", "4": "9"}
    (folder / "named.jsonl").write_text(
        json.dumps({"q": "Which are primes?", "options": options, "right": ["A", "C"]})
    )
    answers = [{"text": "in 1889"}, {"text": "1889"}]
    asked = {"id": "t1", "question": "When was the tower built?", "answers": answers}
    text = {"context": "The tower was built in 1889.", "qas": [asked]}
    (folder / "paragraphs.json").write_text(json.dumps({"data": [{"title": "t", "paragraphs": [text]}]}))
    (folder / "pairs").mkdir()
    (folder / "pairs" / "agreement.jsonl").write_text('{"good": "Cats sleep.", "bad": "Cats sleeps."}\n')
    (folder / "shown").mkdir()
    (folder / "shown" / "train.jsonl").write_text('{"text": "a good film", "label": 1}\n')
    (folder / "shown" / "validation.jsonl").write_text('{"text": "a joy", "label": 1}\n')
    picture = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(picture, "PNG")
    item = {"file": "1.png", "colours": ["red", "blue"], "colour": "red"}
    with zipfile.ZipFile(folder / "pictures.zip", "w") as zipped:
        zipped.writestr("set/1.png", picture.getvalue())
        zipped.writestr("set/all.json", json.dumps({"items": [item]}))
    (folder / "turns.yaml").write_text('- said: ["Name a prime above 5.", "Add two to it."]\n  last: 9\n')
    (folder / "judged.tsv").write_text('Why is the sky blue, "always"?\tScattering\n')


@pytest.fixture
def here(tmp_path: Path) -> Path:
    packed(tmp_path)
    for name, (row, source, fields) in FORMS.items():
        usual = f"name={name!r}, category='own', title='t', row=row, sources=({source},)"
        made = f"BENCHMARK = Benchmark({usual}, {fields})"
        (tmp_path / f"{name}.py").write_text(f"{BEGIN}\n{row}\n\n{made}\n")
    return tmp_path


def named() -> str:
    return ",".join(f"./{name}.py" for name in FORMS)


def scores(folder: Path, server: FakeServer, output: str) -> dict[str, float]:
    """Of each benchmark the first number of its first mode that is a share of right answers."""
    model = f"--server_type=vllm --server_address={server.url} --model=fake"
    judge = f"--judge_server_type=vllm --judge_server_address={server.url} --judge_model=fake"
    done = ns(
        f"ns eval --benchmarks={named()} {model} {judge} --output_dir={output}",
        cwd=folder,
        env={"NEWSKILLS_DATA_DIR": str(folder / "data")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((folder / output / "metrics.json").read_text())
    keys = ("symbolic_correct", "accuracy", "acc", "em", "judge_correct")
    return {
        name: next(modes["pass@1"][key] for key in keys if key in modes["pass@1"]) for name, modes in found.items()
    }


@pytest.mark.nightly
def test_every_form_from_the_raw_files_to_the_table(here: Path, fake_server: FakeServerFactory) -> None:
    data = {"NEWSKILLS_DATA_DIR": str(here / "data")}
    paths = named().replace(",", " ")
    for line in (f"ns prepare_data {paths}", f"ns validate {paths}"):
        done = ns(line, cwd=here, env=data)
        assert done.returncode == 0, done.stdout + done.stderr
    likely = {" sleep.": -1.0, " sleeps.": -5.0}
    right = fake_server(Script(answer=Answer(kind="table", table=REPLIES, template="%s", text="7"), likely=likely))
    assert scores(here, right, "right") == dict.fromkeys(FORMS, 100.0)
    unlikely = {" sleep.": -5.0, " sleeps.": -1.0}
    silent = fake_server(Script(answer=Answer(text="I cannot say.\nJudgement: No"), likely=unlikely))
    assert scores(here, silent, "silent") == dict.fromkeys(FORMS, 0.0)


def test_what_the_model_was_shown(here: Path) -> None:
    data = {"NEWSKILLS_DATA_DIR": str(here / "data")}
    assert ns("ns prepare_data ./shown.py ./pictures.py", cwd=here, env=data).returncode == 0
    line = "ns eval --server_type=vllm --model=fake --server_address=http://localhost:9 --output_dir=o --dry_run"
    done = ns(f"{line} --benchmarks=./shown.py,./pictures.py", cwd=here, env=data)
    assert "a good film => good\na joy =>" in done.stdout
    assert "<image_url>" in done.stdout
    done = ns(f"{line} --benchmarks=./named.py", cwd=here, env=data)
    assert "ns prepare_data ./named.py" in done.stderr
