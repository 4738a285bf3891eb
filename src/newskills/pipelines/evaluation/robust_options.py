# SPDX-License-Identifier: Apache-2.0
"""The options of `ns robust_eval`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.evaluation.options import EvalOptions
from newskills.pipelines.options import doc


class RobustEvalOptions(EvalOptions, frozen=True, kw_only=True):
    prompt_set_config: Annotated[
        str,
        doc(
            "prompts of each benchmark: name of a prompt set, or YAML of benchmark or its usual prompt: "
            "[{prompt_config, extract_regex}, …]"
        ),
    ] = "robustness/prompt_set_config"
