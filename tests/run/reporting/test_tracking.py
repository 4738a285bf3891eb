# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
from pathlib import Path

import pytest

from newskills.base.errors import AuthError
from newskills.run.reporting.tracking import check_tracking, over_k

pytest.importorskip("wandb")

LOG = """
import sys
from pathlib import Path
from newskills.base.records import Report
from newskills.run.reporting.tracking import Tracking, check_tracking, log_reports
import os
assert check_tracking(os.environ)
modes = {"pass@1": {"num_entries": 3, "symbolic_correct": 50.0, "note": "x"}, "pass@2": {"symbolic_correct": 75.0}}
log_reports(
    Tracking(name="my/run", project="p", group="g", samples=True),
    [Report(benchmark="gsm8k", modes=modes)],
    {"gsm8k": Path("rows.jsonl")},
)
import wandb
"""


def test_modes_become_lines_over_k() -> None:
    modes = {
        "pass@1": {"accuracy": 50.0},
        "pass@2": {"accuracy": 75.0, "flag": True},
        "pass@1[avg-of-2]": {"accuracy": 52.0},
        "majority@2": {"accuracy": 60.0},
    }
    assert over_k(modes) == {
        1: {"pass@k/accuracy": 50.0},
        2: {"pass@k/accuracy": 75.0, "pass@1[avg-of-k]/accuracy": 52.0, "majority@k/accuracy": 60.0},
    }


def test_no_key_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    with pytest.raises(AuthError, match="wandb login"):
        check_tracking({})
    assert check_tracking({"WANDB_API_KEY": "k"})
    assert check_tracking({"WANDB_MODE": "offline"})
    assert not check_tracking({"WANDB_DISABLED": "true"})
    assert not check_tracking({"WANDB_MODE": "disabled"})


def test_a_run_is_logged_by_the_real_library(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"problem": "a", "generation": "b"}\n')
    environ = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", LOG],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files = [path.name for path in tmp_path.rglob("*.wandb")]
    assert files == ["run-my-run-g-p.wandb"]
