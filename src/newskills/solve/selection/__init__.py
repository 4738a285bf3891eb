# SPDX-License-Identifier: Apache-2.0
"""Several answers to one row: votes, choices, syntheses."""
