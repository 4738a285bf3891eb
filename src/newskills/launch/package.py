# SPDX-License-Identifier: Apache-2.0
"""The code that jobs run: committed files of the git repository the user stands in, newskills and its libraries.

A package is a folder `<job_dir>/packages/<hash>`, named by its content, which containers see as /nemo_run/code: the
same commit is copied once. It appears by rename, so that it is whole or not there, however many submit at once.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path, PurePosixPath

from msgspec import Struct, structs

from newskills import base
from newskills.base.callbacks import PrintLine
from newskills.base.errors import ConfigError, StorageError, storage_error, suggest
from newskills.base.libraries import APPLICATIONS, LIBRARIES, library_folders, library_source
from newskills.base.plan import Pipeline
from newskills.base.terminal import counted
from newskills.launch.clusters.config import ClusterConfig, environment_setting
from newskills.launch.clusters.mounts import CODE, clean_path, is_inside
from newskills.launch.git import GitCommit, extract_commit, read_commit, repository_of
from newskills.launch.machines.shell import Shell

MAX_SHOWN_FILES = 10
"""Uncommitted files that a message names."""
DATA_FOLDERS = ("dataset", "datasets", "recipes")
"""`*.jsonl` below folders of these names is prepared data: packaged although it is not committed."""
NOT_CODE = ("cluster_configs", "results")
"""New files in these folders are what `ns setup` and runs have written: no job misses them."""

PACKAGES_FOLDER = "packages"
"""Folder of packages, below that of all jobs."""

_OWN = "newskills"
_PLACES = {
    _OWN: (_OWN, f"src/{_OWN}"),
    **{name: (name, f"src/{name}", library_source(name)) for name in (*LIBRARIES, *APPLICATIONS)},
}
_MARKS = {
    _OWN: ("__init__.py", "cli.py"),
    **dict.fromkeys((*LIBRARIES, *APPLICATIONS), ("__init__.py", "_version.py")),
}
"""Where a repository may have our packages, and the files by which they are recognised."""
_PUBLISH = 'mv -T -- "$1" "$2" 2>/dev/null || { rm -rf -- "$1"; [[ -d $2 ]]; }'


class PackageOptions(Struct, frozen=True, kw_only=True):
    """Which code goes along.

    folder            in the repository whose code is packaged; None: the current one
    allow_uncommitted  go with the last commit where files have changed since
    repositories       name → path of further git repositories, each of which becomes the folder `name`
    dry_run            copy nothing
    """

    folder: Path | None = None
    allow_uncommitted: bool = False
    repositories: Mapping[str, Path] = {}
    dry_run: bool = False


class Package(Struct, frozen=True, kw_only=True):
    """What a record keeps of the code of an experiment.

    path         folder, as the submitting machine sees it
    hash         of the content; empty: the folder is used where it lies and may change
    uncommitted  files that differ from the commit; not in the package
    without      submodules, whose files are not in the package
    copied       bytes that this submission copied; 0: it was there
    """

    path: str
    hash: str = ""
    repository: str = ""
    commit: str = ""
    uncommitted: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    copied: int = 0


class PackageContent(Struct, frozen=True, kw_only=True):
    """What goes into a package. `data` is relative to the repository.

    own    the folder of each of our packages (newskills, its libraries) that the repository does not have
    links  where the repository has the others
    """

    committed: tuple[tuple[str, GitCommit], ...] = ()
    data: tuple[str, ...] = ()
    own: Mapping[str, Path] = {}
    links: Mapping[str, str] = {}

    def files(self) -> Iterator[str]:
        """Yield the paths inside of the package."""
        for prefix, tree in self.committed:
            yield from (str(PurePosixPath(prefix, name)) for name in tree.files)
        yield from self.data
        for own, folder in self.own.items():
            yield from (f"{own}/{name}" for name in _own_files(folder))


def make_package(
    cluster: ClusterConfig,
    shell: Shell,
    root: str,
    environ: Mapping[str, str],
    options: PackageOptions = PackageOptions(),  # noqa: B008 - frozen
    say: PrintLine = lambda text: None,
) -> tuple[Package, PackageContent]:
    """Return the package of the repository that the user is in, copied to `root`/packages unless it is there.

    Where jobs are processes of this machine (executor none), the repository itself. `say` hears of what is left out.
    Raises ConfigError for uncommitted changes, StorageError, RemoteError.
    """
    folder = options.folder or Path.cwd()
    repository = None
    if not _is_switched_on("FORCE_PATTERN_PACKAGER", environ):
        repository = repository_of(folder)
    commit = None
    if repository:
        commit = read_commit(repository)
    if in_place(cluster):
        return _package_record(str(repository or folder), "", commit), PackageContent()
    data: tuple[str, ...] = ()
    if commit is not None:
        data = tuple(_uncommitted_data(commit))
        allowed = options.allow_uncommitted or _is_switched_on("DISABLE_UNCOMMITTED_CHANGES_CHECK", environ)
        _check_committed(commit, data, allowed, say)
    content = _package_content(commit, data, options, environ)
    name, copied = _content_hash(content), 0
    if not options.dry_run and not shell.exists([f"{root}/{PACKAGES_FOLDER}/{name}"])[0]:
        name, copied = _publish_package(content, shell, f"{root}/{PACKAGES_FOLDER}")
    record = _package_record(f"{root}/{PACKAGES_FOLDER}/{name}", name, commit, data)
    return structs.replace(record, copied=copied), content


def check_named(pipeline: Pipeline, made: Package, files: Sequence[str]) -> None:
    """Raise ConfigError where a path below /nemo_run/code, which a job reads, is not among the packaged `files`."""
    named = {path for job in pipeline.jobs for command in job.commands() for path in command.paths}
    wanted = {
        clean_path(path)[len(CODE) + 1 :]: path for path in named if path.startswith("/") and is_inside(path, CODE)
    }
    for rest, path in wanted.items():
        if rest and not any(name == rest or name.startswith(f"{rest}/") for name in files):
            raise ConfigError(
                f"{path} is not in the code that jobs get ({made.commit[:12] or made.path}){suggest(rest, files)}"
            )


def in_place(cluster: ClusterConfig) -> bool:
    """Return whether jobs run as processes of this machine, which need no copy."""
    properties = cluster.properties
    return properties.this_machine and (properties.containers != "command" or not cluster.containers)


def _package_record(path: str, name: str, commit: GitCommit | None, data: tuple[str, ...] = ()) -> Package:
    if commit is None:
        return Package(path=path, hash=name)
    return Package(
        path=path,
        hash=name,
        repository=str(commit.root),
        commit=commit.commit,
        uncommitted=tuple(name for name in commit.uncommitted if name not in data),
        without=commit.submodules,
    )


def _is_switched_on(name: str, environ: Mapping[str, str]) -> bool:
    return environment_setting(name, environ).lower() not in ("", "0", "false", "no")


def _check_committed(commit: GitCommit, data: tuple[str, ...], allowed: bool, say: PrintLine) -> None:
    if commit.submodules:
        say(f"submodules are not packaged: {_list_names(commit.submodules)}")
    if data:
        say(f"packaged with {len(data)} files of prepared data that are not committed: {_list_names(data)}")
    committed_files = set(commit.files)
    differing = tuple(
        name for name in commit.uncommitted if name not in data and not _is_ours(name, committed_files)
    )
    new = tuple(name for name in differing if name in commit.untracked)
    if len(new) == 1:
        say(f"1 new file is not packaged, since git does not track it: {_list_names(new)}")
    elif new:
        say(f"{len(new)} new files are not packaged, since git does not track them: {_list_names(new)}")
    changed = tuple(name for name in differing if name not in commit.untracked)
    if not changed:
        return
    verb = "are" if len(changed) > 1 else "is"
    what = f"{counted(len(changed), 'file')} of {commit.root} {verb} not committed: {_list_names(changed)}"
    if not allowed:
        raise ConfigError(
            f"Jobs get the last commit ({commit.commit[:12]}), and {what}.",
            hint="Commit them, or submit without them: --allow_uncommitted or "
            "NEWSKILLS_DISABLE_UNCOMMITTED_CHANGES_CHECK=1.",
        )
    say(f"jobs get the last commit ({commit.commit[:12]}): {what}")


def _is_ours(name: str, committed: set[str]) -> bool:
    """Return whether a file that differs from the commit was written by newskills itself, or by Python."""
    folders = name.split("/")[:-1]
    return name not in committed and (name.partition("/")[0] in NOT_CODE or "__pycache__" in folders)


def _list_names(names: tuple[str, ...]) -> str:
    shown = ", ".join("".join(ch if ch.isprintable() else "?" for ch in name) for name in names[:MAX_SHOWN_FILES])
    if len(names) > MAX_SHOWN_FILES:
        return f"{shown} and {len(names) - MAX_SHOWN_FILES} more"
    return shown


def _uncommitted_data(commit: GitCommit) -> list[str]:
    """Return files of prepared data that are not committed, also where git ignores them; none of virtual environments.

    Ignored files are looked for only below folders that have committed files, and at the top: the rest may be vast.
    """
    places = {name for name in DATA_FOLDERS if (commit.root / name).is_dir()}
    places |= {place for name in commit.files if (place := _data_folder(name))}
    names = {*commit.uncommitted_files_in(sorted(places)), *commit.uncommitted}
    return sorted(
        name for name in names if name.endswith(".jsonl") and _data_folder(name) and _is_uncommitted(commit, name)
    )


def _data_folder(name: str) -> str:
    """Return the folder of prepared data that contains the file; empty: none."""
    folders = PurePosixPath(name).parts[:-1]
    if any(part.startswith(".") or part == "site-packages" for part in folders):
        return ""
    depths = [depth for depth, part in enumerate(folders) if part in DATA_FOLDERS]
    if depths:
        return "/".join(folders[: depths[0] + 1])
    return ""


def _is_uncommitted(commit: GitCommit, name: str) -> bool:
    """Return whether a file exists and is not committed; a change of a committed one is a change of the code."""
    return name not in commit.files and (commit.root / name).is_file()


def _package_content(
    commit: GitCommit | None, data: tuple[str, ...], options: PackageOptions, environ: Mapping[str, str]
) -> PackageContent:
    trees, top = [], set[str]()
    if commit is not None:
        trees.append(("", commit))
        top = {name.split("/", 1)[0] for name in commit.files}
    for name, path in options.repositories.items():
        root = repository_of(path)
        if root is None:
            raise ConfigError(f"The repository '{name}' at {path} is not a git repository.")
        if name in top:
            raise ConfigError(f"The repository '{name}' would hide the folder {name} of the current repository.")
        trees.append((name, read_commit(root)))
    own: dict[str, Path] = {}
    links: dict[str, str] = {}
    for name, folder in _own_packages().items():
        if commit is None or _is_switched_on("FORCE_INSTALLED_PACKAGE", environ):
            own[name] = folder
        elif held := _package_place(commit, name):
            if held != name:
                links[name] = held
        elif name in top:
            raise ConfigError(f"The repository has a folder '{name}', which would hide the package of that name.")
        else:
            own[name] = folder
    return PackageContent(committed=tuple(trees), data=data, own=own, links=links)


def _own_packages() -> dict[str, Path]:
    return {_OWN: Path(base.__file__).parents[1], **library_folders()}


def _package_place(commit: GitCommit, name: str) -> str:
    """Return where the repository has our package of this name; empty where it has none."""
    files = set(commit.files)
    for place in _PLACES[name]:
        if {f"{place}/{mark}" for mark in _MARKS[name]} <= files:
            return place
    return ""


def _own_files(own: Path) -> list[str]:
    """Return the files of a package; of a checkout with those of folders that it links to, which are copied, too."""
    folders = os.walk(own, followlinks=True)
    names = (Path(folder, name).relative_to(own).as_posix() for folder, _, files in folders for name in files)
    return sorted(name for name in names if "__pycache__" not in name)


def _content_hash(content: PackageContent) -> str:
    """Hash names, modes and contents: git's own hash of the tree stands for committed files."""
    parts = [f"tree\0{prefix}\0{tree.tree}" for prefix, tree in content.committed]
    for prefix, tree in content.committed:
        parts += [f"data\0{name}\0{_file_digest(tree.root / name)}" for name in content.data if not prefix]
    for own, folder in content.own.items():
        parts += [f"own\0{own}/{name}\0{_file_digest(folder / name)}" for name in _own_files(folder)]
    parts += [f"link\0{name}\0{place}" for name, place in content.links.items()]
    return blake2b("\0\0".join(parts).encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


def _file_digest(path: Path) -> str:
    hasher = blake2b(digest_size=16)
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                hasher.update(block)
    except OSError as error:
        raise StorageError(f"Cannot read {path}: {error.strerror}.") from error
    return hasher.hexdigest()


def _publish_package(content: PackageContent, shell: Shell, folder: str) -> tuple[str, int]:
    """Build the package here, copy it there under a temporary name, and rename it. Returns its hash and bytes copied.

    Somebody may work on newskills at the same time: the hash is that of what was copied.
    """
    with tempfile.TemporaryDirectory(prefix="newskills-package-") as here:
        tree = Path(here) / "code"
        _build_tree(content, tree)
        name = _content_hash(structs.replace(content, own={own: tree / own for own in content.own}))
        temporary, path = f"{folder}/.{name}.{secrets.token_hex(4)}", f"{folder}/{name}"
        copied = shell.put(tree, temporary)
    done = shell.run(["bash", "-c", _PUBLISH, "bash", temporary, path])
    if done.code != 0:
        raise StorageError(f"Cannot write the package to {path} on {shell.name}.")
    return name, copied.bytes


def _build_tree(content: PackageContent, tree: Path) -> None:
    try:
        tree.mkdir(mode=0o755)
        for prefix, commit in content.committed:
            extract_commit(commit, tree / prefix)
            if prefix:
                continue
            for name in content.data:
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(commit.root / name, tree / name)
        for own, place in content.links.items():
            (tree / own).symlink_to(place)
        for own, folder in content.own.items():
            shutil.rmtree(tree / own, ignore_errors=True)
            shutil.copytree(folder, tree / own, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise storage_error(error, error.filename or tree) from error
