# SPDX-License-Identifier: Apache-2.0
"""A source → its files on disk, whichever form it has: addresses, hub data sets, trees of repositories, archives."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from newskills.base.benchmark import Source
from newskills.base.errors import DataError
from newskills.base.records import Row
from newskills.benchmarks.downloads.fetch import FetchedFile, Fetcher, archives_url, check_sha256, hub_url
from newskills.benchmarks.downloads.mirror import RAW, file_sha256, verify_file
from newskills.benchmarks.downloads.patterns import expand_braces, select_names
from newskills.benchmarks.downloads.readers import RawRow, open_members, read_source

T = TypeVar("T")
U = TypeVar("U")
_AT_ONCE = 8
BESIDE = "_beside"
"""Field of raw rows with what lies beside their source."""


class _File(NamedTuple):
    """`name`: `_file` of its rows, or what stands before a member's; `extra`: their other fields; `source`: its own."""

    path: Path
    shown: str
    name: str
    extra: Row
    source: Source


class PublishedFile(Struct, frozen=True):
    """A file as it is published: what a mirror holds. `commit`: of the repository, where it is known."""

    url: str
    path: Path
    sha256: str
    commit: str = ""


class OpenedSource(Struct, frozen=True):
    """The files of a source; `origin` is what to record about them; `assets` by name; `originals`: what was fetched."""

    source: Source
    files: Sequence[_File]
    origin: list[Row]
    assets: dict[str, Path]
    originals: Sequence[PublishedFile] = ()

    def rows(self) -> Generator[RawRow]:
        """Yield the rows; their file is closed with the generator. Raises DataError naming file, line and what is
        wrong."""
        rows = (
            RawRow({**raw.row, **file.extra} if file.extra else raw.row, raw.where)
            for file in self.files
            for raw in read_source(file.path, file.source, shown=file.shown, name=file.name)
        )
        with contextlib.closing(rows):
            if self.source.span is None:
                yield from rows
            else:
                yield from itertools.islice(rows, *self.source.span)


@contextlib.contextmanager
def open_source(source: Source, fetcher: Fetcher, folder: Path = Path()) -> Iterator[OpenedSource]:
    """Open the files of `source`, fetched and verified, until the end of the block. Raises DataError.

    `folder`: where relative paths begin.
    """
    with contextlib.ExitStack() as stack:
        if len(parts := _split_by_place(source)) > 1:
            opened_source = _all_of(
                source, [stack.enter_context(open_source(part, fetcher, folder)) for part in parts]
            )
        elif source.path:
            opened_source = _open_local(source, folder, stack)
        elif source.github:
            opened_source = _open_repository(source, fetcher, stack)
        elif source.hf:
            opened_source = _open_hub_dataset(source, fetcher)
        else:
            opened_source = _open_urls(source, fetcher, stack)
        if source.beside:
            opened_source = _with_beside(opened_source, source, fetcher)
        yield opened_source


_KINDS = ("path", "github", "hf", "url")


def _split_by_place(source: Source) -> list[Source]:
    """Split into one source for each kind of place that `source` names: its rows are those of all, in this
    order."""
    kinds = [kind for kind in _KINDS if getattr(source, kind)]
    plain = msgspec.structs.replace(source, beside="", span=None)
    if len(kinds) < 2:
        return [source]
    return [msgspec.structs.replace(plain, **{other: "" for other in kinds if other != kind}) for kind in kinds]


def _all_of(source: Source, parts: Sequence[OpenedSource]) -> OpenedSource:
    return OpenedSource(
        source,
        [file for part in parts for file in part.files],
        [origin for part in parts for origin in part.origin],
        {name: path for part in parts for name, path in part.assets.items()},
        [original for part in parts for original in part.originals],
    )


