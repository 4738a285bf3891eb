# SPDX-License-Identifier: Apache-2.0
"""SFT and GRPO with TRL (https://huggingface.co/docs/trl): any model of transformers, one or several GPUs, or a CPU."""
