# SPDX-License-Identifier: Apache-2.0
"""The documentation as a browser shows it: sections, and nothing cut off on a screen of 1280 pixels."""

from __future__ import annotations

import functools
import http.server
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.night import NIGHTLY

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ("--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync")
SECTIONS = ["Start", "Evaluate", "Data", "Train", "Clusters", "Extend", "Reference"]
SEARCH = "/search/search_index.json"
MEASURE = """<!doctype html><title>waiting</title><script>
const pages = PAGES;
const wide = [];
async function look() {
  const frame = document.body.appendChild(document.createElement("iframe"));
  frame.width = 1280; frame.height = 900;
  for (const page of pages) {
    await new Promise(done => { frame.onload = done; frame.src = page; });
    const blocks = frame.contentDocument.querySelectorAll("pre > code, .md-typeset__table");
    for (const block of blocks)
      if (block.scrollWidth > block.clientWidth + 1) wide.push(page + ": " + block.textContent.trim().slice(0, 60));
    if (blocks.length === 0 && page.includes("commands/")) wide.push(page + ": has no help");
  }
  await fetch("/measured", {method: "POST", body: ["looked at " + pages.length, ...wide].join("\\n")});
}
addEventListener("load", look);
</script><body></body>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return folder


class Measured(http.server.ThreadingHTTPServer):
    """Serves the site, and keeps what its page of measurement reports."""

    def __init__(self, site: Path) -> None:
        self.report: queue.Queue[str] = queue.Queue()
        server = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                if self.path == SEARCH:  # each page would index all pages anew
                    self.send_error(404)
                else:
                    super().do_GET()

            def do_POST(self) -> None:
                server.report.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.send_response(204)
                self.end_headers()

        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=site))


@pytest.fixture
def server(site: Path) -> Iterator[Measured]:
    with Measured(site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def pages_of(nav: object) -> Iterator[str]:
    """The pages of a navigation, however deep."""
    if isinstance(nav, str):
        yield nav
    for entry in nav if isinstance(nav, list) else nav.values() if isinstance(nav, dict) else ():
        yield from pages_of(entry)


def test_the_pages_stand_in_seven_sections_and_none_is_left_out() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert [title for section in nav for title in section] == SECTIONS
    assert next(iter(nav[0]["Start"][0])) == "Install"
    listed = set(pages_of(nav))
    there = {page.name for page in (ROOT / "docs").glob("*.md")} | {"headlines.md"}
    assert there - listed == set()
    assert all(len(pages) <= 16 for section in nav for pages in section.values())


@pytest.mark.slow
def test_home_has_three_tabs_of_four_lines_and_a_dark_mode(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    labels = re.search(r'<div class="tabbed-labels">(.*?)</div>', page, re.DOTALL)
    assert labels is not None
    assert re.findall(r"<label[^>]*>(?:<a[^>]*>)?(\w+)", labels[1]) == ["Evaluate", "Generate", "Train"]
    blocks = re.findall(r'<div class="tabbed-block">.*?<code>(.*?)</code>', page, re.DOTALL)
    lines_by_tab = [re.sub("<.*?>", "", block).strip().splitlines() for block in blocks]
    assert [len(lines) for lines in lines_by_tab] == [4, 4, 4]
    assert all(any(line.startswith("ns ") for line in lines) for lines in lines_by_tab)
    assert re.findall(r'<input[^>]*name="__palette"', page) != []
    assert {"default", "slate"} <= set(re.findall(r'data-md-color-scheme="(\w+)"', page))


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")
def test_nothing_is_cut_off_at_1280_pixels(site: Path, server: Measured, tmp_path: Path) -> None:
    assert CHROMIUM is not None
    own = [page for page in site.glob("*/index.html") if page.parent.name not in ("commands", "benchmarks")]
    commands = sorted(site.glob("commands/*/index.html"))[:: 1 if NIGHTLY else 32]
    pages = [f"/{page.relative_to(site)}" for page in sorted([*sorted(own)[:: 1 if NIGHTLY else 8], *commands])]
    pages += ["/index.html", "/benchmarks/index.html", "/benchmarks/bbh/index.html", "/benchmarks/bbq/index.html"]
    (site / "measure.html").write_text(MEASURE.replace("PAGES", repr(pages)), encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        *QUIET,
        f"--user-data-dir={tmp_path}",
    ]
    command = [
        CHROMIUM,
        *options,
        "--window-size=1400,1000",
        "--remote-debugging-port=0",
        f"http://127.0.0.1:{server.server_port}/measure.html",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
    ) as browser:
        try:
            report = server.report.get(timeout=240)
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
    assert report.splitlines() == [f"looked at {len(pages)}"]
