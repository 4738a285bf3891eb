# SPDX-License-Identifier: Apache-2.0
"""Evaluations, and verdicts on answers that are there."""
