# SPDX-License-Identifier: Apache-2.0
"""What was submitted is followed from Python by the object that the call returned."""

from __future__ import annotations

from pathlib import Path

import pytest

import newskills
from newskills import Experiment
from newskills.base.errors import UnknownNameError


def test_an_experiment_is_followed_by_what_its_call_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    here = {"executor": "local", "job_dir": str(tmp_path / "jobs"), "skip_hf_home_check": True}
    assert newskills.experiments() == []
    first = newskills.run_cmd(command="echo hi > said", cluster=here, expname="greet", log_dir=tmp_path / "logs")
    assert isinstance(first, Experiment)
    (job,) = newskills.status(name=first)
    assert (job.job.name, job.state, job.exit_code, job.ended) == ("greet", "completed", 0, True)
    assert newskills.status(name="greet") == newskills.status() == [job]
    second = newskills.run_cmd(command="true", cluster=here, expname="after", run_after=first)
    assert isinstance(second, Experiment)
    assert [experiment.id for experiment in newskills.experiments()] == [second.id, first.id]
    assert [experiment.id for experiment in newskills.experiments(name="greet")] == [first.id]
    assert newskills.cancel(name=first) == []
    assert newskills.cancel(name=first, dry_run=True) is None
    with pytest.raises(UnknownNameError, match=r"greed.*did you mean 'greet'"):
        newskills.status(name="greed")
