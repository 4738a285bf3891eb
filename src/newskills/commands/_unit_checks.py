# SPDX-License-Identifier: Apache-2.0
"""Units that other machines will work on: their files as those see them, and what can be refused before."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from newskills.base.errors import ConfigError
from newskills.commands._cluster import Paths
from newskills.commands._work import notice
from newskills.launch.shell import Shell
from newskills.models.serving import ServeSpec, prepare
from newskills.run.config import GenerationConfig
from newskills.run.execute import check
from newskills.run.spec import Unit
from newskills.solve.selection_config import ParallelThinking

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def with_inputs(units: Sequence[Unit], paths: Paths) -> list[Unit]:
    """`units` whose input files are called as the clients of jobs see them. Raises ConfigError."""
    seen: dict[str, str] = {}
    for unit in units:
        path = unit.config.input_file
        if path not in seen:
            seen[path] = path if paths.cluster.ssh_tunnel else paths.moved(path, f"The input {path}")
    return [replace(unit, config=replace(unit.config, input_file=seen[unit.config.input_file])) for unit in units]


def check_inputs(units: Sequence[Unit], paths: Paths, shell: Shell, *, after: Sequence[str] = ()) -> None:
    """Raises ConfigError where an input file is not on the machine that submits.

    Jobs that run `after` others may get their input from these: a note says what is not there yet.
    """
    files = list(dict.fromkeys(paths.host(unit.config.input_file) for unit in units))
    for file, there in zip(files, shell.exists(files), strict=True):
        if there:
            continue
        if os.path.exists(file):
            raise ConfigError(
                f"{file} is on this machine only: {shell.name} has no such file.",
                hint=f"Copy it (rsync {file} {shell.name}:…) and give its place there: an input as --input_file, "
                "prepared benchmarks as --data_dir.",
            )
        if after:
            notice(f"there is no {file} yet: it is left to what {', '.join(after)} will have done")
            continue
        raise ConfigError(
            f"There is no input file {file} on {shell.name}.",
            hint="Benchmark data is prepared there by: ns prepare_data NAME --cluster=… --data_dir=…",
        )
    check_addresses(units, paths)


def check_addresses(units: Sequence[Unit], paths: Paths) -> None:
    """Says it where an address means another machine for a job than for the user."""
    if paths.cluster.executor == "slurm":
        servers = [one for unit in units for one in (unit.config.server, *unit.config.models.values())]
        for url in dict.fromkeys(server.base_url for server in servers):
            if url and any(f"//{name}" in url for name in LOOPBACK):
                notice(f"{url} is, for a job on a node, that node itself")


def fetch_weights(host: ServeSpec | None, paths: Paths) -> None:
    """What a server without container needs on disk, as nodes often have no way out. Raises NewskillsError."""
    if host is not None and not paths.contained and paths.cluster.ssh_tunnel is None:
        prepare(host, notice)


def check_prompts(units: Sequence[Unit], *, hosted: bool, paths: Paths) -> None:
    """The first unit of each name: its key, settings, and first prompt where its data can be read here."""
    for unit in {unit.name: unit for unit in reversed(units)}.values():
        text = unit.config.inference.endpoint_type == "text"
        local = paths.here(unit.config.input_file)
        if local is not None:
            unit = replace(unit, config=replace(unit.config, input_file=local))
        unit = replace(unit, config=_with_solutions(unit.config, paths))
        check(unit, rendered=local is not None and not (hosted and text))


def _with_solutions(config: GenerationConfig, paths: Paths) -> GenerationConfig:
    """`config` with the folder of stored solutions as this machine calls it; without it where it is not there yet."""
    thinking = config.parallel_thinking
    if thinking.generation_dir is None:
        return config
    local = paths.here(thinking.generation_dir)
    there = local is not None and any(Path(local).glob("output-rs*.jsonl"))
    changed = replace(thinking, generation_dir=local) if there else ParallelThinking()
    return replace(config, parallel_thinking=changed)
