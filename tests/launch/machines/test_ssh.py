# SPDX-License-Identifier: Apache-2.0
"""Commands and files over a real ssh server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.launch.slurm_cluster import login
from tests.launch.sshd import HOST, Sshd, remote, sshd

from newskills.base.errors import ConfigError, DataError, RemoteError, StorageError
from newskills.launch.clusters.config import ClusterConfig, SshTunnel
from newskills.launch.machines.shell import LocalMachine, Shell, ShellCall
from newskills.launch.machines.ssh import RemoteMachine, shell_of

__all__ = ["remote", "sshd"]

NASTY = " a  b'c\"d$HOME`id`\\n\n\t;&|*?~!#(){}[]<>é\u2028 "
ECHO = "import sys, os; print(ascii(sys.argv[1:])); print(ascii(sys.stdin.read())); print(os.environ.get('S'))"
words = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=30)


@pytest.fixture(params=["here", "remote"])
def shell(request: pytest.FixtureRequest) -> Shell:
    return LocalMachine() if request.param == "here" else request.getfixturevalue("remote")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(argv=st.lists(words, max_size=4), stdin=words, secret=words)
@example(argv=[NASTY, "", "-n", "--"], stdin=NASTY, secret=NASTY)
def test_every_character_arrives(remote: RemoteMachine, argv: list[str], stdin: str, secret: str) -> None:
    stdin = stdin.replace("\r", "")  # Python's own stdin would change it
    done = remote.run([sys.executable, "-X", "utf8", "-c", ECHO, *argv], stdin=stdin, secrets={"S": secret})
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{argv!a}\n{stdin!a}\n{secret}\n"


def test_codes_and_outputs_are_told_apart(shell: Shell) -> None:
    calls = [
        ShellCall(argv=("sh", "-c", "printf out; printf err >&2; exit 3")),
        ShellCall(argv=("true",)),
        ShellCall(argv=("sh", "-c", "kill -9 $$")),
        ShellCall(argv=("no-such-program-at-all",)),
        ShellCall(argv=("cat",), stdin="text\n\n"),
        ShellCall(argv=("pwd",), folder="/"),
    ]
    done = shell.run_all(calls)
    assert [one.code for one in done] == [3, 0, 137, 127, 0, 0]
    assert (done[0].out, done[0].err) == ("out", "err")
    assert "no-such-program-at-all" in done[3].err
    assert done[4].out == "text\n\n"
    assert done[5].out == "/\n"
    assert shell.run_all([]) == []


def test_megabytes_in_both_directions(remote: RemoteMachine) -> None:
    text = "line of text\n" * 80_000
    done = remote.run(["sh", "-c", "cat; head -c 1000000 /dev/zero | tr '\\0' e >&2"], stdin=text)
    assert done.out == text
    assert done.err == "e" * 1_000_000


def test_secrets_are_in_no_argv(remote: RemoteMachine) -> None:
    """Of any process that there is, here and there, while the command runs."""
    look = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; printf '|%s' \"$TOKEN\""
    done = remote.run(["sh", "-c", look], secrets={"TOKEN": "hush-" + "7391"}, stdin="also-" + "7391")
    everyone, _, token = done.out.rpartition("|")
    assert token == "hush-7391"
    assert "cat /proc" in everyone
    assert "hush-7391" not in everyone
    assert "also-7391" not in everyone
    assert "hush" not in repr(ShellCall(argv=("a",), secrets={"TOKEN": "hush"}))


def test_secrets_do_not_stay(remote: RemoteMachine) -> None:
    remote.run(["true"], secrets={"TOKEN": "x"})
    assert remote.run(["printenv", "TOKEN"]).code == 1


def test_what_cannot_be_said(remote: RemoteMachine) -> None:
    with pytest.raises(ConfigError, match="NUL"):
        remote.run(["echo", "a\0b"])
    with pytest.raises(ConfigError, match="not the name of a variable"):
        remote.run(["true"], secrets={"A B": "x"})
    assert remote.run(["echo", "still there"]).out == "still there\n"


def test_files_there(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a b'c\n").write_text("text\n")
    paths = [str(tmp_path / "a b'c\n"), str(tmp_path / "none"), str(tmp_path)]
    assert shell.exists(paths) == [True, False, True]
    assert shell.read(paths) == ["text\n", None, None]
    assert shell.exists([]) == []
    assert shell.read([]) == []


def test_copies_trees(shell: Shell, tmp_path: Path) -> None:
    source = tmp_path / "source $x"
    (source / "deep er").mkdir(parents=True)
    (source / "deep er" / "run.sh").write_text("#!/bin/sh\n")
    (source / "deep er" / "run.sh").chmod(0o755)
    (source / "link").symlink_to("deep er/run.sh")
    target = tmp_path / "there" / 'it\'s "new"'
    first = shell.put(source, str(target))
    assert (target / "deep er" / "run.sh").read_text() == "#!/bin/sh\n"
    assert os.access(target / "deep er" / "run.sh", os.X_OK)
    assert os.readlink(target / "link") == "deep er/run.sh"
    assert first.bytes == 10
    back = tmp_path / "back"
    shell.get(str(target), back)
    assert (back / "link").read_text() == "#!/bin/sh\n"


def test_copies_files(shell: Shell, tmp_path: Path) -> None:
    source = tmp_path / "one file"
    source.write_bytes(b"\0\xff")
    shell.put(source, str(tmp_path / "new folder" / "other name"))
    assert (tmp_path / "new folder" / "other name").read_bytes() == b"\0\xff"
    shell.get(str(source), tmp_path / "got" / "it")
    assert (tmp_path / "got" / "it").read_bytes() == b"\0\xff"
    with pytest.raises(DataError, match="no-such"):
        shell.put(tmp_path / "no-such", "/tmp/x")
    with pytest.raises(DataError, match="no-such"):
        shell.get(str(tmp_path / "no-such"), tmp_path / "x")
    with pytest.raises(StorageError):
        shell.put(source, str(source / "below a file" / "x"))


def test_unchanged_files_are_not_sent_again(remote: RemoteMachine, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "big").write_bytes(os.urandom(100_000))
    assert remote.put(tmp_path / "source", str(tmp_path / "t")).bytes == 100_000
    assert remote.put(tmp_path / "source", str(tmp_path / "t")).bytes == 0


def test_conversation_ends_with_its_listener(shell: Shell, tmp_path: Path) -> None:
    """What runs there learns from its stdin that nobody listens any more."""
    mark = tmp_path / "ended"
    script = f"echo hello; echo trouble >&2; cat >/dev/null; touch {mark}"
    with shell.converse(script) as process:
        assert process.stdout is not None
        assert sorted([process.stdout.readline(), process.stdout.readline()]) == [b"hello\n", b"trouble\n"]
        assert not mark.exists()
        process.stdin.close()
        assert process.wait(120) == 0
    assert mark.exists()


def test_one_connection_serves_all(sshd: Sshd, remote: RemoteMachine) -> None:
    assert remote.run(["true"]).code == 0
    before = (sshd.folder / "log").read_text().count("Accepted publickey")
    other = sshd.remote()
    assert other.run(["true"]).code == 0
    other.close()
    assert (sshd.folder / "log").read_text().count("Accepted publickey") == before


def test_many_at_once_open_one_connection(sshd: Sshd) -> None:
    environ = sshd.environ()
    tunnel = SshTunnel(host=HOST, port=sshd.port)  # options of its own: a connection of its own
    before = (sshd.folder / "log").read_text().count("Accepted publickey")
    remotes = [RemoteMachine(tunnel, environ) for _ in range(5)]
    codes: list[int] = []
    threads = [threading.Thread(target=lambda r=r: codes.append(r.run(["true"]).code)) for r in remotes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0] * 5
    assert (sshd.folder / "log").read_text().count("Accepted publickey") == before + 1
    for one in remotes:
        one.hang_up()


def test_a_socket_that_a_killed_connection_left_is_replaced(sshd: Sshd) -> None:
    """ssh would leave it there, share nothing, and stay in the background for good, once for each call."""
    there = sshd.remote(port=sshd.port, user=sshd.user)
    there.run(["true"])
    assert there._socket is not None
    there.hang_up()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(there._socket))
    before = (sshd.folder / "log").read_text().count("Accepted publickey")
    for _ in range(2):
        assert sshd.remote(port=sshd.port, user=sshd.user).run(["echo", "again"]).out == "again\n"
    assert (sshd.folder / "log").read_text().count("Accepted publickey") == before + 1
    there.hang_up()


def test_socket_is_private(sshd: Sshd, remote: RemoteMachine) -> None:
    remote.run(["true"])
    socket = remote._socket
    assert socket is not None
    assert socket.is_socket()
    assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert len(str(socket)) < 80


def test_comes_back_after_the_connection_broke(sshd: Sshd) -> None:
    there = sshd.remote(port=sshd.port, user=sshd.user)
    there.run(["true"])
    there.hang_up()
    assert there.run(["echo", "again"]).out == "again\n"
    with pytest.raises(RemoteError):
        there.run(["sh", "-c", "kill -9 $PPID"])
    assert there.run(["echo", "again"]).out == "again\n"
    there.hang_up()


def test_their_own_shared_connection_is_used(sshd: Sshd, tmp_path: Path) -> None:
    config = tmp_path / "config"
    socket = tmp_path / "s"
    config.write_text(sshd.entry("mine", ControlMaster="auto", ControlPath=str(socket), ControlPersist="60"))
    there = RemoteMachine(SshTunnel(host="mine"), sshd.environ(config))
    assert there.run(["echo", "x"]).out == "x\n"
    assert socket.is_socket()
    assert there._socket is None
    there.close()
    subprocess.run(["ssh", "-F", config, "-O", "exit", "mine"], capture_output=True, check=True)


def test_jump_hosts_and_fixed_commands(sshd: Sshd, tmp_path: Path) -> None:
    """Of the user's configuration; a RemoteCommand is for sessions by hand."""
    config = tmp_path / "config"
    config.write_text(sshd.entry("gate") + sshd.entry("inner", ProxyJump="gate", RemoteCommand="echo no"))
    before = (sshd.folder / "log").read_text().count("Accepted publickey")
    there = RemoteMachine(SshTunnel(host="inner"), sshd.environ(config))
    assert there.run(["echo", "x"]).out == "x\n"
    assert (sshd.folder / "log").read_text().count("Accepted publickey") == before + 2
    there.hang_up()


