# SPDX-License-Identifier: Apache-2.0
"""An image for agents that needs no registry: bash, git and Python of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.launch.containers import make_image, modest_settings, trial, unusable
from tests.launch.needs import lacking
from tests.night import NIGHTLY
from tests.shared import RUN, shared_folder

from newskills.environments.owners import LABEL, new_name

IMAGE = f"localhost/newskills-agent-{RUN}:1"
PROGRAMS = (
    *("git", "grep", "find", "dd", "yes", "sort", "wc", "diff", "tar", "setsid", "sync", "cp", "ln"),
    *("which", "dirname", "basename", "readlink", "uname", "tee", "mktemp"),
)
SETTINGS = "containers.conf"
ENGINE = os.environ.get("NEWSKILLS_TEST_ENGINE", "podman")
"""podman, or docker where its daemon runs."""
by_first_engine = pytest.mark.skipif(ENGINE != "podman", reason="takes the first engine of this machine")
FLOOD_MB = int(os.environ.get("NEWSKILLS_TEST_FLOOD_MB", "1024" if NIGHTLY else "64"))
"""Megabytes that commands print to drown their reader: far more than is kept of an output."""


@pytest.fixture(scope="session")
def agent_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its tag; the tests are skipped where the engine cannot run it (CI: NEWSKILLS_TEST_CONTAINERS=1)."""
    if ENGINE == "podman" and (why := unusable()):
        lacking("CONTAINERS", why)
    with (
        shared_folder(tmp_path_factory, "agent-image", _make, _remove) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        if (settings := folder / SETTINGS).exists():
            patch.setenv("CONTAINERS_CONF", str(settings))
        yield IMAGE


def _make(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CONTAINERS_CONF", raising=False)  # of another fixture, which processes that share this lack
        if not make_image(folder, IMAGE, PROGRAMS, ENGINE):
            return
        patch.setenv("CONTAINERS_CONF", str(modest_settings(folder)))
        if why := trial(IMAGE, ENGINE):
            lacking("CONTAINERS", f"{ENGINE} cannot run containers here: {why}")


def _remove() -> None:
    subprocess.run([ENGINE, "rmi", "--force", IMAGE], check=False, capture_output=True)


def own_containers() -> list[str]:
    """Names of containers that this process has made and not removed."""
    words = [ENGINE, "ps", "--all", f"--filter=label={LABEL}", "--format={{.Names}}"]
    shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    mine = new_name().rpartition(".")[0]
    return [name for name in shown if name.startswith(f"{mine}.")]
