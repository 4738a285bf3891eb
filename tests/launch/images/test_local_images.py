# SPDX-License-Identifier: Apache-2.0
"""Images of jobs in containers: pulled, built, refused; and `ns run_cmd` in one that was built."""

from __future__ import annotations

import http.server
import importlib
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands.running import ns
from tests.launch.containers import IMAGE, client, finished, left, local, log
from tests.launch.places import job

from newskills.base.errors import ConfigError
from newskills.environments.engines.job_engine import built_image_name

pytestmark = pytest.mark.usefixtures("podman")


def test_an_image_from_a_dockerfile(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    context = tmp_path / "My image"
    context.mkdir()
    (context / "word").write_text("one")
    (context / "Dockerfile").write_text(f"FROM {IMAGE}\nCOPY word /word\n")
    executor = local(tmp_path / "jobs", containers={"test": f"dockerfile:{context}/Dockerfile"})
    show = "print(open('/word').read())"
    _, first = finished(executor, job("a", client("m", show)))
    assert log(first, "m") == "one\n"
    name = built_image_name(f"dockerfile:{context}/Dockerfile")
    old = executor.engine.run("image", "inspect", "--format={{.Id}}", name).stdout.strip()
    assert "podman builds locally-built-" in capfd.readouterr().err
    (context / "word").write_text("two")
    later = local(tmp_path / "later", containers={"test": f"dockerfile:{context}/Dockerfile"})
    _, second = finished(later, job("a", client("m", show)))
    assert log(second, "m") == "two\n"
    assert re.fullmatch(r"locally-built-[a-z0-9-]+-my-image-dockerfile:[0-9a-f]{12}", name)
    subprocess.run(["podman", "rmi", "--force", name, old], check=True, capture_output=True)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Holds IMAGE as `small:1`; yields its address."""
    image = tmp_path / "image"
    save = ("podman", "save", "--quiet", "--format=oci-dir", f"--output={image}", IMAGE)
    subprocess.run(save, check=True, capture_output=True)
    manifest = json.loads((image / "index.json").read_text())["manifests"][0]

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            digest = (manifest["digest"] if name == "1" else name).removeprefix("sha256:")
            content = (image / "blobs/sha256" / digest).read_bytes() if "/small/" in self.path else b"{}"
            self.send_response(200)
            kind = manifest["mediaType"] if "/manifests/" in self.path else "application/octet-stream"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        address = f"127.0.0.1:{server.server_port}"
        settings = tmp_path / "registries.conf"
        settings.write_text(f'[[registry]]\nlocation = "{address}"\ninsecure = true\n')
        monkeypatch.setenv("CONTAINERS_REGISTRIES_CONF", str(settings))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield address
        server.shutdown()
        thread.join()


def test_a_missing_image_is_pulled(tmp_path: Path, registry: str, capfd: pytest.CaptureFixture[str]) -> None:
    image = f"{registry}/small:1"
    executor = local(tmp_path / "jobs", containers={"test": image})
    state, folder = finished(executor, job("a", client("m", "print('pulled')")))
    assert (state, log(folder, "m")) == ("completed", "pulled\n")
    assert f"podman pulls {image}, which is not on this machine" in capfd.readouterr().err
    subprocess.run(["podman", "rmi", image], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (
            {"containers": {"test": "localhost/newskills-no-such-image:1"}},
            "is not on this machine, and podman cannot pull it",
        ),
        ({"containers": {"test": "dockerfile:/nowhere/Dockerfile"}}, "There is no file /nowhere/Dockerfile"),
        ({"containers": {"test": "/images/vllm.sqsh"}}, "squashfs images are only for Slurm"),
        ({"mounts": ["/nowhere:/data"]}, "there is no /nowhere"),
        (
            {"engine": "docker", "environ": {"PATH": "/nowhere"}},
            "with docker, which is not installed here. Install",
        ),
        (
            {"engine": None, "environ": {"PATH": "/nowhere"}},
            "with podman or docker, which are not installed here.",
        ),
    ],
)
def test_what_cannot_be_is_said_before_anything_starts(
    tmp_path: Path, cluster: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        local(tmp_path / "jobs", **cluster).submit(job("a", client("m", "")))
    assert not (tmp_path / "jobs").exists()


def test_a_build_that_fails_names_the_file_and_the_reason(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {IMAGE}\nCOPY missing /missing\n")
    with pytest.raises(ConfigError, match=r"cannot build an image from .*/Dockerfile: .*missing"):
        local(tmp_path, containers={"test": f"dockerfile:{tmp_path}/Dockerfile"}).submit(job("a", client("m", "")))


ASK_SANDBOX = """
import json, os, urllib.request
host, port = os.environ["NEMO_SKILLS_SANDBOX_HOST"], os.environ["NEMO_SKILLS_SANDBOX_PORT"]
code = "import os; print(sum(range(10)), os.path.exists('/data'))"
body = json.dumps({"generated_code": code, "language": "python"}).encode()
headers = {"Authorization": "Bearer " + os.environ["NEWSKILLS_SANDBOX_TOKEN"]}
request = urllib.request.Request(f"http://{host}:{port}/execute", body, headers)
with urllib.request.urlopen(request) as answer:
    result = json.load(answer)
with open("/data/it's out", "w") as file:
    print(os.environ["GREETING"], result["stdout"].strip(), result["isolation_level"], os.getcwd(), file=file)
raise SystemExit(4)
"""


@pytest.mark.nightly
def test_run_cmd_with_a_sandbox_in_containers(tmp_path: Path) -> None:
    """`ns run_cmd` end to end: the committed code, a mount, a variable, two containers, the exit code."""
    data, repository = tmp_path / "my data", tmp_path / "repository"
    data.mkdir()
    repository.mkdir()
    (repository / "ask.py").write_text(ASK_SANDBOX)
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(repository))
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "Ask")):
        subprocess.run([*git, *words], check=True)
    (tmp_path / "image").mkdir()
    for package in ("msgspec", "httptools", "uvloop"):
        found = Path(importlib.import_module(package).__file__).parent
        shutil.copytree(found, tmp_path / "image" / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "image/Dockerfile").write_text(f"FROM {IMAGE}\nCOPY . /packages\n")
    image = f"dockerfile:{tmp_path}/image/Dockerfile"
    config = {
        "executor": "local",
        "engine": "podman",
        "containers": {"nemo-skills": image, "sandbox": image},
        "mounts": [f"{data}:/data"],
        "env_vars": ["PYTHONPATH=/packages", "GREETING=hello there"],
        "job_dir": str(tmp_path / "jobs"),
        "skip_hf_home_check": True,
    }
    (tmp_path / "here.yaml").write_text(json.dumps(config))
    env = {"NEWSKILLS_EXPERIMENTS_DIR": str(tmp_path / "experiments")}
    line = f"ns run_cmd --cluster={tmp_path}/here.yaml --with_sandbox --expname=ask python3 ask.py"
    done = ns(line, cwd=repository, env=env)
    assert done.returncode == 4, done.stderr
    assert (data / "it's out").read_text() == "hello there 45 False b /nemo_run/code\n"
    assert left(tmp_path) == []
    subprocess.run(["podman", "rmi", "--force", built_image_name(image)], check=True, capture_output=True)
