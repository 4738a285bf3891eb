# SPDX-License-Identifier: Apache-2.0
"""Results of other tools: read as records, and ours written as their logs."""
