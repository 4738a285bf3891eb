# SPDX-License-Identifier: Apache-2.0
"""What a run is asked to do, and what came of it. `run.json` is a RunSpec; it never holds a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError, DataError
from newskills.base.records import Cause, Ledger, Outcome, Row
from newskills.base.store import read_rows, write_json
from newskills.models.config import key_of
from newskills.run.planning.config import EndpointConfig, GenerationConfig
from newskills.run.planning.until import UntilRecord
from newskills.run.records.paths import OutputPaths, chunk_path

RUN_FILE = "run.json"
SECRET_VARIABLE = "NEWSKILLS_SERVER_KEY"  # noqa: S105 - the name of a variable
_CREDENTIALS = re.compile(r"://[^/\s]*@")


class Unit(Struct, frozen=True, kw_only=True):
    """One output file: (benchmark, seed, chunk). `name` is the benchmark, or "generate".

    The chunk is `config.chunk_id`; the grader is `config.eval_type` with `config.eval_config`.
    """

    name: str
    config: GenerationConfig
    seed: int | None = None

    @property
    def merged(self) -> Path:
        """The file users see in the end."""
        return Path(self.config.output_file)

    @property
    def paths(self) -> OutputPaths:
        chunk = self.config.chunk_id
        output = self.merged if chunk is None else chunk_path(self.merged, chunk)
        return OutputPaths(output)

    @property
    def label(self) -> str:
        seed = "" if self.seed is None else f"-rs{self.seed}"
        chunk = ""
        if self.config.chunk_id is not None:
            chunk = f" chunk {self.config.chunk_id}"
        return f"{self.name}{seed}" + chunk


class RunSpec(Struct, frozen=True, kw_only=True):
    """Units that share one process, one event loop and the concurrency of each server.

    rerun_done   do finished units, and units whose settings changed, again from the start
    resume_with  the command to show to someone who wants to go on after a stop
    log_dir      folder of the log that people read; empty = none
    working_dir  folder that relative paths start from, where the run is taken up from its file
    sequential   one unit after the other
    shared       other processes have the same units: each takes the next one that nobody has
    chunks       of a shared run: for each unit, (first, behind the last) of the chunks that it stands for
    first        of a shared run: the chunk, counted over all files, at which this process begins
    needs        files of earlier work that must be there before anything begins
    beside       path → content of JSON files to write once there is work to do (what the benchmarks are)
    """

    units: tuple[Unit, ...]
    output_dir: str
    rerun_done: bool = False
    resume_with: str = ""
    log_dir: str = ""
    working_dir: str = ""
    sequential: bool = False
    shared: bool = False
    chunks: tuple[tuple[tuple[int, int], ...], ...] = ()
    first: int = 0
    needs: tuple[str, ...] = ()
    beside: dict[str, Any] = {}

    def without_secrets(self) -> tuple[RunSpec, dict[str, str]]:
        """Return a spec that may be written down, and the environment variables that the run needs besides.

        A key given as a value is left out and handed over under a variable's name.
        """
        secrets: dict[str, str] = {}
        units = tuple(_seal_unit(unit, secrets) for unit in self.units)
        return msgspec.structs.replace(self, units=units, resume_with=mask_addresses(self.resume_with)), secrets

    def save(self, folder: Path) -> dict[str, str]:
        """Write `folder/run.json`; return the variables of `without_secrets`."""
        spec, secrets = self.without_secrets()
        write_json(folder / RUN_FILE, spec)
        return secrets


def load_spec(folder: Path) -> RunSpec:
    """Read `folder/run.json`. Raises DataError, ConfigError."""
    path = folder / RUN_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunSpec)
    except FileNotFoundError as error:
        raise DataError(f"There is no {path}.") from error
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path} does not describe a run: {error}.") from error


def mask_addresses(text: str) -> str:
    """Replace user names and passwords of addresses in `text`."""
    return _CREDENTIALS.sub("://***@", text)


def _seal_unit(unit: Unit, secrets: dict[str, str]) -> Unit:
    config = unit.config
    models = {role: _sealed_server(server, secrets) for role, server in config.models.items()}
    config = msgspec.structs.replace(config, server=_sealed_server(config.server, secrets), models=models)
    return msgspec.structs.replace(unit, config=config)


def _sealed_server(server: EndpointConfig, secrets: dict[str, str]) -> EndpointConfig:
    if server.base_url is not None:
        more = tuple(mask_addresses(url) for url in server.more_base_urls)
        server = msgspec.structs.replace(server, base_url=mask_addresses(server.base_url), more_base_urls=more)
    if server.api_key is not None:
        key, _ = key_of(server, {})
        names = {value: name for name, value in secrets.items()}
        name = names.get(key or "") or f"{SECRET_VARIABLE}_{len(secrets)}"
        secrets[name] = key or ""
        server = msgspec.structs.replace(server, api_key=None, api_key_env_var=name)
    return server


Status = Literal["done", "failed", "interrupted", "stopped", "stopped_early"]


class UnitResult(Struct, kw_only=True):
    """How one unit ended.

    status     done; failed = samples without a usable reply remain; interrupted by a signal; stopped by an error, or by
                 a budget; stopped_early by the rule of --until, with all rows that it asks for
    rows       rows asked for; `kept` of them were done before this process, `failures` have no usable reply
    tokens     as reported by the server in this process; None where it reported none
    note       what the user should know besides
    """

    name: str
    seed: int | None
    chunk: int | None
    output: str
    status: Status
    rows: int
    kept: int = 0
    generated: int = 0
    failures: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_written_tokens: int | None = None
    cost: float | None = None
    seconds: float = 0.0
    ledger: Ledger = msgspec.field(default_factory=Ledger)
    merged: bool = False
    note: str = ""

    @property
    def path(self) -> Path:
        """The file that has the records: `output`, or the one that it was merged into."""
        output = Path(self.output)
        if self.chunk is None or output.exists():
            return output
        return output.with_name(output.name.replace(f"_chunk_{self.chunk}.", ".", 1))


class RunResult(Struct, kw_only=True):
    """`exit_code` is 0 only if every unit is done. `message` is the sentence to print otherwise.

    until  name of units → how far a rule of `--until` let them go
    """

    units: list[UnitResult]
    exit_code: int = 0
    message: str = ""
    retries: int = 0
    until: dict[str, UntilRecord] = {}

    @property
    def outputs(self) -> list[Path]:
        """The files of all units that have ended; a file that was merged of its chunks stands for them."""
        return list(dict.fromkeys(unit.path for unit in self.units if unit.status in ("done", "stopped_early")))

    def rows(self) -> Iterator[Row]:
        """Yield the records of all finished output files, in order. Raises DataError."""
        for path in self.outputs:
            yield from read_rows(path)

    @property
    def ledger(self) -> Ledger:
        """All units together."""
        total = Ledger()
        for unit in self.units:
            add_ledger(total, unit.ledger)
        return total


def count_attempt(ledger: Ledger, outcome: Outcome, cause: Cause | None) -> None:
    """Count one attempt in the ledger."""
    setattr(ledger, outcome, getattr(ledger, outcome) + 1)
    if cause is not None:
        ledger.causes = {**ledger.causes, cause: ledger.causes.get(cause, 0) + 1}


def add_ledger(total: Ledger, more: Ledger) -> None:
    """Add `more` to `total`."""
    for outcome in ("correct", "wrong", "no_answer", "unscored"):
        setattr(total, outcome, getattr(total, outcome) + getattr(more, outcome))
    for cause, n in more.causes.items():
        total.causes = {**total.causes, cause: total.causes.get(cause, 0) + n}
    for reason, n in more.finish_reasons.items():
        count_finish(total, reason, n)


def count_finish(ledger: Ledger, reason: object, n: int = 1) -> None:
    """Count `n` replies that ended for `reason`, in the endpoint's words; None where it gave none."""
    if isinstance(reason, str):
        ledger.finish_reasons = {**ledger.finish_reasons, reason: ledger.finish_reasons.get(reason, 0) + n}