def test_pre_command(sshd: Sshd) -> None:
    there = sshd.remote(pre_command="module() { WORDS=$*; }; module load slurm; export WORDS; echo noise")
    assert there.run(["printenv", "WORDS"]).out == "load slurm\n"
    there.close()
    with pytest.raises(RemoteError, match=r"pre_command .* failed on far-away .*: it is broken"):
        sshd.remote(pre_command="echo it is broken >&2; false").run(["true"])
    with pytest.raises(RemoteError, match="did not run"):
        sshd.remote(pre_command="exit 3").run(["true"])


def test_another_shell(sshd: Sshd) -> None:
    there = sshd.remote(shell="env GREETING=hi bash --norc")
    assert there.run(["printenv", "GREETING"]).out == "hi\n"
    there.close()
    with pytest.raises(RemoteError, match=r"needs bash there"):
        sshd.remote(shell="/no/such/shell").run(["true"])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"IdentityFile": "{folder}/stranger"}, r"refused the login: Permission denied \(publickey\)"),
        ({"UserKnownHostsFile": "/dev/null"}, r"host key of broken is not known yet\. Run `ssh broken` once"),
        ({"UserKnownHostsFile": "{folder}/changed"}, r"host key of broken has changed"),
        ({"HostName": "no-such-host.invalid"}, r"The host broken"),
        ({"Port": "1"}, r"broken refuses connections"),
        ({"NoSuchOption": "1"}, r"ssh config is not valid: Bad configuration option: nosuchoption"),
    ],
)
def test_reasons_and_next_steps(sshd: Sshd, tmp_path: Path, settings: dict[str, str], sentence: str) -> None:
    known = (sshd.folder / "known_hosts").read_text().split()
    stranger = (sshd.folder / "stranger.pub").read_text().split()[1]
    (sshd.folder / "changed").write_text(f"{known[0]} {known[1]} {stranger}\n")
    given = {key: value.format(folder=sshd.folder) for key, value in settings.items()}
    config = tmp_path / "config"
    config.write_text(sshd.entry("broken", **given))
    with pytest.raises(RemoteError, match=sentence) as caught:
        RemoteMachine(SshTunnel(host="broken"), sshd.environ(config)).run(["true"])
    assert caught.value.hint
    assert "\n" not in str(caught.value)


