# SPDX-License-Identifier: Apache-2.0
"""A machine behind ssh: the user's own `ssh` and `rsync`, all over one connection (ControlMaster).

So ~/.ssh/config, keys, agents, jump hosts and second factors work as they do by hand. What is run there goes through
stdin of one remote bash, several commands at a time; nothing but `bash` stands in the remote process list.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets as random
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from newskills.base.errors import ConfigError, DataError, RemoteError, StorageError
from newskills.base.store import waiting_lock
from newskills.launch.cluster import ClusterConfig, SshTunnel
from newskills.launch.names import is_variable
from newskills.launch.shell import Call, Copied, Here, Ran, Shell

__all__ = ["Call", "Copied", "Here", "Ran", "Remote", "Shell", "shell_of"]

PERSIST = 600
"""Seconds that the connection stays open after the last command, for the next `ns`."""
CONNECT_TIMEOUT = 20
"""Seconds, unless the user's ssh config has another opinion."""

_CONNECTION_FAILED = 255
_STAT = re.compile(
    r"^(?P<what>Number of regular files transferred|Literal data): (?P<number>[\d,.]+)", re.MULTILINE
)


def shell_of(cluster: ClusterConfig, environ: Mapping[str, str]) -> Shell:
    """The machine that submits to `cluster`. Connects when it is first used."""
    return Remote(cluster.ssh_tunnel, environ) if cluster.ssh_tunnel else Here()


