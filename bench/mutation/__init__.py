# SPDX-License-Identifier: Apache-2.0
"""Do tests notice when a line is wrong? A sample of mutants of the code that decides numbers, by cosmic-ray."""

from bench.mutation.sample import bench

__all__ = ["bench"]
