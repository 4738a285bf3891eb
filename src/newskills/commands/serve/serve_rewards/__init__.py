# SPDX-License-Identifier: Apache-2.0
"""`ns serve_rewards`: graders as rewards for any trainer, over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from newskills.commands.command import Command
from newskills.pipelines.options import NAME, AtLeastOne, DryRun, doc
from newskills.pipelines.serving.token import Open, TokenFile
from newskills.run.rewarding.reward import RewardConfig
from newskills.sandbox.config import SandboxConfig

Port = Annotated[int, Meta(ge=0, le=65535)]


class Options(Struct, frozen=True, kw_only=True):
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


COMMAND = Command(
    name="serve_rewards",
    summary="Compute rewards for the samples of any trainer over HTTP, with the same graders as evaluation or with a "
    "reward model of ns reward_model. It answers newskills batches (/v1/rewards), OpenRLHF (/get_reward) and slime "
    "(/slime). A sample that could not be graded never gets reward 0.",
    options=Options,
    config=RewardKeys,
    run="newskills.commands.serve.serve_rewards.work:run",
    examples=(
        "ns serve_rewards --grader=math ++reward.wrong=-0.5 ++reward.no_answer=-0.5 ++reward.format.box=0.1",
        "ns serve_rewards --benchmark=human-eval --host=0.0.0.0 --port=9060 --token_file=/run/secrets/rewards",
        "ns serve_rewards --reward_model=training/rm/final_hf_model --benchmark=sorting-lesson",
        "ns serve_rewards --grader=math ++reward.judge.server.model=my-judge "
        "++reward.judge.server.base_url=http://judge:8000",
    ),
)
