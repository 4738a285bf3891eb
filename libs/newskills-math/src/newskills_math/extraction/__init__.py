# SPDX-License-Identifier: Apache-2.0
"""The final answer out of a generation."""
