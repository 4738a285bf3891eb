# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import pytest
from tests.commands.running import ns
from tests.server import Script

from newskills.commands.doctor import EXTRAS


def lines(done):
    """what → (state, text)"""
    found = {}
    for line in done.stdout.splitlines():
        state, rest = line.split(None, 1)
        what, _, text = rest.partition("  ")
        found[what.strip()] = (state.strip("[]"), text.strip())
    return found


def test_a_healthy_machine(tmp_path):
    done = ns("ns doctor", cwd=tmp_path, env={"NEWSKILLS_DATA_DIR": str(tmp_path / "data")})
    assert done.returncode == 0, done.stdout
    found = lines(done)
    assert {"newskills", "GPUs", "API keys", "data folder", "cache", "data mirror"} <= set(found)
    for extra in EXTRAS:
        state, text = found[f"extra {extra}"]
        assert state == "ok" or f"pip install 'newskills[{extra}]'" in text
    assert list(tmp_path.iterdir()) == []


def test_keys_are_named_and_never_shown(tmp_path):
    assert lines(ns("ns doctor", cwd=tmp_path))["API keys"][0] == "note"
    done = ns("ns doctor", cwd=tmp_path, env={"OPENAI_API_KEY": "sk-secret", "HF_TOKEN": "hf-secret"})
    assert lines(done)["API keys"] == ("ok", "OPENAI_API_KEY, HF_TOKEN")
    assert "secret" not in done.stdout + done.stderr


def test_an_endpoint_is_asked_what_it_serves(tmp_path, fake_server):
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
def test_a_mirror_is_looked_at(tmp_path, whole):
    if whole:
        (tmp_path / "MANIFEST.json").write_text(json.dumps([]))
    done = ns("ns doctor", cwd=tmp_path, env={"NEWSKILLS_MIRROR": str(tmp_path)})
    assert (lines(done)["data mirror"][0], done.returncode) == (("ok", 0) if whole else ("wrong", 1))


def test_a_data_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    done = ns("ns doctor", cwd=tmp_path, env={"NEWSKILLS_DATA_DIR": str(tmp_path / "file/data")})
    assert done.returncode == 1
    assert lines(done)["data folder"][0] == "wrong"
