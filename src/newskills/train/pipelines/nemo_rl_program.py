# SPDX-License-Identifier: Apache-2.0
"""`python -m newskills.train.pipelines.nemo_rl_program PROGRAM …`: one of NeMo-RL's programs that knows our grader.

Runs in NeMo-RL's own environment. NeMo-RL makes environments in the process that reads the configuration, by a name
that has to be registered there, together with the interpreter of their actors.
"""

from __future__ import annotations

import runpy
import sys

from newskills.train.pipelines.nemo_rl import ENVIRONMENT

ACTOR = "newskills.train.pipelines.nemo_rl_env.Environment"


def register_environment() -> None:
    """Tell NeMo-RL of our environment."""
    from nemo_rl.distributed.ray_actor_environment_registry import ACTOR_ENVIRONMENT_REGISTRY
    from nemo_rl.distributed.virtual_cluster import PY_EXECUTABLES
    from nemo_rl.environments.utils import register_env

    register_env(ENVIRONMENT, ACTOR)
    ACTOR_ENVIRONMENT_REGISTRY[ACTOR] = PY_EXECUTABLES.SYSTEM


def main(words: list[str]) -> None:
    """Run the program `words[0]` with the other words, as if it had been started by itself."""
    register_environment()
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
