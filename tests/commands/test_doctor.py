# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import tomllib
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.launch.needs import require_ssh
from tests.launch.sshd import HOST, Sshd
from tests.server import Script

from newskills.base.errors import RemoteError
from newskills.pipelines.start import doctor
from newskills.pipelines.start.doctor import EXTRAS


def lines(done: CompletedProcess[str]) -> dict[str, Any]:
    """what → (state, text)"""
    found = {}
    for line in done.stdout.splitlines():
        state, rest = line.split(None, 1)
        what, _, text = rest.partition("  ")
        found[what.strip()] = (state.strip("[]"), text.strip())
    return found


def test_a_healthy_machine(tmp_path: Path) -> None:
    done = ns("ns doctor", cwd=tmp_path, env={"NEWSKILLS_DATA_DIR": str(tmp_path / "data")})
    assert done.returncode == 0, done.stdout
    found = lines(done)
    assert {"newskills", "GPUs", "API keys", "data folder", "cache", "data mirror"} <= set(found)
    for extra in EXTRAS:
        state, text = found[f"extra {extra}"]
        assert state == "ok" or f"pip install 'newskills[{extra}]'" in text
    assert list(tmp_path.iterdir()) == []


def test_every_extra_that_users_may_install_is_listed() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"all", "docs", "test", "dev"}


def test_a_half_installed_extra_is_not_called_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor, "EXTRAS", {"mine": (("json", "no_such_module"), "tests"), "none": (("nothing",), "x")}
    )
    found = {item.what: (item.state, item.text) for item in doctor.examine_machine(doctor.DoctorOptions())}
    assert found["extra mine"] == ("note", "tests: pip install 'newskills[mine]' (no_such_module missing)")
    assert found["extra none"] == ("note", "x: pip install 'newskills[none]'")


def test_keys_are_named_and_never_shown(tmp_path: Path) -> None:
    assert lines(ns("ns doctor", cwd=tmp_path))["API keys"][0] == "note"
    done = ns("ns doctor", cwd=tmp_path, env={"OPENAI_API_KEY": "sk-secret", "HF_TOKEN": "hf-secret"})
    assert lines(done)["API keys"] == ("ok", "OPENAI_API_KEY, HF_TOKEN")
    assert "secret" not in done.stdout + done.stderr


def test_an_endpoint_is_asked_what_it_serves(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(models=("small", "large")))
    done = ns(f"ns doctor --server_address {server.base_url}", cwd=tmp_path)
    assert done.returncode == 0
    assert lines(done)[server.base_url] == ("ok", "serves small, large")
    server.stop()
    gone = ns(f"ns doctor --server_address {server.base_url}", cwd=tmp_path)
    assert gone.returncode == 1
    assert lines(gone)[server.base_url][0] == "wrong"
    assert "Traceback" not in gone.stderr


@pytest.mark.parametrize("whole", [True, False])
def test_a_mirror_is_looked_at(tmp_path: Path, whole: bool) -> None:
    if whole:
        (tmp_path / "MANIFEST.json").write_text(json.dumps([]))
    done = ns("ns doctor", cwd=tmp_path, env={"NEWSKILLS_MIRROR": str(tmp_path)})
    assert (lines(done)["data mirror"][0], done.returncode) == (("ok", 0) if whole else ("wrong", 1))


def test_a_data_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = ns("ns doctor", cwd=tmp_path, env={"NEWSKILLS_DATA_DIR": str(tmp_path / "file/data")})
    assert done.returncode == 1
    assert lines(done)["data folder"][0] == "wrong"


CLUSTER = "executor: slurm\njob_dir: {job_dir}\n"


def on_cluster(folder: Path, job_dir: str | Path, *, name: str = "there") -> dict[str, Any]:
    (folder / "cluster_configs").mkdir(exist_ok=True)
    (folder / f"cluster_configs/{name}.yaml").write_text(CLUSTER.format(job_dir=job_dir))
    return lines(ns(f"ns doctor --cluster={name}", cwd=folder))


def test_a_job_folder_is_looked_at_and_not_made(tmp_path: Path) -> None:
    state, text = on_cluster(tmp_path, tmp_path / "jobs/of/mine")["job_dir"]
    assert (state, "the first submission creates it" in text) == ("note", True)
    assert not (tmp_path / "jobs").exists()
    (tmp_path / "jobs").mkdir()
    assert on_cluster(tmp_path, tmp_path / "jobs")["job_dir"] == ("ok", str(tmp_path / "jobs"))
    assert list((tmp_path / "jobs").iterdir()) == []
    (tmp_path / "file").write_text("")
    assert on_cluster(tmp_path, tmp_path / "file/jobs")["job_dir"][0] == "wrong"


def test_a_job_folder_on_a_file_system_that_is_not_there_is_wrong(tmp_path: Path) -> None:
    state, text = on_cluster(tmp_path, "/no-such-file-system/me/jobs")["job_dir"]
    assert (state, "is its file system mounted?" in text) == ("wrong", True)
    assert not Path("/no-such-file-system").exists()


def test_setup_looks_only(tmp_path: Path) -> None:
    line = f"ns setup --non_interactive --executor=slurm --name=new --job_dir={tmp_path}/jobs"
    assert "[note] job_dir" in ns(line, cwd=tmp_path).stdout
    assert not (tmp_path / "jobs").exists()


def test_configs_that_nobody_has_tried_are_not_called_ok(tmp_path: Path) -> None:
    assert lines(ns("ns doctor", cwd=tmp_path))["clusters"][0] == "note"
    (tmp_path / "cluster_configs").mkdir()
    (tmp_path / "cluster_configs/mine.yaml").write_text("executor: none\n")
    state, text = lines(ns("ns doctor", cwd=tmp_path))["clusters"]
    assert (state, text) == ("note", "mine; not tested: ns doctor --cluster=mine")
    assert "slurm" not in lines(ns("ns doctor", cwd=Path(__file__).parents[2]))["clusters"][1]


def test_a_login_shell_that_prints_something_is_found(tmp_path: Path) -> None:
    """Every command works, and rsync, which copies code and data, does not."""
    require_ssh()
    server = Sshd(tmp_path)
    try:
        server.say("Welcome to the cluster!")
        text = f"executor: slurm\njob_dir: {tmp_path}/jobs\nssh_tunnel: {{host: {HOST}}}\n"
        (tmp_path / "far.yaml").write_text(text)
        done = ns(f"ns doctor --cluster={tmp_path}/far.yaml", cwd=tmp_path, env=server.environ())
        state, said = lines(done)["login shell"]
        assert (state, done.returncode) == ("wrong", 1)
        assert f"prints 'Welcome to the cluster!' on {HOST}" in said
        assert "[[ $- == *i* ]] || return" in said
        assert lines(done)["ssh"][0] == "ok"
        there = server.remote()
        with pytest.raises(RemoteError, match="prints 'Welcome to the cluster!'"):
            there.put(tmp_path / "far.yaml", f"{tmp_path}/copy")
        there.hang_up()
    finally:
        server.stop()
