# SPDX-License-Identifier: Apache-2.0
"""`ns nemo_gym_rollouts`."""
