# SPDX-License-Identifier: Apache-2.0
"""SciCode (arXiv:2407.13168): targets out of an HDF5 file, and how results are compared with them."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from newskills.base.records import Row
from tests.agreement.compare import OUTPUTS, Comparison, Verdict
from tests.agreement.originals import loaded

_FILE = "test_data.h5"
_GRID = [[1.0, 0.0, 2.5], [0.0, -3.0, 0.0]]
_TARGETS: Mapping[str, Any] = {
    "number": 0.125,
    "whole number": 7,
    "complex": [1, 2j],
    "text": "ACGT",
    "truth": True,
    "array": [0.5, -1.0, 2.0, 1e-9],
    "grid": _GRID,
    "pair": ("tuple", [[1.0, 2.0], 3.0]),
    "arrays": ("tuple", [_GRID, [1.0, 2.0], 5]),
    "with text": ("tuple", [[1.0, 2.0], "ACGT"]),
    "with truth": ("tuple", [True, 4.0]),
    "with a dictionary": ("tuple", [{"a": 1.0, "b": [2.0, 3.0]}, 4.0]),
    "with a matrix": ("tuple", [("csr", _GRID), 4.0]),
    "ragged": ("list", [[1.0, 2.0], [3.0]]),
    "dictionary": {"H": [[1.0, 0.0], [0.0, -1.0]], "conn": 2.0},
    "numbers for keys": {1.0: 2.0, 2.5: [1.0, 1.0]},
    "dictionary of matrices": {"H": ("csr", _GRID), "n": ("coo", _GRID)},
    "csr": ("csr", _GRID),
    "coo": ("coo", _GRID),
    "bsr": ("bsr", _GRID),
}


def rows() -> Iterator[Row]:
    for target in _TARGETS:
        yield {"task": target, "target": target}


def forms(row: Row) -> Mapping[str, str]:
    """Names of what becomes of the target; the values are made where they are compared."""
    return {form: form for form in _MUTATIONS}


def _shifted(value: Any, by: float) -> Any:
    """All numbers of a value moved by a share of themselves and of one."""
    numpy = importlib.import_module("numpy")
    if isinstance(value, tuple | list) and not _plain(value):
        return type(value)(_shifted(item, by) for item in value)
    if isinstance(value, dict):
        return {key: _shifted(item, by) for key, item in value.items()}
    if hasattr(value, "toarray"):
        return type(value)(_shifted(value.toarray(), by))
    if isinstance(value, bool | str):
        return value
    return numpy.asarray(value) * (1 + by) + by


def _plain(value: Any) -> bool:
    return all(isinstance(item, int | float | complex) for item in value)


def _parts(value: Any) -> list[Any]:
    return (
        list(value.values()) if isinstance(value, dict) else list(value) if hasattr(value, "__len__") else [value]
    )


def _without_last(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(list(value.items())[:-1])
    return value[:-1] if hasattr(value, "__len__") and not hasattr(value, "toarray") else None


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Of a tuple or a dictionary, each part changed."""
    if isinstance(value, dict):
        return {key: change(item) for key, item in value.items()}
    return type(value)(map(change, value)) if isinstance(value, tuple | list) else change(value)


