# SPDX-License-Identifier: Apache-2.0
"""Places work: plain processes, containers, Slurm, here or over ssh. Knows plans, not what the commands in them do."""
