# SPDX-License-Identifier: Apache-2.0
"""Images become files on a real Slurm cluster behind a real ssh server; only `enroot` is a stand-in."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from tests.launch.enroot import Enroot, squashfs
from tests.launch.slurm_cluster import until
from tests.launch.slurm_login import OTHER, Login, login

from newskills.base.errors import ConfigError, RemoteError
from newskills.launch.containers.squash import SquashPlace, import_images, plan_squash
from newskills.launch.machines.shell import LocalMachine
from newskills.launch.machines.ssh import RemoteMachine

__all__ = ["login"]

IMAGE = "registry.invalid/team/model-server:25.01-py3"
URI = "docker://registry.invalid#team/model-server:25.01-py3"


class Scene:
    """A job folder of `OTHER`, and a shell of theirs in which `enroot` is the stand-in."""

    def __init__(self, login: Login, folder: Path) -> None:
        self.login, self.folder = login, folder
        self.enroot = Enroot(folder / "stub")
        self.jobs = folder / "job dir's"
        self.jobs.mkdir()
        self.jobs.chmod(0o777)
        os.chown(self.jobs, pwd.getpwnam(OTHER).pw_uid, -1)
        self.shell = RemoteMachine(login.tunnel(self.enroot.path), login.environ)
        self.place = SquashPlace(folder=str(self.jobs), partition="batch", time_limit="00:05:00", silence=6)
        self.said: list[str] = []

    def run(self, *images: str, force: bool = False, shell: RemoteMachine | None = None) -> dict[str, str]:
        shell = shell or self.shell
        plans = plan_squash(images or [IMAGE], self.place, shell, force=force, ask=False)
        return import_images(plans, self.place, shell, force=force, say=self.said.append)

    def files(self) -> list[str]:
        """All in `containers/`, hidden ones too."""
        folder = self.jobs / "containers"
        return sorted(os.listdir(folder)) if folder.is_dir() else []

    def whole(self, path: str) -> bool:
        return Path(path).read_bytes() == (self.enroot.folder / "good").read_bytes()


@pytest.fixture
def scene(login: Login) -> Iterator[Scene]:
    with tempfile.TemporaryDirectory(prefix="squash-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        scene = Scene(login, Path(name))
        yield scene
        scene.shell.close()


def test_an_image_is_imported_once_on_a_node_and_then_taken_again(scene: Scene) -> None:
    path = scene.run()[IMAGE]
    assert path.startswith(f"{scene.jobs}/containers/registry_invalid_team_model_server_25_01_py3-")
    assert scene.whole(path)
    ((user, node, *argv),) = scene.enroot.calls()
    assert (user, node[0]) == (OTHER, "n")
    assert argv[:2] == ["import", "--output"]
    assert argv[2].startswith(f"{path}.")
    assert argv[2].endswith(".tmp")
    assert argv[3:] == [URI]
    side = json.loads(Path(f"{path}.json").read_text())
    assert (side["image"], side["uri"], side["bytes"]) == (IMAGE, URI, 9000)
    assert side["by"] == f"{OTHER}@{node}"
    assert scene.files() == [Path(path).name, f"{Path(path).name}.json"]
    assert scene.run() == {IMAGE: path}
    assert len(scene.enroot.calls()) == 1
    assert any("exists" in line for line in scene.said)


def test_files_need_no_import_and_what_is_no_image_is_refused(scene: Scene) -> None:
    files = ["/lustre/images/vllm.sqsh", "mine.sqsh"]
    assert scene.run(*files) == {file: file for file in files}
    assert scene.enroot.calls() == []
    assert not (scene.jobs / "containers").exists()
    with pytest.raises(ConfigError, match="not a container image reference"):
        scene.run("registry/image:tag; rm -rf /")


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("killed", "exit code 137"),
        ("failing", "returned error code: 401"),
        ("truncated", "no whole squashfs"),
        ("blank", "no whole squashfs"),
    ],
)
def test_an_import_that_dies_half_way_is_never_taken(scene: Scene, mode: str, said: str) -> None:
    scene.enroot.mode(mode)
    with pytest.raises(RemoteError, match=said) as failed:
        scene.run()
    assert f"enroot import '{URI}'" in str(failed.value)
    assert scene.files() == []
    scene.enroot.mode("well")
    assert scene.whole(scene.run()[IMAGE])


def test_what_an_older_program_left_half_done_is_not_taken(scene: Scene) -> None:
    path = Path(plan_squash([IMAGE], scene.place, scene.shell, ask=False)[0].path)
    path.parent.mkdir()
    os.chown(path.parent, pwd.getpwnam(OTHER).pw_uid, -1)
    for torn in (squashfs()[:8999], bytes(9000), b""):
        path.write_bytes(torn)
        (plan,) = plan_squash([IMAGE], scene.place, scene.shell, ask=False)
        assert (plan.action, "not a complete image" in plan.why) == ("import", True)
    assert scene.run()[IMAGE] == str(path)
    assert scene.whole(str(path))


@pytest.mark.skipif(shutil.which("mksquashfs") is None, reason="no mksquashfs here: apt install squashfs-tools")
def test_real_images_are_told_from_pieces_of_them(tmp_path: Path) -> None:
    (tmp_path / "content").mkdir()
    (tmp_path / "content/file").write_bytes(os.urandom(300_000))
    image = tmp_path / "image.sqsh"
    subprocess.run(["mksquashfs", tmp_path / "content", image, "-quiet", "-no-progress"], check=True)
    check = files("newskills.launch").joinpath("bash/squash_whole.sh").read_text() + '\nwhole "$1"'
    for size, code in ((None, 0), (200_000, 1), (90, 1)):
        piece = tmp_path / "piece.sqsh"
        piece.write_bytes(image.read_bytes()[:size])
        assert subprocess.run(["bash", "-c", check, "bash", piece], check=False).returncode == code


@pytest.mark.parametrize("folder", ["containers/", ""])
def test_images_of_other_programs_are_found_in_both_folders(scene: Scene, folder: str) -> None:
    (scene.jobs / "containers").mkdir()
    there = scene.jobs / f"{folder}registry_invalid_team_model_server_25_01_py3.sqsh"
    there.write_bytes(squashfs())
    assert scene.run() == {IMAGE: str(there)}
    assert "imported by another program" in scene.said[0]
    there.write_bytes(squashfs()[:5000])
    assert plan_squash([IMAGE], scene.place, scene.shell, ask=False)[0].action == "import"


def test_images_that_differ_in_odd_characters_only_do_not_share_a_file(scene: Scene) -> None:
    names = ["registry.invalid/a/b:1", "registry.invalid/a_b:1", "registry.invalid/a/b:1-0"]
    paths = scene.run(*names)
    assert len(set(paths.values())) == 3
    assert {argv[-1] for argv in scene.enroot.calls()} == {
        "docker://registry.invalid#a/b:1",
        "docker://registry.invalid#a_b:1",
        "docker://registry.invalid#a/b:1-0",
    }


def test_force_swaps_and_who_has_the_old_one_open_keeps_it(scene: Scene) -> None:
    path = scene.run()[IMAGE]
    old = Path(path).read_bytes()
    scene.enroot.content(b"y")
    with open(path, "rb") as used:
        scene.enroot.mode("killed")
        with pytest.raises(RemoteError):
            scene.run(force=True)
        assert Path(path).read_bytes() == old
        scene.enroot.mode("well")
        assert scene.run(force=True) == {IMAGE: path}
        assert scene.whole(path)
        assert used.read() == old
    assert Path(f"{path}.previous").read_bytes() == old
    assert scene.run() == {IMAGE: path}


def test_two_importers_at_once_import_once(scene: Scene) -> None:
    scene.enroot.mode("slow")
    other = RemoteMachine(scene.login.tunnel(scene.enroot.path), scene.login.environ)
    with _Background(lambda: scene.run()) as first:
        until(lambda: scene.enroot.calls(), "the first import")
        with _Background(lambda: scene.run(shell=other)) as second:
            until(lambda: any("waiting for the import by" in line for line in scene.said), lambda: str(scene.said))
            time.sleep(8)  # longer than `silence`: a lock that is touched is not taken over
            assert not any("taking over" in line for line in scene.said)
            scene.enroot.go()
    other.close()
    assert first.result == second.result
    assert scene.whole(first.result[IMAGE])
    assert len(scene.enroot.calls()) == 1
    assert not [name for name in scene.files() if "lock" in name or "tmp" in name or "probe" in name]


def test_two_users_share_an_image_and_neither_waits_for_the_dead(scene: Scene) -> None:
    scene.enroot.mode("slow")
    root = Login(scene.login.server, scene.folder, "root")
    other = RemoteMachine(root.tunnel(scene.enroot.path), root.environ)
    with _Background(lambda: scene.run()) as first:
        until(lambda: scene.enroot.calls(), "the first import")
        (scene.jobs / "containers").chmod(0o777)
        with _Background(lambda: scene.run(shell=other)) as second:
            until(lambda: any(f"import by {OTHER}@" in line for line in scene.said), lambda: str(scene.said))
            scene.enroot.go()
    assert first.result == second.result
    name = Path(first.result[IMAGE]).name
    (scene.jobs / "containers" / name).unlink()
    lock = scene.jobs / "containers" / f".{name}.lock"
    lock.mkdir()
    (lock / "owner").write_text("somebody@gone since yesterday\n")
    os.utime(lock / "owner", (1e9, 1e9))
    os.chown(lock, pwd.getpwnam(OTHER).pw_uid, -1)
    scene.said.clear()
    assert scene.run(shell=other) == first.result
    assert any("somebody@gone" in line and "taking over" in line for line in scene.said)
    assert {user for user, *_ in scene.enroot.calls()} == {OTHER, "root"}
    other.close()


def test_who_goes_away_takes_the_import_along(scene: Scene) -> None:
    """A killed `ns` leaves neither a job, nor a lock, nor a piece of an image."""
    scene.enroot.mode("slow")
    code = (
        "import json, sys\n"
        "from newskills.launch.clusters.config import SshTunnel\n"
        "from newskills.launch.containers.squash import SquashPlace, import_images, plan_squash\n"
        "from newskills.launch.machines.ssh import RemoteMachine\n"
        "import msgspec\n"
        "tunnel, place, environ = json.loads(sys.argv[1])\n"
        "shell = RemoteMachine(msgspec.convert(tunnel, SshTunnel), environ)\n"
        "place = msgspec.convert(place, SquashPlace)\n"
        f"import_images(plan_squash([{IMAGE!r}], place, shell, ask=False), place, shell)\n"
    )
    import msgspec

    told = msgspec.json.encode([scene.login.tunnel(scene.enroot.path), scene.place, scene.login.environ]).decode()
    with subprocess.Popen([sys.executable, "-c", code, told]) as process:
        until(lambda: scene.enroot.calls(), "the import")
        process.kill()
    until(lambda: scene.files() == [], lambda: str(scene.files()))
    until(lambda: "newskills-squash" not in _queue(), _queue)


def test_an_import_here_needs_no_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: Login) -> None:
    enroot = Enroot(tmp_path / "stub")
    monkeypatch.setenv("PATH", f"{enroot.folder}:{os.environ['PATH']}")
    place = SquashPlace(folder=str(tmp_path / "jobs"), time_limit="00:05:00")
    path = import_images(plan_squash([IMAGE], place, LocalMachine(), ask=False), place, LocalMachine())[IMAGE]
    assert Path(path).read_bytes() == squashfs()


def _queue() -> str:
    return subprocess.run(["squeue", "-h", "-o", "%j %T"], capture_output=True, text=True, check=True).stdout


class _Background:
    """`work` in a thread; its result, or its error when the block ends."""

    def __init__(self, work: object) -> None:
        self._work, self._error = work, None
        self.result: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:
            self._error = error  # type: ignore[assignment]

    def __enter__(self) -> _Background:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error
