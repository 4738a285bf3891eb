# SPDX-License-Identifier: Apache-2.0
"""The options of `ns verl ppo`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.options import AtLeastOne, doc
from newskills.pipelines.training.options import (
    MODEL,
    TRAINING,
    PromptConfig,
    RayOptions,
    with_reward_services,
)
from newskills.train.pipelines.verl import MODULE


@with_reward_services
class PpoVerlOptions(RayOptions, frozen=True, kw_only=True):
    model: Annotated[str, doc("model to start from: a Hugging Face folder or name")]
    prompt_data: Annotated[
        str, doc("rows in verl's format (Parquet, JSONL), or JSONL of {problem, expected_answer}")
    ]
    eval_data: Annotated[str | None, doc("validation rows, in the same format")] = None
    data_format: Annotated[
        str | None,
        doc("verl or plain, if the file does not exist yet (default: read from its first line)", TRAINING),
    ] = None
    prompt_config: PromptConfig = "generic/math"
    tools: Annotated[
        str | None,
        doc("tools that the model may call: verl's YAML of tools, or a Python file with its functions", TRAINING),
    ] = None
    staleness: Annotated[
        float | None,
        doc(
            "asynchronous rollouts: largest share of samples that an older model may have made, such as 0.1",
            TRAINING,
        ),
    ] = None
    rollout_gpus: Annotated[
        AtLeastOne, doc("GPUs of each node that sample, with --staleness; the others learn", TRAINING)
    ] = 1
    script_module: Annotated[str, doc("training module", TRAINING)] = MODULE
    verl_config_dir: Annotated[str | None, doc("folder with another Hydra configuration", TRAINING)] = None
    verl_config_name: Annotated[str | None, doc("name of that configuration", TRAINING)] = None
    final_ckpt_path: Annotated[
        str | None, doc("folder for the final model (default: OUTPUT_DIR/final_hf_model)", MODEL)
    ] = None
    convert_last_ckpt_to_hf: Annotated[
        bool, doc("convert the last checkpoint to a Hugging Face folder", MODEL)
    ] = True
