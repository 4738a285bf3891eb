# SPDX-License-Identifier: Apache-2.0
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from newskills.base.errors import ConfigError
from newskills.run.reporting.tracking import Tracking
from newskills.run.training import reporting
from newskills.run.training.reporting import report_steps
from newskills.train.loops.stepping import OnStep, Progress

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")


def tell(told: OnStep, folder: Path, steps: Iterable[int], **more: Any) -> None:
    given = {"tensorboard": False, "tracking": None} | more
    with report_steps(told, folder, **given) as every:
        for step in steps:
            every(Progress(step, 9, {"loss": step / 10, "eval_reward": 1.0}))


def test_tensorboard_shows_each_step_once_also_after_a_kill(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    told: list[Any] = []
    tell(told.append, tmp_path, [1, 2, 3, 4], tensorboard=True)
    tell(told.append, tmp_path, [3, 4, 5], tensorboard=True)
    assert [one.done for one in told] == [1, 2, 3, 4, 3, 4, 5]
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert events.Tags()["scalars"] == ["loss", "eval_reward"]
    assert [(one.step, round(one.value, 3)) for one in events.Scalars("loss")] == [
        (1, 0.1),
        (2, 0.2),
        (3, 0.3),
        (4, 0.4),
        (5, 0.5),
    ]


SCRIPT = """
from pathlib import Path
from tests.run.training.test_reporting import tell
from newskills.run.reporting.tracking import Tracking
tell(lambda _: None, Path("."), [1, 2], tracking=Tracking(name="run", project="p"))
"""


@pytest.mark.nightly
def test_weights_and_biases_gets_each_step(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    environ = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (record,) = tmp_path.rglob("*.wandb")
    assert record.read_bytes().count(b"eval_reward") >= 2


LOCAL = """
from pathlib import Path
from tests.run.training.test_reporting import tell
from newskills.run.reporting.tracking import Tracking
tracking = Tracking(name="run", project="p")
tell(lambda _: None, Path("."), [1, 2], trackio=tracking)
tell(lambda _: None, Path("."), [3], trackio=tracking)
"""


@pytest.mark.nightly
def test_trackio_gets_each_step_of_a_run_that_resumes(tmp_path: Path) -> None:
    pytest.importorskip("trackio")
    environ = {**os.environ, "TRACKIO_DIR": str(tmp_path), "HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", LOCAL], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    [database] = tmp_path.rglob("*.db")
    with sqlite3.connect(database) as connection:
        rows = connection.execute("select run_name, step, metrics from metrics order by step").fetchall()
    assert [(name, step) for name, step, _ in rows] == [("run", 1), ("run", 2), ("run", 3)]
    assert json.loads(rows[0][2])["loss"] == 0.1


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="needs trackio"):
        tell(lambda _: None, tmp_path, [1], trackio=Tracking(name="run", project="p"))


def test_nothing_else_is_told_where_nothing_was_asked_for(tmp_path: Path) -> None:
    told: list[Any] = []
    tell(told.append, tmp_path, [1])
    assert [one.done for one in told] == [1]
    assert list(tmp_path.iterdir()) == []
