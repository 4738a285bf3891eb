# SPDX-License-Identifier: Apache-2.0
"""The files that `ns push` sends: samples with a card, scores of a model, a model or an adapter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import no_folder
from newskills.base.terminal import format_first
from newskills.exchange.hub.cards import dataset_card, model_card
from newskills.exchange.hub.evaluations import HubDataset, ModelScore, dataset_of, evaluation_file, parse_datasets
from newskills.exchange.hub.secrets import FoundSecret, SecretScanner
from newskills.exchange.hub.upload import HubTarget, PushedFile
from newskills.models.hub import MODEL_FILES
from newskills.view.analysis.files import write_tables
from newskills.view.analysis.runs import runs
from newskills.view.analysis.scores import scores
from newskills.view.pages.overview import headline_score

FINAL = "final_hf_model"
"""Folder of the model in that of a training."""
CARD = "README.md"
ADAPTER = "adapter_config.json"
OF_A_MODEL = (*MODEL_FILES, CARD, "LICENSE*", "*.gguf")
OF_A_TRAINING = ("optimizer.safetensors", "state.json", "trainer_state.json")
"""Files of a checkpoint that only the training needs."""
LOCAL_COLUMNS = ("folder",)
"""Columns of runs that tell of this machine only."""
_MODES = ("run", "benchmark", "mode", "score", "value", "low", "high", "n")


class PushSource(NamedTuple):
    """What is pushed. `results`: a folder of results whose scores go with a model; `datasets`: `--hub_dataset`."""

    folder: Path
    results: Path | None
    datasets: Sequence[str]


class PreparedPush(NamedTuple):
    files: list[PushedFile]
    secrets: list[FoundSecret]
    notes: list[str]


def prepare_push(source: PushSource, target: HubTarget, scratch: Path) -> PreparedPush:
    """Make the files, those that do not exist yet in `scratch`, and look for secrets in all of them.

    Raises ConfigError, and DataError where the folder holds nothing that fits the target.
    """
    if not source.folder.is_dir():
        raise no_folder(source.folder)
    notes: list[str] = []
    scanner = SecretScanner()
    if target.kind == "dataset":
        if source.results is not None:
            raise ConfigError("--results is for a model (hf://OWNER/NAME); a data set takes the folder alone.")
        files = _dataset_files(source.folder, target, scratch, notes)
    else:
        files = list(_model_with_scores(source, target, notes))
    secrets = [secret for file in files for secret in _find_secrets(scanner, file)]
    return PreparedPush(files, secrets, notes)


def _find_secrets(scanner: SecretScanner, file: PushedFile) -> Iterator[FoundSecret]:
    if isinstance(file.content, bytes):
        yield from scanner.in_texts(file.path, [file.content.decode("utf-8", "replace")])
    elif file.content.suffix == ".parquet":
        yield from scanner.in_texts(file.path, _parquet_texts(file.content))
    else:
        yield from scanner.in_file(file.path, file.content)


def _parquet_texts(path: Path) -> Iterator[str]:
    """Yield all texts of a Parquet file."""
    from pyarrow import parquet

    for batch in parquet.ParquetFile(path).iter_batches(512):
        for column in batch.columns:
            values = getattr(column, "dictionary", column)
            if "string" in str(values.type):
                yield from (text for text in values.to_pylist() if text)


def _dataset_files(folder: Path, target: HubTarget, scratch: Path, notes: list[str]) -> list[PushedFile]:
    from pyarrow import parquet

    written = write_tables(folder, "parquet", scratch, notes, runs_without=LOCAL_COLUMNS)
    sizes = {path.stem: parquet.ParquetFile(path).metadata.num_rows for path in written}
    card = dataset_card(target.repo, sizes, _run_rows(folder), _score_rows(headline_rows(folder)))
    return [PushedFile(CARD, card), *(PushedFile(f"data/{path.name}", path) for path in written)]


def _model_with_scores(source: PushSource, target: HubTarget, notes: list[str]) -> Iterator[PushedFile]:
    """Yield the files of the model with its scores, or the scores alone where the folder holds results."""
    datasets = parse_datasets(source.datasets)
    folder = source.folder
    if (folder / FINAL).is_dir():
        folder /= FINAL
    weights = [path for pattern in ("*.safetensors", "*.gguf") for path in folder.glob(pattern)]
    results = source.results
    if results is None and not weights:
        results = source.folder
    rows = []
    if results is not None:
        rows = _of_one_model(headline_rows(results))
    if weights:
        yield from _model_files(folder, notes)
        if not (folder / CARD).exists():
            settings = _read_json(source.folder / "settings.json")
            scores = []
            if rows:
                scores = _score_rows(rows)
            base = _read_json(folder / ADAPTER).get("base_model_name_or_path") or settings.get("model")
            card = model_card(
                target.repo,
                base_model=str(base or ""),
                is_adapter=(folder / ADAPTER).exists(),
                method=str(settings.get("method") or ""),
                scores=scores,
            )
            yield PushedFile(CARD, card)
    if results is not None:
        yield from _evaluation_files(rows, results, datasets, notes)


def _model_files(folder: Path, notes: list[str]) -> Iterator[PushedFile]:
    names = {path.name for pattern in OF_A_MODEL for path in folder.glob(pattern) if path.is_file()}
    names -= set(OF_A_TRAINING)
    real = folder.resolve()
    for name in sorted(names):
        if not (folder / name).resolve().is_relative_to(real):
            notes.append(f"{name} is left out: the link leads out of {folder}.")
        else:
            yield PushedFile(name, folder / name)
    others = sorted(path.name for path in folder.iterdir() if path.name not in names)
    if others:
        notes.append(f"Not part of a model, and left out: {format_first(others, 8)}.")


def _evaluation_files(
    rows: Sequence[Row], results: Path, datasets: dict[str, HubDataset], notes: list[str]
) -> Iterator[PushedFile]:
    """Yield a file for each benchmark that the hub knows by a data set. Raises DataError where there is none."""
    described = {row["benchmark"]: row for row in runs(results).to_pylist()}
    nameless, count = [], 0
    for row in rows:
        benchmark = row["benchmark"]
        dataset = dataset_of(benchmark, datasets)
        if row["withheld"]:
            notes.append(f"{benchmark} is left out: too many of its samples are unscored.")
        elif dataset is None:
            nameless.append(benchmark)
        else:
            about = described[benchmark]
            ended = about["ended"]
            if row["low"] is None:
                interval = ""
            else:
                interval = f", 95 % interval {row['low']:.1f}-{row['high']:.1f}"
            made_with = f"newskills {about['newskills'] or ''}, prompt {about['prompt'] or 'unknown'}"
            score = ModelScore(
                benchmark=benchmark,
                value=row["value"],
                date=ended.date().isoformat() if ended else "",
                notes=f"{row['mode']} {row['score']}, {row['n']} problems{interval}; {made_with}",
            )
            count += 1
            yield PushedFile(f".eval_results/{benchmark}.yaml", evaluation_file(score, dataset))
    if nameless:
        notes.append(
            f"The hub knows scores by data sets, and these have none: {', '.join(nameless)}. Name it: "
            f"--hub_dataset {nameless[0]}=OWNER/NAME"
        )
    if not count:
        raise DataError(f"No score in {results} can be sent.", hint=" ".join(notes))


def headline_rows(results: Path) -> list[Row]:
    """Return the main score of each benchmark of each run, with its interval. Raises DataError."""
    by_benchmark: dict[tuple[str, str], Row] = {}
    for row in scores(results).to_pylist():
        if row["subset"] is None and row["value"] is not None:
            kept = by_benchmark.setdefault(
                (row["run"], row["benchmark"]), {"numbers": {}, "withheld": row["withheld"]}
            )
            kept["numbers"].setdefault(row["mode"], {})[row["score"]] = row
    rows: list[Row] = []
    for (run, benchmark), kept in by_benchmark.items():
        if (best := headline_score({}, kept)) is not None:
            number = kept["numbers"][best["mode"]][best["metric"]]
            rows.append({name: number[name] for name in _MODES} | {"withheld": kept["withheld"]})
            assert (run, benchmark) == (number["run"], number["benchmark"])
    return rows


def _of_one_model(rows: Sequence[Row]) -> list[Row]:
    """Return the rows. Raises DataError where they are of several runs, whose models may differ."""
    names = sorted({str(row["run"]) for row in rows})
    if len(names) > 1:
        raise DataError(
            f"These are results of {len(names)} runs, and a model has scores of one.",
            hint=f"Name its folder: …/{names[0]}",
        )
    return list(rows)


def _score_rows(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    head = ("run", "benchmark", "score", "value", "interval", "problems")
    return [head, *map(_score_cells, rows)]


def _score_cells(row: Row) -> tuple[Any, ...]:
    value, interval = f"{row['value']:.1f}", ""
    if row["withheld"]:
        value = "withheld"
    if row["low"] is not None:
        interval = f"{row['low']:.1f} to {row['high']:.1f}"
    return row["run"], row["benchmark"], f"{row['mode']} {row['score']}", value, interval, row["n"]


def _run_rows(results: Path) -> list[tuple[Any, ...]]:
    rows = runs(results).to_pylist()
    columns = ("run", "benchmark", "model", "system", "prompt", "temperature")
    return [columns, *(tuple("" if row[name] is None else row[name] for name in columns) for row in rows)]


def _read_json(path: Path) -> Row:
    """Read a small JSON file of a training; empty where there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Row)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
