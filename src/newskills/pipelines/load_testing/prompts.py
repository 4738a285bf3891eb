# SPDX-License-Identifier: Apache-2.0
"""Where the requests of a load test come from: benchmarks, a file, or words of given number."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, cycle
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from newskills.base.errors import ConfigError, DataError
from newskills.base.protocols import Model, Solver
from newskills.base.records import Inference, Request, Row, Sample
from newskills.base.store import read_rows
from newskills.config.command_line import Parsed, build
from newskills.config.layers import Layer
from newskills.models.kinds import MODELS
from newskills.pipelines.arguments import user_layer
from newskills.pipelines.evaluation.options import EvalOptions
from newskills.pipelines.evaluation.specification import evaluation_spec
from newskills.pipelines.load_testing.options import LoadTestOptions
from newskills.pipelines.models import ModelChoice
from newskills.pipelines.notices import print_note
from newskills.run.engine.build import RunBuilder
from newskills.run.evaluate import plan_evaluation
from newskills.run.load_testing.texts import PromptLengths, WordScale, measure_scale, prompt_text
from newskills.run.planning.config import EndpointConfig, GenerationConfig
from newskills.run.planning.plan import resolve_config

USUAL_OUTPUT = 128
TEXT_FIELDS = ("prompt", "question", "problem", "query", "instruction")
"""Fields of a row, the first of which is the prompt where nothing else says so."""


class PromptRows(Struct, frozen=True, kw_only=True):
    """Rows that have the same settings; none: their texts are made. `origin`: where each setting came from."""

    config: GenerationConfig
    origin: Mapping[str, str]
    rows: Sequence[Row] = ()


def prompt_rows(parsed: Parsed[LoadTestOptions], choice: ModelChoice) -> list[PromptRows]:
    """Resolve what is sent. Raises ConfigError, UnknownNameError, DataError."""
    options = parsed.options
    if options.benchmarks and options.input_file:
        raise ConfigError("Give --benchmarks or --input_file, not both.")
    own: dict[str, object] = {"inference.stream": True}
    if options.output_tokens or not options.benchmarks:
        own["inference.tokens_to_generate"] = options.output_tokens or USUAL_OUTPUT
    if options.benchmarks:
        groups = _of_benchmarks(parsed, own)
    else:
        rows = []
        if options.input_file:
            rows = _file_rows(Path(options.input_file), parsed)
        if options.input_file and "prompt_config" in parsed.overrides:
            form = {}
        else:
            form = {"prompt_format": "openai"}
        layers = [choice.layer, Layer("ns load_test", {**own, **form}), user_layer(parsed.overrides)]
        resolved = resolve_config(layers)
        rows = _limit_rows(rows, resolved.value.max_samples)
        groups = [PromptRows(config=resolved.value, origin=resolved.origin, rows=rows)]
    if _ignores_eos(options, groups[0].config.server):
        groups = [replace(group, config=_without_eos(group.config)) for group in groups]
    return groups


class PromptMaker:
    """Makes the requests of levels. Raises ConfigError, DataError, UnknownNameError."""

    def __init__(
        self, groups: Sequence[PromptRows], builder: RunBuilder, server: EndpointConfig, lengths: PromptLengths
    ) -> None:
        self._lengths, self._scale = lengths, WordScale()
        self._settings: dict[int, Inference] = {}
        self._pairs: list[tuple[Solver, Row]] = []
        for group in groups:
            config = replace(group.config, server=server)
            self._solver = builder.solver(config, builder.prompt(config))
            self._pairs += [(self._solver, row) for row in group.rows]

    async def prepare(self, model: Model) -> None:
        """Ask the server once or twice: whether it answers, and how it counts tokens. Raises the HttpError family."""
        if self._pairs:
            solver, row = self._pairs[0]
            await model.complete(solver.request(Sample(id="0", row=row)))
            return
        scale = await measure_scale(model, lambda text: self._text_request(text, 1))
        if scale is None:
            print_note("the server does not count the tokens of prompts: --input_tokens is a number of words")
        else:
            self._scale = scale

    def requests(self, level: str) -> Iterator[Request]:
        """Yield requests without end: rows in a random order, again and again, or texts that were never sent."""
        if not self._pairs:
            for number in count():
                yield self._text_request(*prompt_text(self._lengths, self._scale, level, number))
        order = random.Random(f"rows {self._lengths.seed} {level}")  # noqa: S311 - no secret
        for number, (solver, row) in enumerate(cycle(order.sample(self._pairs, len(self._pairs)))):
            yield solver.request(Sample(id=str(number), row=row))

    def _text_request(self, text: str, limit: int) -> Request:
        row = {"messages": [{"role": "user", "content": text}]}
        request = self._solver.request(Sample(id="", row=row))
        # bodies are encoded once for each object of settings
        request.inference = self._settings.setdefault(limit, replace(request.inference, tokens_to_generate=limit))
        return request


def _of_benchmarks(parsed: Parsed[LoadTestOptions], own: Row) -> list[PromptRows]:
    options = parsed.options
    names = ("model", "server_type", "server_address", "server_gpus")
    chosen = {name: [getattr(options, name)] for name in names if getattr(options, name) is not None}
    values: Row = {**chosen, "benchmarks": options.benchmarks, "output_dir": options.output_dir}
    evaluation = Parsed(build(EvalOptions, values, command="load_test"), parsed.overrides, frozenset(values))
    spec = evaluation_spec(evaluation)
    spec = replace(spec, layers=[*spec.layers[:-1], Layer("ns load_test", own), spec.layers[-1]])
    groups: dict[str, PromptRows] = {}
    for piece in plan_evaluation(spec).answers:
        config = piece.unit.config
        rows = list(read_rows(Path(config.input_file)))
        group = PromptRows(config=config, origin=piece.resolved.origin, rows=_limit_rows(rows, config.max_samples))
        groups.setdefault(config.input_file, group)
    return list(groups.values())


def _limit_rows(rows: list[Row], most: int) -> list[Row]:
    if most < 0:
        return rows
    return rows[:most]


def _file_rows(path: Path, parsed: Parsed[LoadTestOptions]) -> list[Row]:
    rows = list(read_rows(path))
    if not rows:
        raise DataError(f"{path} has no rows.")
    if "prompt_config" in parsed.overrides:
        return rows
    return [{"messages": _row_messages(row, path, number)} for number, row in enumerate(rows, 1)]


def _row_messages(row: Row, path: Path, number: int) -> list[Row]:
    """Return the messages of a row: its own, or its text; of a ShareGPT conversation the first turn."""
    if isinstance(row.get("messages"), list):
        return list(row["messages"])
    for name in TEXT_FIELDS:
        if isinstance(row.get(name), str):
            return [{"role": "user", "content": row[name]}]
    turns = row.get("conversations")
    if isinstance(turns, list) and turns and isinstance(turns[0], dict) and isinstance(turns[0].get("value"), str):
        return [{"role": "user", "content": turns[0]["value"]}]
    raise DataError(
        f"{path}, row {number}: no prompt (it has {', '.join(row) or 'nothing'}).",
        hint=f"Name a field {TEXT_FIELDS[0]} or messages, or say how a prompt is made: "
        "++prompt_config='{user: \"{field}\"}'",
    )


def _ignores_eos(options: LoadTestOptions, server: EndpointConfig) -> bool:
    dialect = MODELS.properties(server.server_type).dialect
    able = dialect is not None and dialect.ignores_eos
    if options.ignore_eos and not able:
        raise ConfigError(
            f"--ignore_eos: servers of type {server.server_type} are not known to take ignore_eos.",
            hint="Set ++inference.extra_body={ignore_eos: true} to send it anyway.",
        )
    if options.ignore_eos is not None:
        return options.ignore_eos
    return able and not options.benchmarks and not options.input_file


def _without_eos(config: GenerationConfig) -> GenerationConfig:
    body = {"ignore_eos": True, **config.inference.extra_body}
    return replace(config, inference=replace(config.inference, extra_body=body))


def tell_repeats(groups: Sequence[PromptRows], requests: int) -> None:
    """Tell where prompts are sent more than once, which a server may answer from its cache."""
    rows = sum(len(group.rows) for group in groups)
    if rows and requests > rows:
        print_note(f"{rows:,} prompts for {requests:,} requests: they repeat, and the server may have cached them")
