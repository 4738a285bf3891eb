# SPDX-License-Identifier: Apache-2.0
"""Scanners in `ns view`: a column and a filter in the list, quotes beside the sample, in a real Chromium."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.view.browser import Browser, chromium
from tests.view.results import HOSTILE, benchmark, record, write_lines

import newskills
from newskills.view.export import export_viewer
from newskills.view.library import Library
from newskills.view.pages.sample import sample_page
from newskills.view.scans.viewed import label_counts, marks_of
from newskills.view.server import ViewOptions, serve_viewer
from newskills.view.tables import samples_of

DECLINED = f"I'm sorry, but I can't help with {HOSTILE}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two seeds with a broken line in the first, and records with the same id."""
    monkeypatch.setenv("NEWSKILLS_CACHE", str(tmp_path / "cache"))
    rows = [record(n) for n in range(6)]
    refused = record(7, outcome="no_answer", generation=DECLINED)
    benchmark(tmp_path / "run", "sums", [[rows[0], '{"id": "broken', *rows[1:], refused, refused], rows])
    newskills.scan(results_dir=tmp_path / "run", scanners=["refusal", "loop"])
    return tmp_path / "run"


def test_labels_stand_at_their_lines(folder: Path) -> None:
    library = Library([folder], wait=True)
    indexed = library.indexed("run", "sums")
    assert label_counts(library.folders, indexed, samples_of(indexed).sizes) == {"refusal": {"refused": 2}}
    assert [[mark["scanner"] for mark in marks_of(library.folders, indexed, 0, n)] for n in range(9)] == [
        *[[]] * 7, ["refusal"], ["refusal"],
    ]  # fmt: skip
    (mark,) = sample_page(library, "run", "sums", 0, 7)["scans"]
    assert (mark["label"], mark["looks_for"]) == ("refused", "the reply declines the task")
    assert mark["quotes"][0].startswith("I'm sorry, but I can't help with")
    library.close()


def test_results_that_lead_elsewhere_or_are_broken_are_not_read(folder: Path, tmp_path: Path) -> None:
    scans = folder / "eval-results/sums/scans"
    (scans / "refusal/labels-rs0.jsonl").write_text(
        '{"id": "x", "label": "a", "place": 99999999999}\n{"half\n\xff'
    )
    elsewhere = write_lines(tmp_path / "elsewhere/labels.jsonl", [{"id": "x", "label": "stolen", "place": 0}])
    (scans / "loop/labels-rs0.jsonl").unlink()
    (scans / "loop/labels-rs0.jsonl").symlink_to(elsewhere)
    library = Library([folder], wait=True)
    indexed = library.indexed("run", "sums")
    assert label_counts(library.folders, indexed, samples_of(indexed).sizes) == {}
    assert marks_of(library.folders, indexed, 0, 0) == []
    library.close()


@pytest.fixture
def browser() -> Iterator[Browser]:
    if chromium() is None:
        if os.environ.get("NEWSKILLS_TEST_EXTRAS"):
            pytest.fail("no chromium here: apt-get install chromium")
        pytest.skip("no chromium here: apt-get install chromium")
    made = Browser()
    yield made
    made.close()


@pytest.mark.slow
def test_a_column_and_a_filter_in_the_list(folder: Path, tmp_path: Path, browser: Browser) -> None:
    export_viewer([folder], tmp_path / "exported", 100)
    with serve_viewer(ViewOptions(folders=(folder,))) as served:
        for page in (served, (tmp_path / "exported/index.html").as_uri()):
            browser.open(f"{page}#/benchmark?run=run&benchmark=sums")
            assert "refusal: refused" in browser.text()
            browser.open(f"{page}#/samples?run=run&benchmark=sums")
            browser.wait("document.body.innerText.includes('15 samples of 15')")
            assert browser.text().count("refusal: refused\n") >= 1
            browser.run("const s = document.querySelector('select[name=scan]'); s.value = 'refusal=refused';"
                        " s.dispatchEvent(new Event('change')); 0")  # fmt: skip
            browser.wait("document.body.innerText.includes('2 samples of 15')")
            assert "scan=refusal%3Drefused" in browser.run("location.hash")
            if page == served:
                browser.run("const w = document.querySelector('#where'); w.value = 'loop = no and refusal != refused';"
                            " w.dispatchEvent(new Event('change')); 0")  # fmt: skip
                browser.wait("document.body.innerText.includes('0 samples of 15')")
                browser.run("w.value = 'refusal = refused'; w.dispatchEvent(new Event('change')); 0")
                browser.wait("document.body.innerText.includes('2 samples of 15')")
            browser.click("a.row")
            browser.wait("document.querySelector('.scans blockquote') !== null")
            assert "1 of 2" in browser.text()
            assert browser.run("window.pwned === undefined")
            for width in (1280, 390):
                browser.size(width, 900)
                browser.settled()
                assert browser.run("document.documentElement.scrollWidth") <= width
                if pictures := os.environ.get("SCAN_PICTURES"):
                    browser.picture(Path(pictures) / f"sample-{width}.png", height=1200)
            browser.size(1280, 900)
    assert [message for message in browser.messages if "exception" in message] == []
    assert json.loads((folder / "eval-results/sums/scans/refusal/scan.json").read_text())["scanner"] == "refusal"
