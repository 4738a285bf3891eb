# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator

import pytest
from tests.benchmarks.web import Web, serving


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A file server; no mirror and no token of the machine takes part."""
    for name in ("NEWSKILLS_MIRROR", "HF_TOKEN", "HF_ENDPOINT", "NEWSKILLS_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    with serving() as server:
        yield server
