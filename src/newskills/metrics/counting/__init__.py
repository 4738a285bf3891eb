# SPDX-License-Identifier: Apache-2.0
"""What all metrics count with: samples, votes, sums over a corpus."""
