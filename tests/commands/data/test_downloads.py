# SPDX-License-Identifier: Apache-2.0
"""The bar of downloads: on a terminal only, never in the lines that are kept."""

from __future__ import annotations

import io

import pytest

from newskills.pipelines.data import downloads
from newskills.pipelines.data.downloads import DownloadProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(downloads, "_PAUSE", 0.0)
    bar = DownloadProgress(4)
    bar("https://host/a/one.jsonl", 2**20, 2**21)
    assert "[------------------------] 0/4  1.0 MB" in terminal.getvalue()
    assert terminal.getvalue().rstrip().endswith("one.jsonl 50%")
    bar.count_one()
    bar("https://host/two\x1b[2Jx", 2**21, None)
    assert "[######------------------] 1/4  3.0 MB" in terminal.getvalue()
    assert "\x1b[2J" not in terminal.getvalue()
    bar.line("one is done")
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert capsys.readouterr().out == "one is done\n"


def test_no_bar_elsewhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    bar = DownloadProgress(1)
    bar("https://host/one", 1, 2)
    bar.line("kept")
    assert capsys.readouterr() == ("kept\n", "")
