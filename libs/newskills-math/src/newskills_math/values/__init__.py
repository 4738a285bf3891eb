# SPDX-License-Identifier: Apache-2.0
"""Trees to values, and whether two of them are the same."""
