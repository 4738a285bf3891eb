# SPDX-License-Identifier: Apache-2.0
"""Ask models about results, by the engine of evaluations: resumable, with retries and limits of cost."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.store import bounded_lines, open_for_reading
from newskills.config.layers import Layer
from newskills.config.values import Text
from newskills.pipelines.arguments import command_line, user_layer
from newskills.pipelines.models import LISTS, choose_model, hosting_of, one_of
from newskills.pipelines.results.scan_options import ReaderOptions
from newskills.run.engine.execute import execute
from newskills.run.hosting.roles import at_servers, check_units, host_servers
from newskills.run.planning.plan import PlannedUnit, WorkPieces, file_units
from newskills.run.planning.spec import RunSpec
from newskills.run.records.paths import OutputPaths, output_name

_LIMITS = ("max_cost", "max_total_tokens", "max_concurrent_requests", "most_concurrent_requests", "server.")
"""Keys that do not change what is rows."""
_SLUG = re.compile(r"[^A-Za-z0-9._-]+")


class RequestRows(NamedTuple):
    """Rows to ask, which lie in `input`; replies of a model go to a folder of `folder` with its name."""

    input: Path
    folder: Path


class AskedModels(Struct, frozen=True, kw_only=True):
    """What came of asking: `exit_code` 0 where each row has an answer, else `message` says what is left."""

    models: tuple[str, ...]
    exit_code: int = 0
    message: str = ""


class _Reply(Struct):
    id: str = ""
    generation: str | None = None


_replies = msgspec.json.Decoder(_Reply)


def ask_models(
    options: ReaderOptions,
    overrides: Mapping[str, Text],
    requests: Sequence[RequestRows],
    prompt: str,
    command: str,
) -> AskedModels:
    """Ask each model all rows, one model after the other. What has an answer already is not asked again.

    Raises ConfigError without a model, and NewskillsError for what can be refused before the first request.
    """
    models = model_names(options)
    exit_code, messages = 0, []
    for number, model in enumerate(models):
        chosen = one_of(options.models(), number)
        choice = choose_model(chosen, overrides)
        usual = Layer(
            command, {"prompt_config": prompt, "server.enable_soft_fail": True, "add_generation_stats": True}
        )
        planned: list[PlannedUnit] = []
        for rows in requests:
            layers = [usual, choice.layer, user_layer(overrides)]
            folder = rows.folder / model_slug(model)
            planned += file_units(rows.input, output_dir=folder, pieces=WorkPieces(), layers=layers)
        logs = requests[0].folder / "logs"
        hosting = hosting_of(choice, chosen, logs)
        check_units(planned, hosting)
        with host_servers(hosting, planned, rerun_done=False) as servers:
            units = tuple(piece.unit for piece in at_servers(planned, servers))
            spec = RunSpec(
                units=units,
                output_dir=str(requests[0].folder),
                log_dir=str(logs),
                resume_with=command_line(command),
            )
            done = execute(spec)
        if done.exit_code:
            exit_code = done.exit_code
            messages.append(done.message)
    return AskedModels(models=tuple(models), exit_code=exit_code, message=" ".join(messages))


def model_names(options: ReaderOptions) -> list[str]:
    """Return the models. Raises ConfigError without one, or where an option has another number of values."""
    if not options.model:
        raise ConfigError("A question needs a model: give --model and --server_type.")
    for name in LISTS:
        values = getattr(options, name, [])
        if len(values) not in (0, 1, len(options.model)):
            raise ConfigError(f"--{name} has {len(values)} values for {len(options.model)} models.")
    if len(set(options.model)) < len(options.model):
        raise ConfigError("--model names a model twice.")
    return options.model


def asking_digest(overrides: Mapping[str, Text]) -> Row:
    """Return the `++` keys that change what is rows."""
    return {name: str(value) for name, value in sorted(overrides.items()) if not name.startswith(_LIMITS)}


def replies_of(rows: RequestRows, model: str) -> dict[str, str | None]:
    """Return id of a row → the model's reply, also those of a run that has not come to its end."""
    paths = OutputPaths(rows.folder / model_slug(model) / output_name())
    path = paths.output if paths.output.exists() else paths.log
    if path.exists():
        return {reply.id: reply.generation for reply in _read_replies(path)}
    return {}


def _read_replies(path: Path) -> Iterator[_Reply]:
    with open_for_reading(path) as file:
        for line in bounded_lines(file):
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                yield _replies.decode(line or b"")


def model_slug(model: str) -> str:
    """Return a model's name as a folder.

    >>> model_slug("org/model:1")
    'org-model-1'
    """
    return _SLUG.sub("-", model).strip("-.") or "model"
