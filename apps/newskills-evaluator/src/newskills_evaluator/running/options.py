# SPDX-License-Identifier: Apache-2.0
"""The options of `ns nemo_evaluator`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.options import PlacementOptions, doc

MAIN = {"group": "model under test"}
JUDGE = {"group": "judge"}
CHAT, HEALTH = "/v1/chat/completions", "/health"


class NemoEvaluatorOptions(PlacementOptions, frozen=True, kw_only=True):
    nemo_evaluator_config: Annotated[str, doc("YAML with evaluation.tasks, as for NeMo Evaluator's launcher")]
    output_dir: Annotated[str, doc("folder for the results, one folder per task")]
    job_gpus: Annotated[int, doc("GPUs per node for the evaluation itself")] = 0
    job_nodes: Annotated[int, doc("nodes for the evaluation itself")] = 1
    server_type: Annotated[str | None, doc("engine that serves the model: vllm, sglang, trtllm, …", MAIN)] = None
    server_model: Annotated[str | None, doc("name or path of the model", MAIN)] = None
    server_gpus: Annotated[
        int, doc("serve the model on this many GPUs per node; 0 = do not serve it here", MAIN)
    ] = 0
    server_nodes: Annotated[int, doc("nodes for the model's server", MAIN)] = 1
    server_port: Annotated[int | None, doc("port of the server (default: a free one)", MAIN)] = None
    server_args: Annotated[str, doc("more arguments for the engine, passed on unchanged", MAIN)] = ""
    server_entrypoint: Annotated[str | None, doc("another start command for the engine", MAIN)] = None
    server_container: Annotated[str | None, doc("container image of the server", MAIN)] = None
    server_base_url: Annotated[str | None, doc("base URL of a running server", MAIN)] = None
    server_api_path: Annotated[str, doc("path of the API on the server", MAIN)] = CHAT
    server_health_path: Annotated[str, doc("health path of the server: answers 200 once it is ready", MAIN)] = (
        HEALTH
    )
    judge_server_type: Annotated[
        str | None, doc("engine that serves the judge: vllm, sglang, trtllm, …", JUDGE)
    ] = None
    judge_server_model: Annotated[str | None, doc("name or path of the judge", JUDGE)] = None
    judge_server_gpus: Annotated[int, doc("serve the judge on this many GPUs per node", JUDGE)] = 0
    judge_server_nodes: Annotated[int, doc("nodes for the judge's server", JUDGE)] = 1
    judge_server_port: Annotated[int | None, doc("port of the server (default: a free one)", JUDGE)] = None
    judge_server_args: Annotated[str, doc("more arguments for the engine, passed on unchanged", JUDGE)] = ""
    judge_server_entrypoint: Annotated[str | None, doc("another start command for the engine", JUDGE)] = None
    judge_server_container: Annotated[str | None, doc("container image of the server", JUDGE)] = None
    judge_server_base_url: Annotated[str | None, doc("base URL of a running judge", JUDGE)] = None
    judge_server_api_path: Annotated[str, doc("path of the API on the server", JUDGE)] = CHAT
    judge_server_health_path: Annotated[
        str, doc("health path of the server: answers 200 once it is ready", JUDGE)
    ] = HEALTH
