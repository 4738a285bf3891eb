# SPDX-License-Identifier: Apache-2.0
"""Building training data: rows are read, filtered, grouped, sampled and written, in memory that does not grow."""
