# SPDX-License-Identifier: Apache-2.0
"""Tasks of Ray Data: a function over many items, on the nodes of a cluster, with results in the order of the items."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from newskills import base
from newskills.base.errors import ConfigError
from newskills.base.libraries import library_folders

Item = dict[str, Any]
"""Texts, numbers and bytes."""


class RayTask(Struct, frozen=True):
    """`work` in the folder of who asked for it, so that paths mean the same."""

    work: Callable[[Item], Item]
    folder: str

    def __call__(self, item: Item) -> Item:
        os.chdir(self.folder)
        return self.work(item)


@contextmanager
def ray_tasks() -> Iterator[Callable[[Callable[[Item], Item], Iterable[Item]], Iterator[Item]]]:
    """Yield a function that does `work` for each item, and gives the results in order; each takes a CPU.

    Ray: the cluster of RAY_ADDRESS, whose nodes must see the same files; else one on this machine, as long as the block
    lasts. Raises ConfigError where Ray is not installed or not reached.
    """
    ray = _connect_to_ray()

    def do(work: Callable[[Item], Item], items: Iterable[Item]) -> Iterator[Item]:
        rows = list(items)
        if not rows:
            return
        dataset = ray.data.from_items(rows, override_num_blocks=len(rows))
        yield from dataset.map(RayTask(work, os.getcwd()).__call__, num_cpus=1).iter_rows()

    try:
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        yield do
    finally:
        ray.shutdown()


def _connect_to_ray() -> Any:
    """Connect to Ray, and return the module `ray`."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ConfigError(f"--executor=ray needs Ray Data ({error}).", hint="pip install 'ray[data]'") from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    address = os.environ.get("RAY_ADDRESS")
    folders = [Path(base.__file__).parents[1], *(path.resolve() for path in library_folders().values())]
    try:
        _test_address(address or "")
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={"py_modules": [str(folder) for folder in folders]}
            if address
            else {"env_vars": {"PYTHONPATH": ":".join(str(folder.parent) for folder in folders)}},
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"No Ray cluster is reached at {address or 'this machine'}: {error}",
            hint="Set RAY_ADDRESS to the address of the head, HOST:6379, or unset it.",
        ) from error
    return ray


def _test_address(address: str) -> None:
    """Raise OSError where nobody answers at HOST:PORT, which Ray itself finds out after minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()
