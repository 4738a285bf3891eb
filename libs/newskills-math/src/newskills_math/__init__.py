# SPDX-License-Identifier: Apache-2.0
"""Mathematical answers of language models: parse, extract, and compare them exactly, by value, then symbolically.

    from newskills_math import compare, parse, verify

    verify(parse("$\\frac12$"), parse("So it is \\boxed{0.5}."))  # True
    compare("\\frac12", "0.55").reason                            # 'exact'

`parse`, `verify` and `math_metric` have the signatures of math-verify 0.9.0. What is imported here loads when it is
first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from newskills_math._version import __version__

if TYPE_CHECKING:
    from newskills_math.api import (
        AnswerComparison,
        ExprExtractionConfig,
        LatexExtractionConfig,
        ParsedAnswer,
        StringExtractionConfig,
        compare,
        extract,
        math_metric,
        parse,
        verify,
    )
    from newskills_math.extraction.extract import ExtractedAnswer, ExtractionPolicy, PatternError

__all__ = [
    "AnswerComparison",
    "ExprExtractionConfig",
    "ExtractedAnswer",
    "ExtractionPolicy",
    "LatexExtractionConfig",
    "ParsedAnswer",
    "PatternError",
    "StringExtractionConfig",
    "__version__",
    "compare",
    "extract",
    "math_metric",
    "parse",
    "verify",
]

_OF_EXTRACTION = ("ExtractedAnswer", "ExtractionPolicy", "PatternError")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = "extraction.extract" if name in _OF_EXTRACTION else "api"
    value = getattr(import_module(f"newskills_math.{place}"), name)
    globals()[name] = value
    return value
