# SPDX-License-Identifier: Apache-2.0
"""Questions of financial modelling contests about workbooks (Jing et al. 2024, arXiv:2409.07703)."""

import io
import zipfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import PurePosixPath

import msgspec
from msgspec.structs import replace

from newskills.base.benchmark import Asset, Benchmark, Option, Source
from newskills.base.records import Row
from newskills.benchmarks.options import single_value
from newskills.benchmarks.workbooks import SUFFIXES, workbook_text

_HUB = "https://huggingface.co/datasets/liqiang888/DSBench/resolve/main/data_analysis/"


def join_task_files(raw: Iterable[Row]) -> Iterator[Row]:
    """Yield one row per question, from the list of tasks and the archive of their folders."""
    folders: dict[str, dict[str, bytes]] = {}
    tasks = b""
    for name, data in _unpack_files(raw):
        path = PurePosixPath(name)
        if path.name == "data.json":
            tasks = data
        elif not path.name.startswith("._"):
            folders.setdefault(path.parent.name, {})[path.name] = data
    for line in filter(bytes.strip, tasks.splitlines()):
        task = msgspec.json.decode(line)
        for question, answer in zip(task["questions"], task["answers"], strict=True):
            yield {**task, "question": question, "answer": answer, "files": folders[task["id"]]}


def _unpack_files(raw: Iterable[Row]) -> Iterator[tuple[str, bytes]]:
    for row in raw:
        data = row["asset"].data
        if not zipfile.is_zipfile(io.BytesIO(data)):
            yield row["asset"].name, data
            continue
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from ((info.filename, archive.read(info)) for info in archive.infolist() if not info.is_dir())


def row(raw: Row, index: int, *, root: str = "assets/test", content: bool = False) -> Row:
    """Map a row; `excel_paths`: below the folder of the prepared file, or below `root`, with blanks between
    them."""
    files, names = raw["files"], _workbook_names(raw)
    return {
        **(incontext_row(raw, index) if content else _question_fields(raw)),
        "excel_paths": " ".join(f"{root}/{raw['id']}/{name}" for name in names),
        "workbooks": [Asset(f"{raw['id']}/{name}", files[name]) for name in names],
    }


def incontext_row(raw: Row, index: int) -> Row:
    texts = [workbook_text(name, raw["files"][name]) for name in _workbook_names(raw)]
    return {**_question_fields(raw), "excel_content": "\n\n".join(texts)}


def _workbook_names(raw: Row) -> list[str]:
    """Return the workbooks without those that hold the answers."""
    return sorted(name for name in raw["files"] if name.endswith(SUFFIXES) and "answer" not in name.lower())


def _question_fields(raw: Row) -> Row:
    files = raw["files"]
    texts = [files.get("introduction.txt", b""), files[f"{raw['question']}.txt"]]
    decoded = [text.decode("utf-8", "ignore").replace("\r\n", "\n").strip() for text in texts]
    return {
        "id": f"{raw['id']}-{raw['question']}",
        "problem": "\n\n".join(filter(None, decoded)),
        "expected_answer": raw["answer"],
        "task_id": raw["id"],
        "question_id": raw["question"],
        "task_name": raw["name"],
        "task_url": raw["url"],
        "task_year": raw["year"],
    }


def _shown_below(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
    return _with_row_settings(benchmark, root=single_value("a folder", values).rstrip("/"))


def _with_content(benchmark: Benchmark, values: tuple[str, ...]) -> Benchmark:
    return _with_row_settings(benchmark, content=True)


def _with_row_settings(benchmark: Benchmark, **settings: object) -> Benchmark:
    before = benchmark.row.keywords if isinstance(benchmark.row, partial) else {}
    return replace(benchmark, row=partial(row, **{**before, **settings}))


def _benchmark(name: str, title: str, **more: object) -> Benchmark:
    return Benchmark(
        name=name,
        category="code",
        title=title,
        sources=(Source(url=f"{_HUB}{{data.json,data.zip}}", format="asset"),),
        join=join_task_files,
        grader="dsbench",
        grader_config={"relaxed_extraction": True},
        items={"test": 466},
        licence="unstated; for research, not for commercial use",
        homepage="https://github.com/LiqiangJing/DSBench",
        citation="arXiv:2409.07703",
        unverified=True,
        **more,  # type: ignore[arg-type]
    )


BENCHMARKS = (
    _benchmark(
        "dsbench_da",
        "DSBench: data analysis over workbooks, read with tools",
        row=row,
        prompt="generic/dsbench-da",
        options={
            "display_root": Option(
                meaning="folder with which the paths in the prompt begin (default: assets/test)",
                apply=_shown_below,
            ),
            "incontext_data": Option(meaning="the workbooks' content, too, as excel_content", apply=_with_content),
        },
        traps=(
            "For models that run code: ++sandbox.data_dir=<data dir>/dsbench_da lets it see the workbooks.",
            "Answers are letters, amounts, dates, words, lists and tables: each is compared as what it is.",
            "Images that some questions show are not passed on.",
        ),
    ),
    _benchmark(
        "dsbench_da-incontext",
        "DSBench: data analysis, the workbooks' content in the prompt",
        row=incontext_row,
        prompt="generic/dsbench-da-incontext",
        requires="newskills[excel]",
        traps=("Some workbooks have more cells than most models read.", "Formulas are not shown, only values."),
    ),
)