def test_a_host_that_does_not_answer(sshd: Sshd, tmp_path: Path) -> None:
    """A port that takes connections and says nothing."""
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        config = tmp_path / "config"
        config.write_text(sshd.entry("silent", Port=str(silent.getsockname()[1]), ConnectTimeout="1"))
        with pytest.raises(RemoteError, match="does not answer: the connection timed out"):
            RemoteMachine(SshTunnel(host="silent"), sshd.environ(config)).run(["true"])


def test_missing_programs(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RemoteError, match="`ssh` is not installed on this machine"):
        sshd.remote().run(["true"])


def test_small_files_go_in_one_trip(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "new 'folder' of $HOME"
    texts = {"a b/job.sh": "echo \udce9\n", "a b/deep/er/x": "", "top": NASTY}
    shell.write(texts, str(folder))
    with (folder / "top").open() as old:
        shell.write({**texts, "top": "new"}, str(folder))
        assert old.read() == NASTY
    found = {str(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()}
    content = {name: file.read_bytes().decode("utf-8", "surrogateescape") for name, file in found.items()}
    assert content == {**texts, "top": "new"}
    assert {(folder / name).stat().st_mode & 0o777 for name in ("a b", "a b/deep", "a b/deep/er")} == {0o700}
    assert (folder / "top").stat().st_mode & 0o700 == 0o600
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file"):
        shell.write(texts, str(tmp_path / "file"))


@pytest.mark.parametrize("host", ["", "-oProxyCommand=touch x", "a b"])
def test_hosts_that_are_none(host: str) -> None:
    with pytest.raises(ConfigError, match="not a host name"):
        RemoteMachine(SshTunnel(host=host), {})


def test_shell_of(sshd: Sshd) -> None:
    assert isinstance(shell_of(ClusterConfig(), {}), LocalMachine)
    cluster = ClusterConfig(executor="slurm", ssh_tunnel=SshTunnel(host=HOST, user="me"))
    there = shell_of(cluster, sshd.environ())
    assert there.name == f"me@{HOST}"


def test_the_dev_cluster() -> None:
    """The way that a user of a Slurm cluster goes."""
    config = login()
    host = config.read_text().split()[1]
    there = RemoteMachine(SshTunnel(host=host), {"NEWSKILLS_SSH_CONFIG": str(config)})
    done = there.run_all([ShellCall(argv=("squeue", "-h")), ShellCall(argv=("sinfo", "-h", "-o", "%P"))])
    assert [one.code for one in done] == [0, 0]
    assert "batch" in done[1].out
    there.close()
