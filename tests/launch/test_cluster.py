# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path
from typing import Any

import pytest

from newskills.base.errors import ConfigError, DataError, UnknownNameError
from newskills.launch.clusters.config import ClusterConfig, cluster_names, image_of, load_cluster, python_of
from newskills.launch.clusters.times import seconds_of
from newskills.launch.clusters.variables import job_variables

EXAMPLES = Path(__file__).parents[2] / "cluster_configs/examples"
HOME = {"HOME": "/home/me", "USER": "me"}


def file(folder: Path, name: str, text: str = "executor: none\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def slurm(**keys: object) -> dict[str, object]:
    return {"executor": "slurm", "job_dir": "/jobs", **keys}


@pytest.mark.parametrize("name", ["none", "local", "slurm", "slurm-ssh"])
def test_examples_are_valid(name: str) -> None:
    cluster = load_cluster(str(EXAMPLES / f"{name}.yaml"), None, HOME)
    assert cluster.name == name
    assert cluster.executor == name.removesuffix("-ssh")
    assert "${" not in "".join([*cluster.mounts, *cluster.containers.values(), cluster.job_dir])


def test_examples_are_no_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parents[1])
    assert not {"slurm", "slurm-ssh"} & set(cluster_names(None, {}))
    with pytest.raises(UnknownNameError, match=r"cluster_configs/examples/slurm.yaml is an example to copy"):
        load_cluster("slurm", None, {})


def test_the_user_is_known_where_the_variable_is_not_set(tmp_path: Path) -> None:
    path = file(tmp_path, "here", "executor: slurm\njob_dir: /jobs/${USER}/{LOGNAME}${HOME}\n")
    me = pwd.getpwuid(os.getuid())
    for environ in ({}, {"USER": "", "HOME": ""}):
        assert load_cluster(str(path), None, environ).job_dir == f"/jobs/{me.pw_name}/{me.pw_name}{me.pw_dir}"
    assert load_cluster(str(path), None, {**HOME, "LOGNAME": "you"}).job_dir == "/jobs/me/you/home/me"


def test_nothing_is_this_machine_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said: list[Any] = []
    assert load_cluster(None, None, {}, say=said.append).executor == "none"
    assert len(said) == 1


def test_search_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    there = [tmp_path / "option", tmp_path / "twin", tmp_path / "cluster_configs"]
    for number, folder in enumerate(there):
        file(folder, "mine", f"executor: none\naccount: a{number}\n")
    environ = {"NEWSKILLS_CONFIG_DIR": "twin", "NEMO_SKILLS_CONFIG_DIR": "absent"}
    assert load_cluster("mine", "option", environ).account == "a0"
    assert load_cluster("mine", None, environ).account == "a1"
    assert load_cluster("mine", None, {"NEMO_SKILLS_CONFIG_DIR": "twin"}).account == "a1"
    assert load_cluster("mine", None, {}).account == "a2"
    assert load_cluster("option/mine.yaml", None, {}).account == "a0"
    assert load_cluster({"executor": "none", "account": "d"}, "option", environ).account == "d"
    assert load_cluster(None, "option", {"NEMO_SKILLS_CONFIG": "twin/mine.yaml"}).account == "a1"
    both = {"NEWSKILLS_CONFIG": "option/mine.yaml", "NEMO_SKILLS_CONFIG": "twin/mine.yaml"}
    assert load_cluster(None, None, both).account == "a0"
    assert load_cluster("none", None, both).account is None


def test_keys_may_come_as_json() -> None:
    assert load_cluster('{"executor": "none", "account": "d"}', None, {}).account == "d"
    with pytest.raises(ConfigError, match="neither a name nor JSON"):
        load_cluster("{executor", None, {})


def test_a_file_wins_over_what_is_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said: list[Any] = []
    assert load_cluster("local", None, {}, say=said.append).executor == "none"
    assert "ns setup" in said[0]
    file(tmp_path / "cluster_configs", "local", "executor: local\n")
    assert load_cluster("local", None, {}).executor == "local"


def test_unknown_names_are_answered_with_known_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file(tmp_path, "my-slurm")
    with pytest.raises(UnknownNameError, match=f"'my-slurm'.*{tmp_path}.*ns setup"):
        load_cluster("my-slrum", str(tmp_path), {})
    file(tmp_path, "far")
    with pytest.raises(UnknownNameError, match=r"did you mean 'my-slurm'.*clusters there: far, my-slurm\."):
        load_cluster("my-slrum", str(tmp_path), {})
    with pytest.raises(DataError, match=r"absent\.yaml"):
        load_cluster("./absent.yaml", None, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("executor: slurm\njob_dirr: /x\n", "'job_dirr'; did you mean 'job_dir'"),
        ("executor: slurm\nssh_tunnel: {hots: a}\n", r"'ssh_tunnel.hots'; did you mean 'host'"),
        ("executor: slurm\naccount: 12\n", "account must be text, not a whole number; put it in quotes"),
        ("executor: slurm\nmounts: /a:/b\n", "mounts must be a list, not text"),
        (
            "executor: slurm\ncontainers: [a]\n",
            "containers must be `key: value` lines, not a list".replace("`", "."),
        ),
        ("executor: slurm\nskip_hf_home_check: 3\n", "must be true or false"),
        ("executor: slurm\nssh_tunnel: {user: me}\n", "ssh_tunnel.*host"),
        ("executor: slurm\nexecutor: none\n", "line 2: the key 'executor' appears twice"),
        ("executor: [\n", "not valid YAML"),
        ("- a\n", "`key: value`".replace("`", ".")),
        ("account: a\n", "'executor' is missing"),
        ("executor: slurm\n", "'job_dir' is missing"),
        ("executor: slurm\njob_dir: jobs\n", "job_dir must be an absolute path"),
        ("executor: slurm\njob_dir: /a/${NOWHERE}\n", "NOWHERE is not set"),
        ("executor: none\nmounts: ['/a:b']\n", "destination of the mount '/a:b' must be an absolute path"),
        ("executor: none\nenv_vars: ['A B=1']\n", "'A B' is not the name of a variable"),
        ("executor: none\nenv_vars: ['MY_API_KEY=sk-1']\n", "MY_API_KEY is written in the file"),
        ("executor: none\ntimeouts: {batch: soon}\n", "'soon' is not a time limit"),
        ("executor: none\ndependency_type: afterall\n", "dependency_type"),
        ("executor: none\nengine: lxc\n", "engine"),
        ("executor: slurrm\njob_dir: /x\n", "executor 'slurrm'; did you mean 'slurm'"),
    ],
)
def test_errors_name_the_file_and_the_key(tmp_path: Path, text: str, said: str) -> None:
    path = file(tmp_path, "bad", text)
    with pytest.raises(ConfigError, match=said) as error:
        load_cluster(str(path), None, {})
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert "sk-1" not in str(error.value)


