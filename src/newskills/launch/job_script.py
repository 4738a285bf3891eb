# SPDX-License-Identifier: Apache-2.0
"""A job as readable bash: job.sh, which starts its commands and decides how it ends, and one script for each command.

What is the same in every job stands in `bash/*.sh` and is copied into the scripts, so that a job folder explains itself
and needs nothing of newskills where it runs. job.sh needs bash 5.1, the scripts of commands bash 4.3 (containers).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from newskills.base.errors import ConfigError
from newskills.base.plan import Command, Job, Ref, Word
from newskills.config.packaged_path import with_code_at
from newskills.launch.clusters.names import is_file_name, is_variable
from newskills.launch.place import ExecutorScript, JobFolder, Variable

PORT_PATIENCE = 1800.0
"""Seconds to wait for a server that has a port but no `ready`."""

LOCAL = ("node", "rank", "folder")
"""Attributes that nobody has to wait for."""
MEETING = ("meeting", "meeting_port")

_OLD_BASH = """\
case ${BASH_VERSION:-none} in
    none | [1-4].* | 5.0.*)
        echo "This job needs bash 5.1 or later on the node that runs job.sh; this is ${BASH_VERSION:-no bash}." >&2
        exit 1
        ;;
esac
"""


class _CommandContext(Struct, frozen=True, kw_only=True):
    """One command with all that its script has to know."""

    job: Job
    group: int
    command: Command
    folder: JobFolder
    place: ExecutorScript
    variables: dict[str, str]

    def with_code(self, text: str) -> str:
        """Return a text of the user's with the packaged code where this command finds it."""
        code = self.folder.code
        if code and self.place.workdir(msgspec.structs.replace(self.command, workdir=None), self.folder) == code:
            return with_code_at(text, code)
        return text

    def refs(self) -> list[Ref]:
        script = self.command.script
        return [word for word in (*script.argv, *script.env.values()) if isinstance(word, Ref)]


def render_scripts(job: Job, folder: JobFolder, place: ExecutorScript) -> dict[str, str]:
    """Return file name → text: `job.sh`, `plan.json`, the job's own files, and `<command>.sh` (with
    `<command>.setup.sh`).

    Raises ConfigError for what cannot be written down: a name that is no file name, a NUL byte, an empty argv, a
    reference to a port of a command that has none.
    """
    variables = _component_variables(job)
    scenes = [
        _CommandContext(job=job, group=index, command=command, folder=folder, place=place, variables=variables)
        for index, group in enumerate(job.groups)
        for command in group.commands
    ]
    for scene in scenes:
        _check_command(scene)
    texts = {
        "job.sh": _job_text(job, scenes, folder, place),
        "plan.json": msgspec.json.format(
            msgspec.json.encode(msgspec.structs.replace(job, files={})), indent=2
        ).decode()
        + "\n",
    }
    for name, text in job.files.items():
        if name in texts or not is_file_name(name):
            raise ConfigError(
                f"Job '{job.name}' cannot have a file '{name}': the name is taken, or not a file name."
            )
        texts[name] = text
    for scene in scenes:
        name = scene.command.name
        new = {f"{name}.sh": _command_text(scene)}
        if scene.command.script.setup:
            new[f"{name}.setup.sh"] = scene.with_code(scene.command.script.setup).rstrip("\n") + "\n"
        if clash := sorted(new.keys() & texts.keys()):
            raise ConfigError(
                f"Command '{name}' of job '{job.name}' needs the file {clash[0]}, whose name is taken."
            )
        texts |= new
    return texts


def _check_command(scene: _CommandContext) -> None:
    job, command = scene.job, scene.command
    here = f"Command '{command.name}' of job '{job.name}'"
    if not is_file_name(command.name):
        raise ConfigError(f"{here} needs a name that a file can have: letters, digits and '._-+=@'.")
    if not command.script.argv:
        raise ConfigError(f"{here} has nothing to run.")
    for name in command.script.env:
        if not is_variable(name):
            raise ConfigError(f"{here} sets '{name}', which is not the name of a variable.")
    siblings = {other.name: other for other in job.commands()}
    for ref in scene.refs():
        if ref.attribute not in LOCAL and siblings[ref.component].script.port is None:
            raise ConfigError(f"{here} refers to the {ref.attribute} of '{ref.component}', which has no port.")
        if ref.attribute in ("rank", *MEETING) and ref.component != command.name:
            raise ConfigError(
                f"{here} refers to the {ref.attribute} of '{ref.component}', which other commands cannot use."
            )


