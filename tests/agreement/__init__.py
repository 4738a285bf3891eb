# SPDX-License-Identifier: Apache-2.0
"""Verdicts of our graders beside those of each benchmark's own scorer, on the same replies."""
