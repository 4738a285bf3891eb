# SPDX-License-Identifier: Apache-2.0
"""What the tests of SciCode import: their targets from an HDF5 file, and comparisons. Sent into the sandbox as text."""

import importlib
import os
import sys
import types
from typing import Any

import numpy as np

h5py = importlib.import_module("h5py")

_SPARSE = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
_FILE = os.path.join(os.environ["DATA_DIR"], "test_data.h5")


def process_hdf5_to_tuple(step: Any, tests: Any, file: Any = _FILE) -> Any:
    """Return the targets of the tests of a step."""
    with h5py.File(file, "r") as data:
        return [_read_target(data[f"{step}/test{number}"]) for number in range(1, tests + 1)]


def _read_target(group: Any) -> Any:
    if not isinstance(group, h5py.Group):
        raise FileNotFoundError(f"{group} is no group of targets")
    values = tuple(_read_item(group[key]) for key in group)
    if len(values) == 1:
        return values[0]
    return values


def _read_item(item: Any) -> Any:
    if isinstance(item, h5py.Dataset):
        value = item[()]
        if isinstance(value, bytes):
            return value.decode("utf-8")
        return value
    for key in item:
        if key == "list":
            return [item[key][name][()] for name in item[key]]
        if key == "sparse_matrix":
            return _read_sparse_matrix(item[key])
        return {_read_key(name): _read_item(item[name]) for name in item}
    return {}


def _read_key(name: Any) -> Any:
    try:
        return float(name)
    except ValueError:
        return name


def _read_symbol(key: Any) -> Any:
    """Return a symbol by its name, any other key as it is."""
    if isinstance(key, str | int | float | complex | tuple | np.generic):
        return key
    return str(key)


def _read_sparse_matrix(group: Any) -> Any:
    sparse = importlib.import_module("scipy.sparse")
    data, shape = group["data"][()], tuple(group["shape"][()])
    if "row" in group:
        return sparse.coo_matrix((data, (group["row"][()], group["col"][()])), shape=shape)
    made = sparse.bsr_matrix if "blocksize" in group else sparse.csr_matrix
    return made((data, group["indices"][()], group["indptr"][()]), shape=shape)


def are_csc_matrix_close(first: Any, second: Any) -> Any:
    """Return whether two sparse matrices have one shape and close entries."""
    sparse = importlib.import_module("scipy.sparse")
    kinds = [getattr(sparse, f"{name}_{form}", None) for name in _SPARSE for form in ("matrix", "array")]
    if not any(type(first) is kind for kind in kinds):
        return False  # one derived from them could say of itself what it likes
    return first.shape == second.shape and np.allclose(first.toarray(), second.toarray())


def are_dicts_close(first: Any, second: Any, atol: Any = 1e-8, rtol: Any = 1e-5) -> Any:
    """Return whether both have the same keys with close values."""
    first, second = ({_read_symbol(key): value for key, value in each.items()} for each in (first, second))
    return first.keys() == second.keys() and all(_are_close(first[key], second[key], atol, rtol) for key in first)


def cmp_tuple_or_list(first: Any, second: Any) -> Any:
    """Return whether two sequences have as many values, and these are pairwise close."""
    return len(first) == len(second) and all(map(_are_close, first, second))


def _are_close(first: Any, second: Any, atol: Any = 1e-8, rtol: Any = 1e-5) -> Any:
    if isinstance(second, dict):
        return are_dicts_close(first, second, atol, rtol)
    if hasattr(second, "toarray"):
        return are_csc_matrix_close(first, second)
    if isinstance(second, str | bool):
        return first == second
    try:
        if (np.size(first) == 0) != (np.size(second) == 0):
            return False  # nothing is close to everything
        return bool(np.allclose(first, second, atol=atol, rtol=rtol))
    except (TypeError, ValueError):
        return bool(np.all(first == second))


def install_functions() -> None:
    """Install the functions under the names by which the tests import them."""
    for name in ("scicode", "scicode.parse", "scicode.parse.parse", "scicode.compare", "scicode.compare.cmp"):
        module = sys.modules[name] = types.ModuleType(name)
        vars(module).update(
            process_hdf5_to_tuple=process_hdf5_to_tuple,
            are_csc_matrix_close=are_csc_matrix_close,
            are_dicts_close=are_dicts_close,
            cmp_tuple_or_list=cmp_tuple_or_list,
        )