class Remote:
    """The machine that `tunnel` leads to. NEWSKILLS_SSH_CONFIG in `environ`: another file than ~/.ssh/config.

    Raises ConfigError for a host that is no host. All methods raise RemoteError where it cannot be reached.
    """

    def __init__(self, tunnel: SshTunnel, environ: Mapping[str, str]) -> None:
        if not tunnel.host or tunnel.host.startswith("-") or any(ch.isspace() for ch in tunnel.host):
            raise ConfigError(f"ssh_tunnel: '{tunnel.host}' is no host.")
        self.name = f"{tunnel.user}@{tunnel.host}" if tunnel.user else tunnel.host
        self._tunnel = tunnel
        self._options = _options(tunnel, environ)
        self._environ = environ
        self._connected = False

    def run(
        self, argv: Sequence[str], *, stdin: str = "", secrets: Mapping[str, str] | None = None, folder: str = ""
    ) -> Ran:
        call = Call(argv=tuple(argv), stdin=stdin, secrets=secrets or {}, folder=folder)
        return self.run_all([call])[0]

    def run_all(self, calls: Sequence[Call]) -> list[Ran]:
        if not calls:
            return []
        return self._batch([_line(call) for call in calls])

    def exists(self, paths: Sequence[str]) -> list[bool]:
        if not paths:
            return []
        tests = "".join(f"there {_quote(path)}\n" for path in paths)
        found = self._batch([f"there() {{ if [[ -e $1 ]]; then printf 1; else printf 0; fi; }}\n{tests}"])[0].out
        return [mark == "1" for mark in found]

    def read(self, paths: Sequence[str]) -> list[str | None]:
        ran = self._batch([f"cat -- {_quote(path)} 2>/dev/null" for path in paths]) if paths else []
        return [done.out if done.code == 0 else None for done in ran]

    def put(self, source: Path, target: str) -> Copied:
        if not source.exists():
            raise DataError(f"There is no {source} to copy.")
        parent = target if source.is_dir() else os.path.dirname(target)
        made = self.run(["mkdir", "-p", "--", parent])
        if made.code != 0:
            raise StorageError(f"Cannot make the folder {parent} on {self.name}: {_last_line(made.err)}")
        ending = "/" if source.is_dir() else ""
        return self._rsync(f"{source}{ending}", f"{self._place}:{target}{ending}")

    def get(self, source: str, target: Path) -> Copied:
        kind = self.run(["bash", "-c", "if [[ -d $1 ]]; then echo folder; else [[ -e $1 ]]; fi", "bash", source])
        if kind.code != 0:
            raise DataError(f"There is no {source} on {self.name}.")
        ending = "/" if kind.out else ""
        (target if ending else target.parent).mkdir(parents=True, exist_ok=True)
        return self._rsync(f"{self._place}:{source}{ending}", f"{target}{ending}")

    def converse(self, script: str) -> subprocess.Popen[bytes]:
        self._connect()
        # A NUL ends the script, and what follows is its own stdin.
        process = subprocess.Popen(
            [*self._argv(), "--", self._tunnel.host, self._bash('IFS= read -r -d "" script; eval "$script"')],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(_bytes(f"{self._prepared()}{script}\n") + b"\0")
        process.stdin.flush()
        return process

    def close(self) -> None:
        """Ends the connection, also for other processes that share it. Without it, it ends when idle."""
        if self._socket is not None:
            subprocess.run(
                [*self._argv(), "-O", "exit", "--", self._tunnel.host], capture_output=True, check=False, cwd="/"
            )
        self._connected = False

    def _batch(self, lines: Sequence[str]) -> list[Ran]:
        """Runs each of `lines` (bash) in one trip; line by line what they did."""
        self._connect()
        nonce = random.token_hex(16)
        mark = f'mark() {{ printf "\\n{nonce} %s\\n" "$1"; printf "\\n{nonce} %s\\n" "$1" >&2; }}\n'
        before = self._prepared()
        script = mark + before + "mark $?\n" + "".join(f"{line}\nmark $?\n" for line in lines)
        done = subprocess.run(
            [*self._argv(), "--", self._tunnel.host, self._bash('eval "$(cat)"')],
            input=_bytes(script),
            capture_output=True,
            check=False,
        )
        out, err = (_frames(text, nonce) for text in (done.stdout, done.stderr))
        if len(out) != len(lines) + 1 or len(err) != len(out):
            raise self._broken(done)
        if before and out[0].code != 0:
            raise RemoteError(
                f"The pre_command of ssh_tunnel failed on {self.name} (exit code {out[0].code}): "
                f"{_last_line(_frames_head(done.stderr, nonce))}",
                hint=f"Try it there: ssh {self.name}",
            )
        return [Ran(code=one.code, out=one.out, err=two.out) for one, two in zip(out[1:], err[1:], strict=True)]

    def _prepared(self) -> str:
        """The user's pre_command; what it prints is not for us."""
        text = self._tunnel.pre_command.strip()
        return f"{{ {text}\n}} >/dev/null </dev/null\n" if text else ""

    def _bash(self, script: str) -> str:
        """For the login shell there, whichever that is: single quotes mean the same in all of them."""
        return f"{self._tunnel.shell or 'bash'} -c '{script}'"

    def _broken(self, done: subprocess.CompletedProcess[bytes]) -> RemoteError:
        text = done.stderr.decode(errors="replace")
        if done.returncode == _CONNECTION_FAILED:
            self._connected = False
            return connection_error(self.name, text)
        return RemoteError(
            f"{self.name} did not run what it was asked to (exit code {done.returncode}): {_last_line(text)}",
            hint=f"It needs bash there; does `ssh {self.name} bash --version` work?",
        )

    def _rsync(self, source: str, target: str) -> Copied:
        self._connect()
        rsh = " ".join(_rsync_quote(word) for word in self._argv())
        argv = ["rsync", "-a", "-s", "-z", "--no-owner", "--no-group", "--stats", "-e", rsh, "--", source, target]
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        except FileNotFoundError as error:
            raise RemoteError(
                "There is no `rsync` on this machine.", hint="Install it, for example: apt install rsync"
            ) from error
        err = done.stderr.decode(errors="replace")
        if done.returncode == 12 and "not found" in err:
            raise RemoteError(f"There is no `rsync` on {self.name}.", hint="Ask its administrators for it.")
        if done.returncode == _CONNECTION_FAILED:
            raise connection_error(self.name, err)
        if done.returncode != 0:
            raise StorageError(
                f"Copying {source} to {target} failed: {next(iter(err.strip().splitlines()), 'rsync')}"
            )
        numbers = {
            found["what"]: int(re.sub(r"\D", "", found["number"]))
            for found in _STAT.finditer(done.stdout.decode(errors="replace"))
        }
        return Copied(numbers.get("Number of regular files transferred", 0), numbers.get("Literal data", 0))

    @property
    def _place(self) -> str:
        """The host as rsync wants it."""
        host = self._tunnel.host
        return f"[{host}]" if ":" in host else host

    def _argv(self) -> list[str]:
        """ssh with all options, for use after `_connect`."""
        control = ["-o", f"ControlPath={self._socket}", "-o", "ControlMaster=no"] if self._socket else []
        return ["ssh", *self._options, *control]

    _socket: Path | None = None

    def _connect(self) -> None:
        if self._connected:
            return
        theirs = self._resolved()
        if theirs.get("controlmaster", "false") in ("false", "no") or theirs.get("controlpath", "none") == "none":
            self._socket = _socket(self._options, self._tunnel.host)
            with waiting_lock(self._socket.with_suffix(".lock"), f"the connection to {self.name}", 120.0):
                check = [*self._argv(), "-O", "check", "--", self._tunnel.host]
                if subprocess.run(check, capture_output=True, check=False).returncode != 0:
                    self._open(theirs)
        self._connected = True

    def _resolved(self) -> dict[str, str]:
        """What the user's ssh configuration says about the host: lower-case key → value."""
        try:
            done = subprocess.run(
                ["ssh", *self._options, "-G", "--", self._tunnel.host], capture_output=True, check=False, text=True
            )
        except FileNotFoundError as error:
            raise RemoteError(
                "There is no `ssh` on this machine.", hint="Install it, for example: apt install openssh-client"
            ) from error
        if done.returncode != 0:
            raise connection_error(self.name, done.stderr)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)

    def _open(self, theirs: Mapping[str, str]) -> None:
        """Starts the connection, which stays in the background. May ask for a password where there is a terminal."""
        settings = {"ControlMaster": "yes", "ControlPersist": str(PERSIST), "ControlPath": str(self._socket)}
        if theirs.get("connecttimeout", "none") == "none":
            settings["ConnectTimeout"] = str(CONNECT_TIMEOUT)
        if theirs.get("serveraliveinterval", "0") == "0":
            settings["ServerAliveInterval"] = "15"
        if not (sys.stdin and sys.stdin.isatty()):
            settings["BatchMode"] = "yes"
        options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        with tempfile.TemporaryFile() as said:  # a pipe would stay open as long as the connection does
            code = subprocess.run(
                ["ssh", *options, *self._options, "-N", "-f", "--", self._tunnel.host],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                cwd="/",
                check=False,
            ).returncode
            said.seek(0)
            text = said.read().decode(errors="replace")
        if code != 0:
            raise connection_error(self.name, text)


