# SPDX-License-Identifier: Apache-2.0
"""Benchmarks whose data no test can have: invented rows in the exact raw schema are mapped, prompted and graded.

`raw/<name>.<format>` holds them, for rows of a parquet file as JSON lines; where those have images or sounds, as
`{"base64": …}`, a parquet file is made of them. They travel the way of real ones: a mirror with that one file,
`prepare`, the prompt, the grader.
"""

from __future__ import annotations

import io
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.benchmarks.golds import can_grade, check_prompts, scores

from newskills.base.benchmark import Benchmark, Format, Source
from newskills.base.records import Row
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare, split_folder
from newskills.benchmarks.downloads.fetch import Fetcher, FetchOptions
from newskills.benchmarks.downloads.official import check_fields, lay_out, prompts_of
from newskills.benchmarks.generate_catalog import built_in
from newskills.prompts.official.table import FOLDER

RAW = Path(__file__).with_name("raw")
FIXTURES = sorted(path.name for path in RAW.iterdir())
TRIED_AS_FOLDERS = {"terminal-bench", "terminal-bench-2"}
"""Their rows are folders of files: tests/benchmarks/terminal_tasks/test_terminal_tasks.py."""
FORMATS: dict[str, Format] = {
    ".zip": "asset",
    ".jsonl": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".xml": "xml",
}
HOST = "fixtures.invalid"


def _bytes(value: Any) -> Any:
    """`{"base64": …}` → `{"bytes": …, "path": null}`, however deep."""
    if isinstance(value, list):
        return [_bytes(item) for item in value]
    if isinstance(value, dict):
        if "base64" in value:
            return {"bytes": b64decode(value["base64"]), "path": None}
        return {key: _bytes(item) for key, item in value.items()}
    return value


def _published(file: str) -> tuple[str, Format, bytes]:
    """(name, format, content) of the raw file."""
    path = RAW / file
    if path.suffix != ".jsonl" or b'"base64":' not in path.read_bytes():
        return file, FORMATS[path.suffix], path.read_bytes()
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    made = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist([_bytes(row) for row in read_rows(path)]), made)
    return f"{path.stem}.parquet", "parquet", made.getvalue()


def _prepared(file: str, folder: Path) -> tuple[Benchmark, list[Row]]:
    """The benchmark that `file` is named after, and the rows of all splits that it makes of it."""
    benchmark = get_benchmark(Path(file).stem)
    known = {source.split: source for source in reversed(benchmark.sources) if not source.beside}
    name, form, content = _published(file)
    sources = [
        Source(
            split=split,
            url=f"https://{HOST}/{name}",
            format=form,
            columns=source.columns,
            records=source.records,
        )
        for split, source in known.items()
    ]
    mirror = folder / "mirror"
    (mirror / HOST).mkdir(parents=True)
    (mirror / HOST / name).write_bytes(content)
    done = prepare(
        structs.replace(benchmark, sources=tuple(sources)),
        data_dir=folder / "data",
        splits=list(known),
        options=FetchOptions(mirror=str(mirror), offline=True),
    )
    rows: dict[str, Row] = {}
    for split in done.splits:
        rows |= {f"{split.split} {row['id']}": row for row in read_rows(split.path)}
    return benchmark, list(rows.values())


@pytest.mark.parametrize("file", FIXTURES)
def test_invented_rows_are_mapped_prompted_and_graded(file: str, tmp_path: Path) -> None:
    benchmark, rows = _prepared(file, tmp_path)
    check_prompts(benchmark, rows, split_folder(benchmark, tmp_path / "data"))
    if can_grade(benchmark):
        right = scores(benchmark, rows, right=True)
        assert {identity: score.outcome for identity, score in right.items()} == dict.fromkeys(right, "correct")
        wrong = scores(benchmark, rows, right=False)
        assert {identity: score.outcome for identity, score in wrong.items()} == dict.fromkeys(wrong, "wrong")


@pytest.mark.parametrize("file", FIXTURES)
def test_official_prompts_fit_invented_rows(file: str, prompt_mirror: Path, tmp_path: Path) -> None:
    """Those that the mirror has; a field that rows lack is an error."""
    benchmark, rows = _prepared(file, tmp_path)
    if not prompts_of(benchmark):
        pytest.skip("nothing is published for it")
    folder = split_folder(benchmark, tmp_path / "data")
    fetcher = Fetcher(tmp_path / "cache", FetchOptions(mirror=str(prompt_mirror), offline=True))
    missing = lay_out(prompts_of(benchmark), folder / FOLDER, fetcher)
    check_fields(benchmark, prompts_of(benchmark), folder / f"{benchmark.split}.jsonl")
    if len(missing) < len(prompts_of(benchmark)):
        check_prompts(benchmark, rows, folder)


@pytest.mark.parametrize(
    ("file", "field"),
    [
        ("asr-leaderboard.jsonl", "audio_path"),
        ("audiobench.nonjudge.jsonl", "audio_path"),
        ("musan.jsonl", "audio_path"),
    ],
)
def test_the_path_of_a_sound_has_a_field_of_its_own(file: str, field: str, tmp_path: Path) -> None:
    benchmark, rows = _prepared(file, tmp_path)
    for row in rows:
        path = row["messages"][0]["audio"]["path"]
        assert row[field] in (path, [path])
        assert (split_folder(benchmark, tmp_path / "data") / path).is_file()


def test_every_mapping_that_no_test_can_try_on_real_data_has_invented_rows() -> None:
    unverified = {benchmark.name for _, benchmark in built_in() if benchmark.unverified and not benchmark.data}
    assert unverified - {Path(file).stem for file in FIXTURES} - TRIED_AS_FOLDERS == set()
