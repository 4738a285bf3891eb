# SPDX-License-Identifier: Apache-2.0
"""Verdicts of models: the second generation of a judged evaluation, recorded verdicts, contamination."""
