# SPDX-License-Identifier: Apache-2.0
"""One file for each official scorer: which replies are graded, and how the original is run."""
