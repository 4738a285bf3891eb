# SPDX-License-Identifier: Apache-2.0
"""The options of `ns load_test`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from newskills.pipelines.options import AtLeastOne, DryRun, doc
from newskills.pipelines.serving.endpoint import EndpointOptions

PROMPTS = {"group": "prompts"}
LOAD = {"group": "load"}
LIMITS = {"group": "limits"}
Positive = Annotated[float, Meta(gt=0)]
AtLeastZero = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(gt=0, le=1)]


class LoadTestOptions(EndpointOptions, frozen=True, kw_only=True):
    output_dir: Annotated[str, doc("folder for the records; levels that it has are not measured again")] = (
        "load-test"
    )
    benchmarks: Annotated[str | None, doc("send the prompts of these benchmarks, as ns eval would", PROMPTS)] = (
        None
    )
    input_file: Annotated[
        str | None,
        doc("send the prompts of this file: rows with messages, prompt, question or ++prompt_config", PROMPTS),
    ] = None
    input_tokens: Annotated[
        AtLeastOne, doc("without those: prompts of so many tokens, as the server counts them", PROMPTS)
    ] = 512
    output_tokens: Annotated[
        AtLeastOne | None, doc("tokens of each reply at most (default: 128, or as the benchmark says)", PROMPTS)
    ] = None
    prefix_tokens: Annotated[Count, doc("tokens at the beginning of prompts that they share", PROMPTS)] = 0
    prefixes: Annotated[AtLeastOne, doc("number of different shared beginnings", PROMPTS)] = 1
    length_spread: Annotated[
        Annotated[float, Meta(ge=0, lt=1)],
        doc("draw lengths between (1 - this) and (1 + this) times theirs", PROMPTS),
    ] = 0.0
    ignore_eos: Annotated[
        bool | None,
        doc("generate all --output_tokens, where the server can (default: for prompts of given lengths)", PROMPTS),
    ] = None
    concurrency: Annotated[
        str | list[int] | None,
        doc("requests in flight: 1,8,64 (default: 1,4,16,64); with --rate: the most in flight", LOAD),
    ] = None
    rate: Annotated[
        str | list[float] | None,
        doc("requests per second, however fast answers come: 1,2,4; inf: all at once", LOAD),
    ] = None
    burstiness: Annotated[
        AtLeastZero, doc("gaps between requests: 1 = Poisson, below 1: burstier, above: evener, 0: even", LOAD)
    ] = 1.0
    burst: Annotated[AtLeastOne, doc("requests that arrive together", LOAD)] = 1
    num_requests: Annotated[
        AtLeastOne | None,
        doc("requests of each level (default: 200; with --concurrency ten times that, at least 20)", LOAD),
    ] = None
    seconds: Annotated[
        Positive | None, doc("send requests for that long; without --num_requests as many as fit", LOAD)
    ] = None
    warmup: Annotated[Count, doc("requests before the first level, which are not counted", LOAD)] = 0
    seed: Annotated[int, doc("of prompts and arrivals", LOAD)] = 0
    limits: Annotated[
        str | None,
        doc("largest ttft, tpot, e2el of a request in milliseconds, for goodput: ttft:500,tpot:50", LIMITS),
    ] = None
    find: Annotated[
        Literal["concurrency", "rate"] | None,
        doc("find the highest one at which --share is within --limits", LIMITS),
    ] = None
    share: Annotated[Share, doc("share of requests that must be within all --limits", LIMITS)] = 0.95
    rerun_done: Annotated[bool, doc("measure levels again that have been measured")] = False
    json: Annotated[bool, doc("print the result as JSON")] = False
    dry_run: DryRun = False
