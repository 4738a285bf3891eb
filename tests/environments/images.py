# SPDX-License-Identifier: Apache-2.0
"""An image for agents that needs no registry: bash, git and Python of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest
from tests.launch.containers import make_image, modest_settings, trial, unusable
from tests.launch.needs import lacking

from newskills.environments.owners import LABEL, new_name

IMAGE = f"localhost/newskills-agent-{os.getpid()}:1"
PROGRAMS = ("git", "grep", "find", "dd", "yes", "sort", "wc", "diff", "tar", "setsid", "sync", "cp", "ln")


@pytest.fixture(scope="session")
def agent_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its tag; the tests are skipped where podman cannot run it (CI: NEWSKILLS_TEST_CONTAINERS=1)."""
    if why := unusable():
        lacking("CONTAINERS", why)
    folder = tmp_path_factory.mktemp("agent-image")
    with pytest.MonkeyPatch.context() as patch:
        if make_image(folder, IMAGE, PROGRAMS):
            patch.setenv("CONTAINERS_CONF", str(modest_settings(folder)))
            if why := trial(IMAGE):
                lacking("CONTAINERS", f"podman cannot run containers here: {why}")
        yield IMAGE
        subprocess.run(["podman", "rmi", "--force", IMAGE], check=False, capture_output=True)


def own_containers() -> list[str]:
    """Names of containers that this process has made and not removed."""
    words = ["podman", "ps", "--all", f"--filter=label={LABEL}", "--format={{.Names}}"]
    shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    mine = new_name().rpartition(".")[0]
    return [name for name in shown if name.startswith(f"{mine}.")]
