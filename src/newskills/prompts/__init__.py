# SPDX-License-Identifier: Apache-2.0
"""Prompts: the library, the renderer, few-shot sets, retrieval, code tags."""

from newskills.prompts.names import prompt_names

__all__ = ["prompt_names"]
