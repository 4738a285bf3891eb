# SPDX-License-Identifier: Apache-2.0
"""Grading of mathematical answers: extract, normalise, compare exactly, by value, then symbolically."""

from newskills.graders.math.verdict import equal

__all__ = ["equal"]
