# SPDX-License-Identifier: Apache-2.0
"""Servers over several nodes of one real Slurm job: where their processes find each other."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from tests.launch.slurm_cluster import ended, require_cluster, story

from newskills.launch.declarative import Command, CommandGroup, HardwareConfig, Pipeline
from newskills.launch.scripts.script import BaseJobScript, ServerScript
from newskills.launch.submit import executor_of

ENGINE = """
import argparse, http.server, socket, sys, time

parser = argparse.ArgumentParser(allow_abbrev=False)
for flag in ("--dist-init-addr", "--master-addr", "--master-port", "--nnodes", "--node-rank", "--port"):
    parser.add_argument(flag)
told = parser.parse_known_args()[0]
host, _, port = (told.dist_init_addr or f"{told.master_addr}:{told.master_port}").rpartition(":")
if told.node_rank != "0":
    until = time.monotonic() + 300
    while True:
        try:
            head = socket.create_connection((host, int(port)), timeout=5)
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
    head.sendall(f"{told.node_rank} from {socket.gethostname()}".encode())
    head.settimeout(None)
    head.recv(1)
    sys.exit(0)
meeting = socket.create_server((host, int(port)))
meeting.settimeout(30)
others = []
while len(others) < int(told.nnodes) - 1:
    others.append(meeting.accept()[0])
seen = [f"0 from {socket.gethostname()}", *(other.recv(64).decode() for other in others)]

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{seen} at {port}".encode())
    def log_message(self, *args): pass

http.server.ThreadingHTTPServer(("", int(told.port)), Handler).serve_forever()
"""
"""A stand-in with the flags of SGLang's server and of torchrun: rank 0 serves once all other ranks have come to it."""

ASK = "import sys, urllib.request as u; [print(u.urlopen('http://' + at).read().decode()) for at in sys.argv[1:]]"


@pytest.mark.nightly
def test_servers_on_the_same_nodes_do_not_meet_at_the_same_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_cluster()
    megatron = tmp_path / "megatron"
    for folder in (megatron / "torch" / "distributed", tmp_path / "work"):
        folder.mkdir(parents=True)
    (megatron / "torch" / "__init__.py").touch()
    (megatron / "torch" / "distributed" / "run.py").write_text(ENGINE)
    (tmp_path / "engine.py").write_text(ENGINE)
    monkeypatch.setenv("NEWSKILLS_EXPERIMENTS_DIR", str(tmp_path / "experiments"))
    monkeypatch.setenv("MEGATRON_PATH", str(megatron))
    monkeypatch.chdir(tmp_path / "work")
    two = {"num_gpus": 0, "num_nodes": 2}
    servers = {
        "sglang": ServerScript("sglang", "/m", server_entrypoint=str(tmp_path / "engine.py"), **two),
        "again": ServerScript("sglang", "/m", server_entrypoint=str(tmp_path / "engine.py"), **two),
        "megatron": ServerScript("megatron", "/m", **two),
    }
    addresses = " ".join(server.get_address() for server in servers.values())
    client = BaseJobScript(f'{sys.executable} -c "{ASK}" {addresses}')
    commands = [Command(server, name=name) for name, server in servers.items()]
    group = CommandGroup([*commands, Command(client, name="main")], hardware=HardwareConfig(num_nodes=2))
    cluster = {"executor": "slurm", "job_dir": str(tmp_path / "jobs"), "default_timeout": "00:10:00"}
    experiment = Pipeline("meet", cluster, [{"name": "meet", "group": group}]).run()
    states = ended(executor_of(experiment, os.environ), list(experiment.handles))
    folder = Path(experiment.jobs[0].folder)
    assert set(states.values()) == {"completed"}, story(folder)
    answers = re.findall(
        r"\['0 from (\w+)', '1 from (\w+)'\] at (\d+)", (folder / "logs" / "main.log").read_text()
    )
    assert len(answers) == len(servers), story(folder)
    assert all(first != second for first, second, _ in answers)
    assert len({port for *_, port in answers}) == len(servers)
