# SPDX-License-Identifier: Apache-2.0
"""README's cluster section, word by word: a fresh clone, another user than the tests' own, a real Slurm cluster."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands.clusters import own_address
from tests.launch.needs import lacking
from tests.launch.slurm_cluster import require_cluster
from tests.launch.slurm_login import OTHER
from tests.server import Answer, FakeServerProcess, Script

ROOT = Path(__file__).parents[3]
FEW = "++max_samples=3"
"""Rows; those of README take their time."""


def section() -> list[str]:
    """Its lines of commands, continued ones in one."""
    text = (ROOT / "README.md").read_text().partition("## On a cluster")[2]
    block = re.search(r"```\n(.*?)```", text, re.DOTALL)
    assert block is not None
    return block[1].replace("\\\n", " ").strip().splitlines()


class Newcomer:
    """A clone and a home of `OTHER`'s own, and a virtual environment with what `pip install` would bring."""

    def __init__(self, folder: Path, mirror: Path) -> None:
        user = pwd.getpwnam(OTHER)
        self.home, self.clone = folder / "home", folder / "newskills"
        subprocess.run(["git", "clone", "-q", ROOT, self.clone], check=True)
        self.home.mkdir()
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
        self.env = {
            "PATH": f"{folder}/venv/bin:{os.environ['PATH']}",
            "HOME": str(self.home),
            "NEWSKILLS_MIRROR": str(mirror),
        }
        if conf := os.environ.get("SLURM_CONF"):
            self.env["SLURM_CONF"] = conf
        python = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        path = os.defpath if shutil.which(python, path=os.defpath) else os.environ["PATH"]  # type: ignore[assignment]
        program = shutil.which(python, path=path)
        made = self.types(f"{program} -m venv --without-pip {folder}/venv")
        site = folder / "venv/lib" / python / "site-packages"
        if made.returncode == 0:
            (site / "all.pth").write_text(f"{self.clone}/src\n{sysconfig.get_path('purelib')}\n")
        if made.returncode or self.types("python -c 'import msgspec, aiohttp, math_verify'").returncode:
            lacking("SLURM", f"'{OTHER}' has no {python} that can read {sysconfig.get_path('purelib')}")
        ns = folder / "venv/bin/ns"
        ns.write_text(
            f"#!{folder}/venv/bin/python\nimport sys\nfrom newskills.cli import main\nsys.exit(main())\n"
        )
        ns.chmod(0o755)

    def types(self, line: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "bash", "-c", line],
            cwd=self.clone,
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )


@pytest.fixture
def newcomer(mirror: Path) -> Iterator[Newcomer]:
    require_cluster()
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        lacking("SLURM", "only root can work as another user, with setpriv")
    try:
        pwd.getpwnam(OTHER)
    except KeyError:
        lacking("SLURM", f"there is no user '{OTHER}' here; NEWSKILLS_SLURM_USER names another one")
    with tempfile.TemporaryDirectory(prefix="newcomer-", dir="/tmp") as name:
        yield Newcomer(Path(name), mirror)


@pytest.mark.timeout(500)
def test_the_section_works_as_typed(newcomer: Newcomer) -> None:
    """Enter is the answer to all questions; the shell has no USER; a server stands in for the model that is fetched."""
    install, setup, prepare, evaluate, logs = section()
    assert install.startswith("pip install ")
    assert "USER" not in newcomer.env
    with FakeServerProcess(Script(answer=Answer(text=r"\boxed{18}")), host=own_address()) as server:
        served = f"--model=fake --server_type=vllm --server_address={server.url}"
        line, found = re.subn(r"--model=smollm2 --server_type=llamacpp", served, evaluate)
        assert found == 1
        for typed, answers in ((setup, "\n" * 20), (prepare, ""), (f"{line} {FEW}", ""), (logs, "")):
            done = newcomer.types(typed, answers)
            assert done.returncode == 0, (typed, done.stdout, done.stderr)
    metrics = json.loads((newcomer.clone / "results/first/metrics.json").read_text())["gsm8k"]
    assert metrics["pass@2"]["num_entries"] == 3
    assert newcomer.types("git status --porcelain").stdout == ""
    again = newcomer.types(f"{line} {FEW}")
    assert again.returncode == 0, again.stderr
    assert "nothing to do" in again.stderr
    looked = newcomer.types("ns doctor --cluster=slurm").stdout
    assert f"[ok] job_dir {newcomer.home}/newskills-jobs" in " ".join(looked.split()), looked


@pytest.mark.nightly
def test_the_model_of_the_section_is_served_in_its_jobs(newcomer: Newcomer) -> None:
    """What the stand-in stands for, up to the scripts of the jobs."""
    _, setup, prepare, evaluate, _ = section()
    assert newcomer.types(setup, "\n" * 20).returncode == 0
    assert newcomer.types(prepare).returncode == 0
    shown = newcomer.types(f"{evaluate} --dry_run")
    assert shown.returncode == 0, shown.stderr
    assert "gsm8k-rs1" in shown.stdout
    assert "llamacpp" in shown.stdout
    assert not (newcomer.home / "newskills-jobs").exists()
