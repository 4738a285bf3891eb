# SPDX-License-Identifier: Apache-2.0
"""A container engine and an image that need no registry: the image is made of this machine's own bash and Python."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.launch.needs import lacking
from tests.launch.places import SERVER

from newskills.base.plan import Command, Job, Ready, Ref, Script, Word
from newskills.launch.clusters.config import ClusterConfig
from newskills.launch.executors import make_executor
from newskills.launch.executors.local import Containers
from newskills.launch.place import Site

PROGRAMS = (
    *("bash", "sh", "env", "cat", "ls", "id", "stat", "touch", "mkdir", "rm", "mv", "chmod", "tail", "head", "tr"),
    *("sed", "sleep", "timeout", "flock", "true", "printf", "date", "ps", "kill"),
)
FOLDERS = ("bin", "usr", "etc", "tmp", "proc", "sys", "dev", "root", "home", "run", "var", "mnt")
BESIDE_LIBC = ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libgcc_s.so.1", "libstdc++.so.6")
"""What compiled packages look for."""
WITHOUT = ("site-packages", "/test", "idlelib", "__pycache__", "ensurepip", "lib2to3", "tkinter", "/config-")
IMAGE = f"localhost/newskills-test-{os.getpid()}:1"


def unusable() -> str:
    """Why there can be no containers here; empty where there may be."""
    if shutil.which("podman") is None:
        return "no podman here: apt-get install podman runc netavark aardvark-dns catatonit"
    if shutil.which("catatonit") is None and not Path("/usr/libexec/podman/catatonit").exists():
        return "podman has no init here: apt-get install catatonit"
    return ""


def make_image(folder: Path, image: str = IMAGE, programs: Sequence[str] = (), engine: str = "podman") -> str:
    """Imports `image`, with more programs; returns what the engine says where it cannot run it."""
    archive = folder / "image.tar"
    write_archive(archive, (*PROGRAMS, *programs))
    subprocess.run([engine, "import", str(archive), image], check=True, capture_output=True)
    archive.unlink()
    return trial(image, engine)


def modest_settings(folder: Path) -> Path:
    """Settings of podman for machines where limits may not be raised and control groups are the old ones."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    path = folder / "containers.conf"
    path.write_text(
        "[containers]\n"
        f'default_ulimits = ["nofile={files}:{files}", "nproc=4096:4096"]\n'
        '[engine]\nruntime = "runc"\nevents_logger = "file"\n'
    )
    return path


def trial(image: str = IMAGE, engine: str = "podman") -> str:
    """Runs a container; returns what the engine says where that fails."""
    done = subprocess.run(
        [engine, "run", "--rm", "--network=host", image, "true"], capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode else ""


def write_archive(path: Path, programs: Sequence[str]) -> None:
    """A root file system with `programs` of this machine, and its Python."""
    python = os.path.realpath(sys.executable)
    modules = Path(sysconfig.get_path("stdlib"), "lib-dynload")
    places = {name: os.path.realpath(shutil.which(name) or "") for name in programs}
    libraries = _libraries([*places.values(), python, *map(str, modules.glob("*.so"))])
    with tarfile.open(path, "w") as archive:
        for name in FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            archive.addfile(folder)
        for name, place in places.items():
            archive.add(place, arcname=f"bin/{name}")
        archive.add(python, arcname="bin/python3")
        for libc in [file for file in libraries if Path(file).name.startswith("libc.so")]:
            beside = (Path(libc).parent / name for name in BESIDE_LIBC)
            libraries |= {str(file) for file in beside if file.exists()}
        for file in sorted(libraries):
            archive.add(os.path.realpath(file), arcname=file.lstrip("/"))
        library = sysconfig.get_path("stdlib")
        archive.add(library, arcname=library.lstrip("/"), filter=_wanted)


def _libraries(files: Sequence[str]) -> set[str]:
    """What they are linked with; a word with a colon is the name of one of `files`."""
    done = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False)
    return {word for word in done.stdout.split() if word.startswith("/") and not word.endswith(":")}


def _wanted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if any(part in member.name for part in WITHOUT) else member


STAY = "import time; print('here', flush=True); time.sleep(600)"


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """podman with IMAGE; the tests are skipped where it cannot be (CI: NEWSKILLS_TEST_CONTAINERS=1)."""
    if why := unusable():
        lacking("CONTAINERS", why)
    folder = tmp_path_factory.mktemp("podman")
    with pytest.MonkeyPatch.context() as patch:
        if make_image(folder):
            patch.setenv("CONTAINERS_CONF", str(modest_settings(folder)))
            if why := trial():
                lacking("CONTAINERS", f"podman cannot run containers here: {why}")
        yield
        shown = subprocess.run(["podman", "images", "--quiet", IMAGE], check=True, capture_output=True, text=True)
        if images := shown.stdout.split():  # another worker of the tests may have been here
            subprocess.run(["podman", "rmi", "--force", *images], check=False, capture_output=True)


def python(code: str, *words: Word) -> tuple[Word, ...]:
    return ("python3", "-S", "-E", "-c", code, *words)


def client(name: str, code: str, *words: Word, **more: object) -> Command:
    return Command(name=name, container="test", script=Script(argv=python(code, *words), **more))


def server(name: str = "server", code: str = SERVER, **more: object) -> Command:
    argv = python(code, Ref(name, "host"), Ref(name, "port"))
    script = Script(argv=argv, port=0, ready=Ready(path="/health", patience=30), **more)
    return Command(name=name, role="server", container="test", script=script)


def local(folder: Path, *, code: str = "", environ: dict[str, str] | None = None, **cluster: object) -> Containers:
    settings = {"executor": "local", "containers": {"test": IMAGE}, "engine": "podman", **cluster}
    site = Site(
        cluster=ClusterConfig(**settings), folder=str(folder), code=code, environ={**os.environ, **(environ or {})}
    )
    executor = make_executor(site)
    assert isinstance(executor, Containers)
    return executor


def finished(executor: Containers, work: Job) -> tuple[str, Path]:
    handle = executor.submit(work)
    return executor.wait([handle])[handle], Path(handle)


def log(folder: Path, name: str = "job") -> str:
    return (folder / "logs" / f"{name}.log").read_text(errors="replace")


def here(handle: str, name: str = "m") -> bool:
    """Whether a command that runs STAY has begun."""
    return Path(handle, f"logs/{name}.log").exists() and "here" in log(Path(handle), name)


def left(folder: Path) -> list[str]:
    """Containers of jobs below `folder`, in any state."""
    words = ("ps", "--all", "--filter=label=newskills.job", "--format=json")
    found = json.loads(subprocess.run(["podman", *words], capture_output=True, check=True).stdout)
    return [one["Id"] for one in found if one["Labels"]["newskills.folder"].startswith(str(folder))]
