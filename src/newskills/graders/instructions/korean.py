# SPDX-License-Identifier: Apache-2.0
"""Where instructions of IFEval mean something else in Korean (IFEval-Ko).

Words are what stands between blanks, a first word may carry a particle behind it, answers to choose from are Korean
sentences, and both forms of a syllable in Unicode are one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import partial
from typing import Any

from newskills.base.records import Row
from newskills.graders.instructions import ifeval

_ANSWERS = ("제 답변은 예입니다.", "제 답변은 아니요입니다.", "제 답변은 아마도입니다.")


def _has_word_count(text: str, args: Row) -> bool:
    return ifeval.is_in_relation(len(text.split()), args["relation"], args["num_words"])


def _first_word(text: str, args: Row) -> bool:
    return ifeval.begins_paragraph(text, args, lambda first, wanted: first.startswith(wanted))


def _has_constrained_answer(text: str, args: Row) -> bool:
    return any(answer in text for answer in _ANSWERS)


def _check_composed(check: ifeval.Check, text: str, args: Row) -> bool:
    return check(unicodedata.normalize("NFC", text), _normalise_value(args))


def _normalise_value(value: Any) -> Any:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [_normalise_value(item) for item in value]
    if isinstance(value, dict):
        return {key: _normalise_value(item) for key, item in value.items()}
    return value


_OWN: Mapping[str, ifeval.Check] = {
    "length_constraints:number_words": _has_word_count,
    "length_constraints:nth_paragraph_first_word": _first_word,
    "detectable_format:constrained_response": _has_constrained_answer,
}
CHECKS: Mapping[str, ifeval.Check] = {
    kind: partial(_check_composed, _OWN.get(kind, check)) for kind, check in ifeval.CHECKS.items()
}