def connection_error(name: str, said: str) -> RemoteError:
    """One sentence and the next step for what `ssh` said."""
    for pattern, sentence, hint in _REASONS:
        if found := re.search(pattern, said, re.IGNORECASE):
            return RemoteError(sentence.format(name=name, found=found[0]), hint=hint.format(name=name))
    reason = _last_line(said)
    return RemoteError(f"Cannot reach {name}: {reason}", hint=f"Does `ssh {name} true` work?")


_REASONS = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key for .* has changed",
        "The host key of {name} is not the one that is known.",
        "Ask its administrators; where the change is meant, ssh-keygen -R HOST forgets the old key.",
    ),
    (
        r"Host key verification failed|No .* host key is known",
        "The host key of {name} is not known yet.",
        "Run `ssh {name}` once and accept it.",
    ),
    (r"Too many authentication failures", "{name} was offered too many keys.", "Set ssh_tunnel.identity."),
    (
        r"Permission denied \([^)]*\)",
        "{name} refused the login: {found}.",
        "Does `ssh {name} true` work? Set ssh_tunnel.user or ssh_tunnel.identity, or ssh-add your key.",
    ),
    (
        r"Could not resolve hostname",
        "There is no host {name}, neither in the ssh config nor in the network.",
        "Check ssh_tunnel.host.",
    ),
    (
        r"timed out|timeout, server",
        "{name} does not answer: the connection timed out.",
        "Is the VPN up? Does `ssh {name} true` work?",
    ),
    (
        r"Connection refused",
        "{name} refuses connections.",
        "Check ssh_tunnel.port; is there an ssh server?",
    ),
    (r"No route to host|Network is unreachable", "There is no way to {name}: {found}.", "Is the VPN up?"),
    (r"Bad owner or permissions on .*", "ssh does not trust its files: {found}.", "chmod 600 that file."),
    (r"Bad configuration option: .*", "The ssh config is wrong: {found}.", "Try: ssh -G {name}"),
    (r"Can't open user config file .*", "The ssh config is not there: {found}.", "Check NEWSKILLS_SSH_CONFIG."),
    (
        r"Connection closed by|Connection reset|Broken pipe|closed by remote host",
        "The connection to {name} broke.",
        "Run the same command again.",
    ),
)


