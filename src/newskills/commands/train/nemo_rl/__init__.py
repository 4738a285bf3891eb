# SPDX-License-Identifier: Apache-2.0
"""`ns nemo_rl …`: trainings with NVIDIA's NeMo-RL."""
