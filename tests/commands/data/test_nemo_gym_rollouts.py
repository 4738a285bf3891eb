# SPDX-License-Identifier: Apache-2.0
"""`ns nemo_gym_rollouts` with stand-ins for NeMo Gym's programs, which are real processes in real jobs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.launch.gym_programs import make_gym
from tests.server import Script

SERVED = Path(__file__).parents[1] / "served.py"
LINE = "ns nemo_gym_rollouts --config_paths=a.yaml,b.yaml --input_file=in.jsonl --output_dir=out"


def environment(root: Path) -> tuple[Path, dict[str, str]]:
    folder, programs = make_gym(root)
    return folder, {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "NEWSKILLS_EXPERIMENTS_DIR": str(root / "experiments"),
        "NEWSKILLS_JOB_DIR": str(root / "jobs"),
    }


def told(folder: Path, name: str) -> list[str]:
    words: list[str] = json.loads((folder / name).read_text())
    return words


def test_rollouts_of_a_server_that_runs_already(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    folder, env = environment(tmp_path)
    server = fake_server(Script())
    more = [f"--gym_path={folder}", f"--server_address={server.base_url}", "--model=fake"]
    done = ns(f"{LINE} +agent_name=simple ++limit=3 +num_repeats=2", *more, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir() if path.suffix == ".jsonl"] == ["rollouts.jsonl"]
    assert not list((tmp_path / "out").glob(".*.part"))
    passed = ["+agent_name=simple", "+limit=3", "+num_repeats=2"]
    run, collect = told(folder, "ng_run"), told(folder, "ng_collect_rollouts")
    assert run == [
        "+config_paths=[a.yaml,b.yaml]",
        f"+policy_base_url={server.base_url}",
        "+policy_api_key=dummy",
        "+policy_model_name=fake",
        *passed,
    ]
    assert collect[0] == f"+input_jsonl_fpath={tmp_path}/in.jsonl"
    assert collect[2:] == passed


def test_a_job_for_each_seed_and_none_for_what_is_there(tmp_path: Path, fake_server: FakeServerFactory) -> None:
    folder, env = environment(tmp_path)
    more = [f"--gym_path={folder}", f"--server_address={fake_server(Script()).base_url}", "--model=fake"]
    (tmp_path / "out").mkdir()
    (tmp_path / "out/rollouts-rs1.jsonl").write_text("kept\n")
    done = ns(f"{LINE} --random_seeds=0..2", *more, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    texts = [(tmp_path / f"out/rollouts-rs{seed}.jsonl").read_text() for seed in range(3)]
    assert texts == ["{}\n", "kept\n", "{}\n"]
    again = ns(f"{LINE} --num_random_seeds=3", *more, cwd=tmp_path, env=env)
    assert again.returncode == 0
    assert "nothing to do" in again.stderr
    assert (
        ns(f"{LINE} --num_random_seeds=1 --starting_seed=1 --rerun_done", *more, cwd=tmp_path, env=env).returncode
        == 0
    )
    assert (tmp_path / "out/rollouts-rs1.jsonl").read_text() == "{}\n"


def test_a_served_policy(tmp_path: Path) -> None:
    folder, env = environment(tmp_path)
    more = [f"--gym_path={folder}", f"--server_entrypoint={SERVED}", "--server_type=generic", "--server_gpus=0"]
    done = ns(f"{LINE} --model=fake +agent_name=simple", *more, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    words = dict(word.split("=", 1) for word in told(folder, "ng_run"))
    assert words["+policy_base_url"].startswith("http://127.0.0.1:")
    assert words["+policy_base_url"].endswith("/v1")
    assert words["+policy_model_name"] == "fake"


def test_a_failed_collection_leaves_no_file_that_looks_complete(
    tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    folder, env = environment(tmp_path)
    more = [f"--gym_path={folder}", f"--server_address={fake_server(Script()).base_url}", "--model=fake"]
    done = ns(f"{LINE} +code=3", *more, cwd=tmp_path, env=env)
    assert done.returncode != 0
    assert not (tmp_path / "out/rollouts.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("", "No policy is given"),
        ("--server_address=http://x", "needs the name of the model"),
        (
            "--server_address=http://x --model=m --server_gpus=1 --server_args=a",
            "--server_gpus, --server_args: only",
        ),
        ("--server_address=http://x --model=m --random_seeds=1 --num_random_seeds=2", "not both"),
    ],
)
def test_what_does_not_fit_together(tmp_path: Path, options: str, why: str) -> None:
    done = ns(f"{LINE} {options}", cwd=tmp_path)
    assert done.returncode == 2
    assert why in " ".join(done.stderr.split())
