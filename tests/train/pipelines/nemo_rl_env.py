# SPDX-License-Identifier: Apache-2.0
"""Run by an interpreter that has Ray and NeMo-RL: our grader as NeMo-RL makes and asks its environments.

Reads [[answer, expected answer], ...] from stdin; writes what comes back, and what NeMo-RL's own `math` says, as JSON.
"""

import json
import os
import sys

import ray
from nemo_rl.distributed.batched_data_dict import BatchedDataDict
from nemo_rl.environments.utils import ENV_REGISTRY, create_env
from nemo_rl.experience.rollouts import calculate_rewards

from newskills.train.pipelines.nemo_rl import ENV, ENVIRONMENT
from newskills.train.pipelines.nemo_rl_program import register_environment

register_environment()
assert ENVIRONMENT in ENV_REGISTRY
cases = json.load(sys.stdin)
batch = BatchedDataDict(
    {
        "message_log": [
            [{"role": "user", "content": "?"}, {"role": "assistant", "content": answer}] for answer, _ in cases
        ],
        "task_name": ["t"] * len(cases),
        "extra_env_info": [{"ground_truth": truth} for _, truth in cases],
    }
)
variables = {"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}}
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=variables)
ours = create_env(ENVIRONMENT, ENV[ENVIRONMENT])
found = calculate_rewards(batch, {"t": ours})
_, metrics = ray.get(ours.global_post_process_and_metrics.remote({"rewards": found.rewards}))
theirs = create_env("math", {"num_workers": 1, "math_verify_impl": "hf_math_verify"})
rewards = {
    "ours": found.rewards.tolist(),
    "theirs": calculate_rewards(batch, {"t": theirs}).rewards.tolist(),
    "ended": found.terminateds.bool().tolist(),
    "told": [one["content"] for one in found.observations],
    "metrics": metrics,
}
ray.get(ours.shutdown.remote())
ray.shutdown()
sys.stdout.write(json.dumps(rewards))
