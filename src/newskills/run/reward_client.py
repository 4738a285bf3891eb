# SPDX-License-Identifier: Apache-2.0
"""The name that 0.2 gave to the client of `ns serve_rewards`, for configurations that hold it: `newskills.rewards`."""

from newskills.run.rewarding.client import ClientOptions, RewardClient, compute_score, trl_reward

__all__ = ["ClientOptions", "RewardClient", "compute_score", "trl_reward"]
