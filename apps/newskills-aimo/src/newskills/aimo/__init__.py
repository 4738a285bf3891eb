# SPDX-License-Identifier: Apache-2.0
"""The three-stage math recipe under the module names of the one it replaces, for scripts that use `python -m`."""

from newskills_aimo.recipe.answers import (
    extract_answer_from_solution,
    extract_boxed_answer,
    extract_gsm8k_answer,
    is_equivalent_answer,
    normalize_answer,
    verify_answer,
    verify_answers,
)

__all__ = [
    "extract_answer_from_solution",
    "extract_boxed_answer",
    "extract_gsm8k_answer",
    "is_equivalent_answer",
    "normalize_answer",
    "verify_answer",
    "verify_answers",
]
