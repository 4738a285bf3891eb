# SPDX-License-Identifier: Apache-2.0
"""Verdicts for rows of answers."""
