# SPDX-License-Identifier: Apache-2.0
"""The options of `ns serve_rewards`, and its `++` keys."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from newskills.pipelines.options import NAME, AtLeastOne, DryRun, doc
from newskills.pipelines.serving.token import Open, TokenFile
from newskills.run.rewarding.reward import RewardConfig
from newskills.sandbox.config import SandboxConfig

Port = Annotated[int, Meta(ge=0, le=65535)]


class ServeRewardsOptions(Struct, frozen=True, kw_only=True):
    benchmark: Annotated[
        str | None, doc("benchmark whose grader gives the reward, with the benchmark's settings", NAME)
    ] = None
    grader: Annotated[str | None, doc("grader, by name; settings: ++eval_config.KEY", NAME)] = None
    reward_model: Annotated[
        str | None,
        doc("folder of a reward model of ns reward_model, instead of a grader; --benchmark then gives the prompt"),
    ] = None
    data_dir: Annotated[str | None, doc("folder of prepared data, for graders that read files in it")] = None
    host: Annotated[str, doc("address to listen on; 0.0.0.0 = all of this machine")] = "127.0.0.1"
    port: Annotated[Port, doc("port to listen on; 0 = a free one")] = 9060
    max_waiting: Annotated[
        AtLeastOne, doc("samples in the server at once; above that, clients get status 429")
    ] = 16_384
    max_concurrent: Annotated[AtLeastOne, doc("samples at once for a grader that runs code")] = 64
    workers: Annotated[
        int, Meta(ge=0, description="worker processes for a grader that computes; 0 = one per CPU of this process")
    ] = 0
    tokenizer: Annotated[
        str | None,
        doc("tokenizer that counts tokens, if the reward needs them and clients do not send them", NAME),
    ] = None
    token_env: Annotated[str, doc("environment variable with the token that clients must send, if it is set")] = (
        "NEWSKILLS_REWARDS_TOKEN"  # noqa: S105 - its name
    )
    token_file: TokenFile = None
    open: Open = False
    dry_run: DryRun = False


class RewardKeys(Struct, frozen=True, kw_only=True):
    """`++` keys of `ns serve_rewards`."""

    eval_config: Annotated[dict[str, Any], Meta(description="settings of the grader")] = {}
    reward: RewardConfig = RewardConfig()
    sandbox: SandboxConfig = SandboxConfig()