def _job_text(job: Job, scenes: Sequence[_CommandContext], folder: JobFolder, place: ExecutorScript) -> str:
    lines = [
        "#!/bin/bash",
        *place.header(job, folder),
        "",
        f"# Job {_quoted_comment(job.name)}. Each command below runs its own script in this folder and has its own "
        "log.",
        "",
        *_OLD_BASH.splitlines(),
        "set -u",
        "",
        f"job_folder={quote_for_bash(folder.path)}",
        f"job_logs={quote_for_bash(folder.logs)}",
        "",
    ]
    if prologue := place.prologue(job, folder):
        lines += [*prologue, ""]
    lines += ["start_all() {"]
    for scene in scenes:
        lines += _step_lines(scene)
    lines += ["}", "", "# send_signal SIGNAL NAME PID"]
    lines += [*_bash_function("send_signal", place.signal(job, folder)), ""]
    lines += [*_bash_function("out_of_time", place.out_of_time(job, folder)), ""]
    return "\n".join([*lines, read_bash_resource("await_child"), read_bash_resource("job")])


def _step_lines(scene: _CommandContext) -> list[str]:
    command = scene.command
    words = [_quoted_word(word) for word in scene.place.step(scene.job, scene.group, command, scene.folder)]
    rows = [f"    start {command.role} {command.name}"]
    row: list[str] = []
    for word in words:  # one option a row, with its value
        if row and word.startswith("-"):
            rows.append("        " + " ".join(row))
            row = []
        row.append(word)
    if row:
        rows += ["        " + " ".join(row)]
    rows.append(f'        bash "$job_folder"/{command.name}.sh')
    return " \\\n".join(rows).split("\n")


def _bash_function(name: str, lines: Sequence[str]) -> list[str]:
    return [f"{name}() {{", *(f"    {line}" if line else "" for line in lines or (":",)), "}"]


def _command_text(scene: _CommandContext) -> str:
    command, folder = scene.command, scene.folder
    script = command.script
    parts = [_script_head(scene)]
    if inside := scene.place.inside(command, folder):
        parts.append("\n".join(inside) + "\n")
    parts += _export_lines(scene, [(name, word) for name, word in script.env.items() if isinstance(word, str)])
    if workdir := scene.place.workdir(command, folder):
        parts.append(f"cd -- {quote_for_bash(workdir)} || exit 1\n")
    if script.setup:
        parts.append(read_bash_resource("setup") + "\nset_up\n")
    if script.port is not None:
        parts.append(_port_lines(scene))
    parts += _wait_lines(scene)
    parts += _export_lines(scene, [(name, word) for name, word in script.env.items() if isinstance(word, Ref)])
    argv = "".join(f"    {_quoted_text(scene, word)}\n" for word in script.argv)
    parts.append(f'job_argv=(\n{argv})\nexec -- "${{job_argv[@]}}"\n')
    return "\n".join(parts)


def _export_lines(scene: _CommandContext, variables: Sequence[tuple[str, Word]]) -> list[str]:
    if variables:
        return ["".join(f"export {name}={_quoted_text(scene, word)}\n" for name, word in variables)]
    return []


def _script_head(scene: _CommandContext) -> str:
    command = scene.command
    lines = [
        "#!/bin/bash",
        f"# Command '{command.name}', a {command.role} of job {_quoted_comment(scene.job.name)}: what runs inside its "
        "step.",
    ]
    if command.script.secrets:
        lines.append(
            f"# Their values come with the environment only: {', '.join(sorted(command.script.secrets))}."
        )
    lines += [
        "set -u",
        "",
        f"job_folder={quote_for_bash(scene.folder.path)}",
        f"job_logs={quote_for_bash(scene.folder.logs)}",
        f"job_command={command.name}",
    ]
    exports = [
        f"export {name}={quote_for_bash(value)}"
        for name, value in sorted(scene.place.environment(command).items())
    ]
    if exports:
        lines += ["", *exports]
    return "\n".join(lines) + "\n"


