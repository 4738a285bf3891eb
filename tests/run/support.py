# SPDX-License-Identifier: Apache-2.0
"""Runs for the tests of the engine: an input file, a unit, its records."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from newskills.base.records import Inference, Row
from newskills.run.engine.execute import execute
from newskills.run.planning.config import EndpointConfig, GenerationConfig
from newskills.run.planning.spec import RunResult, RunSpec, Unit


def write_input(folder: Path, rows: int = 20, **extra: Any) -> Path:
    """`rows` problems "What is {i} + 1?"."""
    path = folder / "input.jsonl"
    lines = (
        json.dumps({"problem": f"What is {i} + 1?", "expected_answer": str(i + 1), **extra}) for i in range(rows)
    )
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def make_unit(folder: Path, base_url: str, **settings: Any) -> Unit:
    """A unit over `folder/input.jsonl`; `server` and `inference` are given as dictionaries."""
    server = {"server_type": "vllm", "model": "fake", "base_url": base_url, **settings.pop("server", {})}
    inference = settings.pop("inference", {})
    seed = settings.pop("seed", None)
    values = {
        "input_file": str(folder / "input.jsonl"),
        "output_file": str(folder / "out" / "output.jsonl"),
        "prompt_config": {"user": "{problem}"},
        "skip_filled": True,
        "max_concurrent_requests": 8,
        **settings,
    }
    config = GenerationConfig(server=EndpointConfig(**server), inference=Inference(**inference), **values)
    return Unit(name="generate", seed=seed, config=config)


def run(*units: Unit, **settings: Any) -> RunResult:
    """Runs the units with a console that nobody sees."""
    return run_and_listen(*units, **settings)[0]


def run_and_listen(*units: Unit, **settings: Any) -> tuple[RunResult, str]:
    """The result, and what the run said."""
    said = io.StringIO()
    spec = RunSpec(units=units, output_dir=str(units[0].merged.parent.parent), **settings)
    result = execute(spec, console=Console(file=said, width=200), environ={})
    return result, said.getvalue()


def records(path: Path | str) -> list[Row]:
    """The rows of a file."""
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def changed(unit: Unit, **settings: Any) -> Unit:
    """The unit with other settings."""
    return msgspec.structs.replace(unit, config=msgspec.structs.replace(unit.config, **settings))


def names(folder: Path) -> Sequence[str]:
    """Visible files of a folder."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
