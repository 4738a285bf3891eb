# SPDX-License-Identifier: Apache-2.0
"""The hardest problems of MATH (Hendrycks et al. 2021, arXiv:2103.03874)."""

from newskills.benchmarks.math_natural.hendrycks_math import of_level

BENCHMARK = of_level(5, 1324)
