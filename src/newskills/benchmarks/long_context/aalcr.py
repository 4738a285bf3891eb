# SPDX-License-Identifier: Apache-2.0
"""A hundred questions over sets of real documents, about 100,000 tokens each (Artificial Analysis 2025)."""

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator

from newskills.base.benchmark import Benchmark, Judge, Source
from newskills.base.records import Row
from newskills.benchmarks.options import kept_if, whole_number


def join_texts(raw: Iterable[Row]) -> Iterator[Row]:
    """Yield the questions with their texts, from the table of questions and the archive of texts."""
    files: dict[str, bytes] = {}
    for row in raw:
        name, data = row["asset"].name, row["asset"].data
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                files |= {info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()}
        else:
            files[name] = data
    texts = {tuple(name.split("/")[-3:]): data.decode("utf-8", "replace") for name, data in files.items()}
    table = next(text for path, text in texts.items() if path[-1].endswith(".csv"))
    for question in csv.DictReader(io.StringIO(table.removeprefix("\ufeff"), newline="")):
        place = (question["document_category"], question["document_set_id"])
        names = question["data_source_filenames"].split(";")
        yield {**question, "texts": [texts[*place, name.strip()] for name in names]}


def row(raw: Row, index: int) -> Row:
    documents = "\n\n".join(
        f"BEGIN DOCUMENT {number}:\n{text}\nEND DOCUMENT {number}" for number, text in enumerate(raw["texts"], 1)
    )
    return {
        "id": f"aalcr-{raw['question_id']}",
        "index": index,
        "question": f"{documents}\n\nAnswer this question from the documents above.\n\n{raw['question']}",
        "original_question": raw["question"],
        "expected_answer": raw["answer"],
        "document_category": raw["document_category"],
        "document_set_id": raw["document_set_id"],
        "input_tokens": int(raw["input_tokens"]),
        "subset_for_metrics": raw["document_category"],
    }


BENCHMARK = Benchmark(
    name="aalcr",
    category="long-context",
    title="AA-LCR: questions over sets of long documents",
    aliases=("aa-lcr", "aa_lcr", "ns_aa_lcr"),
    sources=(
        Source(
            url="https://huggingface.co/datasets/ArtificialAnalysis/AA-LCR/resolve/main/"
            "{AA-LCR_Dataset.csv,extracted_text/AA-LCR_extracted-text.zip}",
            format="asset",
        ),
    ),
    join=join_texts,
    row=row,
    options={
        "max_context_window": kept_if(
            "only questions over at most so many tokens (of cl100k_base)",
            lambda row, values: row["input_tokens"] <= whole_number("--max_context_window", values),
        )
    },
    prompt="generic/default",
    grader="",
    metric="aalcr",
    judge=Judge(
        prompt="judge/aalcr",
        grader="verdict",
        grader_config={"verdicts": {"A": "correct", "B": "incorrect"}},
        model="gpt-4.1",
        server_type="openai",
    ),
    items={"test": 100},
    licence="Apache-2.0",
    homepage="https://huggingface.co/datasets/ArtificialAnalysis/AA-LCR",
    unverified=True,
    traps=("input_tokens are those of cl100k_base; a model needs a window of about 128,000 tokens.",),
)
