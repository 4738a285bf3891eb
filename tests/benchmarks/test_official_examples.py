# SPDX-License-Identifier: Apache-2.0
"""A published prompt that shows examples: the split that holds them is prepared with it, or the prompt is not used."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from msgspec import structs

from newskills.base.benchmark import Benchmark, Source
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import PreparedData, prepare
from newskills.benchmarks.downloads.fetch import FetchOptions
from newskills.prompts.official import table
from newskills.prompts.official.table import FOLDER, OfficialPrompt

HOST = "examples.invalid"
TEXT = "Fields of study: {category}\n"
RAW = Path(__file__).with_name("raw") / "mmlu-pro.jsonl"


@pytest.fixture
def entry(monkeypatch: pytest.MonkeyPatch) -> OfficialPrompt:
    """The only published prompt there is, of our own making."""
    entry = OfficialPrompt(
        prompt="eval/aai/mcq-10choices",
        benchmarks=("mmlu-pro",),
        repository="us/toys",
        revision="0" * 40,
        files={"toy.txt": hashlib.sha256(TEXT.encode()).hexdigest()},
        licence="MIT",
        fields={"category": "category"},
        user=("@toy.txt", "{examples}{question}"),
        example=("{question} {worked_answer}\n",),
        examples_type="{examples_type}",
    )
    monkeypatch.setattr(table, "official_prompts", lambda: (entry,))
    return entry


def prepared(folder: Path, entry: OfficialPrompt, *, validation: bool) -> PreparedData:
    mirror = folder / "mirror"
    for url, text in ((entry.url("toy.txt"), TEXT), (f"https://{HOST}/rows.jsonl", RAW.read_text())):
        place = mirror / url.removeprefix("https://")
        place.parent.mkdir(parents=True)
        place.write_text(text)
    name = "rows" if validation else "none"
    sources = (
        Source(url=f"https://{HOST}/rows.jsonl"),
        Source(split="validation", url=f"https://{HOST}/{name}.jsonl"),
    )
    benchmark: Benchmark = structs.replace(get_benchmark("mmlu-pro"), sources=sources, variants={})
    options = FetchOptions(mirror=str(mirror), offline=True)
    return prepare(benchmark, data_dir=folder / "data", splits=("test",), options=options)


def test_the_split_with_the_examples_is_prepared_too(tmp_path: Path, entry: OfficialPrompt) -> None:
    done = prepared(tmp_path, entry, validation=True)
    assert [split.split for split in done.splits] == ["test", "validation"]
    assert done.missing_prompts == {}
    rows = [json.loads(line) for line in (done.folder / "validation.jsonl").read_text().splitlines()]
    assert all(row["worked_answer"] for row in rows)
    assert all(place.is_file() for place in entry.places(done.folder / FOLDER).values())


def test_a_prompt_whose_examples_cannot_be_had_is_not_used(tmp_path: Path, entry: OfficialPrompt) -> None:
    done = prepared(tmp_path, entry, validation=False)
    assert [split.split for split in done.splits] == ["test"]
    assert list(done.missing_prompts) == ["eval/aai/mcq-10choices"]
    assert "its examples, the split validation, cannot be had" in done.missing_prompts[entry.prompt]
    assert not any(place.exists() for place in entry.places(done.folder / FOLDER).values())
