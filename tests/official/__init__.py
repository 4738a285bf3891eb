# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks' own scorers said about mutated attempts, recorded by `python -m tests.official.record`."""
