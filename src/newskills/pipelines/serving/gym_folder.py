# SPDX-License-Identifier: Apache-2.0
"""The folder by which NeMo Gym starts a server of ours: `resources_servers/NAME/{app.py,requirements.txt,…}`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import yaml
from msgspec import Struct

from newskills._version import __version__
from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills.base.store import atomic_write, write_rows

APP = '''\
"""Start this resources server. Written by `ns serve_gym`, newskills {version}; it needs the standard library alone."""

import os
import sys

WORDS = {words!r}
HOME = {home!r}

if __name__ == "__main__":
    python = os.environ.get("NEWSKILLS_PYTHON", sys.executable)
    if os.path.isdir(HOME):  # paths in the words begin there
        os.chdir(HOME)
    os.execv(python, [python, "-m", "newskills", "serve_gym", *WORDS, "--gym_address"])
'''
CONFIG = """\
# Written by `ns serve_gym`, newskills {version}.
{name}:
  resources_servers:
    {name}:
      entrypoint: app.py
      domain: other
      verified: false
      description: {title}
{name}_simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server:
        type: resources_servers
        name: {name}
      model_server:
        type: responses_api_models
        name: policy_model
      datasets:
      - name: {split}
        type: validation
        jsonl_fpath: resources_servers/{name}/data/{split}.jsonl
        license: TBD
{name}_environment_server:
  environment_servers:
    legacy_agent:
      entrypoint: app.py
      agent_server:
        type: responses_api_agents
        name: {name}_simple_agent
"""
SAID = """\
{count:,} rows in {folder}
In {root}, where Gym looks for servers before its own:
  gym eval run --config resources_servers/{name}/configs/{name}.yaml --model-type openai_model --split validation \\
    --model MODEL --model-url URL --model-api-key KEY --output rollouts.jsonl
If Gym's Python has no newskills: export NEWSKILLS_PYTHON={python}"""
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")


class _Listening(Struct):
    host: str
    port: int


class GymFolder(Struct, frozen=True, kw_only=True):
    """What the folder holds; `words`: those of `ns serve_gym` that serve the same again."""

    name: str
    title: str
    words: list[str]
    requirement: str
    split: str


def server_name(name: str) -> str:
    """Return the name of a benchmark as that of a server of Gym, which is one of a module."""
    return _UNSAFE.sub("_", name).strip("_").lower()


def write_folder(root: Path, made: GymFolder, rows: Iterable[Row]) -> str:
    """Write the folder below `root`; return what to type next. Raises StorageError, DataError for a row that the
    prompt does not fit."""
    folder = root / "resources_servers" / made.name
    count = write_rows(folder / f"data/{made.split}.jsonl", rows)
    texts = {
        "app.py": APP.format(version=__version__, words=made.words, home=str(Path.cwd())),
        "requirements.txt": f"{made.requirement}=={__version__}\n",
        f"configs/{made.name}.yaml": CONFIG.format(
            version=__version__, name=made.name, split=made.split, title=json.dumps(made.title)
        ),
    }
    for name, text in texts.items():
        with atomic_write(folder / name) as file:
            file.write(text.encode())
    return SAID.format(count=count, folder=folder, root=root, name=made.name, python=sys.executable)


def gym_address(environ: Mapping[str, str]) -> tuple[str, int]:
    """Return host and port that Gym has given to the server which it starts. Raises ConfigError."""
    try:
        instances = yaml.safe_load(environ["NEMO_GYM_CONFIG_DICT"])
        (own,) = instances[environ["NEMO_GYM_CONFIG_PATH"]]["resources_servers"].values()
        listening = msgspec.convert(own, _Listening)
    except (KeyError, TypeError, ValueError, AttributeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConfigError(
            f"--gym_address: NEMO_GYM_CONFIG_DICT and NEMO_GYM_CONFIG_PATH name no server ({error!r}).",
            hint="Gym sets them when it starts a server; by hand, give --host and --port.",
        ) from error
    return listening.host, listening.port
