# SPDX-License-Identifier: Apache-2.0
"""Configs that a training pipeline wraps: its own keys, artifacts, targets that are not set yet, foreign files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from newskills.base.errors import ConfigError
from newskills.base.records import Row
from newskills_evaluator.compile.compiler import CompileRequest, CompilerResult, compile_config
from newskills_evaluator.config import Mode
from newskills_evaluator.remote import why_not_squash

ENVIRON = {"HOME": "/home/me", "USER": "me", "LOGNAME": "me", "HOSTNAME": "login"}
MINIMAL: Row = {
    "execution": {"type": "local", "output_dir": "out"},
    "deployment": {"type": "none"},
    "target": {"api_endpoint": {"url": "http://localhost:1/v1", "model_id": "m"}},
    "evaluation": {"tasks": [{"name": "gsm8k"}]},
}


def made(folder: Path, content: Row, *, dry_run: bool = False, profile: str | None = None) -> CompilerResult:
    (folder / "config.yaml").write_text(yaml.safe_dump(content))
    mode: Mode = "run" if profile else "local"
    asked = CompileRequest(mode=mode, config=str(folder / "config.yaml"), dry_run=dry_run, profile=profile)
    return compile_config(asked, ENVIRON, folder)


def served(path: str) -> Row:
    deployment = {
        "type": "generic",
        "command": "serve",
        "served_model_name": "m",
        "checkpoint_path": path,
    }
    return MINIMAL | {"deployment": deployment, "run": {"model": "my-model:latest"}}


def manifest(root: Path, version: str, path: str) -> None:
    (root / "my-model" / version).mkdir(parents=True)
    content = {"path": path, "metadata": {"iteration": 7}}
    (root / "my-model" / version / "manifest.json").write_text(json.dumps(content))


def test_keys_of_a_pipeline_around_the_config_are_read(tmp_path: Path) -> None:
    tasks = [{"name": "gsm8k"}, {"name": "mmlu"}]
    around = {"dry_run": True, "output_dir": "there", "task_filters": ["mmlu"]}
    execution = {"type": "local", "output_dir": "${output_dir}"}
    done = made(tmp_path, MINIMAL | around | {"execution": execution, "evaluation": {"tasks": tasks}})
    assert done.dry_run
    assert done.config.execution.output_dir == "there"
    assert [task.name for task in done.config.tasks] == ["mmlu"]
    assert not set(around) & set(done.config.config)
    assert not made(tmp_path, MINIMAL | {"dry_run": False}).dry_run
    assert made(tmp_path, MINIMAL | {"dry_run": False}, dry_run=True).dry_run
    alone = made(tmp_path, MINIMAL | {"output_dir": "there", "execution": {"type": "local"}})
    assert alone.config.execution.output_dir == "there"


def test_an_artifact_is_found_in_the_folder_of_manifests(tmp_path: Path) -> None:
    (tmp_path / "env.toml").write_text(f'[artifacts.manifest]\nroot = "{tmp_path}/made"\n')
    manifest(tmp_path / "made", "v2", "/models/second")
    manifest(tmp_path / "made", "v10", "/models/tenth")
    assert made(tmp_path, served("${art:model,path}")).config.deployment.checkpoint_path == "/models/tenth"
    (tmp_path / "made/my-model/latest").write_text("v2\n")
    config = served("${art:model,path}/iter_${art:model,iteration}")
    assert made(tmp_path, config).config.deployment.checkpoint_path == "/models/second/iter_7"
    chosen = served("${art:model,path}") | {"run": {"model": "my-model:v10"}}
    assert made(tmp_path, chosen).config.deployment.checkpoint_path == "/models/tenth"
    with pytest.raises(ConfigError, match="no field 'pat'; did you mean 'path'"):
        made(tmp_path, served("${art:model,pat}"))
    with pytest.raises(ConfigError, match=r"run\.data, which is not an artifact"):
        made(tmp_path, served("${art:data,path}"))
    with pytest.raises(ConfigError, match=r"'other'.*has none of this name"):
        made(tmp_path, served("${art:model,path}") | {"run": {"model": "other:latest"}})


def test_an_artifact_that_is_elsewhere_is_open_in_a_dry_run_and_refused_in_a_run(tmp_path: Path) -> None:
    config = served("${art:model,path}")
    with pytest.raises(
        ConfigError, match=r"checkpoint_path: run\.model names 'my-model:latest'.*write the path"
    ) as error:
        made(tmp_path, config)
    assert "artifacts.manifest" in str(error.value)
    done = made(tmp_path, config, dry_run=True)
    assert done.config.deployment.checkpoint_path == "${art:model,path}"
    assert [one.partition(":")[0] for one in done.open] == ["deployment.checkpoint_path"]


def test_a_target_that_is_not_set_yet_names_its_variable(tmp_path: Path) -> None:
    endpoint = {"url": "${oc.env:MY_URL,''}", "model_id": "${oc.env:MY_MODEL,''}"}
    config = MINIMAL | {"target": {"api_endpoint": endpoint}}
    with pytest.raises(
        ConfigError, match=r"target\.api_endpoint\.url: it is empty: the variable MY_URL is not set"
    ):
        made(tmp_path, config)
    assert len(made(tmp_path, config, dry_run=True).open) == 2


def test_sections_that_the_launcher_leaves_unread_beside_a_task_are_told_and_no_fault(tmp_path: Path) -> None:
    task = {"name": "gsm8k", "config": {"params": {"temperature": 1}}}
    done = made(tmp_path, MINIMAL | {"evaluation": {"tasks": [task]}})
    assert done.config.tasks[0].unread == ("config",)
    assert done.config.tasks[0].params.temperature is None


def test_a_file_of_another_program_is_said_to_be_one(tmp_path: Path) -> None:
    foreign = {"serving": {"model_path": "x"}, "gym": {"benchmarks": []}, "run": {"model": "m:latest"}}
    with pytest.raises(ConfigError, match=r"a config of another program: it has the keys gym, serving"):
        made(tmp_path, foreign)


def test_lepton_has_a_message_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'execution: lepton/default' is not supported: jobs of Lepton"):
        made(tmp_path, {"defaults": [{"execution": "lepton/default"}, {"deployment": "none"}, "_self_"]})


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"No config is given\. Give one with -c"):
        compile_config(CompileRequest(), ENVIRON, tmp_path)
    address = {"target.api_endpoint.url": "http://localhost:1/v1", "target.api_endpoint.model_id": "m"}
    assert len(compile_config(CompileRequest(overrides=address), ENVIRON, tmp_path).config.tasks) == 3


@pytest.mark.parametrize("line", ["", 'tunnel = "local"\n'])
def test_without_a_tunnel_nothing_asks_over_ssh(tmp_path: Path, line: str) -> None:
    (tmp_path / "env.toml").write_text(f'[far]\nexecutor = "slurm"\nhost = "login"\nremote_job_dir = "/s"\n{line}')
    execution = {
        "type": "slurm",
        "hostname": "${run.env.host}",
        "output_dir": "/shared",
        "ntasks_per_node": 1,
        "gres": "gpu:8",
    }
    done = made(tmp_path, MINIMAL | {"execution": execution}, profile="far").config
    from newskills_evaluator.deployments.place import cluster_of

    assert cluster_of(done).ssh_tunnel is None
    image = {"type": "vllm", "image": "registry.invalid/a:1", "served_model_name": "m", "checkpoint_path": "/m"}
    done = made(tmp_path, MINIMAL | {"execution": execution, "deployment": image}, profile="far").config
    assert "no tunnel" in why_not_squash(done)
