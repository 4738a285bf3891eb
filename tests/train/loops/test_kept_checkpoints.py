# SPDX-License-Identifier: Apache-2.0
"""Which checkpoints stay on the disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from newskills.train.loops.folder import TrainingFolder


class Saver:
    def save_state(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "state").write_text(folder.name)


def saved(path: Path, steps: Iterable[int], keep: int, scores: Mapping[int, float] | tuple[()] = ()) -> list[int]:
    folder = TrainingFolder(path, {}, keep=keep)
    for step in steps:
        folder.metrics({"step": step, **({"eval_reward": scores[step]} if step in scores else {})})
        folder.save(Saver(), step)
    folder.close()
    return [int(one.name.rpartition("-")[2]) for one in sorted(path.glob("checkpoint-*"))]


@pytest.mark.parametrize(("keep", "left"), [(0, [1, 2, 3, 4, 5]), (1, [5]), (3, [3, 4, 5]), (9, [1, 2, 3, 4, 5])])
def test_the_latest_stay(tmp_path: Path, keep: int, left: list[int]) -> None:
    assert saved(tmp_path, range(1, 6), keep) == left
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_the_best_one_stays_too(tmp_path: Path) -> None:
    assert saved(tmp_path, range(1, 7), 2, {2: 0.9, 4: 0.1, 6: 0.8}) == [2, 5, 6]


def test_a_run_goes_on_from_what_stays(tmp_path: Path) -> None:
    assert saved(tmp_path, (1, 2, 3), 1) == [3]
    (tmp_path / ".checkpoint-000002.gone").mkdir()
    loaded = []
    folder = TrainingFolder(tmp_path, {}, keep=1)

    class Client(Saver):
        def load_state(self, state: Any) -> None:
            loaded.append(state)

    assert folder.resume(Client()) == 3
    folder.metrics({"step": 4})
    folder.save(Client(), 4)
    folder.close()
    assert loaded == [str(tmp_path / "checkpoint-000003")]
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-000004"]
