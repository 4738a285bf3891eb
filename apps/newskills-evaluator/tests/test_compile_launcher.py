# SPDX-License-Identifier: Apache-2.0
"""What we compile is what NeMo Evaluator's launcher composes with Hydra, wherever both say something.

Needs a Python with nemo-evaluator-launcher: NEWSKILLS_LAUNCHER_PYTHON names it.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from newskills.base.records import Row
from newskills_evaluator.compile.compiler import CompileRequest, compile_config

HERE = Path(__file__).parent
CONFIGS = HERE / "configs"
PYTHON = os.environ.get("NEWSKILLS_LAUNCHER_PYTHON", "")
ENVIRON = {"HOME": "/home/me", "USER": "me", "LOGNAME": "me", "HOSTNAME": "login", "MY_SECRET": "hidden"}

pytestmark = pytest.mark.skipif(
    not PYTHON, reason="NEWSKILLS_LAUNCHER_PYTHON names no Python with nemo-evaluator-launcher"
)


@pytest.mark.parametrize(
    ("config", "overrides"),
    [
        ("names.yaml", ()),
        ("names.yaml", ("deployment=sglang", "execution.num_nodes=4", "++deployment.extra_args='--a b'")),
        ("names.yaml", ("deployment=trtllm", "evaluation.tasks.1.name=gsm8k", "execution.gres=null")),
        ("names.yaml", ("deployment=nim", "deployment.image=nim:1", "deployment.extra_args=${deployment.port}")),
        ("names.yaml", ("+deployment.hf_model_handle=me/small",)),
        ("values.yaml", ("target.api_endpoint.model_id=${oc.env:USER}",)),
        (
            "values.yaml",
            ("execution.mode=sequential", "+evaluation.nemo_evaluator_config.config.params.max_retries=5"),
        ),
    ],
)
def test_it_composes_what_the_launcher_composes(tmp_path: Path, config: str, overrides: tuple[str, ...]) -> None:
    theirs = composed(CONFIGS / config, overrides)
    asked = CompileRequest(
        config=str(CONFIGS / config), overrides=dict(word.lstrip("+").split("=", 1) for word in overrides)
    )
    ours = compile_config(asked, ENVIRON, tmp_path).config.config
    for tree in (theirs, ours):
        without_variables(tree)
    for name in set(theirs) - {"run", "user_config_path"}:
        assert ours.get(name, {}) == theirs[name], name


def composed(config: Path, overrides: tuple[str, ...]) -> Row:
    done = subprocess.run(
        [PYTHON, str(HERE / "composed.py"), str(config), *overrides],
        env={**ENVIRON, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    tree: Row = json.loads(done.stdout.partition("JSON")[2])
    return tree


def without_variables(node: Any) -> None:
    """They are written in another dialect."""
    if isinstance(node, dict):
        node.pop("env_vars", None)
        for value in node.values():
            without_variables(value)
    for item in node if isinstance(node, list) else ():
        without_variables(item)