class _Frame:
    def __init__(self, code: int, out: str) -> None:
        self.code, self.out = code, out


def _frames(data: bytes, nonce: str) -> list[_Frame]:
    """What stands before each mark but the first's greeting, with the exit code in it."""
    parts = data.split(b"\n" + nonce.encode() + b" ")
    frames, text = [], b""
    for part in parts[1:]:
        code, _, rest = part.partition(b"\n")
        frames.append(_Frame(int(code), text.decode(errors="replace")))
        text = rest
    return frames


def _frames_head(data: bytes, nonce: str) -> str:
    return data.partition(b"\n" + nonce.encode() + b" ")[0].decode(errors="replace")


def _line(call: Call) -> str:
    """`call` as one line of bash; the builtins keep texts and secrets out of any argv."""
    if not call.argv:
        raise ConfigError("There is nothing to run.")
    parts = [f"cd -- {_quote(call.folder)}"] if call.folder else []
    for name, value in call.secrets.items():
        if not is_variable(name):
            raise ConfigError(f"'{name}' is no name of a variable.")
        parts.append(f"export {name}={_quote(value)}")
    parts.append("exec -- " + " ".join(map(_quote, call.argv)))
    feed = f"printf %s {_quote(call.stdin)} | " if call.stdin else ""
    return f"{feed}( {' && '.join(parts)} )" + ("" if call.stdin else " </dev/null")


def _quote(text: str) -> str:
    if "\0" in text:
        raise ConfigError(f"A NUL byte cannot be given to a program: {text!r}.")
    return shlex.quote(text)


def _rsync_quote(word: str) -> str:
    """rsync takes its `-e` apart at blanks, outside of quotes; a doubled quote is a quote."""
    return word if re.fullmatch(r"[\w@%+=:,./-]+", word, re.ASCII) else "'" + word.replace("'", "''") + "'"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    shown = "".join(ch if ch.isprintable() else " " for ch in lines[-1]) if lines else "it said nothing"
    return shown[:300].rstrip(".") + "."


def _options(tunnel: SshTunnel, environ: Mapping[str, str]) -> list[str]:
    """Never a terminal, a forwarding or a fixed command, whatever the user has for sessions by hand."""
    options = ["-T", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none"]
    if path := environ.get("NEWSKILLS_SSH_CONFIG"):
        options += ["-F", os.path.abspath(os.path.expanduser(path))]
    if tunnel.port is not None:
        options += ["-p", str(tunnel.port)]
    if tunnel.user:
        options += ["-l", tunnel.user]
    if tunnel.identity:
        options += ["-i", os.path.abspath(os.path.expanduser(tunnel.identity))]
    return options


def _socket(options: Sequence[str], host: str) -> Path:
    """The same for all `ns` of this user with the same options. Paths of sockets are short: 104 bytes at most."""
    name = hashlib.blake2b("\0".join([*options, host]).encode(), digest_size=8).hexdigest()
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    usable = runtime and len(runtime) < 40 and os.access(runtime, os.W_OK)
    folder = Path(runtime) / "newskills" if usable else Path(f"/tmp/newskills-{os.getuid()}")  # noqa: S108 - checked
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise StorageError(f"Cannot make the folder {folder} for ssh's socket: {error.strerror}.") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise StorageError(f"{folder} belongs to somebody else.", hint="Set XDG_RUNTIME_DIR to a folder of yours.")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
    return folder / name