def test_times_and_dates_stay_text(tmp_path: Path) -> None:
    path = file(tmp_path, "x", "executor: none\naccount: 2026-01-01\ntimeouts: {a: 10:00:00, b: 04:00:00}\n")
    cluster = load_cluster(str(path), None, {})
    assert cluster.timeouts == {"a": "10:00:00", "b": "04:00:00"}
    assert cluster.account == "2026-01-01"


def test_variables_are_filled_in(tmp_path: Path) -> None:
    keys = slurm(mounts=["${A}/x:/x", "~/y:/y:ro"], containers={"c": "{A}/c.sqsh"}, job_dir="~/jobs")
    cluster = load_cluster(keys, None, {"A": "/a", "HOME": "/home/me"})
    assert cluster.mounts == ["/a/x:/x", "/home/me/y:/y:ro"]
    assert (cluster.containers["c"], cluster.job_dir) == ("/a/c.sqsh", "/home/me/jobs")


def test_over_ssh_the_job_folder_is_the_tunnels() -> None:
    keys = {"executor": "slurm", "ssh_tunnel": {"host": "h", "job_dir": "/far", "identity": "~/.ssh/id"}}
    cluster = load_cluster(keys, None, HOME)
    assert cluster.job_dir == "/far"
    assert cluster.ssh_tunnel is not None
    assert cluster.ssh_tunnel.identity == "/home/me/.ssh/id"


def test_what_is_copied_from_the_shell_is_a_secret() -> None:
    cluster = load_cluster(
        slurm(env_vars=["A", "B=x=${H}", "C_TOKEN=${HF_TOKEN}", "AUTH=Bearer ${HF_TOKEN}", "GONE"]), None, {}
    )
    said: list[Any] = []
    environ = {"A": "1", "H": "h", "HF_TOKEN": "hf-1", "OPENAI_API_KEY": "sk-1", "WANDB_API_KEY": ""}
    variables = job_variables(cluster, environ, say=said.append)
    assert variables.plain == {"B": "x=h"}
    assert variables.secrets == {
        "A": "1",
        "C_TOKEN": "hf-1",
        "AUTH": "Bearer hf-1",
        "HF_TOKEN": "hf-1",
        "OPENAI_API_KEY": "sk-1",
    }
    assert "GONE" in said[0]
    assert "hf-1" not in repr(variables)
    assert "sk-1" not in repr(variables)


def test_all_missing_variables_are_listed() -> None:
    cluster = load_cluster(slurm(required_env_vars=["ONE", "TWO", "THREE=3"]), None, {})
    with pytest.raises(ConfigError, match="requires ONE, TWO, which are not set"):
        job_variables(cluster, {})
    with pytest.raises(ConfigError, match="requires TWO, which is not set"):
        job_variables(cluster, {"ONE": ""})
    assert job_variables(cluster, {"ONE": "1", "TWO": "2"}).plain == {"THREE": "3"}


def test_images() -> None:
    cluster = ClusterConfig(executor="local", containers={"vllm": "reg/vllm:1"})
    assert image_of(cluster, "vllm") == "reg/vllm:1"
    assert image_of(cluster, "reg/other:2") == "reg/other:2"
    assert image_of(cluster, None) is None
    with pytest.raises(UnknownNameError, match="'vllm'"):
        image_of(cluster, "vlm")
    bare = ClusterConfig(executor="slurm", name="bare")
    assert [image_of(bare, name) for name in ("vllm", "sandbox", "generic")] == [None, None, None]
    assert image_of(bare, "reg/other:2") == "reg/other:2"
    with pytest.raises(UnknownNameError, match=r"'vlm'; did you mean 'vllm'.*(?s:.*)'bare' has no containers"):
        image_of(bare, "vlm")
    assert image_of(ClusterConfig(executor="none", containers={"vllm": "x"}), "vllm") is None
    assert python_of(cluster, "reg/vllm:1") == "python3"
    assert python_of(cluster, None) == sys.executable


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 300), ("5:30", 330), ("01:00:00", 3600), ("1-0", 86400), ("1-2:3", 93780), ("100-00:00:00", 8640000)],
)
def test_times(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "00:00:00", "1:2:3:4", "-1", "1d", "01:00:00\n", "1-", "1--2"])
def test_no_times(text: str) -> None:
    with pytest.raises(ConfigError, match="not a time limit"):
        seconds_of(text)
