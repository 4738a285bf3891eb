# SPDX-License-Identifier: Apache-2.0
"""References of images, and a real registry on loopback that says what a tag means."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ConfigError
from newskills.environments.engines.references import is_file, parse_image
from newskills.launch.containers.digests import digest_of

SHA = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("nvcr.io/nvidia/pytorch:25.01-py3", "docker://nvcr.io#nvidia/pytorch:25.01-py3"),
        ("nvcr.io#nvidia/pytorch:25.01-py3", "docker://nvcr.io#nvidia/pytorch:25.01-py3"),
        ("docker://nvcr.io#nvidia/pytorch:25.01", "docker://nvcr.io#nvidia/pytorch:25.01"),
        ("docker://nvcr.io/nvidia/pytorch", "docker://nvcr.io#nvidia/pytorch:latest"),
        ("docker://$oauthtoken@nvcr.io#nvidia/nemo:1", "docker://$oauthtoken@nvcr.io#nvidia/nemo:1"),
        ("vllm/vllm-openai:latest", "docker://vllm/vllm-openai:latest"),
        ("docker.io/library/ubuntu:22.04", "docker://library/ubuntu:22.04"),
        ("ubuntu", "docker://ubuntu:latest"),
        ("localhost:5000/team/image:1", "docker://localhost:5000#team/image:1"),
        ("localhost/team/image", "docker://localhost#team/image:latest"),
        (f"ghcr.io/a/b:1@{SHA}", f"docker://ghcr.io#a/b:{SHA}"),
        (f"docker://ghcr.io#a/b:{SHA}", f"docker://ghcr.io#a/b:{SHA}"),
        ("dockerd://mine:1", "dockerd://mine:1"),
        ("podman://localhost/mine:1", "podman://localhost/mine:1"),
        ("docker-archive:///lustre/my_images.tar", "docker-archive:///lustre/my_images.tar"),
        ("oci-archive:///lustre/image.tar", "oci-archive:///lustre/image.tar"),
    ],
)
def test_uris_that_all_releases_of_enroot_understand(text: str, uri: str) -> None:
    assert parse_image(text).uri == uri


@pytest.mark.parametrize(
    "text",
    [
        *("", "Registry/Image:1", "a b", "a:b:c", "http://x/y", "a/../$(id):1", "a;b", "a'b", "-x/..//y:1", "a\n"),
        *("x#y#z", "@a/b", "dockerd://", "dockerd://a b", "reg.io/", "reg.io/a:tag@sha256:12"),
    ],
)
def test_what_is_no_image_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"Image |not a container image reference"):
        parse_image(text)


@given(st.text(max_size=40))
def test_whatever_passes_needs_no_quoting_in_file_names(text: str) -> None:
    try:
        reference = parse_image(text)
    except ConfigError:
        return
    assert set(reference.file_name()) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
    assert len(reference.file_name()) < 150


def test_names_of_files() -> None:
    one, other = parse_image("registry.io/a/b:1"), parse_image("registry.io/a_b:1")
    assert one.stem == other.stem == "registry_io_a_b_1"
    assert one.file_name() != other.file_name()
    assert one.file_name(SHA) == other.file_name(SHA) == "registry_io_a_b_1-abababababab.sqsh"
    assert parse_image("docker-archive:///secret/place/my-image.tar").stem == "my_image_tar"
    assert all(map(is_file, ("/a/b.sqsh", "b.sqsh", "./b", "/a/rootfs", "c.squashfs")))
    assert not any(map(is_file, ("a/b:1", "docker://a/b", "nvcr.io#a/b:1.sq")))


class _Registry(BaseHTTPRequestHandler):
    """team/open tells; team/token wants a token first; team/closed refuses it; team/odd lies."""

    def do_HEAD(self) -> None:
        image = self.path.split("/")[3]
        if image == "open" or (image == "token" and self.headers["Authorization"] == "Bearer t0"):
            assert "oci.image.index" in self.headers["Accept"]
            self._reply(200, {"Docker-Content-Digest": SHA})
        elif image == "odd":
            self._reply(200, {"Docker-Content-Digest": "$(id)"})
        else:
            realm = f"http://127.0.0.1:{self.server.server_port}/token"  # type: ignore[attr-defined]
            self._reply(401, {"WWW-Authenticate": f'Bearer realm="{realm}",service="s",scope="repository:x:pull"'})

    def do_GET(self) -> None:
        assert self.path == "/token?service=s&scope=repository%3Ax%3Apull"
        self._reply(200, {}, json.dumps({"token": "t0"}).encode())

    def _reply(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Registry)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_tag_is_looked_up_where_its_registry_tells(registry: str) -> None:
    def asked(image: str) -> str:
        return digest_of(parse_image(f"{registry}/team/{image}:1"), patience=5)

    assert asked("open") == asked("token") == SHA
    assert asked("closed") == asked("odd") == ""
    assert digest_of(parse_image(f"127.0.0.1:1/team/image@{SHA}")) == SHA
    assert digest_of(parse_image("127.0.0.1:1/team/image:1")) == ""
    assert digest_of(parse_image("dockerd://mine:1")) == ""
