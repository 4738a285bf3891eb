# SPDX-License-Identifier: Apache-2.0
"""`ns serve_evals`: evaluations for trainers, over HTTP."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from newskills.commands.command import Command
from newskills.commands.shared.token import Open, TokenFile
from newskills.pipelines.options import NAME, DryRun, doc

JUDGE = {"group": "judge (for benchmarks that need one, such as hle and arena-hard)"}
Port = Annotated[int, Meta(ge=0, le=65535)]


class Options(Struct, frozen=True, kw_only=True):
    host: Annotated[str, doc("address to listen on; 0.0.0.0 = all of this machine")] = "127.0.0.1"
    port: Annotated[Port, doc("port to listen on; 0 = a free one")] = 9050
    output_root: Annotated[str, doc("folder with one folder of results for each request")] = "./skills-eval-output"
    openai_model_name: Annotated[str, doc("name that requests to the trainer's router carry")] = (
        "slime-openai-model"
    )
    max_concurrent_requests: Annotated[
        int, Meta(ge=1, description="requests in flight, over all benchmarks of all trainers together")
    ] = 512
    attach_seconds: Annotated[
        float,
        Meta(
            ge=0,
            description="for so long after its client left, the same request means the same job, not a new one",
        ),
    ] = 300.0
    token_env: Annotated[
        str, doc("environment variable with the token that clients must send, where it is set")
    ] = "NEWSKILLS_EVALS_TOKEN"  # noqa: S105 - its name
    token_file: TokenFile = None
    open: Open = False
    cluster: Annotated[str | None, doc("cluster config of the evaluations; none = this process", NAME)] = None
    config_dir: Annotated[str | None, doc("folder of cluster configs")] = None
    data_dir: Annotated[str | None, doc("where prepared data lies")] = None
    eval_args: Annotated[str, doc("further words for each ns eval, as one text: ++max_samples=50")] = ""
    judge_model: Annotated[str | None, doc("name of the judge (default: the benchmark's own)", JUDGE)] = None
    judge_server_type: Annotated[
        str | None, doc("its kind (default with an address: openai, which most servers speak)", JUDGE)
    ] = None
    judge_server_address: Annotated[str | None, doc("its address, with or without /v1", JUDGE)] = None
    judge_api_key_env_var: Annotated[str | None, doc("environment variable that holds its key", JUDGE)] = None
    extra_judge_args: Annotated[str, doc("++ options of the judge, as one text", JUDGE)] = ""
    dry_run: DryRun = False


COMMAND = Command(
    name="serve_evals",
    summary="Evaluate models while they are trained: slime and its kin POST /evaluate, the benchmarks of a request run "
    "side by side against the trainer's router, and the metrics come back. A repeated request joins the job that runs.",
    options=Options,
    run="newskills.commands.serve.serve_evals.work:run",
    examples=(
        "ns serve_evals --host=0.0.0.0 --open --port=9050 --output-root=/opt/skills-eval --max-concurrent-requests=512",
        "ns serve_evals --judge-server-address=http://judge:8000/v1 --judge-model=my-judge",
        "ns serve_evals --token-file=/run/secrets/evals --eval-args='++max_samples=50'",
    ),
)
