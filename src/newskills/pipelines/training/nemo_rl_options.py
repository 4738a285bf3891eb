# SPDX-License-Identifier: Apache-2.0
"""The options of `ns nemo_rl grpo`."""

from __future__ import annotations

from newskills.pipelines.training.options import (
    NemoRlOptions,
    PromptConfig,
    with_reward_services,
)


@with_reward_services
class GrpoNemoRlOptions(NemoRlOptions, frozen=True, kw_only=True):
    """Those of all trainings with NeMo-RL, and what runs beside it."""

    prompt_config: PromptConfig = "generic/math"
