# SPDX-License-Identifier: Apache-2.0
"""`ns serve_rewards`: graders as rewards for any trainer, over HTTP."""

from __future__ import annotations

from newskills.commands.command import Command
from newskills.pipelines.serving.serve_rewards_options import RewardKeys, ServeRewardsOptions

COMMAND = Command(
    name="serve_rewards",
    summary="Compute rewards for the samples of any trainer over HTTP, with the same graders as evaluation or with a "
    "reward model of ns reward_model. It answers newskills batches (/v1/rewards), OpenRLHF (/get_reward) and slime "
    "(/slime). A sample that could not be graded never gets reward 0.",
    options=ServeRewardsOptions,
    config=RewardKeys,
    result="newskills.pipelines.serving.serve_rewards:run_reward_server",
    examples=(
        "ns serve_rewards --grader=math ++reward.wrong=-0.5 ++reward.no_answer=-0.5 ++reward.format.box=0.1",
        "ns serve_rewards --benchmark=human-eval --host=0.0.0.0 --port=9060 --token_file=/run/secrets/rewards",
        "ns serve_rewards --reward_model=training/rm/final_hf_model --benchmark=sorting-lesson",
        "ns serve_rewards --grader=math ++reward.judge.server.model=my-judge "
        "++reward.judge.server.base_url=http://judge:8000",
    ),
)
