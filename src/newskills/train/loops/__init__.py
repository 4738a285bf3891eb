# SPDX-License-Identifier: Apache-2.0
"""Supervised fine-tuning and reinforcement learning over the verbs, whoever holds the weights."""
