# SPDX-License-Identifier: Apache-2.0
"""The page about profiles on Slurm: its files are written, its commands are run, on a real cluster behind real ssh."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from tests.commands.running import ns
from tests.conftest import CACHE
from tests.launch.slurm_cluster import require_cluster
from tests.launch.sshd import HOST, Sshd, sshd

__all__ = ["sshd"]

PAGE = (Path(__file__).parents[2] / "docs" / "evaluate-slurm.md").read_text(encoding="utf-8")
FILE = re.compile(r"`([\w./-]+\.\w+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.nightly
def test_the_page_can_be_typed_as_it_stands(tmp_path: Path, sshd: Sshd, mirror: Path, local_model: Path) -> None:
    require_cluster()
    config = os.environ.get("SLURM_CONF")
    before = f"export PATH='{Path(sys.executable).parent}':$PATH" + (f" SLURM_CONF='{config}'" if config else "")
    here = {
        "login.cluster.example": HOST,
        "/lustre/me": str(tmp_path),
        "source ~/venv/bin/activate": "true",
        'partition = "batch"': f'partition = "batch"\npre_command = "{before}"',
        "[cluster.env_vars]": f'[cluster.env_vars]\nNEWSKILLS_CACHE = "{CACHE}"',
    }
    files = dict(FILE.findall(PAGE))
    assert set(files) == {"env.toml", "first.yaml"}
    for name, text in files.items():
        for old, new in here.items():
            text = text.replace(old, new)
        (tmp_path / name).write_text(text)
    environ = {
        "HOME": str(tmp_path),
        "NEWSKILLS_SSH_CONFIG": str(sshd.config),
        "NEWSKILLS_MIRROR": str(mirror),
        "NEWSKILLS_EXPERIMENTS_DIR": str(tmp_path / "experiments"),
        "NEMO_EVALUATOR_EXEC_DB_FILE": str(tmp_path / "exec-db.jsonl"),
    }
    lines = [line for block in COMMANDS.findall(PAGE) for line in block.splitlines() if line.startswith("ns ")]
    assert len(lines) == 4
    said = []
    for line in lines:
        words = shlex.split(line.replace("/lustre/me", str(tmp_path)), comments=True)
        done = ns(shlex.join(words), cwd=tmp_path, env=environ, timeout=240)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        said.append(done.stdout)
    assert "#SBATCH --partition=batch" in said[1]
    assert "symbolic_correct" in said[2]
    invocation = re.search(r"✓ Evaluation submitted: ([0-9a-f]{16})", said[3])[1]
    for line in (f"ns info {invocation[:6]}", f"ns status {invocation} --json", f"ns cancel {invocation}"):
        done = ns(line, cwd=tmp_path, env=environ)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
