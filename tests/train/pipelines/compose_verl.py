# SPDX-License-Identifier: Apache-2.0
"""Run by an interpreter that has verl and Hydra: composes one of the configurations of verl (FOLDER/NAME, below its
package) with the overrides in argv, as JSON.

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
place, *overrides = sys.argv[1:]
folder, name = (Path(root) / place).parent, Path(place).name
search = f"hydra.searchpath=[file://{Path(root) / 'trainer/config'}]"
with initialize_config_dir(str(folder), version_base=None):
    config = compose(name, overrides=[*overrides, search])
json.dump(OmegaConf.to_container(config, resolve=False), sys.stdout)
