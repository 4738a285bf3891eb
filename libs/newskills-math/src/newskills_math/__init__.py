# SPDX-License-Identifier: Apache-2.0
"""Grading of mathematical answers: extract, normalise, compare exactly, by value, then symbolically."""

from newskills_math._version import __version__

__all__ = ["__version__"]
