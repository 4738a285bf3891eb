# SPDX-License-Identifier: Apache-2.0
"""`ns megatron_lm …`: trainings with Megatron-LM."""
