# SPDX-License-Identifier: Apache-2.0
"""verl's own training loop, cut out of its source, saves and ends as our callback says; time is played."""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from newskills.train.pipelines.inside import AGAIN, main
from newskills.train.pipelines.verl_saving import EXPIRES, STOPPED, SavingInTime

VARIABLE = "NEWSKILLS_VERL_PYTHON"


class Clock:
    """Seconds that pass only where the loop says so."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


class PlayedTrainer:
    """What `fit` of verl uses of its trainer. Steps and checkpoints take the seconds that are handed in."""

    def __init__(self, folder: Path, *, save_freq: int, total: int, step: float, save: float, load: float) -> None:
        self.clock = Clock()
        self.began = self.clock.time
        values = {"save_freq": save_freq, "test_freq": -1, "total_epochs": 1, "val_before_train": False}
        trainer = SimpleNamespace(project_name="p", experiment_name="e", logger=[], **values)
        trainer.get = lambda name, default=None: getattr(trainer, name, default)
        profiler = SimpleNamespace(steps=None)
        self.config = SimpleNamespace(trainer=trainer, global_profiler=profiler)
        self.callback = SavingInTime(self.config, now=self.clock, watch=False)
        self.clock.time += load
        self.folder, self.step_seconds, self.save_seconds = folder, step, save
        self.global_steps, self.total_training_steps, self.steps_per_epoch = 0, total, total
        self.timing_raw: dict[str, float] = {}
        self.saved: dict[int, float] = {}
        self.ended = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("on_", "_")):
            return MagicMock(return_value={})
        raise AttributeError(name)

    def step(self, metrics: dict[str, Any], timing: dict[str, float]) -> Any:
        self.callback.decide()
        self.clock.time += self.step_seconds
        self.callback.decide()
        return SimpleNamespace(keys=[], partition_id="train")

    def on_step_end(self) -> None:
        self.callback.decide()

    def on_train_end(self) -> None:
        self.ended = True

    def _save_checkpoint(self) -> None:
        self.clock.time += self.save_seconds
        self.timing_raw["save_checkpoint"] = self.save_seconds
        self.saved[self.global_steps] = self.clock.time - self.began
        folder = self.folder / f"global_step_{self.global_steps}"
        self.callback.on_save(trainer=self, global_step=self.global_steps, checkpoint_dir=str(folder))


@pytest.fixture(scope="module")
def fit() -> Any:
    """verl's loop, with its services left out."""
    python = os.environ.get(VARIABLE)
    if not python:
        pytest.skip(f"{VARIABLE} names no Python with verl")
    find = "import importlib.util as u; print(u.find_spec('verl').submodule_search_locations[0])"
    place = subprocess.run([python, "-c", find], capture_output=True, text=True, check=True).stdout.strip()
    tree = ast.parse((Path(place) / "trainer/ppo/v1/trainer_base.py").read_text())
    [trainer] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "PPOTrainer"]
    [loop] = [node for node in trainer.body if isinstance(node, ast.FunctionDef) and node.name == "fit"]
    loop.args.args[1].annotation = None

    @contextlib.contextmanager
    def marked_timer(*words: Any, **more: Any) -> Iterator[None]:
        yield

    names = {node.id: MagicMock() for node in ast.walk(loop) if isinstance(node, ast.Name)}
    space: dict[str, Any] = {**names, "marked_timer": marked_timer}
    for builtin in ("max", "len", "isinstance", "dict", "str", "int"):
        space.pop(builtin, None)
    exec(compile(ast.Module([loop], []), "verl", "exec"), space)
    return space["fit"]


def test_a_job_shorter_than_ten_steps_advances(fit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """45 minutes of 10-minute steps: verl's own ten steps would never be reached."""
    monkeypatch.setenv(EXPIRES, str(1_000_000 + 2700))
    trainer = PlayedTrainer(tmp_path, save_freq=10, total=100, step=600, save=60, load=120)
    fit(trainer, None)
    assert max(trainer.saved) == trainer.global_steps - 1 >= 3
    assert max(trainer.saved.values()) <= 2700
    assert trainer.ended
    assert (tmp_path / STOPPED).exists()


@pytest.mark.parametrize("step", [7.0, 90.0, 250.0])
def test_no_step_is_lost_at_the_time_limit(
    step: float, fit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 4 * 3600 - 900
    monkeypatch.setenv(EXPIRES, str(1_000_000 + limit))
    trainer = PlayedTrainer(tmp_path, save_freq=10, total=100_000, step=step, save=30, load=300)
    fit(trainer, None)
    assert max(trainer.saved) == trainer.global_steps - 1
    assert limit - 3 * (step + 30) <= max(trainer.saved.values()) <= limit
    assert {step for step in trainer.saved if step % 10 == 0} >= set(range(10, max(trainer.saved), 10))
    often = [step for step in trainer.saved if step % 10]
    assert len(often) <= 3 + limit // 1800  # only the first, the last and those of each half hour are more


def test_a_training_that_ends_by_itself_leaves_no_mark(
    fit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EXPIRES, str(1_000_000 + 100))
    trainer = PlayedTrainer(tmp_path, save_freq=10, total=1, step=60, save=1, load=1)
    fit(trainer, None)
    assert list(trainer.saved) == [1]
    assert not (tmp_path / STOPPED).exists()


def test_without_a_limit_a_step_is_saved_each_half_hour(
    fit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(EXPIRES, raising=False)
    trainer = PlayedTrainer(tmp_path, save_freq=10, total=25, step=1000, save=10, load=10)
    fit(trainer, None)
    steps = sorted(trainer.saved)
    assert (steps[0], steps[-1]) == (1, 25)
    gaps = [later - earlier for earlier, later in itertools.pairwise(steps)]
    assert set(gaps[:-1]) <= {1, 2}
    assert gaps.count(2) >= 8
    assert not (tmp_path / STOPPED).exists()


def test_the_thread_sees_steps_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(EXPIRES, raising=False)
    config = SimpleNamespace(trainer=SimpleNamespace(save_freq=7, total_epochs=1))
    callback = SavingInTime(config)
    assert config.trainer.save_freq == 1
    trainer = SimpleNamespace(global_steps=1, timing_raw={})
    callback.on_save(trainer, 1, str(tmp_path / "global_step_1"))
    assert config.trainer.save_freq == 7
    callback._saved -= 2000
    until = time.monotonic() + 60
    while config.trainer.save_freq != 1:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert any(thread.name == "saving-in-time" for thread in threading.enumerate())


def test_the_next_job_goes_on_where_the_file_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    mark = tmp_path / STOPPED
    mark.touch()  # of the job before
    option = f"--stopped-file={mark}"
    assert main([option, "--", "python", "-c", "pass"]) == 0
    assert main([option, "--", "python", "-c", f"open({str(mark)!r}, 'w')"]) == AGAIN
    words = ["--without", "no_such_module", "trainer.save_freq=1", "--without", "json", "never"]
    assert main([*words, "--", "python", "-c", "import sys; print(sys.argv[1:])"]) == 0
    assert "['trainer.save_freq=1']" in capfd.readouterr().out
