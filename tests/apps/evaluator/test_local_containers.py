# SPDX-License-Identifier: Apache-2.0
"""Evaluations on this machine whose server runs in a real container."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from tests.apps.evaluator.evaluations import KEY, Evaluations
from tests.launch.containers import IMAGE, podman

from newskills.launch.submit import executor_of
from newskills_evaluator import remote
from newskills_evaluator.deployments import plan_invocation

__all__ = ["podman"]

PORT = 18698
SERVER = r"""
import http.server, json, os
print("token of", len(os.environ["MODEL_TOKEN"]), "letters;", open("/checkpoint/weights").read(), flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.reply({})
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": r"\boxed{4}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self.reply({"id": "x", "object": "chat.completion", "model": "fake", "choices": [choice],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
    def reply(self, content):
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(("0.0.0.0", PORT), Handler).serve_forever()
"""


@pytest.mark.nightly
@pytest.mark.usefixtures("podman")
def test_a_server_in_a_container_and_its_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = Evaluations(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model/weights").write_text("weights")
    (tmp_path / "server.py").write_text(SERVER.replace("PORT", str(PORT)))
    place.environ["MY_TOKEN"] = KEY
    place.config(
        execution={
            "type": "local",
            "output_dir": str(tmp_path / "out"),
            "mounts": {"deployment": {str(tmp_path / "server.py"): "/server.py:ro"}, "evaluation": {}},
        },
        deployment={
            "type": "generic",
            "image": IMAGE,
            "command": "python3 -S -E /server.py",
            "port": PORT,
            "checkpoint_path": str(tmp_path / "model"),
            "served_model_name": "fake",
            "env_vars": {"MODEL_TOKEN": "host:MY_TOKEN"},
        },
        evaluation=place.tasks(),
    )
    compiled = place.compiled()
    planned = plan_invocation(compiled, "00112233aabbccdd", place.environ, datetime.datetime(2026, 1, 2))
    said: list[str] = []
    experiment = remote.submit_invocation(planned, said.append)
    remote.follow_tasks(experiment, place.environ, said.append)
    logs = "".join(file.read_text() for file in Path(planned.folder).rglob("*.log"))
    assert set(executor_of(experiment, place.environ).state(experiment.handles).values()) == {"completed"}, (
        said,
        logs,
    )
    assert f"token of {len(KEY)} letters; weights" in logs
    assert any("pass@1" in line for line in said)
    assert not [
        one
        for one in tmp_path.rglob("*")
        if one.is_file() and not one.is_symlink() and KEY.encode() in one.read_bytes()
    ]
