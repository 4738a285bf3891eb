# SPDX-License-Identifier: Apache-2.0
"""The options of `ns serve_evals`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from newskills.pipelines.options import NAME, DryRun, doc
from newskills.pipelines.serving.token import Open, TokenFile

JUDGE = {"group": "judge (for benchmarks that need one, such as hle and arena-hard)"}
Port = Annotated[int, Meta(ge=0, le=65535)]


class ServeEvalsOptions(Struct, frozen=True, kw_only=True):
    host: Annotated[str, doc("address to listen on; 0.0.0.0 = all of this machine")] = "127.0.0.1"
    port: Annotated[Port, doc("port to listen on; 0 = a free one")] = 9050
    output_root: Annotated[str, doc("folder for the results; each request gets a folder in it")] = (
        "./skills-eval-output"
    )
    openai_model_name: Annotated[str, doc("model name in the requests to the trainer's router")] = (
        "slime-openai-model"
    )
    max_concurrent_requests: Annotated[
        int, Meta(ge=1, description="requests in flight, over all benchmarks and all trainers")
    ] = 512
    attach_seconds: Annotated[
        float,
        Meta(
            ge=0,
            description="seconds after a client has left during which the same request joins the same job "
            "instead of starting a new one",
        ),
    ] = 300.0
    token_env: Annotated[str, doc("environment variable with the token that clients must send, if it is set")] = (
        "NEWSKILLS_EVALS_TOKEN"  # noqa: S105 - its name
    )
    token_file: TokenFile = None
    open: Open = False
    cluster: Annotated[str | None, doc("cluster config to run the evaluations on; none = this process", NAME)] = (
        None
    )
    config_dir: Annotated[str | None, doc("folder of cluster configs")] = None
    data_dir: Annotated[str | None, doc("folder of prepared data")] = None
    eval_args: Annotated[str, doc("extra arguments for each ns eval, as one text: ++max_samples=50")] = ""
    judge_model: Annotated[str | None, doc("name of the judge (default: the benchmark's own)", JUDGE)] = None
    judge_server_type: Annotated[
        str | None,
        doc("server type of the judge (default with an address: openai, which most servers speak)", JUDGE),
    ] = None
    judge_server_address: Annotated[str | None, doc("address of the judge, with or without /v1", JUDGE)] = None
    judge_api_key_env_var: Annotated[str | None, doc("environment variable with the judge's API key", JUDGE)] = (
        None
    )
    extra_judge_args: Annotated[str, doc("++ options for the judge, as one text", JUDGE)] = ""
    dry_run: DryRun = False
