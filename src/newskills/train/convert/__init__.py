# SPDX-License-Identifier: Apache-2.0
"""Checkpoints from one form into another: GGUF, Hugging Face folders, LoRA adapters, averages."""
