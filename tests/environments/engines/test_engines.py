# SPDX-License-Identifier: Apache-2.0
"""Command lines of engines, also of those that are not on this machine."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

from newskills.base.environment import EnvironmentSpec, GroupNetwork, ImageBuild, ServiceGroup, TaskService
from newskills.base.errors import ConfigError, EnvironmentFailedError, StorageError
from newskills.environments import owners
from newskills.environments.config import EnvironmentConfig
from newskills.environments.container import Container
from newskills.environments.containers import ContainerPool, remove_left_over
from newskills.environments.disk import Storage
from newskills.environments.engines import ENGINES, find_engine
from newskills.environments.engines.engine import START_AND_STAY, EngineProgram
from newskills.environments.images import build_lock, images_in_use, note_image
from newskills.environments.programs import BoundedOutput

SPEC = EnvironmentSpec(image="docker://org/image:1", workdir="/testbed", variables={"A": "b c"})


def engine(name: str, **settings: object) -> EngineProgram:
    return ENGINES.get(name)(name, EnvironmentConfig(memory_mb=1024, processes=100, **settings))


def test_docker() -> None:
    docker = engine("docker", cpus=2.0)
    assert docker.start("n", SPEC) == [
        [
            *(
                "docker",
                "run",
                "--interactive",
                "--name=n",
                "--label=newskills.environment=1",
                "--network=none",
            ),
            *("--memory=1024m", "--memory-swap=1024m", "--pids-limit=100", "--cpus=2"),
            *(
                "--cap-drop=AUDIT_WRITE",
                "--cap-drop=MKNOD",
                "--cap-drop=NET_RAW",
                "--security-opt=no-new-privileges",
            ),
            *("--log-driver=none", "--env=A=b c", "--entrypoint=sh", "org/image:1", "-c", START_AND_STAY, "sh"),
        ]
    ]
    assert docker.enter("n", SPEC) == [
        *("docker", "exec", "--interactive", "--workdir=/testbed", "--env=A=b c", "n"),
    ]
    assert "--user=5" in docker.enter("n", EnvironmentSpec(image="a", user="5"))
    assert docker.connect("n", online=False) == ["docker", "network", "disconnect", "bridge", "n"]
    small = EnvironmentSpec(image="a", cpus=0.5)
    assert ("--cpus=0.5" in engine("docker").start("n", small)[0]) > ("--cpus=0.5" in docker.start("n", small)[0])
    mounted = docker.start("n", EnvironmentSpec(image="a", mounts={"/opt/agent": "/opt/agent"}))[0]
    assert "--volume=/opt/agent:/opt/agent:ro" in mounted
    assert docker.end_processes("n") == [["docker", "stop", "--time=0", "n"]]
    assert docker.resume("n") == ["docker", "start", "--attach", "--interactive", "n"]
    assert docker.remove("n") == [["docker", "rm", "--force", "--volumes", "n"]]
    assert "--network=bridge" in engine("docker", network=True).start("n", SPEC)[0]


def test_a_group_has_a_network_of_its_own() -> None:
    main = TaskService(name="main", image="a:1", volumes={"v": "/v"})
    database = TaskService(
        name="db", image="docker://db:2", entrypoint=["run", "-x"], command=["y z"], user="5", shared_memory="1g"
    )
    addresses = {"db": "10.0.0.2", "store": "10.0.0.2", "main": "10.0.0.3"}
    spec = EnvironmentSpec(
        image="a:1",
        group=ServiceGroup(services=[database, main]),
        network=GroupNetwork(name="n", addresses=addresses),
    )
    for name, closed, log in (("docker", (), "json-file"), ("podman", ("--disable-dns",), "k8s-file")):
        program = engine(name, network=True).groups
        assert program is not None
        assert program.make_network("n") == [
            *(name, "network", "create", "--internal", *closed, "--label=newskills.environment=1", "n")
        ]
        assert {"--subnet=10.9.0.0/24", "--gateway=10.9.0.1"} <= {*program.make_network("n", "10.9.0.0/24")}
        start = engine(name, network=True).start("n", spec)[0]
        assert [word for word in start if word.startswith(("--network", "--ip", "--add-host", "--volume"))] == [
            *("--network=n", "--ip=10.0.0.3", "--add-host=db:10.0.0.2", "--add-host=store:10.0.0.2"),
            "--volume=n.v:/v",
        ]
        made = program.make_service("n.db", database, spec)
        assert made[:3] == [name, "create", "--name=n.db"]
        assert made[-6:] == ["--user=5", "--shm-size=1g", "--entrypoint=run", "db:2", "-x", "y z"]
        assert {"--network=n", "--ip=10.0.0.2", "--add-host=main:10.0.0.3", f"--log-driver={log}"} <= {*made}
    assert engine("apptainer").groups is None


def test_podman_runs_a_folder_without_changing_it(tmp_path: Path) -> None:
    podman = engine("podman")
    start = podman.start("n", EnvironmentSpec(image=str(tmp_path)))[0]
    assert start[-5:] == ["--rootfs", f"{tmp_path}:O", "-c", START_AND_STAY, "sh"]
    assert podman.remove("n") == [["podman", "rm", "--force", "--time=0", "--volumes", "n"]]
    with pytest.raises(ConfigError, match=r"apptainer for \.sif files"):
        podman.start("n", EnvironmentSpec(image="/images/a.sif"))


def test_apptainer() -> None:
    apptainer = engine("apptainer")
    start = ["apptainer", "instance", "start", "--containall", "--cleanenv", "--no-home", "--writable-tmpfs"]
    limits = ["--memory=1024M", "--pids-limit=100"]
    closed = ["--net", "--network=none"]
    sif = EnvironmentSpec(image="/images/a.sif")
    assert apptainer.start("n", sif) == [[*start, *closed, *limits, "/images/a.sif", "n"]]
    assert apptainer.start("n", SPEC)[0][-2:] == ["docker://org/image:1", "n"]
    assert apptainer.start("n", EnvironmentSpec(image="org/image:1"))[0][-2:] == ["docker://org/image:1", "n"]
    assert engine("singularity", network=True).start("n", sif) == [
        ["singularity", *start[1:], *limits, "/images/a.sif", "n"]
    ]
    assert apptainer.enter("n", SPEC) == [
        *("apptainer", "exec", "--cleanenv", "--pwd=/testbed", "--env=A=b c", "instance://n"),
    ]
    mounted = apptainer.start("n", EnvironmentSpec(image="/a.sif", mounts={"/opt/agent": "/agent"}))[0]
    assert mounted[-3:] == ["--bind=/opt/agent:/agent:ro", "/a.sif", "n"]
    assert apptainer.end_processes("n") == [["apptainer", "exec", "instance://n", "sh", "-c", "kill -9 -1"]]
    assert apptainer.remove("n") == [["apptainer", "instance", "stop", "--force", "n"]]


def test_enroot() -> None:
    enroot = engine("enroot", network=True)
    create, stay = enroot.start("n", EnvironmentSpec(image="/a.sqsh", mounts={"/opt/agent": "/agent"}))
    assert create == ["enroot", "create", "--name", "n", "/a.sqsh"]
    mount = ["--mount", "/opt/agent:/agent:none:x-create=dir,bind,ro"]
    assert stay[3:-2] == ["sh", "n", "enroot", "start", "--root", "--rw", "--pid", *mount, "n", "sh", "-c"]
    assert enroot.enter("n", SPEC)[3:] == [
        *("sh", "n", "enroot", "env", "A=b c", "sh", "-c", 'cd "$0" && exec "$@"', "/testbed"),
    ]
    assert enroot.remove("n")[0][3:] == ["sh", "n", "enroot"]
    with pytest.raises(ConfigError, match=r"enroot import --output NAME\.sqsh docker://org/image:1"):
        enroot.start("n", SPEC)
    assert "--net" in engine("enroot").start("n", EnvironmentSpec(image="/a.sqsh"))[1]


def test_without_an_engine_it_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="podman, docker, apptainer, singularity or enroot is not installed"):
        find_engine(EnvironmentConfig(), {"PATH": str(tmp_path)})
    with pytest.raises(ConfigError, match="but apptainer is not installed"):
        find_engine(EnvironmentConfig(engine="apptainer"), {"PATH": str(tmp_path)})


def test_what_the_engine_says_is_shown_without_its_advice(tmp_path: Path) -> None:
    program = tmp_path / "docker"
    message = "docker: Cannot connect to the Docker daemon at unix:///a.sock. Is the docker daemon running?"
    program.write_text(
        f"#!/bin/sh\nprintf '{message}\\n\\nRun '\\''docker run --help'\\'' for more\\n' >&2; exit 125\n"
    )
    program.chmod(0o755)
    container = Container(engine("docker"), SPEC, {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, Storage(0), print)
    with pytest.raises(EnvironmentFailedError, match=r"daemon running\? Start it, or use another engine"):
        asyncio.run(container.start(60.0))


def test_only_names_of_processes_that_are_gone_are_left_over() -> None:
    mine = owners.new_name()
    prefix, host, pid, start, number = mine.split(".")
    assert (prefix, pid) == (owners.PREFIX, str(os.getpid()))
    assert not owners.is_left_over(mine)
    assert owners.is_left_over(f"{prefix}.{host}.{pid}.{int(start) + 1}.{number}")
    assert not owners.is_left_over(f"{prefix}.another-{host}.{pid}.{int(start) + 1}.{number}")
    assert not owners.is_left_over("somebody-elses-container")


def test_a_container_that_is_just_ending_is_removed_too(tmp_path: Path) -> None:
    prefix, host, pid, start, number = owners.new_name().split(".")
    name = f"{prefix}.{host}.{pid}.{int(start) + 1}.{number}"
    refuses_once = (
        f'echo "$1" >> {tmp_path}/calls; [ "$1" = rm ] && [ $(grep -c rm {tmp_path}/calls) = 1 ] && exit 2'
    )
    program = tmp_path / "podman"
    program.write_text(f"#!/bin/sh\n{refuses_once}\necho {name}\n")
    program.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert asyncio.run(remove_left_over(engine("podman"), environ)) == [name] * 3
    assert (tmp_path / "calls").read_text().split() == ["ps", "rm", "rm", "network", "volume", "network", "volume"]


def test_notes_of_images_are_not_written_where_another_user_has_made_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hostile user of the machine could lock the builds of others, or have their images removed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    note_image("mine")
    (folder,) = tmp_path.iterdir()
    assert (folder.stat().st_mode & 0o777, images_in_use()) == (0o700, {"mine"})
    folder.rename(tmp_path / "theirs")
    folder.symlink_to(tmp_path / "theirs")
    for use in (images_in_use, build_lock):
        with pytest.raises(StorageError, match="belongs to another user"):
            use()


@pytest.mark.parametrize("pieces", [[b"0123456789"], [b"0", b"12", b"3456789"], [b"0123", b"4567", b"89"]])
def test_the_middle_of_long_output_is_left_out(pieces: list[bytes]) -> None:
    kept = BoundedOutput(6)
    for piece in pieces:
        kept.add(piece)
    assert (kept.bytes(), kept.omitted) == (b"012789", 4)


def test_a_formatter_that_names_one_image_for_all_tasks_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "podman"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    config = EnvironmentConfig(engine="podman", container_formatter="/images/all.sif")
    with pytest.raises(ConfigError, match="names one image for all tasks") as refused:
        asyncio.run(ContainerPool(config, {"PATH": f"{tmp_path}:{os.environ['PATH']}"}).start(SPEC))
    assert "{instance_id}" in refused.value.hint


def test_dockerfiles_are_built_by_those_who_can() -> None:
    assert engine("podman").build("t:1", ImageBuild(folder="/c")) == [
        *("podman", "build", "--quiet", "--network=none", "--tag=t:1", "/c"),
    ]
    build = ImageBuild(folder="/c", dockerfile="a.docker", target="run", arguments={"B": "c d"})
    assert engine("docker", network=True).build("t:1", build) == [
        *(
            "docker",
            "build",
            "--quiet",
            "--file=/c/a.docker",
            "--target=run",
            "--build-arg=B=c d",
            "--tag=t:1",
            "/c",
        ),
    ]
    assert engine("podman").has_image("docker://a:1")[-1] == "a:1"
    for name in ("apptainer", "enroot"):
        with pytest.raises(ConfigError, match=f"built of a Dockerfile, which {name} cannot do"):
            engine(name).has_image("t:1")
    offline = EnvironmentSpec(image="a:1", offline=True, memory_mb=9000)
    start = engine("docker", network=True).start("n", offline)[0]
    assert "--network=none" in start
    assert "--memory=9000m" in start
