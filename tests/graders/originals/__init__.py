# SPDX-License-Identifier: Apache-2.0
"""Verdicts of the authors' own scorers on replies, recorded, beside those of our graders."""
