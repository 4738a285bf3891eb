# SPDX-License-Identifier: Apache-2.0
import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newskills.base.errors import DataError, LockedError, StorageError, storage_error
from newskills.base.records import Row
from newskills.base.store import (
    AppendLog,
    atomic_folder,
    atomic_write,
    encode_line,
    hold_lock,
    open_for_reading,
    private_folder,
    read_rows,
    waiting_lock,
    write_json,
    write_rows,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=50)
@given(rows=st.lists(st.dictionaries(st.text(max_size=6), JSON, max_size=4), max_size=8))
def test_rows_round_trip(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    path = tmp_path_factory.mktemp("rows") / "a.jsonl"
    assert write_rows(path, rows) == len(rows)
    assert list(read_rows(path)) == rows


def test_lone_surrogates_of_model_text_are_replaced_not_fatal() -> None:
    assert encode_line({"generation": "a\ud800b", "list": ["\udfff"]}) == b'{"generation":"a?b","list":["?"]}\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a":1}\nnot json\n', "line 2: invalid JSON"),
        (b'{"a":1}\n\n[1]\n', "line 3: expected a JSON object"),
        (b'{"a":"\xff"}\n', "line 1: invalid JSON"),
        (b'{"a":1', "line 1: invalid JSON"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(read_rows(path))


def test_missing_file_tells_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match=r"tset.jsonl.*test.jsonl"):
        list(read_rows(tmp_path / "tset.jsonl"))
    with pytest.raises(DataError, match="is a folder"):
        list(read_rows(tmp_path))


@given(cut=st.integers(0, 60))
def test_a_torn_line_is_dropped_and_overwritten(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("log") / "x.jsonl-async"
    log = AppendLog(path)
    for number in range(3):
        log.append({"n": number, "pad": "x" * 5})
    log.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    kept = whole[:cut].count(b"\n")
    log = AppendLog(path)
    offset = log.append({"n": 99})
    log.close()
    rows = list(read_rows(path))
    assert [row["n"] for row in rows] == [*range(kept), 99]
    assert path.read_bytes()[offset:] == b'{"n":99}\n'


def test_a_torn_tail_longer_than_a_block_is_found(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"a":1}\n' + b"x" * 200_000)
    AppendLog(path).close()
    assert path.read_bytes() == b'{"a":1}\n'


def test_a_full_disk_is_one_sentence_and_keeps_whole_lines(tmp_path: Path) -> None:
    script = f"""
import resource, signal
from pathlib import Path
from newskills.base.errors import StorageError
from newskills.base.store import AppendLog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
log = AppendLog(Path({str(tmp_path / "log")!r}))
log.append({{"n": 1}})
log.sync()
log.append({{"n": 2, "big": "x" * 5000}})
try:
    log.sync()
except StorageError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "cannot write" in done.stdout
    assert (tmp_path / "log").read_bytes() == b'{"n":1}\n'


def test_atomic_write_leaves_the_old_file_on_failure(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    write_json(path, {"a": 1})

    def fail_half_way() -> None:
        with atomic_write(path) as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert path.read_text() == '{\n  "a": 1\n}\n'
    assert [p.name for p in tmp_path.iterdir()] == ["metrics.json"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="not permitted"):
        write_json(tmp_path / "sub" / "x.json", {})


def test_a_file_where_a_folder_is_needed_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        write_json(tmp_path / "out" / "x.json", {})


def test_a_lock_is_exclusive_and_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys,time\nfrom pathlib import Path\nfrom newskills.base.store import hold_lock\n"
            f"with hold_lock(Path({str(path)!r}), 'x'):\n print('held', flush=True)\n time.sleep(60)",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    with (
        pytest.raises(LockedError, match=f"The output is in use by process {holder.pid}"),
        hold_lock(path, "The output"),
    ):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with hold_lock(path, "The output"):
        pass


def test_a_folder_without_locks_is_not_taken_for_one_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As NFS without its lock daemon answers: jobs would wait for ever for somebody who is not there."""

    def none_here(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("newskills.base.store.fcntl.flock", none_here)
    with pytest.raises(StorageError, match="has no file locks"), waiting_lock(tmp_path / "lock", "The output"):
        pass


def test_limits_of_this_process_are_untouched() -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match=r"/file is in the way: it is not a folder; cannot write .*/file/x/out"):
        write_json(tmp_path / "file" / "x" / "out", {})
    with pytest.raises(StorageError, match="A folder has that name"):
        write_json(tmp_path / "folder", {})
    gone = storage_error(FileNotFoundError(errno.ENOENT, "x"), tmp_path / "folder" / "a" / "b")
    assert f"The folder below {tmp_path}/folder is gone" in gone.message
    if Path("/proc/self").is_dir():
        refused = storage_error(FileNotFoundError(errno.ENOENT, "x"), "/proc/out/output.jsonl")
        assert refused.message == "/proc takes no files or folders; cannot write /proc/out/output.jsonl."
    quoted = OSError("Error while serializing: I/O error: No space left on device (os error 28)")
    assert storage_error(quoted, "b").message == "No space is left on the disk: cannot write b."
    assert "free some space" in storage_error(OSError(errno.ENOSPC, "x"), "b").hint


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "made" / "checkpoint"
    with pytest.raises(ZeroDivisionError), atomic_folder(target) as folder:
        (folder / "half").write_text(str(1 / 0))
    assert not any(target.parent.iterdir())
    left = target.with_name(".checkpoint.tmp")
    left.mkdir()
    (left / "of a killed process").write_text("x")
    with atomic_folder(target) as folder:
        (folder / "deep").mkdir()
        (folder / "deep/file").write_text("whole")
    assert [path.name for path in target.parent.iterdir()] == ["checkpoint"]
    assert [path.name for path in target.iterdir()] == ["deep"]
    with pytest.raises(StorageError, match="contains files"), atomic_folder(target):
        raise AssertionError("no work is done for a place that is taken")
    assert (target / "deep/file").read_text() == "whole"
    assert [path.name for path in target.parent.iterdir()] == ["checkpoint"]


@pytest.mark.parametrize("files", [3, 12, 14])
def test_a_missing_file_names_what_its_folder_has_or_how_many_more(tmp_path: Path, files: int) -> None:
    for number in range(files):
        (tmp_path / f"{number:02}.jsonl").touch()
    with pytest.raises(DataError) as caught:
        open_for_reading(tmp_path / "none.jsonl")
    shown = ", ".join(f"{number:02}.jsonl" for number in range(min(files, 12)))
    assert str(caught.value).endswith(f"That folder has: {shown}{' and 2 more' if files > 12 else ''}.")


def test_a_folder_in_a_place_of_all_users_is_this_user_s_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir(mode=0o755)
    assert private_folder(folder, "notes").stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(StorageError, match="link belongs to another user"):
        private_folder(tmp_path / "link", "notes")
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(StorageError, match="notes belongs to another user"):
        private_folder(folder, "notes")
