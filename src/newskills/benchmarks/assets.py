# SPDX-License-Identifier: Apache-2.0
"""Images and sounds of prepared rows: copied below the prepared file, and named in the row by their path there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from newskills.base.benchmark import Asset
from newskills.base.errors import DataError, storage_error
from newskills.base.records import Row
from newskills.base.replacing import replacing_file

ASSETS = "assets"


class AssetFolder:
    """`assets/<split>` in `folder`. `files`: those that the source brought, by name."""

    def __init__(self, folder: Path, split: str, files: Mapping[str, Path]) -> None:
        self._place = PurePosixPath(ASSETS, split)
        self._root = folder / self._place
        self._files = files
        self._written: dict[str, int] = {}

    @property
    def count(self) -> int:
        """Files that were stored."""
        return len(self._written)

    def count_files(self) -> int:
        """Count the stored files."""
        return sum(path.is_file() and path.suffix != ".tmp" for path in self._root.rglob("*"))

    def store_assets(self, row: Row, where: str) -> Row:
        """Store each `Asset` of `row`, however deep in it, and replace it by its path beside the rows."""
        stored_values = {key: self._value(value, where) for key, value in row.items() if _holds_assets(value)}
        if stored_values:
            return {**row, **stored_values}
        return row

    def _value(self, value: Any, where: str) -> Any:
        if isinstance(value, list | tuple):
            return [self._value(item, where) for item in value]
        if isinstance(value, dict):
            return {key: self._value(item, where) for key, item in value.items()}
        if isinstance(value, Asset):
            return self._store(value, where)
        return value

    def _store(self, asset: Asset, where: str) -> str:
        name = asset.name
        if not name or os.path.isabs(name) or "\0" in name or ".." in PurePosixPath(name).parts:
            raise DataError(f"{where}: '{name}' cannot be the name of a file.")
        data = self._data(asset, where)
        if self._written.setdefault(name, hash(data)) != hash(data):
            raise DataError(f"{where}: the file '{name}' has another content than that of an earlier row.")
        path = self._root / name
        if not path.is_file() or path.read_bytes() != data:
            _write_asset(path, data)
        return str(self._place / name)

    def _data(self, asset: Asset, where: str) -> bytes:
        if asset.data is not None:
            return asset.data
        try:
            return self._files[asset.name].read_bytes()
        except KeyError:
            raise DataError(f"{where}: the source has no file '{asset.name}' among its assets.") from None


def _holds_assets(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_assets, value.values()))
    return isinstance(value, Asset) or (isinstance(value, list | tuple) and any(map(_holds_assets, value)))


def _write_asset(path: Path, data: bytes) -> None:
    try:
        with replacing_file(path, durable=False) as file:
            file.write(data)
    except OSError as error:
        raise storage_error(error, path) from error
