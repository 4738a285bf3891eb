# SPDX-License-Identifier: Apache-2.0
"""The how-to of `ns evaluate`: its files are written, its commands run, as they stand."""

from __future__ import annotations

import re
from pathlib import Path

from tests.commands.running import ns
from tests.conftest import FakeServerFactory
from tests.server import Answer, Script

PAGE = (Path(__file__).parents[2] / "docs" / "evaluate-profiles.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ADDRESS = "http://localhost:5000"


def test_the_page_can_be_typed_as_it_stands(tmp_path: Path, fake_server: FakeServerFactory, mirror: Path) -> None:
    server = fake_server(Script(answer=Answer(kind="text", text="The answer is \\boxed{3}")))
    env = {
        "NEWSKILLS_MIRROR": str(mirror),
        "NEWSKILLS_DATA_DIR": str(tmp_path / "data"),
        "NEWSKILLS_EXPERIMENTS_DIR": str(tmp_path / "experiments"),
        "NEMO_EVALUATOR_EXEC_DB_FILE": str(tmp_path / "exec.jsonl"),
        "USER": "me",
    }
    blocks = BLOCK.findall(PAGE)
    config, profiles = (text for kind, text in blocks if kind in ("yaml", "toml"))
    (tmp_path / "my-evaluation.yaml").write_text(config.replace(ADDRESS, server.url))
    (tmp_path / "env.toml").write_text(profiles)
    lines = [line for kind, text in blocks if kind == "bash" for line in text.splitlines()]
    said = {}
    for line in lines:
        if line.startswith("ns start_server"):
            continue  # the fake server stands in for it
        far = "--run" in line or "--batch" in line
        done = ns(f"{line} --dry-run" if far else line, cwd=tmp_path, env=env)
        assert done.returncode == 0, (line, done.stdout[-2000:], done.stderr)
        said[line] = done.stdout
    whole, one = (text for line, text in said.items() if "✓ Evaluation submitted" in text)
    assert whole.count("success") == 2
    assert one.count("success") == 1
    latest = re.search(r"submitted: (\w{16})", one)
    assert latest is not None
    assert said["ns info"].splitlines()[1].startswith(latest[1])
    cluster = next(text for line, text in said.items() if "--run cluster" in line)
    assert "#SBATCH --account=my-account" in cluster
    assert "/lustre/me/checkpoint" in cluster
    for line in re.findall(r"^\| `(ns \w+ 3f9c0a[^`]*)`", PAGE, re.MULTILINE):
        done = ns(line.replace("3f9c0a", latest[1][:8]).replace(".1", ".0"), cwd=tmp_path, env=env)
        assert done.returncode == 0 or "have succeeded" in done.stderr, (line, done.stderr)
