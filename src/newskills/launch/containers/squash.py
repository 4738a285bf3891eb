# SPDX-License-Identifier: Apache-2.0
"""Container images as squashfs files on a cluster: imported once, on a compute node, and taken again from then on.

Pyxis imports a docker reference anew on every `srun` (https://github.com/NVIDIA/pyxis); a file is mounted at once. The
file is `<folder>/containers/<image>-<digest, or hash of the reference>.sqsh`, beside it `….sqsh.json` that says what it
is of. The bash that does it stands in `bash/squash*.sh`.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from newskills.base.callbacks import PrintLine
from newskills.base.errors import RemoteError
from newskills.environments.engines.references import Reference, is_file, parse_image
from newskills.launch.containers.digests import digest_of
from newskills.launch.job_script import quote_for_bash, read_bash_resource
from newskills.launch.machines.shell import Shell

CONTAINERS = "containers"
AT_ONCE = 4
"""Imports that run side by side; each needs a session of the ssh connection, which has ten by default."""
LAST_LINES = 12
"""Of the output, in the error of an import that failed."""


class SquashPlace(Struct, frozen=True, kw_only=True):
    """Where images are imported, and where to.

    folder      absolute, on a shared filesystem: the job folder (`remote_job_dir`)
    time_limit  of one import, as Slurm writes times
    gpus        on partitions that take no jobs without
    silence     seconds without a sign of life after which an import by somebody else counts as dead; more than the
                minute for which a network file system may show old times
    """

    folder: str
    account: str | None = None
    partition: str | None = None
    time_limit: str = "04:00:00"
    gpus: int | None = None
    silence: int = 180


class Squash(Struct, frozen=True, kw_only=True):
    """What becomes of one image: `path` is what a job gets. `why` is for people.

    action  as-is: a file already; reuse: imported earlier; import: it will be
    """

    image: str
    action: Literal["as-is", "reuse", "import"]
    path: str
    why: str
    digest: str = ""


class _SquashFile(Struct, frozen=True):
    whole: bool
    path: str
    side: Mapping[str, object]


def plan_squash(
    images: Sequence[str], place: SquashPlace, shell: Shell, *, force: bool = False, ask: bool = True
) -> list[Squash]:
    """Plan what `import_images` would do, in one trip; nothing is changed. `ask`: ask registries what tags mean now.

    Raises ConfigError for an image that is none, RemoteError.
    """
    wanted = list(dict.fromkeys(images))
    references = {image: parse_image(image) for image in wanted if not is_file(image)}
    digests = {image: digest_of(reference) if ask else reference.digest for image, reference in references.items()}
    squash_files = _list_squash_files(place, shell, sorted({reference.stem for reference in references.values()}))
    plans = []
    for image in wanted:
        if image in references:
            plan = _plan_import(references[image], digests[image], squash_files, place, force=force)
        else:
            plan = Squash(image=image, action="as-is", path=image, why="it is already a file")
        plans.append(plan)
    return plans


def import_images(
    plans: Sequence[Squash],
    place: SquashPlace,
    shell: Shell,
    *,
    force: bool = False,
    say: PrintLine = lambda text: None,
) -> dict[str, str]:
    """Import all images; return image → path once all are there. Ctrl-C ends the imports and leaves nothing half
    done.

    Raises RemoteError with command and output of an import that failed.
    """
    for plan in plans:
        line = f"{plan.image}: {plan.why}"
        if plan.action == "reuse":
            line += f": {plan.path}"
        say(line)
    work = [plan for plan in plans if plan.action == "import"]
    for start in range(0, len(work), AT_ONCE):
        _run_imports(work[start : start + AT_ONCE], place, shell, force=force, say=say)
    return {plan.image: plan.path for plan in plans}


def srun_words(place: SquashPlace) -> list[str]:
    """Return the options of the single step that imports."""
    words = ["--job-name=newskills-squash"]
    if place.account:
        words.append(f"--account={place.account}")
    if place.partition:
        words.append(f"--partition={place.partition}")
    words += ["--nodes=1", "--ntasks=1"]
    if place.gpus:
        words.append(f"--gpus-per-node={place.gpus}")
    return [*words, f"--time={place.time_limit}", "--export=ALL", "--unbuffered"]


def _plan_import(
    reference: Reference, digest: str, squash_files: Sequence[_SquashFile], place: SquashPlace, *, force: bool
) -> Squash:
    path = f"{place.folder}/{CONTAINERS}/{reference.file_name(digest)}"
    taken = _existing_file(reference, digest, squash_files, path)
    if taken and not force:
        return Squash(image=reference.text, action="reuse", path=taken[0], why=taken[1], digest=digest)
    broken = any(file.path == path and not file.whole for file in squash_files)
    why = "will be imported on a compute node"
    if force:
        why += ", because of --force-squash"
    if broken:
        why += "; the file at its path is not a complete image"
    return Squash(image=reference.text, action="import", path=path, why=why, digest=digest)


def _existing_file(
    reference: Reference, digest: str, squash_files: Sequence[_SquashFile], path: str
) -> tuple[str, str] | None:
    """Return (path, why) of the existing file to use, the surest first; None where there is none."""
    whole = [file for file in squash_files if file.whole]
    names = {reference.file_name(digest)}
    for file in whole:
        if file.path == path or os.path.basename(file.path) in names:
            if digest:
                remark = ""
            else:
                remark = f"; its tag could not be looked up{_file_time(file)}, --force-squash imports it again"
            return file.path, f"exists{remark}"
    if not digest:
        own = [file for file in whole if file.side.get("image") == reference.text]
        if own:
            last = max(own, key=lambda file: str(file.side.get("imported", "")))
            return (
                last.path,
                f"exists; its tag could not be looked up{_file_time(last)}, --force-squash imports it again",
            )
    foreign = [file for file in whole if os.path.basename(file.path) == f"{reference.stem}.sqsh" and not file.side]
    if foreign:
        return foreign[0].path, "exists, imported by another program; --force-squash imports it again"
    return None


def _file_time(file: _SquashFile) -> str:
    if file.side.get("imported"):
        return f" (imported {file.side['imported']})"
    return ""


def _list_squash_files(place: SquashPlace, shell: Shell, stems: Sequence[str]) -> list[_SquashFile]:
    """List the files that may be of these images, those in `containers/` first."""
    if not stems:
        return []
    script = f'{read_bash_resource("squash_whole")}\n{read_bash_resource("squash_look")}\nsquash_look "$@"'
    ran = shell.run(["bash", "-c", script, "bash", place.folder, *stems])
    rows = [line.split("\t") for line in ran.out.splitlines() if line.count("\t") == 2]
    squash_files = [_SquashFile(state == "whole", path, _read_side_file(text)) for state, path, text in rows]
    return sorted(squash_files, key=lambda file: f"/{CONTAINERS}/" not in file.path)


def _read_side_file(text: str) -> Mapping[str, object]:
    try:
        if text:
            return msgspec.json.decode(text, type=dict[str, object])
        return {}
    except msgspec.DecodeError:
        return {}


def _import_script(plan: Squash, place: SquashPlace, *, force: bool) -> str:
    """Return bash/squash.sh with its variables; everything that a user wrote is quoted."""
    reference = parse_image(plan.image)
    side = msgspec.json.encode({"image": plan.image, "uri": reference.uri, "digest": plan.digest}).decode()
    forced = "yes" if force else ""
    variables = {
        "folder": os.path.dirname(plan.path),
        "name": os.path.basename(plan.path),
        "uri": reference.uri,
        "side": side.removesuffix("}"),
        "cache": f"{place.folder}/.enroot",
        "token": secrets.token_hex(6),
        "force": forced,
        "silence": str(place.silence),
        "node": f"{read_bash_resource('squash_whole')}\n{read_bash_resource('squash_node')}",
    }
    lines = [f"squash_{name}={quote_for_bash(value)}" for name, value in variables.items()]
    lines.append('squash_cache+="/$(id -un)"')
    lines.append(f"squash_srun=({' '.join(map(quote_for_bash, srun_words(place)))})")
    return "\n".join([*lines, read_bash_resource("squash_whole"), read_bash_resource("squash")])


class _RunningImport:
    """One import that runs, and a thread that reads what it says."""

    def __init__(self, plan: Squash, process: subprocess.Popen[bytes], say: PrintLine) -> None:
        self.plan, self.process, self._say = plan, process, say
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        name = os.path.basename(self.plan.path).removesuffix(".sqsh")
        for raw in self.process.stdout:
            line = re.sub(r"[^\x20-\x7e]+", " ", raw.decode(errors="replace").rpartition("\r")[2]).strip()
            if line:
                self.lines.append(line)
                self._say(f"{name}: {line}")

    def wait_for_end(self) -> int:
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait()

    def close_stdin(self) -> None:
        """Close stdin of the import, which then ends."""
        assert self.process.stdin is not None
        self.process.stdin.close()


def _run_imports(work: Sequence[Squash], place: SquashPlace, shell: Shell, *, force: bool, say: PrintLine) -> None:
    running: list[_RunningImport] = []
    codes: dict[str, int] = {}
    try:
        for plan in work:
            running.append(_RunningImport(plan, shell.converse(_import_script(plan, place, force=force)), say))
        for each in running:
            codes[each.plan.image] = each.wait_for_end()
    finally:
        for each in running:
            each.close_stdin()
        for each in running:
            each.wait_for_end()
    for each in running:
        if code := codes[each.plan.image]:
            raise _import_error(each, code, place, shell)


def _import_error(failed: _RunningImport, code: int, place: SquashPlace, shell: Shell) -> RemoteError:
    reference = parse_image(failed.plan.image)
    command = shlex.join(["srun", *srun_words(place), "enroot", "import", reference.uri])
    tail = "\n".join(f"    | {line}" for line in failed.lines[-LAST_LINES:])
    return RemoteError(
        f"Image {failed.plan.image} could not be imported on {shell.name} (exit code {code}).\n  {command}\n{tail}",
        hint="\nNo part of it is left there; the same command tries again. For an image that needs a login, "
        "https://github.com/NVIDIA/enroot/blob/master/doc/cmd/import.md says where enroot looks for it.",
    )
