# SPDX-License-Identifier: Apache-2.0
"""Instructions whose fulfilment a program can see: IFEval (Zhou et al. 2023), IFBench (Pyatkin et al. 2025)."""
