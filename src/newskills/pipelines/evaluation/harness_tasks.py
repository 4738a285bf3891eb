# SPDX-License-Identifier: Apache-2.0
"""Tasks of lm_eval as benchmarks: what `++` keys say of how they make requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from newskills.base.errors import ConfigError
from newskills.base.lm_eval.building import HarnessWishes
from newskills.benchmarks.lm_eval.names import WISHES, is_harness_task
from newskills.config.values import Text, parse_value


def harness_wishes(overrides: Mapping[str, Text], benchmarks: str) -> HarnessWishes | None:
    """Return what `++num_fewshot`, `++apply_chat_template` and their like say; None where none is given. Raises
    ConfigError for a value that does not fit, and where no task of lm_eval is named."""
    words: dict[str, Any] = {key: parse_value(overrides[key]) for key in WISHES if key in overrides}
    if not words:
        return None
    if not any(is_harness_task(part.strip()) for part in benchmarks.split(",")):
        raise ConfigError(
            f"++{min(words)} is for tasks of lm_eval, and --benchmarks names none (lm-eval:arc_easy).",
            hint="Other benchmarks: ++few_shot_examples.num_few_shots, ++system_message, ++inference.*",
        )
    if isinstance(words.get("system_instruction"), int | float):
        words["system_instruction"] = str(overrides["system_instruction"])
    try:
        wishes = msgspec.convert(words, HarnessWishes)
    except msgspec.ValidationError as error:
        why, _, place = str(error).partition(" - at `$.")
        key = place.rstrip("`").partition(".")[0]
        raise ConfigError(f"++{key}={overrides[key]}: {why[:1].lower()}{why[1:]}.") from error
    if wishes.num_fewshot is not None and wishes.num_fewshot < 0:
        raise ConfigError("++num_fewshot is a number of examples, 0 or more.")
    if wishes.fewshot_as_multiturn and not wishes.apply_chat_template:
        raise ConfigError("++fewshot_as_multiturn needs ++apply_chat_template=true.")
    return wishes
