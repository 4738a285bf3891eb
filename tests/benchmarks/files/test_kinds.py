# SPDX-License-Identifier: Apache-2.0
"""Each kind of question from a file as people have it: found, prepared, attacked by `ns validate`'s replies."""

from __future__ import annotations

import csv
import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from newskills.base.errors import DataError
from newskills.base.store import read_rows
from newskills.benchmarks import get_benchmark
from newskills.benchmarks.data import prepare, ready_rows
from newskills.benchmarks.files.described import DescribedBenchmark
from newskills.run.validation.checks import GOLD, ValidationSampling, check_benchmarks

ANIMALS = ("dog", "cow", "cat", "owl", "bee", "ant", "elk", "fox", "hen", "pig", "rat", "yak")
Rows = list[dict[str, Any]]


def write_csv(path: Path, rows: Rows, separator: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=separator)
        writer.writeheader()
        writer.writerows(rows)


def made(path: Path) -> tuple[DescribedBenchmark, Rows]:
    benchmark = get_benchmark(str(path))
    assert isinstance(benchmark, DescribedBenchmark)
    return benchmark, list(read_rows(ready_rows(benchmark, "", path.parent / "data")))


def sums() -> Rows:
    return [{"question": f"Add {n} and {n * n}.", "answer": n + n * n} for n in range(3, 15)]


def lettered() -> Rows:
    return [
        {"question": f"Which is a {name}, number {n}?", "A": name if n % 3 == 0 else "stone",
         "B": name if n % 3 == 1 else "cloud", "C": name if n % 3 == 2 else "river", "answer": "ABC"[n % 3]}
        for n, name in enumerate(ANIMALS)
    ]  # fmt: skip


def listed() -> Rows:
    rows = []
    for n, name in enumerate(ANIMALS):
        options = [name, "stone", "cloud"]
        options = options[n % 3 :] + options[: n % 3]
        rows.append({"prompt": f"Pick {name}.", "choices": str(options), "label": options.index(name)})
    return rows


def several() -> Rows:
    pairs = ("A, B", "B, C", "A, C", "A, B, C")
    return [
        {"problem": f"Which of these, case {n}?", "options": f"A) {name} B) a {name}'s ear C) {name}s",
         "answer": pairs[n % 4]}
        for n, name in enumerate(ANIMALS)
    ]  # fmt: skip


def asked() -> Rows:
    return [
        {"question": f"Is {n} even?", "passage": f"{n} = 2 x {n / 2}.", "answer": n % 2 == 0} for n in range(12)
    ]


def named() -> Rows:
    return [{"question": f"Who is animal {n}?", "answer": name, "aliases": [f"the {name}", name.upper()]}
            for n, name in enumerate(ANIMALS)]  # fmt: skip


