# SPDX-License-Identifier: Apache-2.0
"""Trainings on clusters with the trainers of others: NeMo-RL, verl, Megatron-LM."""
