# SPDX-License-Identifier: Apache-2.0
"""enroot: an unpacked image with a first process that keeps its namespaces; commands join them."""

from __future__ import annotations

from newskills.base.environment import EnvironmentSpec
from newskills.base.errors import ConfigError
from newskills.environments.engines.engine import (
    STAY,
    Argv,
    EngineProgram,
    is_address,
    variable_options,
    without_scheme,
)

_FIRST = 'pgrep -o -f "^sh -c while sleep .* $1\\$"'
"""Its id on this machine; it holds the container's name as its last word."""
_START = f"""
log=$(mktemp); name=$1; shift
setsid "$@" </dev/null >"$log" 2>&1 &
client=$!
set -- "$name"
until {_FIRST} >/dev/null; do
  kill -0 $client 2>/dev/null || {{ cat "$log"; rm -f "$log"; exit 1; }}
  sleep 0.1
done
rm -f "$log"
"""
_JOIN = f"""
pid=$({_FIRST}) || {{ echo "cannot find the first process of $1"; exit 125; }}
program=$2; shift 2
exec "$program" exec "$pid" "$@"
"""
_REMOVE = f'pid=$({_FIRST}) && kill -9 $pid; exec "$2" remove --force "$1"'


class Enroot(EngineProgram):
    """Command lines of enroot (https://github.com/NVIDIA/enroot/blob/master/doc/cmd/start.md).

    Since version 4.1 it can close the network and gives a container its own processes. It has no limits of its own for
    memory and processes: a job's limits hold. Folders such as /tmp are made anew by each `enroot start`, so one start
    serves all commands.
    """

    def start(self, name: str, spec: EnvironmentSpec) -> list[Argv]:
        """Return the command lines that make and start a container. Raises ConfigError for an image that is no file."""
        if is_address(spec.image):
            image = without_scheme(spec.image)
            raise ConfigError(
                f"enroot needs the image {image} as a file.",
                hint=f"Import it once: enroot import --output NAME.sqsh docker://{image}",
            )
        options = ["--root", "--rw", "--pid"]
        if spec.offline or not self._config.network:
            options.append("--net")
        for source, target in sorted(spec.mounts.items()):
            options += ["--mount", f"{source}:{target}:none:x-create=dir,bind,ro"]
        stay = [self.program, "start", *options, name, "sh", "-c", STAY, name]
        return [[self.program, "create", "--name", name, spec.image], ["sh", "-c", _START, "sh", name, *stay]]

    def enter(self, name: str, spec: EnvironmentSpec) -> Argv:
        begin = ("sh", "-c", 'cd "$0" && exec "$@"', spec.workdir or "/")
        return self._join_command(name, "env", *variable_options("", spec), *begin)

    def end_processes(self, name: str) -> list[Argv]:
        """Return the command line that kills what runs in a container, whose first process outlives the signal, as it
        is the first of its namespace."""
        return [self._join_command(name, "sh", "-c", "kill -9 -1")]

    def unpack(self, name: str, spec: EnvironmentSpec, target: str) -> Argv:
        return self._join_command(name, "tar", "-xf", "-", "-C", target)

    def pack(self, name: str, spec: EnvironmentSpec, source: str) -> Argv:
        return self._join_command(name, "tar", "-cf", "-", "-C", source, ".")

    def remove(self, name: str) -> list[Argv]:
        return [["sh", "-c", _REMOVE, "sh", name, self.program]]

    def names(self) -> Argv:
        return [self.program, "list"]

    def _join_command(self, name: str, *words: str) -> Argv:
        return ["sh", "-c", _JOIN, "sh", name, self.program, *words]
