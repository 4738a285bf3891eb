# SPDX-License-Identifier: Apache-2.0
"""What `ns load_test` does."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from newskills.base import aio
from newskills.base.errors import ConfigError
from newskills.base.protocols import Model
from newskills.base.records import Row
from newskills.base.store import AppendLog, hold_lock, write_json
from newskills.config.command_line import Parsed
from newskills.models import check_inference
from newskills.models.probe import served_models
from newskills.pipelines.dry_run import show_dry_run
from newskills.pipelines.json_output import print_json
from newskills.pipelines.load_testing.options import LoadTestOptions
from newskills.pipelines.load_testing.prompts import PromptMaker, PromptRows, prompt_rows, tell_repeats
from newskills.pipelines.load_testing.showing import show_load_test, show_settings
from newskills.pipelines.models import ModelChoice, choose_model
from newskills.pipelines.notices import print_note
from newskills.pipelines.serving.endpoint import running_endpoint
from newskills.run.engine.build import RunBuilder
from newskills.run.load_testing.figures import figures_of, parse_limits
from newskills.run.load_testing.measuring import LoadGenerator
from newskills.run.load_testing.records import LOG, LoadKind, LoadLevel, MeasuredLevel, read_levels
from newskills.run.load_testing.result import SUMMARY, LoadTest, highest_passing, meets_limits
from newskills.run.load_testing.search import highest_load
from newskills.run.load_testing.texts import PromptLengths
from newskills.run.planning.config import EndpointConfig

USUAL_CONCURRENCY = (1.0, 4.0, 16.0, 64.0)
USUAL_REQUESTS, REQUESTS_PER_SLOT, FEWEST_REQUESTS = 200, 10, 20
UNLIMITED = 4096
"""Connections of a level without a limit of requests in flight, where it has more requests than that."""


def run(parsed: Parsed[LoadTestOptions]) -> int:
    test = measure_load(parsed)
    if test is None:
        return 0
    if parsed.options.json:
        print_json(test)
    else:
        show_load_test(test)
    if any(figures.completed for figures in test.levels):
        return 0
    return 1


def measure_load(parsed: Parsed[LoadTestOptions]) -> LoadTest | None:
    """Measure for Python, and return the figures; None where nothing was to be done. Raises NewskillsError."""
    parsed = _with_model(parsed)
    options = parsed.options
    limits, levels = parse_limits(options.limits or ""), planned_levels(options)
    if options.find and not limits:
        raise ConfigError("--find needs --limits.", hint="For example: --find=rate --limits=ttft:500,tpot:50")
    choice = choose_model(options.model_options(), parsed.overrides)
    groups = prompt_rows(parsed, choice)
    if parsed.explain:
        show_settings(groups)
        return None
    builder = RunBuilder(os.environ)
    if choice.host is None:
        check_inference(builder.model(groups[0].config.server, 1), groups[0].config.inference)
    folder = Path(options.output_dir).expanduser()
    if options.dry_run:
        _show_plan(options, choice, groups, levels, folder)
        return None
    tell_repeats(groups, sum(level.requests for level in levels))
    with hold_lock(folder / ".load_test.lock", f"The folder {folder}"):
        test = LoadTester(parsed, groups, builder, levels, folder)
        try:
            return test.measure_levels(choice, limits)
        finally:
            builder.close()


def _with_model(parsed: Parsed[LoadTestOptions]) -> Parsed[LoadTestOptions]:
    """Return the options with the first model that the server lists, where none is given. Raises TransportError,
    AuthError, ServerError."""
    options = parsed.options
    if options.model or options.server_address is None or "server.model" in parsed.overrides or options.dry_run:
        return parsed
    names = served_models(options.server_address.split(",")[0])
    if not names:
        return parsed
    print_note(f"no --model: asking {names[0]}, the first that {options.server_address} serves")
    return msgspec.structs.replace(parsed, options=replace(options, model=names[0]))


def planned_levels(options: LoadTestOptions) -> list[LoadLevel]:
    """Return the levels that are measured, of a search the first one. Raises ConfigError."""
    rates = _parse_numbers(options.rate, "--rate")
    concurrencies = _parse_numbers(options.concurrency, "--concurrency")
    if any(value < 1 or value % 1 for value in concurrencies):
        raise ConfigError("--concurrency: expected whole numbers of requests in flight, such as 1,8,64.")
    if options.find == "concurrency" and rates:
        raise ConfigError("--find=concurrency has no --rate.", hint="Leave out one of them.")
    if not rates and options.find != "rate":
        if not concurrencies:
            concurrencies = [1.0] if options.find else list(USUAL_CONCURRENCY)
        return [
            _load_level(options, "concurrency", value, 0) for value in _ascending_loads(concurrencies, options)
        ]
    if len(concurrencies) > 1:
        raise ConfigError("With --rate, --concurrency is the most requests in flight: give one number.")
    if options.find and 0.0 in rates:
        raise ConfigError("--find=rate begins with a number of requests per second, not with inf.")
    most = int(concurrencies[0]) if concurrencies else 0
    return [_load_level(options, "rate", value, most) for value in _ascending_loads(rates or [1.0], options)]


def _ascending_loads(values: Sequence[float], options: LoadTestOptions) -> list[float]:
    """Return each load once, all at once (0) as the last; where one is searched for, the first alone."""
    if options.find:
        return list(values[:1])
    return sorted(set(values), key=lambda value: value or float("inf"))


def _load_level(options: LoadTestOptions, kind: LoadKind, value: float, most: int) -> LoadLevel:
    requests = options.num_requests or 0
    if not requests and options.seconds is None:
        if kind == "rate":
            requests = USUAL_REQUESTS
        else:
            requests = max(FEWEST_REQUESTS, REQUESTS_PER_SLOT * int(value))
    if not requests and not value:
        raise ConfigError("--rate=inf needs --num_requests: it has no end otherwise.")
    level = LoadLevel(
        kind=kind, value=value, requests=requests, seconds=options.seconds or 0.0, most=most, seed=options.seed
    )
    if kind == "rate":
        return msgspec.structs.replace(level, burstiness=options.burstiness, burst=options.burst)
    return level


def _parse_numbers(values: str | Sequence[float] | None, option: str) -> list[float]:
    """Return the numbers of an option; 0 for inf. Raises ConfigError."""
    words = values.split(",") if isinstance(values, str) else list(values or ())
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = [-1.0]
    if not all(number > 0 for number in numbers):
        raise ConfigError(f"{option} {values}: expected numbers above 0, such as 1,2,4.")
    return [0.0 if number == float("inf") else number for number in numbers]


class LoadTester:
    """A load test: levels are measured, or taken from the records where they have been."""

    def __init__(
        self,
        parsed: Parsed[LoadTestOptions],
        groups: Sequence[PromptRows],
        builder: RunBuilder,
        levels: Sequence[LoadLevel],
        folder: Path,
    ) -> None:
        self._options, self._groups, self._builder = parsed.options, groups, builder
        self._levels, self._folder = levels, folder
        self._lengths = _prompt_lengths(parsed.options, groups)
        self._workload = _describe_workload(parsed.options, groups, self._lengths)
        self._measured: dict[str, MeasuredLevel] = {}
        if not parsed.options.rerun_done:
            self._measured = read_levels(folder / LOG)

    def measure_levels(self, choice: ModelChoice, limits: dict[str, float]) -> LoadTest:
        """Measure what is missing, and return all figures. Raises ConfigError where a level was measured with other
        prompts or another endpoint, NewskillsError."""
        options, server = self._options, self._groups[0].config.server
        missing = [level for level in self._levels if self._measured_level(level) is None]
        levels: list[MeasuredLevel] = []
        if missing or options.find:
            with running_endpoint(choice.host, server, self._folder, options.server_timeout) as endpoint:
                aio.run(lambda: self._measure_all(endpoint, limits, levels))
        else:
            levels = [self._measured[level.name] for level in self._levels]
        figures = sorted(
            (figures_of(level, limits) for level in levels), key=lambda level: level.value or float("inf")
        )
        highest = None
        if limits:
            highest = highest_passing(figures, options.share)
        test = LoadTest(
            model=server.model or "",
            address=str(self._workload["address"]),
            workload=self._workload,
            levels=figures,
            limits=limits,
            share=options.share,
            find=options.find,
            highest=highest,
            records=str(self._folder / LOG),
        )
        write_json(self._folder / SUMMARY, test)
        return test

    def _measured_level(self, level: LoadLevel) -> MeasuredLevel | None:
        measured = self._measured.get(level.name)
        if measured is None:
            return None
        earlier = measured.start.workload
        differing = [name for name, value in self._workload.items() if earlier.get(name) != value]
        if differing:
            raise ConfigError(
                f"{self._folder} has records of other settings ({', '.join(differing)}).",
                hint="Use another --output_dir, or --rerun_done to measure everything again.",
            )
        if measured.end is not None and measured.start.load == level:
            return measured
        return None

    async def _measure_all(
        self, server: EndpointConfig, limits: dict[str, float], levels: list[MeasuredLevel]
    ) -> None:
        config = replace(self._groups[0].config, server=server)
        model = self._builder.for_prompts_of(config, server, self._builder.model(server, self._connections()))
        maker = PromptMaker(self._groups, self._builder, server, self._lengths)
        log = AppendLog(self._folder / LOG)
        tokenizer = self._builder.given_tokenizer(config)
        prepared = False

        async def measured(level: LoadLevel) -> MeasuredLevel:
            nonlocal prepared
            if (done := self._measured_level(level)) is None:
                if not prepared:
                    await self._warm_up(model, maker)
                    prepared = True
                print_note(_describe_level(level))
                done = await LoadGenerator(model, log, level, tokenizer).run(
                    maker.requests(level.name), self._workload
                )
            levels.append(done)
            return done

        try:
            if self._options.find:
                await self._search_highest(self._levels[0], limits, measured)
            else:
                for level in self._levels:
                    await measured(level)
        finally:
            await model.close()
            log.close()

    async def _search_highest(
        self, first: LoadLevel, limits: dict[str, float], measured: Callable[[LoadLevel], Awaitable[MeasuredLevel]]
    ) -> None:
        async def within(value: float) -> bool:
            level = _load_level(self._options, first.kind, value, first.most)
            return meets_limits(figures_of(await measured(level), limits), self._options.share)

        await highest_load(within, first.value, whole=first.kind == "concurrency")

    async def _warm_up(self, model: Model, maker: PromptMaker) -> None:
        await maker.prepare(model)
        if self._options.warmup:
            load = LoadLevel(
                kind="concurrency",
                value=min(self._options.warmup, max(1.0, self._levels[0].value)),
                requests=self._options.warmup,
            )
            await LoadGenerator(model, None, load).run(maker.requests("warmup"), {})

    def _connections(self) -> int:
        """Return how many requests may be in flight at once."""
        if self._options.find == "concurrency":
            return UNLIMITED
        return int(max(level.most or _most_in_flight(level) for level in self._levels))


def _most_in_flight(level: LoadLevel) -> float:
    if level.kind == "concurrency":
        return level.value
    return min(level.requests or UNLIMITED, UNLIMITED)


def _describe_level(level: LoadLevel) -> str:
    parts = []
    if level.requests:
        parts.append(f"{level.requests:,} requests")
    if level.seconds:
        parts.append(f"{level.seconds:g} s at most")
    elif level.kind == "rate" and level.value:
        parts.append(f"sent within {level.requests / level.value:.0f} s")
    return f"{level.name}: {', '.join(parts)}"


def _prompt_lengths(options: LoadTestOptions, groups: Sequence[PromptRows]) -> PromptLengths:
    return PromptLengths(
        input_tokens=options.input_tokens,
        output_tokens=groups[0].config.inference.tokens_to_generate or 1,
        prefix_tokens=options.prefix_tokens,
        prefixes=options.prefixes,
        spread=options.length_spread,
        seed=options.seed,
    )


def _describe_workload(options: LoadTestOptions, groups: Sequence[PromptRows], lengths: PromptLengths) -> Row:
    """Return what is sent, and to whom; the levels of one folder have the same."""
    config = groups[0].config
    prompts: Row
    if not groups[0].rows:
        prompts = msgspec.to_builtins(lengths)
    elif options.benchmarks:
        prompts = {"benchmarks": options.benchmarks}
    else:
        prompts = {"file": options.input_file}
    address = config.server.base_url or "a server that is started for the test"
    return {
        "model": config.server.model,
        "server_type": config.server.server_type,
        "address": address,
        "prompts": prompts,
        "inference": msgspec.to_builtins(config.inference),
    }


def _show_plan(
    options: LoadTestOptions,
    choice: ModelChoice,
    groups: Sequence[PromptRows],
    levels: Sequence[LoadLevel],
    folder: Path,
) -> None:
    server = groups[0].config.server
    where = server.base_url or server.server_type
    if choice.host is not None:
        where = f"a server that is started ({choice.host.name})"
    rows = sum(len(group.rows) for group in groups)
    prompts = f"{rows:,} prompts" if rows else f"texts of {options.input_tokens:,} tokens"
    steps: list[tuple[str, object, object]] = [("asks", server.model or "", where), ("sends", prompts, "streamed")]
    steps += [("measures", level.name, _describe_level(level).partition(": ")[2]) for level in levels]
    if options.find:
        steps.append(("finds", f"the highest {options.find}", f"{options.share:.0%} within {options.limits}"))
    show_dry_run([*steps, ("writes", folder, f"{LOG}, {SUMMARY}")])
