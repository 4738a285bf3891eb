# SPDX-License-Identifier: Apache-2.0
"""From output files to reports: tables, metrics.json, groups, robustness."""
