# SPDX-License-Identifier: Apache-2.0
"""Model servers for the length of a run."""