CASES: dict[str, tuple[Callable[[], Rows], str, dict[str, Any]]] = {
    "adding": (sums, "math", {"problem": "Add 3 and 9.", "expected_answer": "12"}),
    "lettered": (lettered, "choice", {"expected_answer": "A", "A": "dog", "B": "cloud"}),
    "listed": (listed, "choice", {"expected_answer": "A", "A": "dog", "C": "cloud"}),
    "several": (several, "choices", {"expected_answer": "A, B", "C": "dogs"}),
    "yes_no": (asked, "yes_no", {"expected_answer": "A", "question": "0 = 2 x 0.0.\n\nIs 0 even?"}),
    "named": (named, "short_answer", {"expected_answer": "dog", "accepted_answers": ["the dog", "DOG"]}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_kind_is_seen_prepared_and_measures_what_it_should(name: str, tmp_path: Path) -> None:
    """No word is said of the file; own answers are right, replies that know nothing are not, nor are hedges."""
    make, kind, fields = CASES[name]
    path = tmp_path / f"{name}.csv"
    rows = make()
    if name == "named":
        path = path.with_suffix(".jsonl")
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        write_csv(path, rows)
    benchmark, prepared = made(path)
    assert any(f"kind {kind}, because" in line for line in benchmark.guesses)
    assert len(prepared) == len(rows)
    assert {key: prepared[0].get(key) for key in fields} == fields
    assert [row["id"] for row in prepared] == [f"{name}-test-{n}" for n in range(len(rows))]
    (validation,) = check_benchmarks([benchmark], ValidationSampling(data_dir=tmp_path / "data"))
    assert validation.problems == []
    assert (validation.shares[GOLD].right, validation.shares[GOLD].of) == (len(rows), len(rows))
    assert validation.hedges


def test_chance_is_that_of_the_options(tmp_path: Path) -> None:
    for name, chance in (
        ("lettered", 1 / 3),
        ("listed", 1 / 3),
        ("yes_no", 0.5),
        ("adding", 0.0),
        ("several", 0.0),
    ):
        write_csv(tmp_path / f"{name}.csv", CASES[name][0]())
        assert get_benchmark(str(tmp_path / f"{name}.csv")).chance == pytest.approx(chance, abs=1e-4)


def _zstd(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    packed: bytes = zstandard.ZstdCompressor().compress(data)
    return packed


def _parquet(path: Path, rows: Rows) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


@pytest.mark.parametrize(
    "ending",
    [
        "csv",
        "tsv",
        "jsonl",
        "json",
        "parquet",
        "csv.gz",
        "csv.zst",
        "jsonl.gz",
        "jsonl.zst",
        "json.gz",
        "utf16.csv",
    ],
)
def test_every_form_of_a_file_gives_the_same_rows(ending: str, tmp_path: Path) -> None:
    rows: Rows = [{"question": f'Was "heißt" {n},\n{n}?', "answer": n * 7} for n in range(40)]
    path = tmp_path / f"set.{ending}"
    if ending == "parquet":
        _parquet(path, rows)
    else:
        plain = tmp_path / "plain"
        if ".json" in f".{ending}":
            lines = [json.dumps(row, ensure_ascii=False) for row in rows]
            text = "\n".join(lines) if "jsonl" in ending else "[" + ",\n".join(lines) + "]"
            plain.write_text(text, encoding="utf-8")
        else:
            write_csv(plain, rows, "\t" if "tsv" in ending else ",")
        data = plain.read_bytes()
        if ending.startswith("utf16"):
            data = data.decode("utf-8").encode("utf-16")
        data = gzip.compress(data) if ending.endswith("gz") else _zstd(data) if ending.endswith("zst") else data
        path.write_bytes(data)
    _, prepared = made(path)
    assert [(row["problem"], row["expected_answer"]) for row in prepared] == [
        (row["question"], str(row["answer"])) for row in rows
    ]


def test_a_described_table_may_be_written_in_any_way(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_bytes("Größe eines Elchs;7\nGröße eines Igels;9\n".encode("cp1252"))
    (tmp_path / "old.yaml").write_text(
        "data: {path: old.csv, separator: ';', header: [frage, zahl], encoding: cp1252}\n"
        "columns: {question: frage, answer: zahl}\nname: animals\n"
    )
    benchmark, prepared = made(tmp_path / "old.yaml")
    assert benchmark.name == "animals"
    assert [(row["problem"], row["expected_answer"]) for row in prepared] == [
        ("Größe eines Elchs", "7"),
        ("Größe eines Igels", "9"),
    ]


def test_several_files_and_lists_inside_objects(tmp_path: Path) -> None:
    for name in ("a, b", "c"):
        rows = [{"question": f"{name} {n}?", "answers": {"text": [str(n), f"{n}.0"]}} for n in range(2)]
        (tmp_path / f"{name}.json").write_text(json.dumps({"data": {"rows": rows}}, indent=1))
    (tmp_path / "both.yaml").write_text(
        "data: {path: ['a, b.json', c.json], records: [data, rows]}\n"
        "columns: {answer: answers.text, id: question}\nkind: word\n"
    )
    _, prepared = made(tmp_path / "both.yaml")
    assert [(row["id"], row["expected_answer"], row["accepted_answers"]) for row in prepared] == [
        ("a, b 0?", "0", ["0.0"]),
        ("a, b 1?", "1", ["1.0"]),
        ("c 0?", "0", ["0.0"]),
        ("c 1?", "1", ["1.0"]),
    ]


def test_kinds_that_are_said(tmp_path: Path) -> None:
    texts = {
        "likely": ("start,one,two,place\nShe ran because,it rained.,it slept.,0\n",
                   "kind: likelihood\ncolumns: {question: start, options: [one, two], answer: place}\n"),
        "program": ("task,name,checks\nAdd one.,f,\"assert f(1) == 2\nassert f(2) == 3\"\n",
                    "kind: code\ncolumns: {question: task, entry_point: name, tests: checks}\n"),
        "words": ("de,en\nHaus,house\n",
                  "kind: translation\ncolumns: {source: de, reference: en}\n"
                  "fields: {source_language: de, target_language: en, source_lang_name: German, "
                  "target_lang_name: English}\n"),
        "steps": ("q,a,part\nHow many?,\"2 + 2 = 4\n#### 4\",x;y\n",
                  "kind: math\ncolumns: {question: q, answer: {column: a, pattern: '#### (.*)'}, "
                  "topics: {column: part, split: ;}, subset: part}\n"),
    }  # fmt: skip
    rows = {}
    for name, (table, description) in texts.items():
        (tmp_path / f"{name}.csv").write_text(table)
        (tmp_path / f"{name}.yaml").write_text(f"data: {name}.csv\n{description}")
        benchmark, (rows[name],) = made(tmp_path / f"{name}.yaml")
        assert (benchmark.needs_sandbox, benchmark.solver == "loglikelihood") == (
            name == "program",
            name == "likely",
        )
    assert rows["likely"]["continuations"] == [" it rained.", " it slept."]
    assert (rows["likely"]["context"], rows["likely"]["expected_answer"]) == ("She ran because", 0)
    assert rows["program"]["test_list"] == ["assert f(1) == 2", "assert f(2) == 3"]
    assert (rows["words"]["source"], rows["words"]["reference"]) == ("Haus", "house")
    assert rows["words"]["target_lang_name"] == "English"
    assert rows["steps"]["expected_answer"] == "4"
    assert (rows["steps"]["topics"], rows["steps"]["subset_for_metrics"]) == (["x", "y"], "x;y")


def test_edited_files_are_prepared_again_and_untouched_ones_are_not(tmp_path: Path) -> None:
    write_csv(tmp_path / "sums.csv", sums())
    (tmp_path / "sums.yaml").write_text("data: sums.csv\nprompt: '{question}'\n")
    data = tmp_path / "data"

    def stamp() -> tuple[int, int]:
        path = ready_rows(get_benchmark(str(tmp_path / "sums.yaml")), "", data)
        return path.stat().st_ino, len(list(read_rows(path)))

    first = stamp()
    assert stamp() == first
    (tmp_path / "sums.yaml").write_text("data: sums.csv\nprompt: 'Add: {question}'\n")
    assert stamp() == first  # rows do not depend on the prompt
    write_csv(tmp_path / "sums.csv", sums()[:5])
    assert stamp()[1] == 5
    (tmp_path / "sums.yaml").write_text("data: sums.csv\nfields: {source: mine}\n")
    path = ready_rows(get_benchmark(str(tmp_path / "sums.yaml")), "", data)
    assert {row["source"] for row in read_rows(path)} == {"mine"}
    assert prepare(get_benchmark(str(tmp_path / "sums.yaml")), data_dir=data).splits[0].fresh is False


def test_memory_does_not_grow_with_the_number_of_rows(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        write_csv(
            tmp_path / f"of{count}.csv", [{"question": f"Add {n} and 1.", "answer": n + 1} for n in range(count)]
        )
        benchmark = get_benchmark(str(tmp_path / f"of{count}.csv"))
        tracemalloc.start()
        path = ready_rows(benchmark, "", tmp_path / "data")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert sum(1 for _ in read_rows(path)) == count
        return most

    peak(10)  # modules that are loaded once
    assert peak(20_000) < peak(1_000) + 200_000


def test_ids_are_used_once(tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"

    def refusal(*ids: object) -> str:
        rows = [{"question": "?", "answer": 1} | ({} if own is None else {"id": own}) for own in ids]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        try:
            made(path)
        except DataError as error:
            return str(error)
        return ""

    assert refusal(7, "a", 8, "", None) == ""
    assert f"line 2: the id '7' is used before, at {path}, line 1. If the column 'id'" in refusal(7, "7")
    (tmp_path / "mixed.yaml").write_text("data: mixed.jsonl\ncolumns: {passage: id}\n")
    _, rows = made(tmp_path / "mixed.yaml")
    assert [(row["id"], row["passage"]) for row in rows] == [("mixed-test-0", 7), ("mixed-test-1", "7")]
    assert "the id 'mixed-test-0' is used before, at row 1." in refusal(None, "b", "mixed-test-0")
    assert "the id 'mixed-test-1' is used before" in refusal("mixed-test-1", None)
    assert refusal("mixed-test-0", "mixed-test-1", "mixed-test-5", None) == ""


def test_two_files_of_one_name_do_not_share_rows(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_csv(tmp_path / folder / "test.csv", sums()[: 3 + (folder == "b")])
    paths = [
        ready_rows(get_benchmark(str(tmp_path / folder / "test.csv")), "", tmp_path / "data")
        for folder in ("a", "b")
    ]
    assert [len(list(read_rows(path))) for path in paths] == [3, 4]


def test_a_file_called_as_a_benchmark_of_newskills_keeps_apart(tmp_path: Path) -> None:
    write_csv(tmp_path / "gsm8k.csv", sums())
    assert get_benchmark(str(tmp_path / "gsm8k.csv")).name == "gsm8k-file"
