# SPDX-License-Identifier: Apache-2.0
"""What must be done before several threads of one process run evaluations.

msgspec (0.22) completes what it knows of a struct when the struct is first read from data, and lets others see it half
done: a second thread that comes meanwhile reads a null pointer, and the process dies. So all of it is completed by
one thread beforehand.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pkgutil import walk_packages

import msgspec
from msgspec import Struct

from newskills.base.errors import guard

ROOMS = ("base", "config", "models", "prompts", "graders", "metrics", "sandbox", "tools", "solve", "run")
"""All that an evaluation may load while it runs."""
NOT_HERE = (".inside", ".serving.hf.", "__main__")
"""Modules of other processes."""

_lock = threading.Lock()
_complete: set[type[Struct]] = set()
_rooms_loaded = False


def ready_for_threads() -> None:
    """Load the modules of evaluations, once, and complete all structs there are, also those of plug-ins.

    Half a second at first, then a millisecond. Nothing else may read structs meanwhile that are not complete yet.
    """
    global _rooms_loaded  # noqa: PLW0603 - once for the process
    with _lock:
        if not _rooms_loaded:
            for name in _room_modules():
                guard(partial(import_module, name))  # an extra may be missing
            _rooms_loaded = True
        for struct in set(_struct_classes(Struct)) - _complete:
            guard(partial(msgspec.json.Decoder, struct))  # not all are read from data
            _complete.add(struct)


def _room_modules() -> Iterator[str]:
    for room in ROOMS:
        package = import_module(f"newskills.{room}")
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not any(part in module.name for part in NOT_HERE):
                yield module.name


def _struct_classes(base: type[Struct]) -> Iterator[type[Struct]]:
    for struct in base.__subclasses__():
        yield struct
        yield from _struct_classes(struct)
