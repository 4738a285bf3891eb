# SPDX-License-Identifier: Apache-2.0
"""Metrics of single benchmarks, computed as their authors do."""
