# SPDX-License-Identifier: Apache-2.0
"""Agents: models that act in an environment of their own until the task is done."""