def _as_list(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _dense(value: Any) -> Any:
    return value.toarray() if hasattr(value, "toarray") else value


def _sparse(value: Any, kind: str) -> Any:
    return value.asformat(kind) if hasattr(value, "toarray") else value


def _named(value: Any) -> Any:
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else str(value)


_MUTATIONS: Mapping[str, Callable[[Any], Any]] = {
    "the same": lambda value: value,
    "nearly": lambda value: _shifted(value, 1e-10),
    "off": lambda value: _shifted(value, 1e-3),
    "lists": lambda value: _each(value, _as_list),
    "a list of parts": lambda value: list(value) if isinstance(value, tuple) else _as_list(value),
    "dense": lambda value: _each(value, _dense),
    "csc": lambda value: _each(value, lambda part: _sparse(part, "csc")),
    "csr": lambda value: _each(value, lambda part: _sparse(part, "csr")),
    "one less": _without_last,
    "transposed": lambda value: _each(value, lambda part: part.T if hasattr(part, "T") else part),
    "turned round": lambda value: (
        dict(reversed(value.items())) if isinstance(value, dict) else _parts(value)[::-1]
    ),
    "named keys": _named,
    "one more": lambda value: {**value, "z": 1.0} if isinstance(value, dict) else (*_parts(value), 1.0),
    "in a tuple": lambda value: (value,),
    "not a number": lambda value: _each(value, lambda part: float("nan")),
    "nothing": lambda value: None,
    "words": lambda value: "ACGT",
}


def _value(spec: Any) -> Any:
    numpy, sparse = importlib.import_module("numpy"), importlib.import_module("scipy.sparse")
    if isinstance(spec, tuple):
        kind, content = spec
        if kind in ("tuple", "list"):
            return (tuple if kind == "tuple" else list)(map(_value, content))
        return getattr(sparse, f"{kind}_matrix")(numpy.array(content))
    if isinstance(spec, dict):
        return {key: _value(item) for key, item in spec.items()}
    return numpy.array(spec) if isinstance(spec, list) else spec


def _store(group: Any, name: str, spec: Any) -> None:
    """As the authors' program saves targets."""
    if isinstance(spec, dict):
        made = group.create_group(name)
        for key, item in spec.items():
            _store(made, str(key), item)
    elif isinstance(spec, tuple) and spec[0] == "list":
        made = group.create_group(f"{name}/list")
        for place, item in enumerate(spec[1], 1):
            _store(made, f"var{place}", item)
    elif isinstance(spec, tuple):
        made, matrix = group.create_group(f"{name}/sparse_matrix"), _value(spec)
        fields = {"coo": ("row", "col"), "bsr": ("indices", "indptr", "blocksize")}
        for field in ("data", "shape", *fields.get(spec[0], ("indices", "indptr"))):
            made.create_dataset(field, data=getattr(matrix, field))
    else:
        group.create_dataset(name, data=_value(spec))


@cache
def _targets() -> Path:
    """A file of all targets, each the first test of a step of its name; it goes with the process."""
    h5py = importlib.import_module("h5py")
    folder = tempfile.mkdtemp(prefix="scicode")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder, _FILE)
    with h5py.File(path, "w") as file:
        for name, spec in _TARGETS.items():
            several = isinstance(spec, tuple) and spec[0] == "tuple"
            for place, item in enumerate(spec[1] if several else [spec], 1):
                _store(file.require_group(f"{name}/test1"), f"var{place}", item)
    return path


def _judged(functions: Any, row: Row, form: str) -> float:
    """1 where the test of a step would pass, which compares by what kind of target it has."""
    spec = _TARGETS[row["target"]]
    numpy = importlib.import_module("numpy")
    with contextlib.redirect_stdout(io.StringIO()), numpy.errstate(all="ignore"):
        (target,) = functions.process_hdf5_to_tuple(row["target"], 1, _targets())
        try:
            given = _MUTATIONS[form](_value(spec))
            if isinstance(spec, dict):
                return float(bool(functions.are_dicts_close(given, target)))
            if isinstance(spec, tuple) and spec[0] in ("tuple", "list"):
                return float(bool(functions.cmp_tuple_or_list(given, target)))
            if isinstance(spec, tuple):
                return float(bool(functions.are_csc_matrix_close(given, target)))
            return float(bool(given == target if isinstance(spec, str) else numpy.allclose(given, target)))
        except Exception:  # whatever the comparison raises, the test fails
            return 0.0


@cache
def _ours() -> Any:
    with mock.patch.dict(os.environ, {"DATA_DIR": "."}):
        return importlib.import_module("newskills.graders.code.inside.scicode")


def original(folder: Path) -> Verdict:
    """Needs h5py, numpy, scipy and sympy."""
    for module in ("h5py", "numpy", "scipy.sparse", "sympy"):
        importlib.import_module(module)
    stubs = {"datasets": SimpleNamespace(load_dataset=None)}
    with mock.patch.dict(sys.modules, stubs):
        parse: Any = loaded(folder / "src" / "scicode" / "parse" / "parse.py")
    compare: Any = loaded(folder / "src" / "scicode" / "compare" / "cmp.py")
    names = ("are_dicts_close", "cmp_tuple_or_list", "are_csc_matrix_close")
    functions = SimpleNamespace(
        process_hdf5_to_tuple=parse.process_hdf5_to_tuple, **{name: getattr(compare, name) for name in names}
    )
    return lambda row, reply: _judged(functions, row, reply)


COMPARISON = Comparison(
    name="scicode",
    benchmarks=("scicode",),
    scorer="SciCode `parse.py` and `cmp.py`",
    compared=OUTPUTS,
    repository="scicode-bench/SciCode",
    rows=rows,
    forms=forms,
    original=original,
    ours=lambda row, reply: _judged(_ours(), row, reply),
    known={
        f"with text/{form}": "the original cannot compare words in a tuple, so that nothing passes"
        for form in ("the same", "nearly", "lists", "a list of parts", "dense", "csc", "csr", "transposed")
    },
    left_out=(
        "the tests of steps, whose targets (1 GB) are in no repository; invented targets are stored as the authors "
        "store theirs."
    ),
)
