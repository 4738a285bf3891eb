# SPDX-License-Identifier: Apache-2.0
"""The example's distribution for the tests of this room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.environments.images import agent_image
from tests.plugins.installed import EXAMPLE, metadata

from newskills.models import kinds

__all__ = ["agent_image", "example", "plugged"]


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with its metadata."""
    return metadata(tmp_path_factory.mktemp("site"))


@pytest.fixture
def plugged(example: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """It is installed in this process."""
    for place in (EXAMPLE, example):
        monkeypatch.syspath_prepend(str(place))
    kinds._plug_ins.cache_clear()
    yield
    kinds._plug_ins.cache_clear()
