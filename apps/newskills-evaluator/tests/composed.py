# SPDX-License-Identifier: Apache-2.0
"""Run by the Python that has NeMo Evaluator's launcher: what that makes of a config. CONFIG OVERRIDE…; prints JSON."""

import json
import sys

from nemo_evaluator_launcher.api.types import RunConfig
from omegaconf import OmegaConf

made = RunConfig.from_hydra(config=sys.argv[1], hydra_overrides=sys.argv[2:])
print("JSON" + json.dumps(OmegaConf.to_container(made, resolve=True)))
