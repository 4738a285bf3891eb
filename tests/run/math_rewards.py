# SPDX-License-Identifier: Apache-2.0
"""Rewards of the three-stage recipe for mathematics: 1.1, −0.4 with a box around a wrong answer, −0.5 without."""

from newskills.run.rewarding.reward import FormatReward, RewardConfig

MATH_RL = RewardConfig(correct=1.0, wrong=-0.5, no_answer=-0.5, format=FormatReward(box=0.1))
