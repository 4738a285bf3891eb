# SPDX-License-Identifier: Apache-2.0
"""Services of tau2-bench (Barres et al. 2025, arXiv:2506.07982), and what a conversation did to them."""