def _with_beside(main_source: OpenedSource, source: Source, fetcher: Fetcher) -> OpenedSource:
    """Return the source with what lies beside it in each row. Raises DataError."""
    file = fetcher.fetch(source.beside, Source(url=source.beside))
    text = file.path.read_text(encoding="utf-8")
    try:
        try:
            value = json.loads(text)
        except ValueError:
            value = [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        raise DataError(f"{source.beside} is not JSON: {error}.") from error
    fields = {BESIDE: value}
    return msgspec.structs.replace(
        main_source,
        files=[file._replace(extra={**file.extra, **fields}) for file in main_source.files],
        origin=[*main_source.origin, _origin_record(file, source)],
        originals=[*main_source.originals, PublishedFile(source.beside, file.path, file.sha256)],
    )


def in_mirror(source: Source, fetcher: Fetcher) -> bool:
    """Return whether the mirror holds all of it (not yet verified), or it lies on this machine anyway."""
    if len(parts := _split_by_place(source)) > 1:
        return all(in_mirror(part, fetcher) for part in parts)
    if source.path:
        return True
    if fetcher.mirror is None or (source.beside and not fetcher.has_mirrored(source.beside)):
        return False
    if source.github:
        return bool(_mirrored_tree(source, fetcher))
    if source.hf:
        return all(fetcher.mirror.files_below(listing) for listing, _ in _hub_listings(source))
    return all(fetcher.has_mirrored(url) for url in expand_braces(source.url))


def local_files(source: Source, folder: Path) -> dict[str, Path]:
    """Return name → file of a source on this machine. Raises DataError where there is none."""
    place = folder / source.path
    if place.is_dir():
        tree = {name: place / name for name in _names_below(place)}
        if not (names := select_names(tree, source.members or "*")):
            raise DataError(f"{place} has no file like '{source.members or '*'}'.")
        return {name: tree[name] for name in names}
    paths = expand_braces(str(place))
    for path in paths:
        if not Path(path).is_file():
            raise DataError(f"There is no file {path}.")
    return {name: Path(path) for name, path in zip(_below_folder(str(place), paths), paths, strict=True)}


def _open_local(source: Source, folder: Path, stack: contextlib.ExitStack) -> OpenedSource:
    local_opened = local_files(source, folder)
    tree = (folder / source.path).is_dir()
    sums = {name: file_sha256(path) for name, path in local_opened.items()}
    sha256 = _combined_sha256(sums.items())
    check_sha256(str(folder / source.path), "this machine", sha256, source)
    read = msgspec.structs.replace(source, members="") if tree else source
    alone = len(local_opened) == 1 and bool(read.members)
    files = [_File(path, str(path), "" if alone else name, {}, read) for name, path in local_opened.items()]
    assets: dict[str, Path] = {}
    if source.members and not tree:
        assets = _unpack_assets(list(local_opened.values()), source, stack)
    elif source.assets:
        below = folder / source.path
        if not tree:
            below = Path(os.path.dirname(str(below).partition("{")[0]))
        assets = {name: below / name for name in _asset_names(source, _names_below(below))}
    origin = {
        "path": str(folder / source.path),
        "from": "this machine",
        "sha256": sha256,
        "files": len(local_opened),
    }
    return OpenedSource(source, files, [origin], assets)


def _names_below(folder: Path) -> Iterator[str]:
    return (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _open_urls(source: Source, fetcher: Fetcher, stack: contextlib.ExitStack) -> OpenedSource:
    urls = expand_braces(source.url)
    single = len(urls) == 1 and "{" not in source.url
    each = source if single else msgspec.structs.replace(source, sha256="")
    fetched = _map_in_threads(lambda url: fetcher.fetch(url, each), urls)
    names = _below_folder(source.url, urls)
    if not single:
        sha256 = _combined_sha256(zip(names, (file.sha256 for file in fetched), strict=True))
        check_sha256(source.url, fetched[0].origin, sha256, source)
    assets = _unpack_assets([file.path for file in fetched], source, stack)
    alone = single and bool(source.members)
    files = [
        _File(file.path, str(file.path), "" if alone else name, {}, source)
        for file, name in zip(fetched, names, strict=True)
    ]
    originals = [
        PublishedFile(url, file.path, file.sha256, source.revision)
        for url, file in zip(urls, fetched, strict=True)
    ]
    return OpenedSource(source, files, [_origin_record(file, source) for file in fetched], assets, originals)


def _unpack_assets(archives: Sequence[Path], source: Source, stack: contextlib.ExitStack) -> dict[str, Path]:
    """Unpack the assets in archives, and return their paths by name."""
    if not source.assets:
        return {}
    folder = _temporary_folder(stack)
    unpacked = {}
    for archive in archives:
        for name, data in open_members(archive, source.assets, str(archive)):
            unpacked[name] = _new_file(folder, name)
            with data, unpacked[name].open("wb") as copy:
                shutil.copyfileobj(data, copy)
    return unpacked


def _open_hub_dataset(source: Source, fetcher: Fetcher) -> OpenedSource:
    files, origin, originals = [], [], []
    several = "{" in f"{source.hf}{source.config}{source.hf_split}"
    parquet = msgspec.structs.replace(source, format="parquet", members="")
    for listing, fields in _hub_listings(source):
        shards = _map_in_threads(lambda url: fetcher.fetch(url, source), _shard_urls(listing, source, fetcher))
        for number, file in enumerate(shards):
            place = [fields.get("_hf", ""), fields["_config"], fields["_split"], f"{number}.parquet"]
            name = "/".join(filter(None, place))
            files.append(_File(file.path, str(file.path), name, fields if several else {}, parquet))
            origin.append(_origin_record(file, source))
            originals.append(PublishedFile(f"{listing}/{number}.parquet", file.path, file.sha256))
    return OpenedSource(source, files, origin, {}, originals)


def _hub_listings(source: Source) -> list[tuple[str, Row]]:
    """Return (address of the list of files; `_config`, `_split`, of several sets `_hf`) of each set,
    configuration, split."""
    listings = []
    for name, config in itertools.product(expand_braces(source.hf), expand_braces(source.config or "default")):
        name, _, its = name.partition(":")
        config, _, own = (its or config).partition("/")
        splits = [own] if own else expand_braces(source.hf_split or source.split)
        for split in splits:
            fields = {"_config": config, "_split": split}
            if name != source.hf:
                fields["_hf"] = name
            listings.append((f"{hub_url()}/api/datasets/{name}/parquet/{config}/{split}", fields))
    return listings


def _shard_urls(listing: str, source: Source, fetcher: Fetcher) -> list[str]:
    if fetcher.mirror and (names := fetcher.mirror.files_below(listing)):
        return [f"{listing}/{name}" for name in names]
    try:
        return msgspec.json.decode(fetcher.listing(listing, source), type=list[str])
    except msgspec.DecodeError as error:
        raise DataError(f"{listing} did not answer with a list of files ({error}).") from error


def _open_repository(source: Source, fetcher: Fetcher, stack: contextlib.ExitStack) -> OpenedSource:
    tree = _mirrored_tree(source, fetcher)
    at, commit = source.revision or source.ref, source.revision
    record = {"from": "mirror", "revision": at, "url": f"https://github.com/{source.github}/tree/{at}"}
    if not tree:
        url = f"{archives_url()}/{source.github}/tar.gz/{at}"
        archive = fetcher.fetch(url, msgspec.structs.replace(source, sha256=""))
        tree, commit = _extract_tree(archive.path, source, _temporary_folder(stack))
        record = {"from": archive.origin, "revision": commit or at, "url": url}
    names = select_names(tree, source.members)
    if not names:
        raise DataError(f"{record['url']} has no file like '{source.members}'.")
    wanted = {name: verify_file(*tree[name]) for name in dict.fromkeys([*names, *_asset_names(source, tree)])}
    sha256 = _combined_sha256((name, wanted[name]) for name in names)
    check_sha256(record["url"], record["from"], sha256, source)
    shown = f"{source.github}@{at[:12]}"
    return OpenedSource(
        source,
        [_File(tree[name][0], f"{shown}, {name}", name, {}, source) for name in names],
        [{**record, "sha256": sha256, "files": len(names)}],
        {name: tree[name][0] for name in _asset_names(source, tree)},
        [
            PublishedFile(f"https://{RAW}/{source.github}/{at}/{name}", tree[name][0], wanted[name], commit)
            for name in wanted
        ],
    )


def _asset_names(source: Source, tree: Iterable[str]) -> list[str]:
    if source.assets:
        return select_names(tree, source.assets)
    return []


def _mirrored_tree(source: Source, fetcher: Fetcher) -> dict[str, tuple[Path, str]]:
    """Return a map of path → (file, promised sha256) if the mirror has all that `members` lists, and some file for each
    pattern; else an empty one."""
    if fetcher.mirror is None:
        return {}
    tree = fetcher.mirror.tree(source.github, source.ref, source.revision)
    if all(select_names(tree, member) for member in expand_braces(source.members)):
        return tree
    return {}


def _extract_tree(archive: Path, source: Source, folder: Path) -> tuple[dict[str, tuple[Path, str]], str]:
    """Extract (wanted files of a repository's archive, its commit); the one folder that all members lie in is left
    out."""
    try:
        with tarfile.open(archive) as tar:
            entries = {entry.name.partition("/")[2]: entry for entry in tar if entry.isfile()}
            tree = {}
            for name in _names_to_extract(source, entries):
                data = tar.extractfile(entries[name])
                assert data is not None, "a regular file can be extracted"
                path = _new_file(folder, name)
                with data, path.open("wb") as copy:
                    shutil.copyfileobj(data, copy)
                tree[name] = (path, "")
            return tree, str(tar.pax_headers.get("comment", ""))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{archive} cannot be read as an archive: {error}.") from error


def _names_to_extract(source: Source, names: dict[str, tarfile.TarInfo]) -> list[str]:
    selected = {*select_names(names, source.members), *_asset_names(source, names)}
    order = {name: place for place, name in enumerate(names)}
    return sorted(selected, key=order.__getitem__)


def _new_file(folder: Path, name: str) -> Path:
    """Return a path for `name` below `folder`, and make its parent folders. Raises DataError for a name that would
    leave it."""
    if os.path.isabs(name) or "\0" in name or ".." in PurePosixPath(name).parts:
        raise DataError(f"The archive has a member with the name '{name}', which leads out of its folder.")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _temporary_folder(stack: contextlib.ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="newskills-")))


def _below_folder(pattern: str, places: Sequence[str]) -> list[str]:
    """Return the paths of files below the folder that is the same for all, whichever of them are asked for."""
    folder = pattern.partition("{")[0].rpartition("/")[0]
    return [place.removeprefix(folder).lstrip("/") for place in places]


def _combined_sha256(files: Iterable[tuple[str, str]]) -> str:
    """Return the sha256 of one file; of several, that of the lines `<sha256>  <name>`."""
    pairs = list(files)
    if len(pairs) == 1:
        return pairs[0][1]
    return hashlib.sha256("".join(f"{sha256}  {name}\n" for name, sha256 in pairs).encode()).hexdigest()


def _map_in_threads(work: Callable[[T], U], items: Sequence[T]) -> list[U]:
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(_AT_ONCE, len(items))) as pool:
        return list(pool.map(work, items))


def _origin_record(file: FetchedFile, source: Source) -> Row:
    return {"url": file.url, "sha256": file.sha256, "from": file.origin, "revision": source.revision}
