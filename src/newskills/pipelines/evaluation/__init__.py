# SPDX-License-Identifier: Apache-2.0
"""Evaluations on benchmarks, here or as jobs."""
