# SPDX-License-Identifier: Apache-2.0
"""The options and `++` keys of `ns gateway`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from newskills.base.records import Inference
from newskills.models.config import ServerConfig
from newskills.pipelines.options import DryRun, doc
from newskills.pipelines.serving.endpoint import EndpointOptions
from newskills.pipelines.serving.token import Open, TokenFile

LIMITS = {"group": "limits of each task"}
DEFAULT_TOKEN_ENV = "NEWSKILLS_GATEWAY_TOKEN"  # noqa: S105 - its name
Port = Annotated[int, Meta(ge=0, le=65535)]
AtLeastZero = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0)]


class GatewayOptions(EndpointOptions, frozen=True, kw_only=True):
    output_dir: Annotated[str, doc("folder for the records; an earlier gateway's are continued")] = "gateway"
    host: Annotated[str, doc("address to listen on; 0.0.0.0 = all of this machine")] = "127.0.0.1"
    port: Annotated[Port, doc("port to listen on; 0 = a free one")] = 9080
    socket: Annotated[str | None, doc("also listen at this unix socket, for containers without a network")] = None
    token_env: Annotated[str, doc("environment variable with the token that clients must send, if it is set")] = (
        DEFAULT_TOKEN_ENV
    )
    token_file: TokenFile = None
    open: Open = False
    logprobs: Annotated[
        bool, doc("also record token ids and log-probabilities, where the server gives them, to train on")
    ] = False
    whole_replies: Annotated[
        bool, doc("ask for whole replies: programs that stream wait, and a failure in the middle is tried again")
    ] = False
    max_requests: Annotated[AtLeastZero, doc("requests; 0 = no limit", LIMITS)] = 0
    max_tokens: Annotated[AtLeastZero, doc("generated tokens; 0 = no limit", LIMITS)] = 0
    max_cost: Annotated[
        Amount, doc("cost, by ++server.price_per_million_*_tokens and in their currency; 0 = no limit", LIMITS)
    ] = 0.0
    max_seconds: Annotated[Amount, doc("seconds from the first request; 0 = no limit", LIMITS)] = 0.0
    dry_run: DryRun = False


class GatewayKeys(Struct, frozen=True, kw_only=True):
    """`++` keys of `ns gateway`."""

    server: ServerConfig = ServerConfig()
    inference: Inference = Inference(temperature=None, top_p=None, random_seed=None)
    max_concurrent_requests: Annotated[int, Meta(ge=1, description="largest number of requests in flight")] = 64
    endpoint_patience: Annotated[
        float | None,
        Meta(
            description="seconds to wait for a server that does not answer; default: 1800, 60 before its first answer"
        ),
    ] = None
