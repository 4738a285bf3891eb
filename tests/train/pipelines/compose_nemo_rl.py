# SPDX-License-Identifier: Apache-2.0
"""Run by an interpreter that has Hydra: NeMo-RL's own loader (ROOT/nemo_rl/utils/config.py) reads a YAML of ours with
its parents and the overrides in argv, as its programs do. Writes it as JSON, without `${…}`.

The package itself is not imported, as that would bring Ray, PyTorch and vLLM.
"""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

root, path, *overrides = sys.argv[1:]
spec = spec_from_file_location("nemo_rl_config", Path(root) / "nemo_rl/utils/config.py")
loader = module_from_spec(spec)
spec.loader.exec_module(loader)
loader.register_omegaconf_resolvers()
config = loader.parse_hydra_overrides(loader.load_config(path), overrides)
json.dump(loader.OmegaConf.to_container(config, resolve=True), sys.stdout)
