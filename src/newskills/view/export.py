# SPDX-License-Identifier: Apache-2.0
"""The viewer as a folder that opens from `file://`: the same page, with the answers of the server as scripts beside it.

A browser fetches nothing from files and loads no modules from them; scripts it does load. Each script hands over one
answer. The page's policy allows scripts of the folder only, and text stays text as it does when served.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from newskills.base.errors import DataError, NewskillsError, storage_error
from newskills.base.records import Row
from newskills.base.store import atomic_folder
from newskills.view.assets import LIBRARIES, read_asset, script_bundle
from newskills.view.library import IndexedBenchmark, Library
from newskills.view.pages.benchmark import benchmark_page
from newskills.view.pages.comparison import comparison_page
from newskills.view.pages.load_tests import load_tests_page
from newskills.view.pages.matrix import score_matrix
from newskills.view.pages.overview import overview_page
from newskills.view.pages.sample import media_bytes, sample_page
from newskills.view.pages.training import step_rollouts, training_page
from newskills.view.records import brief_row
from newskills.view.tables import encode_samples, samples_of

CHUNK_RECORDS = 50
"""Samples of one script."""
MOST_COMPARED = 8
"""Runs of a benchmark of which every pair is compared; of more, each with the first one."""
MOST_STEPS = 20
"""Steps of a training whose samples are exported."""
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:; "
    "media-src 'self' file:; base-uri 'none'; form-action 'none'"
)
MEDIA_SUFFIXES = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/mpeg": "mp3",
}


class ExportedPage(Struct, frozen=True, kw_only=True):
    """`page`: the file to open; `size`: bytes of all files; `notes`: what was left out."""

    page: Path
    samples: int
    size: int
    notes: tuple[str, ...]


def export_viewer(places: Sequence[Path], target: Path, most: int) -> ExportedPage:
    """Write `target`, with at most `most` samples of each benchmark and run.

    Raises DataError for what cannot be read, StorageError for a folder that holds something already.
    """
    library = Library(places, wait=True)
    try:
        with atomic_folder(target) as folder:
            writer = _Writer(library, folder, most)
            writer.write()
    finally:
        library.close()
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return ExportedPage(page=target / "index.html", samples=writer.samples, size=size, notes=tuple(writer.notes))


class _Writer:
    def __init__(self, library: Library, folder: Path, most: int) -> None:
        self._library, self._folder, self._most = library, folder, most
        self._answers: dict[str, str] = {}
        self._sets: dict[str, Row] = {}
        self._scripts = 0
        self.samples = 0
        self.notes: list[str] = []

    def write(self) -> None:
        (self._folder / "data").mkdir()
        (self._folder / "media").mkdir()
        (self._folder / "static").mkdir()
        page = overview_page(self._library)
        self._answer("overview", {}, page)
        self._answer("matrix", {}, score_matrix(self._library))
        for run in page["runs"]:
            self._answer("overview", {"run": run["id"]}, overview_page(self._library, run=run["id"]))
            for benchmark in run["benchmarks"]:
                self._benchmark(run["id"], benchmark)
        for benchmark in page["benchmarks"]:
            at = {"benchmark": benchmark}
            self._answer("overview", at, overview_page(self._library, benchmark=benchmark))
            self._comparisons(benchmark, [run["id"] for run in page["runs"] if benchmark in run["benchmarks"]])
        self._trainings(page["trainings"])
        self._answer("load_tests", {}, load_tests_page(self._library))
        self._script("manifest", {"answers": self._answers, "samples": self._sets, "chunk": CHUNK_RECORDS})
        self._page()

    def _benchmark(self, run: str, benchmark: str) -> None:
        at = {"run": run, "benchmark": benchmark}
        indexed = self._library.indexed(run, benchmark)
        self._answer("benchmark", at, benchmark_page(self._library, run, benchmark))
        data = base64.b64encode(encode_samples(self._library.folders, indexed, samples_of(indexed))).decode()
        self._answer("columns", at, data)
        total = sum(index.rows for index in indexed.indexes)
        each = -(-self._most // max(len(indexed.indexes), 1))
        names = [
            self._samples(at, indexed, file, min(each, index.rows)) for file, index in enumerate(indexed.indexes)
        ]
        self._sets[msgspec.json.encode([run, benchmark]).decode()] = {"files": names}
        written = sum(min(each, index.rows) for index in indexed.indexes)
        self.samples += written
        if written < total:
            self.notes.append(
                f"{run}, {benchmark}: {written:,} of {total:,} samples are exported (--export_samples says how many)."
            )

    def _samples(self, at: dict[str, str], indexed: IndexedBenchmark, file: int, count: int) -> list[str]:
        """Write scripts with `CHUNK_RECORDS` samples each; return their names."""
        names = []
        for start in range(0, count, CHUNK_RECORDS):
            chunk = []
            for number in range(start, min(start + CHUNK_RECORDS, count)):
                page = sample_page(self._library, at["run"], at["benchmark"], file, number)
                self._media(page)
                chunk.append({"brief": brief_row(indexed.indexes[file], number), "page": page})
            names.append(self._script(self._next(), chunk))
        return names

    def _media(self, page: Row) -> None:
        """Write images and sound as files; what cannot be shown stays a name."""
        for item, medium in enumerate(page.get("media", [])):
            try:
                content, kind = media_bytes(
                    self._library, page["run"], page["benchmark"], page["file"], page["number"], item
                )
            except DataError:
                continue
            name = f"{hashlib.blake2b(content, digest_size=12).hexdigest()}.{MEDIA_SUFFIXES[kind]}"
            (self._folder / "media" / name).write_bytes(content)
            medium["file"] = name

    def _comparisons(self, benchmark: str, runs: list[str]) -> None:
        pairs = list(permutations(runs, 2))
        if len(runs) > MOST_COMPARED:
            pairs = [pair for other in runs[1:] for pair in ((runs[0], other), (other, runs[0]))]
            self.notes.append(f"{benchmark}: {len(runs)} runs are each compared with {runs[0]} only.")
        for first, second in pairs:
            at = {"first": first, "second": second, "benchmark": benchmark}
            try:
                self._answer("comparison", at, comparison_page(self._library, first, second, benchmark))
            except NewskillsError as error:
                self.notes.append(f"{benchmark}: {first} and {second} are not compared: {error}")

    def _trainings(self, names: list[str]) -> None:
        if not names:
            return
        pairs = [list(pair) for pair in permutations(names[:8], 2)]
        for ids in [*([name] for name in names), names[:6], names[:8], *pairs]:
            self._answer("training", {"ids": "|".join(ids)}, training_page(self._library, ids))
        for name in names:
            steps = training_page(self._library, [name])["trainings"][0]["sample_steps"]
            for step in steps[:: max(1, -(-len(steps) // MOST_STEPS))]:
                self._answer("rollouts", {"id": name, "step": step}, step_rollouts(self._library, name, step))

    def _answer(self, name: str, parameters: Row, value: Any) -> None:
        key = f"{name}?{urlencode({key: str(item) for key, item in parameters.items()})}"
        if key not in self._answers:
            self._answers[key] = self._script(self._next(), value)

    def _next(self) -> str:
        self._scripts += 1
        return f"d{self._scripts}"

    def _script(self, name: str, value: Any) -> str:
        """Write a script, with characters that end a script, or a line of one, as escapes."""
        text = msgspec.json.encode(value).decode()
        for char, escape in (("<", "\\u003c"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
            text = text.replace(char, escape)
        path = self._folder / "data" / f"{name}.js"
        try:
            path.write_text(f'newskillsReceive("{name}",{text});\n', encoding="utf-8")
        except OSError as error:
            raise storage_error(error, path) from error
        return name

    def _page(self) -> None:
        page = (read_asset("index.html") or b"").decode()
        page = page.replace('<html lang="en">', '<html lang="en" data-exported="yes">')
        policy = f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">'
        page = page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{policy}')
        page = page.replace('<script type="module" src="static/app.js">', '<script defer src="static/app.js">')
        (self._folder / "index.html").write_text(page, encoding="utf-8")
        static = self._folder / "static"
        (static / "app.js").write_bytes(script_bundle())
        for name in ("style.css", "icon.svg", *LIBRARIES):
            (static / name).write_bytes(read_asset(name) or b"")
