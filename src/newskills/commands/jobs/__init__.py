# SPDX-License-Identifier: Apache-2.0
"""Jobs: planned, submitted, watched, stopped."""
