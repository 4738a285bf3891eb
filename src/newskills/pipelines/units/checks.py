# SPDX-License-Identifier: Apache-2.0
"""Units that other machines will work on: their files as those see them, and what can be refused before."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from newskills.base.errors import ConfigError
from newskills.base.requirements import NotInstalledError, installing_nothing
from newskills.launch.clusters.mounts import CODE
from newskills.launch.machines.shell import Shell
from newskills.models.serving import ServeSpec, prepare_server
from newskills.pipelines.notices import print_note
from newskills.pipelines.placement.cluster import ClusterPaths
from newskills.pipelines.placement.packaged_code import below_working_folder, code_paths, local_sources, map_texts
from newskills.pipelines.placement.shipments import Shipment, describe_shipment
from newskills.pipelines.submission.plan import Plan
from newskills.run.engine.execute import check_unit
from newskills.run.planning.config import GenerationConfig
from newskills.run.planning.spec import Unit
from newskills.solve.selection.config import ParallelThinking

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def with_inputs(units: Sequence[Unit], paths: ClusterPaths, plan: Plan, shell: Shell) -> list[Unit]:
    """Return `units` of prepared data with their files named as the clients of jobs see them.

    What these do not see is added to what `plan` copies. Raises ConfigError, RemoteError, StorageError.
    """
    folders: dict[str, str] = {}
    for path in dict.fromkeys(unit.config.input_file for unit in units):
        container_path = _seen_there(path, paths, shell)
        if container_path is None:
            made = describe_shipment(os.path.dirname(path), paths.cluster, contained=paths.contained)
            plan.shipments[made.seen] = made
            container_path = f"{made.seen}/{os.path.basename(path)}"
        if os.path.dirname(path) != os.path.dirname(container_path):
            folders[os.path.dirname(path)] = os.path.dirname(container_path)
    return [_move_unit(unit, folders) for unit in units]


def _seen_there(path: str, paths: ClusterPaths, shell: Shell) -> str | None:
    """Return the file as clients see it; None: they do not, and it is on this machine."""
    if paths.cluster.ssh_tunnel is not None:
        host = paths.host_path(path)
        if os.path.exists(path) and not shell.exists([host])[0]:
            return None
        return path
    try:
        return paths.client_path(path, f"The input {path}")
    except ConfigError:
        if os.path.exists(path):
            return None
        raise


def _move_unit(unit: Unit, folders: Mapping[str, str]) -> Unit:
    """Return `unit` with its input, and whatever else its settings name in that folder, in another one."""
    old = os.path.dirname(unit.config.input_file)
    if (new := folders.get(old)) is None:
        return unit

    def change(text: str) -> str:
        if text == old or text.startswith(f"{old}/"):
            return new + text[len(old) :]
        return text

    return replace(unit, config=map_texts(unit.config, change))


def with_code(units: Sequence[Unit], paths: ClusterPaths) -> list[Unit]:
    """Return `units` with files of the packaged code named as the clients of jobs find them."""
    if paths.contained or not any(code_paths(unit.config) for unit in units):
        return list(units)
    return [replace(unit, config=map_texts(unit.config, below_working_folder)) for unit in units]


def check_inputs(
    units: Sequence[Unit],
    paths: ClusterPaths,
    shell: Shell,
    *,
    after: Sequence[str] = (),
    shipped: Sequence[str] = (),
) -> None:
    """Raise ConfigError where an input file is not on the machine that submits.

    Jobs that run `after` others may get their input from these: a note says what is not there yet. Those in folders
    that are `shipped`, or packaged with the code, need not be there yet.
    """
    input_files = dict.fromkeys(unit.config.input_file for unit in units)
    files = [
        paths.host_path(file)
        for file in input_files
        if os.path.dirname(file) not in shipped and not paths.in_code(file)
    ]
    missing = [file for file, there in zip(files, shell.exists(files), strict=True) if not there]
    if here := [file for file in missing if os.path.exists(file)]:
        raise ConfigError(
            f"{', '.join(here)}: exists only on this machine; {shell.name} has no such file.",
            hint=f"Copy it (rsync {here[0]} {shell.name}:…) and give its path there as --input_file; or "
            f"commit it, and name it as {CODE}/….",
        )
    if missing and not after:
        raise ConfigError(
            f"There is no input file {', '.join(missing)} on {shell.name}.",
            hint="Prepare benchmark data there: ns prepare_data NAME… --cluster=… --data_dir=…",
        )
    for file in missing:
        print_note(f"there is no {file} yet: assuming that {', '.join(after)} writes it")
    check_addresses(units, paths)


def check_addresses(units: Sequence[Unit], paths: ClusterPaths) -> None:
    """Warn where an address means another machine for a job than for the user."""
    if not paths.cluster.properties.this_machine:
        servers = [server for unit in units for server in (unit.config.server, *unit.config.models.values())]
        for url in dict.fromkeys(server.base_url for server in servers):
            if url and any(f"//{name}" in url for name in LOOPBACK):
                print_note(f"{url}: in a job on a node, this address means that node")


def fetch_weights(host: ServeSpec | None, paths: ClusterPaths) -> None:
    """Fetch what a server without container needs on disk, as nodes often have no way out. Raises NewskillsError."""
    if host is not None and not paths.contained and paths.cluster.ssh_tunnel is None:
        prepare_server(host, print_note)


def check_prompts(
    units: Sequence[Unit],
    *,
    hosted: bool,
    paths: ClusterPaths,
    shipments: Mapping[str, Shipment] = {},
    dry_run: bool = False,
) -> None:
    """Check the first unit of each name: its key, settings, and first prompt where its data can be read here.

    Raises NewskillsError, also where the packaged code lacks a file that is named.
    """
    for unit in {unit.name: unit for unit in reversed(units)}.values():
        config, whole = unit.config, True
        text = config.inference.endpoint_type == "text"
        folder, name = os.path.split(config.input_file)
        shipped = shipments.get(folder)
        if shipped is not None:
            local: str | None = f"{shipped.source}/{name}"
            config = _move_unit(unit, {folder: shipped.source}).config
        elif (local := paths.local_path(config.input_file)) is not None:
            prompts = config.official_prompts
            if prompts:
                prompts = paths.local_path(prompts) or prompts
            config = replace(config, input_file=local, official_prompts=prompts)
        if code_paths(config):
            config, whole = local_sources(config, paths.packaged)
        if paths.contained:
            config = _config_here(config, paths)
        rendered = local is not None and whole and not (hosted and text)
        _check_unit(
            replace(unit, config=_with_solutions(config, paths)), paths, rendered=rendered, dry_run=dry_run
        )


def _check_unit(unit: Unit, paths: ClusterPaths, *, rendered: bool, dry_run: bool) -> None:
    """Check a unit; packages that a module declares are installed here only where jobs will run in this very
    environment."""
    if not dry_run and not paths.contained and paths.cluster.ssh_tunnel is None:
        check_unit(unit, rendered=rendered)
        return
    try:
        with installing_nothing():
            check_unit(unit, rendered=rendered)
    except NotInstalledError as error:
        print_note(f"the first prompt is not shown here, only in the jobs: {error}")


def _config_here(config: GenerationConfig, paths: ClusterPaths) -> GenerationConfig:
    """Return `config` with its own code and prompt, where they lie below a mount, named as this machine names
    them."""

    def local(text: str | None) -> str | None:
        file, colons, name = (text or "").partition("::")
        if os.path.isabs(file) and not os.path.exists(file):
            here = paths.local_path(file)
            if here is not None:
                return f"{here}{colons}{name}"
        return text

    prompt = config.prompt_config
    if isinstance(prompt, str):
        prompt = local(prompt)
    return replace(
        config,
        solver=local(config.solver) or config.solver,
        eval_type=local(config.eval_type),
        prompt_config=prompt,
    )


def _with_solutions(config: GenerationConfig, paths: ClusterPaths) -> GenerationConfig:
    """Return `config` with the folder of stored solutions as this machine names it; without it where it does not
    exist yet."""
    thinking = config.parallel_thinking
    if thinking.generation_dir is None:
        return config
    local = paths.local_path(thinking.generation_dir)
    if local is not None and any(Path(local).glob("output-rs*.jsonl")):
        return replace(config, parallel_thinking=replace(thinking, generation_dir=local))
    return replace(config, parallel_thinking=ParallelThinking())
