# SPDX-License-Identifier: Apache-2.0
"""Run by an interpreter that has verl and Hydra: composes verl's own `ppo_trainer` with the overrides in argv, as JSON.

verl itself is not imported, as that would bring PyTorch: its configuration is found where the package lies.
"""

import importlib.util
import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
from hydra import compose, initialize_config_dir  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402

[root] = importlib.util.find_spec("verl").submodule_search_locations  # type: ignore[misc]
with initialize_config_dir(str(Path(root) / "trainer/config"), version_base=None):
    config = compose("ppo_trainer", overrides=sys.argv[1:])
json.dump(OmegaConf.to_container(config, resolve=False), sys.stdout)
