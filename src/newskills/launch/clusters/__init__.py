# SPDX-License-Identifier: Apache-2.0
"""Configs of clusters: YAML, mounts, variables, and a trial of what they promise."""
