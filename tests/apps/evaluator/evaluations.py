# SPDX-License-Identifier: Apache-2.0
"""Configurations of `ns evaluate` whose tasks take a second: the sums of `tests.commands.clusters`, and their model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from tests.commands.clusters import BENCHMARK, RIGHT, SERVED
from tests.launch.enroot import Enroot
from tests.launch.sshd import HOST, Sshd

from newskills.base.records import Row
from newskills_evaluator.compile.compiler import CompileRequest, compile_config
from newskills_evaluator.config import CompiledConfig

SCRIPT = json.dumps({"answer": {"kind": "table", "table": RIGHT}})
KEY = "sk-0123456789abcdef0123"


class Evaluations:
    """A project folder with a config, an env.toml and a benchmark; `environ` is the shell of who stands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {
            **os.environ,
            "NEWSKILLS_EXPERIMENTS_DIR": str(folder / "experiments"),
            "NEMO_EVALUATOR_EXEC_DB_FILE": str(folder / "exec-db.jsonl"),
            "NEWSKILLS_DATA_DIR": str(folder / "data"),
            "HOME": str(folder),
        }
        (folder / "sums.py").write_text(BENCHMARK)

    def command(self, port: int) -> str:
        """Of a server with right answers."""
        import shlex

        return shlex.join([sys.executable, str(SERVED), "--port", str(port), "--script", SCRIPT])

    def config(self, **sections: Row) -> None:
        (self.folder / "config.yaml").write_text(yaml.safe_dump(sections))

    def profile(self, text: str) -> None:
        (self.folder / "env.toml").write_text(text)

    def far(self, sshd: Sshd, enroot: Enroot | None = None, **more: str) -> None:
        """The profile `far`: the real Slurm cluster behind a real ssh server."""
        self.environ["NEWSKILLS_SSH_CONFIG"] = str(sshd.config)
        before = [f"export PATH='{Path(sys.executable).parent}':$PATH"]
        if config := os.environ.get("SLURM_CONF"):
            before.append(f"export SLURM_CONF='{config}'")
        if enroot is not None:
            before.append(enroot.path)
        settings = {
            "executor": "slurm",
            "tunnel": "ssh",
            "host": HOST,
            "remote_job_dir": str(self.folder / "remote"),
            "partition": "batch",
            "build_time": "00:05:00",
            "pre_command": "; ".join(before),
            **more,
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        lines += ["[far.env_vars]", f'NEWSKILLS_DATA_DIR = "{self.folder}/data"']
        self.profile("\n".join(["[wandb]", 'project = "sums"', 'entity = "me"', "[far]", *lines, ""]))

    def compiled(
        self, mode: str = "local", tasks: Sequence[str] = (), overrides: Mapping[str, str] | None = None
    ) -> CompiledConfig:
        profile = None if mode == "local" else "far"
        asked = CompileRequest(
            mode=mode,
            config=str(self.folder / "config.yaml"),
            profile=profile,
            tasks=tuple(tasks),
            overrides=overrides or {},
        )
        return compile_config(asked, self.environ, self.folder).config

    def slurm(self, **more: object) -> Row:
        """A section `execution` for the profile `far`."""
        return {
            "type": "slurm",
            "hostname": "${run.env.host}",
            "account": "root",
            "output_dir": "${run.env.remote_job_dir}/evaluations",
            "partition": "batch",
            "ntasks_per_node": 1,
            "gres": None,
            "walltime": "00:05:00",
            "endpoint_readiness_timeout": 60,
            **more,
        }

    def tasks(self, *names: str) -> Row:
        params = {"parallelism": 4, "limit_samples": 5}
        return {
            "nemo_evaluator_config": {"config": {"params": params}},
            "tasks": [{"name": name} for name in names or (f"{self.folder}/sums.py",)],
        }
