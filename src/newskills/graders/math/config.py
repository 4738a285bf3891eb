# SPDX-License-Identifier: Apache-2.0
"""Settings of the math grader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from newskills.base.records import Row


class MathConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`++eval_config.*` of `eval_type=math`."""

    READINGS: ClassVar[Mapping[str, Row]] = {
        "strict": {"strict_extraction": True, "relaxed_extraction": False},
        "lenient": {"strict_extraction": False, "relaxed_extraction": True},
    }
    """How much a reply must look as it was asked to: the settings of `ns regrade --strict` and `--lenient`."""

    numeric_precision: Annotated[
        int, Meta(ge=4, le=30, description="significant digits to which a printed float stands for an exact value")
    ] = 15
    relative_tolerance: Annotated[
        float,
        Meta(ge=0, le=0.5, description="a number that is off by no more than this share of the right one counts"),
    ] = 0.0
    absolute_tolerance: Annotated[
        float, Meta(ge=0, description="a number that is off by no more than this, and at most by 1%, counts")
    ] = 0.0
    timeout: Annotated[float, Meta(gt=0, description="CPU seconds for one answer, then it is unscored")] = 10.0
    use_predicted_answer_key: Annotated[
        bool, Meta(description="take predicted_answer from the record instead of extracting it")
    ] = False
    extract_from_boxed: Annotated[bool, Meta(description="read the last \\boxed{…}; else extract_regex")] = True
    extract_regex: Annotated[str, Meta(description="its last match is the answer (group 1 if it has groups)")] = (
        r"The final answer is (.+)$"
    )
    relaxed_extraction: Annotated[
        bool,
        Meta(description="try extract_regex, then the box, then every other form, closing statement included"),
    ] = False
    strict_extraction: Annotated[
        bool, Meta(description="nothing but the box counts, or nothing but extract_regex")
    ] = False
    take_modulo: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="compare integers by their remainder by this number")
    ] = None
