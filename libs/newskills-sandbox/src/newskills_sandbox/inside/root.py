# SPDX-License-Identifier: Apache-2.0
"""The file tree that sessions see: system folders read-only, an interpreter, devices that hold nothing, no more.

Built once, by the zygote, in a mount name space of its own; a session only puts its private folders on top.
"""

from __future__ import annotations

import glob
import os

from newskills_sandbox.inside import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

HOME = "/sandbox"
PRIVATE = {"tmp": "/tmp", "home": HOME, "shm": "/dev/shm"}  # noqa: S108 - of the session's own tree
COVERED = "/.covered"
STAGING = ("/mnt", "/srv", "/media", "/opt", "/run", "/var", "/home", "/tmp")  # noqa: S108
LINKED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM = ("/usr",)
SETTINGS = (
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"),
    *sorted(glob.glob("/etc/java-*-openjdk")),  # without them no Java of Debian's starts
)
NETWORK_SETTINGS = ("/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/ssl", "/etc/ca-certificates", "/etc/pki")
DEVICES = ("null", "full", "random", "urandom")
ZEROS = 1 << 40
USER = 1000

_KEPT_FLAGS = (
    (os.ST_NOSUID, linux.MS_NOSUID),
    (os.ST_NODEV, linux.MS_NODEV),
    (os.ST_NOEXEC, linux.MS_NOEXEC),
    (os.ST_NOATIME, linux.MS_NOATIME),
    (os.ST_RELATIME, linux.MS_RELATIME),
)


def build(
    visible: Sequence[str], packages: Mapping[str, Sequence[str]], bound: Mapping[str, str], *, network: bool
) -> list[tuple[str, str]]:
    """Make the tree, move this process into it, and return (alias, path) of what private folders would cover.

    `visible`: further files and folders, read-only, same paths. `packages`: folders of which only the named entries
    are shown. `bound`: folders in places of their own, by place. Needs a mount and a pid name space of its own and the
    right to mount in it.
    """
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    shown = [*SYSTEM, *SETTINGS, *(NETWORK_SETTINGS if network else ()), *visible]
    sources = _outermost_paths(os.path.realpath(path) for path in shown if os.path.exists(path))
    root = _staging_folder([*sources, *bound.values()])
    linux.mount("tmpfs", root, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=4m,nr_inodes=4096,mode=755")
    for source in sources:
        _bind_read_only(source, root + source)
    for folder, entries in packages.items():
        _show_only(folder, entries, root)
    _copy_links(shown, root)
    for place, folder in bound.items():
        _bind_read_only(folder, root + place)
    _make_devices(root)
    _write_names(root)
    for folder in (*PRIVATE.values(), "/proc", "/.private"):
        os.makedirs(root + folder, exist_ok=True)
    covered = _covered_sources(sources, root)
    linux.mount("proc", root + "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    os.chdir(root)
    linux.pivot_root(".", ".")
    linux.umount(".", linux.MNT_DETACH)
    os.chdir("/")
    _remount_protected("/", linux.MS_NODEV)
    return covered


def _covered_sources(sources: Sequence[str], root: str) -> list[tuple[str, str]]:
    """Return second names for sources in places where each session has folders of its own (an environment below
    /tmp)."""
    inside = [path for path in sources if any(path.startswith(place + "/") for place in PRIVATE.values())]
    aliases = [(f"{COVERED}/{number}", path) for number, path in enumerate(inside)]
    for alias, path in aliases:
        _bind_read_only(root + path, root + alias)
    return aliases


def private_zeros(folder: str) -> None:
    """Create zeros in the session's own `folder` as /dev/zero: memory mapped from the device is charged to nobody."""
    place = f"{folder}/zero"
    descriptor = os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444)
    os.truncate(descriptor, ZEROS)
    os.close(descriptor)
    linux.mount(place, "/dev/zero", flags=linux.MS_BIND)
    _remount_protected("/dev/zero", linux.MS_NODEV)


def uncover(aliases: Sequence[Sequence[str]]) -> None:
    """Show what private folders cover again, in the session's own folders: mount each alias at its path."""
    for alias, path in aliases:
        _mount_point(path, folder=os.path.isdir(alias))
        linux.mount(alias, path, flags=linux.MS_BIND | linux.MS_REC)


def _outermost_paths(paths: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not any(path == other or path.startswith(other + "/") for other in kept):
            kept.append(path)
    return kept


def _staging_folder(sources: Sequence[str]) -> str:
    """Return a folder to build on that hides none of the sources while the tree is built. Raises OSError where there is
    none."""
    for place in STAGING:
        if os.path.isdir(place) and not any(
            source == place or source.startswith(place + "/") for source in sources
        ):
            return place
    raise OSError(f"every one of {', '.join(STAGING)} holds something that the sandbox shows; nowhere to build it")


def _bind_read_only(source: str, target: str) -> None:
    """Show a folder read-only, without devices and set-user-id programs, all mounts below included."""
    _mount_point(target, folder=os.path.isdir(source))
    linux.mount(source, target, flags=linux.MS_BIND | linux.MS_REC)
    for place in _mounts_below(target):
        _remount_protected(place, linux.MS_NODEV)


def _mount_point(path: str, *, folder: bool) -> None:
    made_folder = path if folder else os.path.dirname(path)
    os.makedirs(made_folder, exist_ok=True)
    if not folder:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))


def _show_only(folder: str, entries: Sequence[str], root: str) -> None:
    source = os.path.realpath(folder)
    target = root + source
    linux.mount("tmpfs", target, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=1m,nr_inodes=4096,mode=755")
    for entry in entries:
        _bind_read_only(f"{source}/{entry}", f"{target}/{entry}")
    _remount_protected(target, linux.MS_NODEV)


def _remount_protected(place: str, extra: int) -> None:
    present = os.statvfs(place).f_flag
    kept = sum(flag for bit, flag in _KEPT_FLAGS if present & bit)
    flags = linux.MS_BIND | linux.MS_REMOUNT | linux.MS_RDONLY | linux.MS_NOSUID | kept | extra
    linux.mount("none", place, flags=flags)


def _mounts_below(target: str) -> list[str]:
    places = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            place = line.split(" ", 5)[4].encode("utf-8", "surrogateescape").decode("unicode_escape")
            if place == target or place.startswith(target + "/"):
                places.append(place)
    return places


def _copy_links(shown: Sequence[str], root: str) -> None:
    """Copy the symbolic links that lead to a source, so that it is found under the name that was given, too."""
    for path in (*shown, *LINKED):
        real = os.path.realpath(path)
        if not os.path.exists(path) or os.path.lexists(root + path):
            continue
        if real == path:
            _bind_read_only(path, root + path)
        else:
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            os.symlink(real, root + path)


def _make_devices(root: str) -> None:
    os.makedirs(root + "/dev", exist_ok=True)
    for name in DEVICES:
        target = f"{root}/dev/{name}"
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))
        linux.mount(f"/dev/{name}", target, flags=linux.MS_BIND)
    os.close(os.open(root + "/dev/zero", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))
    os.symlink("/proc/self/fd", root + "/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{root}/dev/{name}")


def _write_names(root: str) -> None:
    lines = {
        "passwd": f"sandbox:x:{USER}:{USER}:sandbox:/work:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        "group": f"sandbox:x:{USER}:\nnogroup:x:65534:\n",
        "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
        "hostname": "sandbox\n",
    }
    os.makedirs(root + "/etc", exist_ok=True)
    for name, text in lines.items():
        with open(f"{root}/etc/{name}", "w", encoding="ascii") as file:
            file.write(text)
