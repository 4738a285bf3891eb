# SPDX-License-Identifier: Apache-2.0
"""Generations over files, here or as jobs."""
