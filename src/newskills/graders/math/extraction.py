# SPDX-License-Identifier: Apache-2.0
"""The final answer out of a generation, with the errors of this program."""

from __future__ import annotations

from newskills.base.errors import ConfigError
from newskills_math.extraction.extract import ExtractedAnswer, ExtractionPolicy, PatternError
from newskills_math.extraction.extract import extract as extract_answer

__all__ = ["ExtractedAnswer", "ExtractionPolicy", "extract_by_policy"]


def extract_by_policy(text: str, policy: ExtractionPolicy) -> ExtractedAnswer:
    """Return the last final answer of `text` in a form that `policy` lets count, and which form it was.

    Raises ConfigError for a regular expression that does not compile.
    """
    try:
        return extract_answer(text, policy)
    except PatternError as error:
        raise ConfigError(str(error)) from error
