# SPDX-License-Identifier: Apache-2.0
"""Results of runs: looked at, compared, summarised, graded anew, brought in and taken out."""
