# SPDX-License-Identifier: Apache-2.0
"""Verdicts and marks in the texts of judges."""
