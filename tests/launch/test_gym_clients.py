# SPDX-License-Identifier: Apache-2.0
"""Rollouts with stand-ins for NeMo Gym's programs, which are real processes in real jobs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.launch.gym_programs import NEW, OLD, make_gym

from newskills.base.errors import NewskillsError
from newskills.launch.declarative import Command, CommandGroup, Pipeline
from newskills.launch.scripts.gym_clients import NemoGymRolloutsScript
from newskills.launch.scripts.script import BaseJobScript, ServerScript

SERVED = Path(__file__).parents[1] / "commands/served.py"


@pytest.fixture
def gym(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A folder of NeMo Gym, and in it what its programs were told: today's, or those that a test names."""
    folder, programs = make_gym(tmp_path, getattr(request, "param", NEW))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("NEWSKILLS_EXPERIMENTS_DIR", str(tmp_path / "experiments"))
    monkeypatch.chdir(tmp_path)
    return folder


def rollouts(gym: Path, extra: str = "", **settings: Any) -> Any:
    server = ServerScript("generic", "/models/m", num_gpus=0, server_entrypoint=str(SERVED), served_name="fake")
    script = NemoGymRolloutsScript(
        config_paths=["a.yaml", "b c.yaml"],
        input_file=str(gym.parent / "in.jsonl"),
        output_file=str(gym.parent / "out/rollouts.jsonl"),
        extra_arguments=extra,
        server=server,
        gym_path=str(gym),
        **settings,
    )
    commands = [Command(server, name="server"), Command(script, name="main")]
    here = {"executor": "none", "job_dir": str(gym.parent / "jobs")}
    return Pipeline("gym", here, [{"name": "rollouts", "group": CommandGroup(commands)}]).run()


def told(gym: Path, name: str) -> Any:
    return json.loads((gym / name).read_text())


@pytest.mark.parametrize("gym", [NEW, OLD], ids=["gym", "ng"], indirect=True)
def test_rollouts_are_collected_once_the_servers_are_healthy(gym: Path) -> None:
    rollouts(gym, '+agent_name=simple +note="it\'s $HOME"')
    assert (gym.parent / "out/rollouts.jsonl").read_text() == "{}\n"
    run, collect = told(gym, "ng_run"), told(gym, "ng_collect_rollouts")
    assert run[0] == "+config_paths=[a.yaml,b c.yaml]"
    assert run[1].startswith("+policy_base_url=http://127.0.0.1:")
    assert run[2:] == [
        "+policy_api_key=dummy",
        "+policy_model_name=fake",
        "+agent_name=simple",
        "+note=it's $HOME",
    ]
    assert collect[2:] == ["+agent_name=simple", "+note=it's $HOME"]
    assert "fake" in (gym / "models").read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(int((gym / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("extra", "settings", "said"),
    [
        ("+code=3", {}, "exit code 3"),
        ("+die=1", {}, "ended before they were ready"),
        ("", {"patience": 0}, "not ready after 0 s"),
    ],
)
def test_what_fails_fails_the_job(
    gym: Path, monkeypatch: pytest.MonkeyPatch, extra: str, settings: dict[str, int], said: str
) -> None:
    if settings:
        monkeypatch.setenv("slow", "1")
    with pytest.raises(NewskillsError):
        rollouts(gym, extra, **settings)
    logs = "".join(file.read_text() for file in (gym.parent / "jobs").rglob("*.log"))
    assert said in logs
    assert not (gym.parent / "out/rollouts.jsonl").exists()


def test_a_server_that_runs_already_needs_no_job_of_its_own(gym: Path) -> None:
    script = NemoGymRolloutsScript(
        config_paths=["a.yaml"],
        input_file="/in.jsonl",
        output_file="/out.jsonl",
        server_address="http://h:1/v1",
        policy_model_name="m",
    )
    assert script.paths == ("/in.jsonl", "/out.jsonl")
    command = Command(script, name="main")
    other = Command(BaseJobScript("true"), name="other")
    job = {"name": "j", "group": CommandGroup([command, other])}
    words = Pipeline("x", {"executor": "none"}, [job]).submission().pipeline.jobs[0].commands()[0].script.argv
    assert "+policy_base_url=http://h:1/v1" in words
    assert "+policy_model_name=m" in words
