# SPDX-License-Identifier: Apache-2.0
"""American Invitational Mathematics Examination 2025, both parts: 30 problems, answers 0 to 999."""

from newskills.benchmarks.math_natural.aime24 import of_year

BENCHMARK = of_year(2025, "b672f9c6660b68dd42f5fc705b17405f24eaa9991c98991d63463c6b683468a8")
