# SPDX-License-Identifier: Apache-2.0
"""Metrics of programs that were run: tests passed, patches applied."""
