# SPDX-License-Identifier: Apache-2.0
"""Rewards of `ns serve_rewards` for trainers: a client, reward functions for TRL and verl (`pkg://newskills.rewards`).

The name that configurations of other programs hold: it stays where it is, wherever its parts move.
"""

from newskills.run.rewarding.client import ClientOptions, RewardClient, compute_score, trl_reward

__all__ = ["ClientOptions", "RewardClient", "compute_score", "trl_reward"]
