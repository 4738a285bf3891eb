# SPDX-License-Identifier: Apache-2.0
"""The installed package `lm_eval`: whether it is there, and that it keeps quiet at work. Its import takes seconds."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import logging
import random
import warnings
from collections.abc import Iterator
from pathlib import Path

from newskills.base.errors import ConfigError

PACKAGE = "lm_eval"
INSTALL = "Install it: pip install 'newskills[lm-eval]'."
RANDOM_SEED, NUMPY_SEED, FEWSHOT_SEED = 0, 1234, 1234
"""What `lm_eval run` sets before it loads tasks, unless told otherwise."""
_TEMPLATES_KEPT = 1024
_OWN_FILES = "lm_eval:"
"""Stands for the folder of the package, so that what is prepared here works where it is installed elsewhere."""


def require_package() -> None:
    """Raise ConfigError where the package is missing."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise ConfigError(f"The package {PACKAGE} is not installed.", hint=INSTALL)


def package_folder() -> Path:
    """Return the folder of the package. Raises ConfigError where it is missing."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ConfigError(f"The package {PACKAGE} is not installed.", hint=INSTALL)
    return Path(spec.origin).parent


def short_task_path(path: Path) -> str:
    """Return the path of a task file, that of the package's own without its folder."""
    home = package_folder()
    if path.is_relative_to(home):
        return f"{_OWN_FILES}{path.relative_to(home)}"
    return str(path)


def full_task_path(path: str) -> Path:
    """Return the path that was shortened."""
    if path.startswith(_OWN_FILES):
        return package_folder() / path.removeprefix(_OWN_FILES)
    return Path(path)


def keep_templates() -> None:
    """Let the package compile the templates of a task once, not for every document, where most of its time goes."""
    from lm_eval import utils

    if "from_string" not in vars(utils.env):
        utils.env.from_string = functools.lru_cache(maxsize=_TEMPLATES_KEPT)(utils.env.from_string)


@contextlib.contextmanager
def at_work(*, offline: bool = False) -> Iterator[None]:
    """Let the package work without bars and log lines, with the random numbers of `lm_eval run`; ours are put back.

    `offline`: data of the hub only where they are on this machine.
    """
    import datasets
    import huggingface_hub.constants
    import numpy

    log, state, numbers = logging.getLogger(PACKAGE), random.getstate(), numpy.random.get_state()
    level, bars = log.level, datasets.is_progress_bar_enabled()
    switches = [(datasets.config, "HF_HUB_OFFLINE"), (huggingface_hub.constants, "HF_HUB_OFFLINE")]
    before = [getattr(module, name) for module, name in switches]
    random.seed(RANDOM_SEED)
    numpy.random.seed(NUMPY_SEED)
    log.setLevel(logging.ERROR)
    datasets.disable_progress_bars()
    if offline:
        for module, name in switches:
            setattr(module, name, True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for (module, name), value in zip(switches, before, strict=True):
            setattr(module, name, value)
        if bars:
            datasets.enable_progress_bars()
        log.setLevel(level)
        random.setstate(state)
        numpy.random.set_state(numbers)
