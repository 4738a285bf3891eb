# SPDX-License-Identifier: Apache-2.0
"""Files by which those who submit to Ray and the supervisor there speak, and the words in them."""

from __future__ import annotations

PRIVATE = ".ray"
"""Folder in an experiment's folder, of these:"""
PLAN, SECRETS, CANCELLED, SUBMISSION = "jobs.json", "secrets.json", "cancelled", "submission"

STATE, LIFE = "job.state", "job.life"
"""In a job's folder: how it is doing; the number of its life that may run (one with a smaller number ends itself)."""

WORDS = {"completed": "completed", "failed": "failed", "cancelled": "cancelled", "time": "timeout"}
"""Second word of job.exit → state."""


def has_ended(state: str) -> bool:
    """Whether `state` of a job, with or without a reason in brackets, is its last."""
    return state.partition(" (")[0] in WORDS.values()
