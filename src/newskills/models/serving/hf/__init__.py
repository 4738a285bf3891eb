# SPDX-License-Identifier: Apache-2.0
"""Our own server for models of transformers (`python -m newskills.models.serving.hf.server`): CPU or GPUs.

`command.py` starts it; nothing else here is imported outside its process, which needs PyTorch.
"""
