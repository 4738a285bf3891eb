# SPDX-License-Identifier: Apache-2.0
"""Servers of NeMo Gym by the name of their configuration: a folder laid out as its installation, whose `gym` resolves
nothing but says what the file says. `test_real_gym.py` has the real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.commands.running import ns, rows_of
from tests.environments.interactive.gym_double import counter_row
from tests.environments.interactive.test_gym import ADDS
from tests.server import Fault, Script

PROGRAM = """\
#!{python}
import sys
from pathlib import Path
assert sys.argv[1:4] == ["env", "resolve", "--config"], sys.argv
text = Path({root!r}, sys.argv[4]).read_text()
if "inherits: nothing" in text:
    sys.exit("Error: nothing is not defined.")
print(text)
"""
APP = """\
import os
import yaml
from pathlib import Path
from tests.environments.interactive.gym_double import CounterServer
settings = yaml.safe_load(os.environ["NEMO_GYM_CONFIG_DICT"])
assert settings["dry_run"] is False
own = settings[os.environ["NEMO_GYM_CONFIG_PATH"]]["resources_servers"]["counter"]
if own.get("broken"):
    raise SystemExit("no module called numpy")
with Path({root!r}, "started").open("a") as file:
    file.write(f"{{os.getpid()}}\\n")
server = CounterServer(own["port"])
server.serve_forever()
"""
CONFIG = """\
counter_server:
  resources_servers:
    counter: {entrypoint: app.py}
counter_simple_agent:
  responses_api_agents:
    simple_agent:
      datasets:
      - {type: example, jsonl_fpath: resources_servers/counter/data/example.jsonl}
      - {type: train, jsonl_fpath: resources_servers/counter/data/train.jsonl}
      - {type: validation, jsonl_fpath: resources_servers/counter/data/validation.jsonl}
"""


class Installed:
    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "site"
        server = self.root / "resources_servers/counter"
        repository = Path(__file__).parents[3]
        path = os.pathsep.join([str(self.root), str(repository / "src"), str(repository)])
        texts = {
            "gym/bin/python": f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} "$@"\n',
            "gym/bin/gym": PROGRAM.format(python=sys.executable, root=str(self.root)),
            "site/nemo_gym/__init__.py": "",
            "site/benchmarks/counting/config.yaml": CONFIG,
        }
        configs = {"counter": CONFIG, "broken": CONFIG.replace("app.py}", "app.py, broken: true}")}
        configs |= {"unresolved": "inherits: nothing", "agents": "counter_simple_agent: {}"}
        texts |= {f"site/resources_servers/counter/configs/{name}.yaml": text for name, text in configs.items()}
        texts["site/resources_servers/counter/app.py"] = APP.format(root=str(self.root))
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        (server / "data").mkdir()
        rows = [counter_row(number) for number in range(5)]
        for kind, count in ("train", 1), ("example", 2), ("validation", 5):
            (server / f"data/{kind}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows[:count]))
        self.env = {"NEWSKILLS_DATA_DIR": str(folder / "data"), "NEWSKILLS_GYM": str(folder / "gym/bin/gym")}

    def ns(self, line: str, *more: str, **env: str) -> Any:
        return ns(line, *more, cwd=self.folder, env={**self.env, **env})

    @property
    def started(self) -> list[int]:
        file = self.root / "started"
        return [int(line) for line in file.read_text().split()] if file.is_file() else []


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


def model(url: str) -> str:
    return f"--server_type=vllm --server_address={url} --model=fake --output_dir=results"


def is_over(pid: int) -> bool:
    """Whether the process has ended, or is a zombie that nobody waits for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_server_is_started_once_and_ends_with_the_run(installed: Installed, fake_server: Any) -> None:
    made = installed.ns("ns prepare_data gym:counter")
    assert "5 rows" in made.stdout, made.stderr  # of the data set for evaluation
    url = fake_server(ADDS).base_url
    done = installed.ns(f"ns eval --benchmarks=gym:counter {model(url)} ++max_concurrent_requests=1")
    assert done.returncode == 0, done.stdout + done.stderr
    records = rows_of(installed.folder / "results/eval-results/gym-counter/output.jsonl")
    assert [record["reward"] for record in records] == [1.0] * 5
    figures = json.loads(
        (installed.folder / "results/eval-results/gym-counter/environment_metrics.json").read_text()
    )
    assert figures["key_metrics"]["tasks"] == 5
    assert len(installed.started) == 2  # for the tasks, and for the figures
    assert all(map(is_over, installed.started))


def test_a_killed_run_leaves_no_server(installed: Installed, fake_server: Any) -> None:
    assert installed.ns("ns prepare_data gym:counting").returncode == 0
    server = fake_server(Script(faults=[Fault(kind="hang")]))
    words = ["eval", "--benchmarks=gym:counting", *model(server.base_url).split()]
    with subprocess.Popen(
        [sys.executable, "-m", "newskills", *words],
        cwd=installed.folder,
        env={**os.environ, **installed.env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as run:
        while not installed.started or not server.records:
            assert run.poll() is None
            time.sleep(0.05)
        run.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 120
    while not is_over(installed.started[0]):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_cannot_be_started(installed: Installed, fake_server: Any) -> None:
    def refused(line: str, **env: str) -> str:
        done = installed.ns(line, **env)
        assert done.returncode, done.stdout
        return " ".join((done.stdout + done.stderr).split())

    assert "did you mean 'counter'" in refused("ns prepare_data gym:countre")
    assert "did you mean 'counting'" in refused("ns prepare_data gym:countin")
    assert "nothing is not defined" in refused("ns prepare_data gym:counter/unresolved")
    assert "has no resources server" in refused("ns prepare_data gym:counter/agents")
    no_gym = refused("ns prepare_data gym:counter", NEWSKILLS_GYM="", PATH="/usr/bin:/bin")
    assert "there is no program gym. Install it in an environment of its own (pip install nemo-gym)" in no_gym
    assert "is not NeMo Gym's program" in refused("ns prepare_data gym:counter", NEWSKILLS_GYM="/bin/true")
    for file in (installed.root / "resources_servers/counter/data").iterdir():
        file.rename(installed.folder / file.name)
    assert "gym eval prepare --benchmark counter" in refused("ns prepare_data gym:counter")

    made = installed.ns("ns prepare_data gym:counter/broken --rows=example.jsonl")
    assert made.returncode == 0, made.stderr
    assert "did not start: no module called numpy" in refused(
        f"ns eval --benchmarks=gym:counter/broken {model(fake_server(ADDS).base_url)}"
    )
