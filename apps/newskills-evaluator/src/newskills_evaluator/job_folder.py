# SPDX-License-Identifier: Apache-2.0
"""`.nemotron/jobs/<time>-evaluate/`: what was asked for (`job.yaml`), and what runs (`eval.yaml`)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from newskills.base.errors import storage_error
from newskills.base.store import atomic_write
from newskills_evaluator.config import CompiledConfig
from newskills_evaluator.oversight import without_secrets

FOLDER = Path(".nemotron") / "jobs"
CODE = "/nemo_run/code"
"""Where the code of the current folder lies in jobs elsewhere."""


def write_job_folder(compiled: CompiledConfig, cwd: Path, *, secrets: bool = False) -> Path:
    """Write `job.yaml` and `eval.yaml` into a new folder, and return the path of `eval.yaml`, which has no section
    `run`; for jobs that run elsewhere, paths below `cwd` become those of the jobs.

    Both are for the owner alone. `secrets`: `eval.yaml` has them until `forget_secrets`. Raises StorageError.
    """
    folder = _new_folder(cwd)
    _write_private_yaml(folder / "job.yaml", without_secrets({"run": compiled.run, **compiled.config}))
    _write_private_yaml(folder / "eval.yaml", _launcher_config(compiled, cwd, secrets=secrets))
    return folder / "eval.yaml"


def write_config(path: Path, compiled: CompiledConfig, cwd: Path) -> None:
    """Write what `eval.yaml` would hold, without secrets. Raises StorageError."""
    _write_private_yaml(path, _launcher_config(compiled, cwd, secrets=False))


def forget_secrets(path: Path, compiled: CompiledConfig, cwd: Path) -> None:
    """Write `eval.yaml` again without secrets, once it has been read. Raises StorageError."""
    _write_private_yaml(path, _launcher_config(compiled, cwd, secrets=False))


def _launcher_config(compiled: CompiledConfig, cwd: Path, *, secrets: bool) -> Any:
    config: Any = compiled.config
    if not secrets:
        config = without_secrets(config)
    if not compiled.is_local:
        config = with_moved_paths(config, str(cwd))
    return with_escaped_references(config)


def with_moved_paths(node: Any, here: str) -> Any:
    """Replace paths in the folder `here` by what they are in jobs elsewhere."""
    if isinstance(node, dict):
        return {key: with_moved_paths(value, here) for key, value in node.items()}
    if isinstance(node, list):
        return [with_moved_paths(value, here) for value in node]
    if isinstance(node, str) and (node == here or node.startswith(f"{here}/")):
        return CODE + node[len(here) :]
    return node


def with_escaped_references(node: Any) -> Any:
    """Escape `${…}`, which is meant for a shell, so that the launcher does not take it for a reference."""
    if isinstance(node, dict):
        return {key: with_escaped_references(value) for key, value in node.items()}
    if isinstance(node, list):
        return [with_escaped_references(value) for value in node]
    if isinstance(node, str):
        return node.replace("${", "\\${")
    return node


def _new_folder(cwd: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        folder = cwd / FOLDER / (f"{stamp}-evaluate" if number == 0 else f"{stamp}-{number}-evaluate")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise storage_error(error, folder) from error
        return folder
    raise storage_error(FileExistsError(17, "File exists"), cwd / FOLDER)


def _write_private_yaml(path: Path, content: Any) -> None:
    import yaml

    with atomic_write(path) as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode())
