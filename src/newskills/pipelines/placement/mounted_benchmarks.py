# SPDX-License-Identifier: Apache-2.0
"""Benchmarks that jobs and this machine know differently: folders (`NEMO_SKILLS_EXTRA_DATASETS`), objects of Python."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from newskills.base.benchmark import Benchmark, Group
from newskills.base.errors import ConfigError, DataError, UserError
from newskills.benchmarks import get_benchmark, get_group
from newskills.benchmarks.external import FOLDERS_VARIABLES, split_folders
from newskills.launch.clusters.variables import JobVariables, job_variables, missing_variables
from newskills.launch.machines.shell import Shell
from newskills.launch.machines.ssh import shell_of
from newskills.pipelines.placement.cluster import ClusterPaths

_MOST, _LARGEST = 2000, 256
"""Files of code below a folder, and kilobytes of each."""
_DEEPEST = 4


def mounted_benchmarks(paths: ClusterPaths) -> dict[Path, Path | None]:
    """Return folder of this machine to look in → the same as jobs see it; None where they find it by the mounts.

    Behind ssh it is a copy of the code there, without the data. Raises DataError for a folder of unreasonable size,
    RemoteError.
    """
    origins: dict[Path, Path | None] = {}
    for folder in split_folders(_folders_variable(paths)):
        host = Path(paths.host_path(str(folder)))
        if paths.cluster.ssh_tunnel is None:
            if host.is_dir():
                origins[host] = None
        elif (
            not folder.is_dir()
            and (copy := _copy_python_files(shell_of(paths.cluster, os.environ), host)) is not None
        ):
            origins[copy] = folder
    return origins


def check_names(objects: Mapping[str, Benchmark | Group]) -> None:
    """Raise ConfigError for a benchmark of this process that jobs do not find by its name."""
    for name, benchmark in objects.items():
        if not _is_known(name, benchmark):
            raise ConfigError(
                f"The benchmark '{name}' is an object of this Python process, which jobs on a cluster cannot see.",
                hint="Put it into a file as BENCHMARK, and name the file: benchmarks='FILE.py'.",
            )


def _is_known(name: str, benchmark: Benchmark | Group) -> bool:
    try:
        return (get_group(name) or get_benchmark(name)) == benchmark
    except UserError:
        return False


def _folders_variable(paths: ClusterPaths) -> str:
    """Return the variable with the folders of benchmarks, as the cluster's jobs get it, else as it is set here."""
    # Variables that jobs require and that are missing are told with everything else that is wrong with the plan.
    variables = JobVariables()
    if not missing_variables(paths.cluster, os.environ):
        variables = job_variables(paths.cluster, os.environ)
    for variables_of_origin in (variables.plain, variables.secrets, os.environ):
        for name in FOLDERS_VARIABLES:
            if variables_of_origin.get(name):
                return variables_of_origin[name]
    return ""


def _copy_python_files(shell: Shell, folder: Path) -> Path | None:
    """Copy the Python files below `folder` there, for as long as this process lives; None: there is no
    `__init__.py`."""
    tests = ["-maxdepth", str(_DEEPEST), "-name", "*.py", "-type", "f", "-size", f"-{_LARGEST}k"]
    listed = shell.run(["find", str(folder), *tests]).out.splitlines()
    if len(listed) > _MOST:
        raise DataError(
            f"{folder} on {shell.name} has {len(listed)} Python files, too many for a folder of benchmarks.",
            hint=f"Name a smaller folder in {FOLDERS_VARIABLES[-1]}.",
        )
    texts = dict(zip(listed, shell.read(listed), strict=True))
    if not any(PurePosixPath(path).name == "__init__.py" for path in texts):
        return None
    copy = Path(tempfile.mkdtemp(prefix="newskills-benchmarks-")).resolve()
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    for path, text in texts.items():
        target = copy / PurePosixPath(path).relative_to(folder)
        if text is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    return copy
