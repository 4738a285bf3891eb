# SPDX-License-Identifier: Apache-2.0
"""What a trainer posts, checked strictly: unknown keys, wrong types and names that are no names are refused."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from newskills.base.errors import ConfigError
from newskills.base.type_errors import type_fault
from newskills.benchmarks.files.names import is_file_name

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
LONGEST_NAME = 100
SAMPLING = {
    "temperature": "inference.temperature",
    "top_p": "inference.top_p",
    "top_k": "inference.top_k",
    "max_response_len": "inference.tokens_to_generate",
}
"""Field of the request → `++` key of `ns eval`, in the order of its command line."""


class SamplingDefaults(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """None: as the benchmark has it. The limits are those of any sampler; -1 as `top_k` means all tokens."""

    n_samples_per_eval_prompt: Annotated[int, Meta(ge=0)] | None = None
    temperature: Annotated[float, Meta(ge=0)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1)] | None = None
    max_response_len: Annotated[int, Meta(ge=1)] | None = None


class BenchmarkOrder(SamplingDefaults, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One benchmark, and how its answers are sampled."""

    name: str

    @property
    def counted(self) -> str:
        """`name:samples`, as `--benchmarks` has it."""
        samples = self.n_samples_per_eval_prompt
        if samples is None:
            return self.name
        return f"{self.name}:{samples}"

    def overrides(self) -> list[str]:
        """Return the `++` words of what is set."""
        settings = ((key, getattr(self, field)) for field, key in SAMPLING.items())
        return [f"++{key}={value}" for key, value in settings if value is not None]


class EvaluationRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`router_url`: of the trainer's OpenAI-compatible router, without /v1; `defaults`: where benchmarks are silent."""

    rollout_id: int
    router_url: str
    benchmarks: tuple[BenchmarkOrder, ...] = ()
    defaults: SamplingDefaults = SamplingDefaults()

    @property
    def api_base(self) -> str:
        return f"{self.router_url}/v1"


def read_request(body: bytes) -> EvaluationRequest:
    """Decode a request, with its defaults applied to each benchmark. Raises ConfigError with the sentence for the
    client."""
    try:
        request = msgspec.json.decode(body, type=EvaluationRequest)
    except msgspec.ValidationError as error:
        raise ConfigError(f"The request is not valid: {type_fault(error)}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The body of the request is not a JSON object: {error}.") from error
    _check_url(request.router_url)
    seen: set[str] = set()
    for benchmark in request.benchmarks:
        _check_name(benchmark.name)
        if benchmark.name in seen:
            raise ConfigError(f"The benchmark {benchmark.name} is named twice; name it once.")
        seen.add(benchmark.name)
    return msgspec.structs.replace(
        request,
        router_url=request.router_url.rstrip("/"),
        benchmarks=tuple(_fill_order(order, request.defaults) for order in request.benchmarks),
        defaults=SamplingDefaults(),
    )


def _fill_order(order: BenchmarkOrder, defaults: SamplingDefaults) -> BenchmarkOrder:
    fields: dict[str, Any] = msgspec.structs.asdict(defaults)
    own = {key: value for key, value in msgspec.structs.asdict(order).items() if value is not None}
    return BenchmarkOrder(**{**fields, **own})


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(ch.isspace() or not ch.isprintable() for ch in url):
        raise ConfigError(f"router_url is '{url[:200]}'; expected an address such as http://127.0.0.1:30000.")


def _check_name(name: str) -> None:
    """Check a name, which becomes a folder and a word of a command; a path would load code of this machine."""
    if ":" in name:
        raise ConfigError(
            f"The benchmark '{name[:LONGEST_NAME]}' has a colon in its name; give the number of samples as "
            "n_samples_per_eval_prompt."
        )
    if not _NAME.fullmatch(name) or is_file_name(name) or len(name) > LONGEST_NAME:
        raise ConfigError(
            f"'{name[:LONGEST_NAME]}' is not the name of a benchmark.", hint="See: ns list benchmarks"
        )
