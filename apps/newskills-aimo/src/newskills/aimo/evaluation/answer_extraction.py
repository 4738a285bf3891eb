# SPDX-License-Identifier: Apache-2.0
"""Final answers in texts, under the module name of the recipe that this one replaces."""

from newskills_aimo.recipe.answers import (
    extract_answer_from_solution,
    extract_boxed_answer,
    extract_gsm8k_answer,
    is_equivalent_answer,
    normalize_answer,
    verify_answer,
)

__all__ = [
    "extract_answer_from_solution",
    "extract_boxed_answer",
    "extract_gsm8k_answer",
    "is_equivalent_answer",
    "normalize_answer",
    "verify_answer",
]
