# SPDX-License-Identifier: Apache-2.0
"""The options of `ns nemo_rl grpo`."""

from __future__ import annotations

from newskills.pipelines.training.options import (
    JudgeAddress,
    JudgeArgs,
    JudgeContainer,
    JudgeCount,
    JudgeEntrypoint,
    JudgeGpus,
    JudgeModel,
    JudgeNodes,
    JudgeType,
    NemoRlOptions,
    PromptConfig,
    SandboxOverrides,
    WithSandbox,
)


class GrpoNemoRlOptions(NemoRlOptions, frozen=True, kw_only=True):
    """Those of all trainings with NeMo-RL, and what runs beside it."""

    prompt_config: PromptConfig = "generic/math"
    server_model: JudgeModel = None
    server_address: JudgeAddress = None
    server_type: JudgeType = None
    server_gpus: JudgeGpus = None
    server_nodes: JudgeNodes = 1
    n_servers: JudgeCount = 1
    server_args: JudgeArgs = ""
    server_entrypoint: JudgeEntrypoint = None
    server_container: JudgeContainer = None
    with_sandbox: WithSandbox = False
    sandbox_env_overrides: SandboxOverrides = []  # noqa: RUF012 - copied
