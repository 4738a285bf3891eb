# SPDX-License-Identifier: Apache-2.0
"""Servers that run until they are stopped: evaluations, rewards, sandboxes."""
