# SPDX-License-Identifier: Apache-2.0
"""Logins of W&B are found where its own library leaves them, and their keys are never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from newskills_evaluator.config import WandbSection
from newskills_evaluator.wandb_login import FOUND, detect_login, found_login

KEY = "k" * 40
WANDB = WandbSection(project="p", entity="e")


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


def test_a_login_in_netrc_is_found_for_its_own_server(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text(f"machine api.wandb.ai\n  login user\n  password {KEY}\n")
    found = detect_login(home, WANDB)
    assert found.variables == {"WANDB_API_KEY": KEY, "WANDB_PROJECT": "p", "WANDB_ENTITY": "e"}
    assert found.lines == ("[info] Detected W&B login, setting WANDB_API_KEY",) == (FOUND,)
    assert KEY not in repr(found)
    assert found_login({**home, "WANDB_BASE_URL": "https://wandb.example.org"}) == ""
    (tmp_path / "other").write_text(f"machine wandb.example.org login user password {KEY}2\n")
    other = {**home, "NETRC": "~/other", "WANDB_BASE_URL": "https://wandb.example.org"}
    assert found_login(other) == f"{KEY}2"


def test_what_the_environment_says_is_left_alone(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text(f"machine api.wandb.ai login user password {KEY}\n")
    mine = {**home, "WANDB_API_KEY": "mine", "WANDB_PROJECT": "q"}
    assert detect_login(mine, WANDB) == type(detect_login(mine, WANDB))({"WANDB_ENTITY": "e"})
    assert found_login(mine) == "mine"


def test_a_login_in_the_settings_file(home: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / ".config/wandb"
    folder.mkdir(parents=True)
    (folder / "settings").write_text(f"[default]\nbase_url = https://api.wandb.ai\napi_key = {KEY}\n")
    assert detect_login(home, WANDB).variables["WANDB_API_KEY"] == KEY
    (folder / "settings").write_text(f"[default]\nbase_url = https://elsewhere\napi_key = {KEY}\n")
    assert found_login(home) == ""
    (folder / "settings").write_text("no settings at all")
    assert found_login(home) == ""


def test_no_login_is_said_unless_none_is_needed(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine broken login")
    (line,) = detect_login(home, WandbSection()).lines
    assert "No W&B login" in line
    assert detect_login({**home, "WANDB_MODE": "offline"}, WandbSection()).lines == ()


def test_the_library_finds_the_same_key(
    home: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="no wandb here: pip install 'newskills[wandb]'")
    from wandb.sdk.lib.wbauth import wbnetrc

    (tmp_path / ".netrc").write_text(f"machine api.wandb.ai login user password {KEY}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert wbnetrc.read_netrc_auth(host="https://api.wandb.ai") == found_login(home) == KEY
