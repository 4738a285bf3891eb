# SPDX-License-Identifier: Apache-2.0
"""Grading of mathematical answers: the library newskills_math extracts and compares, the grader keeps records."""

from newskills_math.values import deadline, symbolic
from newskills_math.verdict import equal

__all__ = ["equal"]

deadline.use_signals()  # worker processes grade in their main thread, and use this signal for nothing else
symbolic.HINT = "pip install 'newskills[math]'"
