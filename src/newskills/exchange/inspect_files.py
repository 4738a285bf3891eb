# SPDX-License-Identifier: Apache-2.0
"""The files of Inspect's logs: a `.eval` is a zip with `header.json`, `summaries.json`, `samples/<id>_epoch_<n>.json`.

A run that is not finished has `_journal/start.json` in place of the header. Format: inspect_ai 0.3, log version 2.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Row
from newskills.base.store import atomic_write
from newskills.exchange.json_of_others import load_json

HEADER, START, SUMMARIES = "header.json", "_journal/start.json", "summaries.json"
SAMPLES_FOLDER = "samples/"
MAX_UNPACKED_BYTES = 1 << 30
"""Bytes that one file of an archive may unpack to."""
_ZSTD_METHOD = 93
_LOCAL_HEADER = struct.Struct("<26xHH")
"""Of a member's local header: lengths of its name and its extra field."""


def read_log(path: Path) -> tuple[Row, list[Row]]:
    """Read (header, samples). Raises DataError (broken, foreign, too large), ConfigError (zstd is not
    installed)."""
    if path.suffix == ".json":
        log = _require_object(_read_json(path), path)
        samples = log.pop("samples", None) or []
        return log, [_require_object(sample, path) for sample in samples]
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = {info.filename: info for info in archive.infolist()}
            name = HEADER if HEADER in members else START
            if name not in members:
                raise DataError(f"{path} is not a log of Inspect: it has no {HEADER}.")
            header = _require_object(_decode_json(_read_member(file, archive, members[name], path), path), path)
            names = [n for n in members if n.startswith(SAMPLES_FOLDER) and n.endswith(".json")]
            samples = [
                _require_object(_decode_json(_read_member(file, archive, members[n], path), path), path)
                for n in names
            ]
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, struct.error) as error:
        raise DataError(f"{path} is broken, or not a log of Inspect: {error}.") from error
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error
    return header, samples


def write_log(path: Path, header: Row, samples: Iterable[Row], summary: Callable[[Row], Row]) -> None:
    """Write a finished log, deflated, which Inspect reads as its own. Raises StorageError."""
    with atomic_write(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(START, _encode_json({name: header[name] for name in ("version", "eval", "plan")}))
        summaries = []
        for sample in samples:
            archive.writestr(f"{SAMPLES_FOLDER}{sample['id']}_epoch_{sample['epoch']}.json", _encode_json(sample))
            summaries.append(summary(sample))
        archive.writestr(SUMMARIES, _encode_json(summaries))
        archive.writestr(HEADER, _encode_json(header))


def _read_member(file: IO[bytes], archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> bytes:
    if info.file_size > MAX_UNPACKED_BYTES:
        raise _too_large(path, info)
    if info.compress_type == _ZSTD_METHOD:
        data = _decompress_zstd(file, info, path)
    else:
        with archive.open(info) as member:
            data = member.read(MAX_UNPACKED_BYTES + 1)
    if len(data) > MAX_UNPACKED_BYTES:
        raise _too_large(path, info)
    return data


def _decompress_zstd(file: IO[bytes], info: zipfile.ZipInfo, path: Path) -> bytes:
    """Decompress a member that is packed with zstd, which zipfile knows since Python 3.14 only. Raises ConfigError,
    BadZipFile."""
    try:
        import zstandard
    except ImportError as error:
        raise ConfigError(
            f"{path} is packed with zstd, which cannot be read here.",
            hint="Run: pip install 'newskills[inspect]'",
        ) from error
    file.seek(info.header_offset)
    name, extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    file.seek(name + extra, 1)
    packed = file.read(info.compress_size)
    try:
        with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as reader:
            data: bytes = reader.read(MAX_UNPACKED_BYTES + 1)
    except zstandard.ZstdError as error:
        raise zipfile.BadZipFile(f"{info.filename}: {error}") from error
    if len(data) <= MAX_UNPACKED_BYTES and zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile(f"{info.filename} is damaged")
    return data


def _too_large(path: Path, info: zipfile.ZipInfo) -> DataError:
    return DataError(
        f"{path}: {info.filename} unpacks to more than {MAX_UNPACKED_BYTES >> 30} GB, too much for a sample."
    )


def _read_json(path: Path) -> Any:
    try:
        return _decode_json(path.read_bytes(), path)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from error


def _decode_json(data: bytes, path: Path) -> Any:
    try:
        return load_json(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not a log of Inspect: invalid JSON ({error}).") from error


def _require_object(value: Any, path: Path) -> Row:
    if not isinstance(value, dict):
        raise DataError(f"{path} is not a log of Inspect: expected an object, not {str(value)[:40]}.")
    return value


def _encode_json(value: object) -> bytes:
    """Encode `value` with NaN, which Inspect marks unscored samples with, and without halves of surrogate
    pairs."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
