# SPDX-License-Identifier: Apache-2.0
"""Configurations of nemo-evaluator 0.3 and later (`services:`, `benchmarks:`), read as ones of its launcher."""
