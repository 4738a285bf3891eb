# SPDX-License-Identifier: Apache-2.0
"""The options of `ns nemo_gym_rollouts`."""

from __future__ import annotations

from typing import Annotated

from newskills.pipelines.options import SEEDS, AtLeastOne, ModelOptions, doc

GYM = {"group": "NeMo Gym"}


class GymRolloutsOptions(ModelOptions, frozen=True, kw_only=True):
    config_paths: Annotated[
        list[str], doc("configs of NeMo Gym's servers, relative to its folder, comma separated")
    ]
    input_file: Annotated[str, doc("JSONL file with the tasks, in NeMo Gym's form")]
    output_dir: Annotated[str, doc("folder for rollouts.jsonl, or rollouts-rsN.jsonl for each seed")]
    policy_model_name: Annotated[str | None, doc("name of the model at its server (default: --model)", GYM)] = None
    policy_api_key: Annotated[
        str, doc("key of the server at --server_address; jobs show it, so only for servers of your own", GYM)
    ] = "dummy"
    gym_path: Annotated[
        str | None, doc("folder of NeMo Gym in its container, or here (default: that of NeMo-RL's images)", GYM)
    ] = None
    gym_container: Annotated[
        str | None, doc("container image of NeMo Gym (default: the cluster's nemo-gym, else nemo-rl)", GYM)
    ] = None
    use_mounted_nemo_skills: Annotated[
        bool, doc("start in the packaged code; otherwise in the container's own folder", GYM)
    ] = True
    num_random_seeds: Annotated[AtLeastOne | None, doc("jobs, each with its own rollouts-rsN.jsonl", SEEDS)] = None
    random_seeds: Annotated[str | list[int] | None, doc("these seeds: 1,2,5 or 0..4", SEEDS)] = None
    starting_seed: Annotated[int, doc("first seed", SEEDS)] = 0
    rerun_done: Annotated[bool, doc("also collect rollouts whose file already exists", SEEDS)] = False
