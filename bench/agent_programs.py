# SPDX-License-Identifier: Apache-2.0
"""Agents that are programs, as far as they are installed: a step in a run beside a step of the bare program, before the
same scripted endpoint. Per step, so that starting a program and an environment is not counted."""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.environments.shell_model import ShellModel, serving

from bench.measure import NS, BenchError, Line, Options, run, scratch
from newskills.agents.definition import (
    AgentDefinition,
    agents_folder,
    fill_placeholders,
    library_files,
    placeholder_values,
    read_definition,
)
from newskills.agents.installing import find_installed, place_of

FEW, MANY, ROUNDS = 2, 12, 3
PATIENCE = 300.0
OVERHEAD_MS = 30.0


def program_lines(options: Options) -> Iterator[Line]:
    """Yield a line for each installed agent that speaks the endpoint's own protocol, so that it runs bare as well."""
    for path in library_files().values():
        definition = read_definition(path)
        if definition.protocol != "chat" or not definition.install.npm:
            continue
        if find_installed(definition, agents_folder()) is None:
            continue
        plain, own = [], []
        with scratch() as folder:
            for _ in range(options.rows(ROUNDS)):  # in turn, so that other work on the machine hits both
                plain.append(bare(definition, folder, MANY) - bare(definition, folder, FEW))
                own.append(ours(definition, folder, MANY) - ours(definition, folder, FEW))
        steps = (MANY - FEW) / 1000
        theirs, ours_ms = statistics.median(plain) / steps, statistics.median(own) / steps
        yield Line(
            bench="agents",
            what=f"a step of {definition.shown} {definition.install.version}, in a session",
            ours=ours_ms,
            unit="ms",
            better="less",
            beside="the bare program",
            theirs=theirs,
            target=f"≤ {OVERHEAD_MS:g} ms more",
            met=ours_ms - theirs <= OVERHEAD_MS,
        )


def bare(definition: AgentDefinition, folder: Path, steps: int) -> float:
    """Return the seconds in which the program does `steps` commands by itself, on this machine. Raises BenchError."""
    work = folder / "bare"
    work.mkdir(exist_ok=True)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    with serving(ShellModel(*_commands(steps))) as model:
        place = str(place_of(definition, agents_folder()))
        values = {
            **{name: value.replace("/newskills-program", place) for name, value in placeholder_values().items()},
            "out": str(folder / "out"),
            "task": "Say step.",
            "model": "bench",
            "url": model.url.removesuffix("/v1"),
            "key": "x",
        }
        for path, content in definition.files.items():
            file = Path(fill_placeholders(path, values).replace("~", str(home), 1))
            file.parent.mkdir(parents=True, exist_ok=True)
            settings = fill_placeholders(content, values)
            file.write_text(settings if isinstance(settings, str) else json.dumps(settings))
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            **fill_placeholders(definition.variables, values),
        }
        began = time.perf_counter()
        words = fill_placeholders(list(definition.command), values)
        done = subprocess.run(
            words,
            cwd=work,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        seconds = time.perf_counter() - began
        if done.returncode or len(model.bodies) < steps:
            raise BenchError(f"{shlex.join(words[:2])}: {done.stderr[-500:] or done.stdout[-500:]}")
    return seconds


def ours(definition: AgentDefinition, folder: Path, steps: int) -> float:
    """Return the seconds in which it does them in a session of a run. Raises BenchError."""
    repository = folder / "repository"
    repository.mkdir(exist_ok=True)
    (repository / "a.txt").write_text("a\n")
    row = {
        "id": "task",
        "instance_id": "task",
        "repo": "bench",
        "base_commit": "HEAD",
        "problem_statement": "Say step.",
        "image": "none",
        "repository": str(repository),
        "container_repo_dir": "/testbed",
    }
    (folder / "tasks.jsonl").write_text(json.dumps(row) + "\n")
    with serving(ShellModel(*_commands(steps))) as model:
        words = (
            f"generate --input_file=tasks.jsonl --output_dir=ours-{steps} --rerun_done --server_type=vllm "
            f"--server_address={model.url} --model=bench ++prompt_config=agents/task ++solver=software_agent "
            f"++agent={definition.name} ++environment.engine=sandbox"
        )
        run([NS, *words.split()], cwd=folder, env=dict(os.environ))
    (record,) = [json.loads(line) for line in (folder / f"ours-{steps}/output.jsonl").open()]
    if record["num_steps"] != steps:
        raise BenchError(f"{definition.shown} did {record['num_steps']} steps of {steps}")
    return float(record["agent_seconds"])


def _commands(steps: int) -> list[str]:
    """Return commands that differ: some programs end where a model repeats itself."""
    return [f"echo step {number}" for number in range(steps)]
