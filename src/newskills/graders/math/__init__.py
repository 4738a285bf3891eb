# SPDX-License-Identifier: Apache-2.0
"""Grading of mathematical answers: the library newskills_math extracts and compares, the grader keeps records."""

from newskills_math.values import symbolic
from newskills_math.verdict import equal

__all__ = ["equal"]

symbolic.HINT = "pip install 'newskills[math]'"
