# SPDX-License-Identifier: Apache-2.0
"""Files by which those who submit to Ray and the supervisor there speak, and the words in them."""

from __future__ import annotations

PRIVATE_FOLDER = ".ray"
"""Folder in an experiment's folder, of these:"""
PLAN, SECRETS, CANCELLED, SUBMISSION = "jobs.json", "secrets.json", "cancelled", "submission"

STATE, LIFE = "job.state", "job.life"
"""In a job's folder: how it is doing; the number of its life that may run (one with a smaller number ends itself)."""

FIRST_NODE = "NEWSKILLS_FIRST_NODE"
"""Variable of jobs over several nodes: the address of the first one."""

STATE_OF_WORD = {"completed": "completed", "failed": "failed", "cancelled": "cancelled", "time": "timeout"}
"""Second word of job.exit → state."""


def node_folder(folder: str, rank: int) -> str:
    """Return the path, in a job's folder, of what a further node runs; the first node, 0, runs the job itself."""
    if rank:
        return f"{folder}/node-{rank}"
    return folder


def has_ended(state: str) -> bool:
    """Return whether `state` of a job, with or without a reason in brackets, is its last."""
    return state.partition(" (")[0] in STATE_OF_WORD.values()
