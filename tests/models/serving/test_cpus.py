# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from pathlib import Path

import pytest

from newskills.models.serving.cpus import usable_cores

ALLOWED = sorted(os.sched_getaffinity(0))


def test_without_knowledge_each_allowed_cpu_is_a_core(tmp_path: Path) -> None:
    assert usable_cores(tmp_path, tmp_path) == len(ALLOWED)


def test_hardware_threads_of_one_core_count_once(tmp_path: Path) -> None:
    for cpu in ALLOWED:
        folder = tmp_path / f"cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text("0-255\n")
    assert usable_cores(tmp_path, tmp_path / "none") == 1


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("50000 100000", 1), ("max 100000", len(ALLOWED)), ("", len(ALLOWED)), ("x", len(ALLOWED))],
)
def test_a_container_quota_is_a_limit(tmp_path: Path, quota: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(f"{quota}\n")
    assert usable_cores(tmp_path / "none", tmp_path) == cores


def test_the_older_quota_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("100000\n")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert usable_cores(tmp_path / "none", tmp_path) == 1