def _port_lines(scene: _CommandContext) -> str:
    script, name = scene.command.script, scene.command.name
    meets = any(ref.attribute in MEETING for ref in scene.refs())
    choose = (
        f"choose_port {script.port} {_quoted_word(scene.place.host(scene.job, scene.group))}" + " meet" * meets
    )
    text = read_bash_resource("port") + "\n"
    if script.all_nodes or script.tasks_per_node > 1:
        text += (
            read_bash_resource("await")
            + "\n# The first process chooses for all of them.\n"
            + f"if [[ ${{SLURM_PROCID:-0}} -eq 0 ]]; then {choose}; else await {name} {PORT_PATIENCE:.0f}; fi\n"
        )
    else:
        text += choose + "\n"
    return text + _remember_line(scene, name, meets=meets)


def _wait_lines(scene: _CommandContext) -> list[str]:
    """Return the lines that set what the refs need: numbers and names of nodes, then the waits for other commands."""
    own, script = scene.command.name, scene.command.script
    groups = {command.name: n for n, group in enumerate(scene.job.groups) for command in group.commands}
    refs = dict.fromkeys((ref.component, ref.attribute) for ref in scene.refs())
    lines = []
    for component, attribute in refs:
        if attribute == "node":
            value = _quoted_word(scene.place.first_node(scene.job, groups[component]))
        elif attribute == "rank":
            value = "${SLURM_NODEID:-0}" if script.all_nodes else "0"
        elif attribute == "folder":
            value = "$job_folder"
        else:
            continue
        lines.append(f"{scene.variables[component]}_{attribute}={value}\n")
    others = dict.fromkeys(name for name, attribute in refs if name != own and attribute not in LOCAL)
    waits = [_await_line(scene, component) + _remember_line(scene, component) for component in others]
    sections = []
    if lines:
        sections.append("".join(lines))
    if waits:
        sections += [read_bash_resource("await"), "\n".join(waits)]
    return sections


def _await_line(scene: _CommandContext, component: str) -> str:
    ready = {command.name: command for command in scene.job.commands()}[component].script.ready
    if ready is None:
        return f"await {component} {PORT_PATIENCE:.0f}\n"
    status = "'[1-4]??'" if ready.any_answer else "200"
    line = f"await {component} {ready.patience:.0f} {quote_for_bash(ready.path)} {status}"
    if ready.offset:
        line += f" {ready.offset}"
    return f"{line}\n"


def _remember_line(scene: _CommandContext, component: str, *, meets: bool = False) -> str:
    name = scene.variables[component]
    text = f'{name}_host=$job_host\n{name}_port=$job_port\n{name}_address="http://$job_host:$job_port"\n'
    if meets:
        text += f'{name}_meeting="$job_host:$job_meeting"\n{name}_meeting_port=$job_meeting\n'
    return text


def _component_variables(job: Job) -> dict[str, str]:
    """Return component → the beginning of its shell variables, a different one for each."""
    variables: dict[str, str] = {}
    for command in job.commands():
        variable = "ref_" + re.sub(r"[^A-Za-z0-9]", "_", command.name)
        while variable in variables.values():
            variable += "_"
        variables[command.name] = variable
    return variables


def _quoted_text(scene: _CommandContext, word: Word) -> str:
    if isinstance(word, Ref):
        name = f"{scene.variables[word.component]}_{word.attribute}"
        return _quoted_word(Variable(name, scene.with_code(word.before), scene.with_code(word.after)))
    return quote_for_bash(scene.with_code(word))


def _quoted_word(word: str | Variable) -> str:
    if isinstance(word, str):
        return quote_for_bash(word)
    around = [quote_for_bash(text) if text else "" for text in (word.before, word.after)]
    return f'{around[0]}"${word.name}"{around[1]}'


def quote_for_bash(text: str) -> str:
    """Quote `text` as one word of bash that means exactly this text. Raises ConfigError for a NUL, which no argv
    holds."""
    if "\0" in text:
        raise ConfigError(f"A NUL byte cannot be given to a program: {text!r}.")
    if text == shlex.quote(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def _quoted_comment(text: str) -> str:
    return "'" + " ".join(text.split()) + "'"


@cache
def read_bash_resource(name: str) -> str:
    """Read a piece of bash that many scripts share."""
    return files("newskills.launch").joinpath("bash", f"{name}.sh").read_text("utf-8")
