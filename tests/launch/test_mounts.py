# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newskills.base.errors import ConfigError
from newskills.launch.clusters.mounts import (
    Mount,
    clean_path,
    is_inside,
    is_reachable,
    parse_mount,
    parse_mounts,
    to_container,
    to_host,
)

PARTS = st.lists(st.sampled_from(["data", "data2", "da", "a b", "x'y", "é"]), max_size=4)
PATHS = PARTS.map(lambda parts: "/" + "/".join(parts))
MOUNTS = st.lists(st.builds(Mount, PATHS, PATHS.filter(lambda p: p != "/")), max_size=5, unique_by=lambda m: m.dst)


def test_the_forms() -> None:
    assert parse_mount("/a/:/b//c") == Mount("/a", "/b/c")
    assert parse_mount("/a:/b:ro") == Mount("/a", "/b", "ro")
    assert parse_mount("/a:/b:rw") == Mount("/a", "/b")
    assert str(parse_mount("/a:/b:ro")) == "/a:/b:ro"


@pytest.mark.parametrize(
    "text", ["", "/a", "/a:", ":/b", "/a:/b:rx", "/a:/b:ro:z", "a:/b", "/a:b", "/a,b:/c", "/a\n:/b"]
)
def test_no_mounts(text: str) -> None:
    with pytest.raises(ConfigError, match="mount"):
        parse_mount(text)


def test_one_destination_has_one_source() -> None:
    assert len(parse_mounts(["/a:/x", "/a:/x"])) == 1
    with pytest.raises(ConfigError, match="same destination"):
        parse_mounts(["/a:/x", "/b:/x/"])
    for hiding in ("/a:/nemo_run", "/a:/nemo_run/code", "/a:/nemo_run/code/x", "/a:/"):
        with pytest.raises(ConfigError, match="packaged code"):
            parse_mounts([hiding])


def test_whole_components_count() -> None:
    mounts = parse_mounts(["/host:/data"])
    assert is_reachable("/data", mounts)
    assert is_reachable("/data/x/../y", mounts)
    assert not is_reachable("/data2", mounts)
    assert not is_reachable("/data/../etc", mounts)
    assert not is_reachable("/", mounts)
    assert to_host("/data/x", mounts) == "/host/x"
    assert to_container("/host2/x", mounts) is None


def test_a_mount_may_lie_in_another() -> None:
    mounts = parse_mounts(["/host:/data", "/fast:/data/cache"])
    assert to_host("/data/cache/x", mounts) == "/fast/x"
    assert to_container("/host/cache/x", mounts) is None, "the other mount hides it"
    assert to_container("/fast/x", mounts) == "/data/cache/x"


@given(PATHS, MOUNTS)
def test_there_and_back(path: str, mounts: list[Mount]) -> None:
    host = to_host(path, mounts)
    assert is_reachable(path, mounts) == (host is not None)
    if host is not None:
        assert any(is_inside(path, m.dst) and is_inside(host, m.src) for m in mounts)
    seen = to_container(path, mounts)
    if seen is not None:
        assert to_host(seen, mounts) == path
        assert any(is_inside(seen, m.dst) for m in mounts)


@given(PARTS, PARTS)
def test_inside_is_about_components(outer: list[str], inner: list[str]) -> None:
    assert is_inside("/" + "/".join(inner), "/" + "/".join(outer)) == (inner[: len(outer)] == outer)


@given(st.text(alphabet="/.ab", max_size=12).map(lambda text: "/" + text))
def test_clean_paths_are_absolute_and_stay_clean(path: str) -> None:
    done = clean_path(path)
    assert done.startswith("/")
    assert not {".", "..", ""} & set(done.split("/")[1:-1])
    assert done == "/" or not done.endswith("/")
    assert clean_path(done) == done
