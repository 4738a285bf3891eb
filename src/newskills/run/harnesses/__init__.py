# SPDX-License-Identifier: Apache-2.0
"""Verdicts that only harnesses and services of others can give."""
