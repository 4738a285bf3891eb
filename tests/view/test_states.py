# SPDX-License-Identifier: Apache-2.0
"""Every page of the viewer with results of every kind, one run to 500, wide and narrow, light and dark: nothing is cut
off, nothing lacks contrast, no value is missing.

With NEWSKILLS_SCREENSHOTS=FOLDER all pictures are kept there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.view.browser import Browser, chromium
from tests.view.load_tests import write_load_test
from tests.view.results import benchmark, mixed, record, rich_records, shares, write_lines
from tests.view.test_faces import agent, calls_row, instructions_row, options_row

from newskills.base.records import Row
from newskills.view.server import ViewOptions, serve_viewer

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]
SIZES = ((1280, 900), (390, 844))
LEAST_CONTRAST = 4.5
"""Of text and what is behind it, large text aside (https://www.w3.org/TR/WCAG21/#contrast-minimum)."""
UNREADABLE = """(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map((n) => top[n] * a + below[n] * (1 - a)); };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    const own = parse(getComputedStyle(node).backgroundColor);
    if (own.length === 3 || own[3] === 1) return own.slice(0, 3);
    const below = node.parentElement ? behind(node.parentElement) : [255, 255, 255];
    return own.length ? over(own, below) : below;
  };
  const faint = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), node = walker.currentNode.parentElement;
    if (!text || !node.getClientRects().length || node.closest('svg, option, [disabled], .katex')) continue;
    const style = getComputedStyle(node), size = parseFloat(style.fontSize);
    if (style.visibility === 'hidden') continue;
    const back = behind(node), front = over(parse(style.color), back);
    const [low, high] = [light(front), light(back)].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < (size >= 24 ? 3 : LEAST)) {
      faint.add(`${ratio.toFixed(1)} ${node.tagName}.${node.className}: ${text.slice(0, 30)}`);
    }
  }
  return [...faint].slice(0, 12);
})()""".replace("LEAST", str(LEAST_CONTRAST))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("no chromium here: apt-get install chromium")
    made = Browser()
    yield made
    made.close()


def code_row() -> Row:
    failed = {
        "number": 2,
        "total": 3,
        "input": "5 6\n",
        "expected": "11",
        "actual": "3",
        "error": "",
        "why": "output",
    }
    return {"completion": "def add(a, b):\n    # always\n    return 3", "failed_test": failed}


def judged_row() -> Row:
    return {"judgement-gen-base": "Reasoning: both hold.\n[[A>B]]", "judgement-base-gen": "[[B>A]]"} | {
        "arena_games": ["A>B", "B>A"]
    }


KINDS: dict[str, Callable[[], Row]] = {
    "choices": options_row,
    "code": code_row,
    "instructions": instructions_row,
    "calls": calls_row,
    "judges": judged_row,
    "agents": agent,
}


def results(root: Path, runs: int) -> Path:
    """So many runs: mathematics with seeds, and in the first two also a benchmark of each other kind."""
    for number in range(runs):
        run = root / (f"model-{number}" if runs < 3 else f"qwen3-{1 + number % 5}b/step-{100 * (number // 5)}")
        seeds = 4 if runs < 3 else 1
        benchmark(run, "aime25", [mixed(30, 4 + number % 5, shift=seed + number) for seed in range(seeds)])
        benchmark(run, "graphwalks", [shares(24, 0.1 * (number % 3))])
        if runs > 2:
            for place in range(6 if runs < 100 else 12):
                benchmark(run, f"benchmark-{place}", [mixed(20, 3 + (number + place) % 6, shift=place)])
        if number < 2 and runs < 3:
            benchmark(run, "rich", [[row for row in rich_records() if isinstance(row, dict)]])
            for name, row in KINDS.items():
                benchmark(run, name, [[record(n, outcome="wrong") | row() for n in range(3)]])
    return root


def trained(root: Path) -> None:
    steps = [
        {
            "step": n,
            "loss": 1 / n,
            "reward": 0.2 + 0.03 * n,
            "learning_rate": 1e-4,
            "entropy": 1.2 - n / 40,
            "spread": 0.9 - n / 50,
        }
        for n in range(1, 21)
    ]
    replies = [{"text": "It is 42.", "reward": 1.0}, {"text": "It is 32.", "reward": 0.0}]
    write_lines(root / "training/grpo/metrics.jsonl", steps)
    write_lines(
        root / "training/grpo/samples.jsonl", [{"step": 5, "problem": "What is 17 + 25?", "responses": replies}]
    )
    write_load_test(root / "load")


@pytest.mark.parametrize("runs", [1, 2, 30, 500])
def test_pages_fit_and_can_be_read(
    browser: Browser, runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEWSKILLS_CACHE", str(tmp_path / "cache"))
    root = results(tmp_path / "results", runs)
    places = {"overview": ""}
    if runs < 3:
        trained(root)
        for kind in ("aime25", "rich", *KINDS):
            places |= {
                f"{kind}-benchmark": f"benchmark?run=model-0&benchmark={kind}",
                f"{kind}-samples": f"samples?run=model-0&benchmark={kind}",
                f"{kind}-sample": f"sample?run=model-0&benchmark={kind}&file=0&number=0",
            }
        places |= {f"rich-{n}": f"sample?run=model-0&benchmark=rich&file=0&number={n}" for n in range(1, 10)}
        places |= {"trainings": "training", "load": "load", "jobs": "jobs"}
        if runs > 2:
            places |= {"curves": "?curves=open", "pinned": "?baseline=qwen3-1b/step-0&group=model"}
        if runs == 2:
            places["compare"] = "compare?first=model-0&second=model-1&benchmark=aime25"
    faults = []
    browser.forget()  # the page of a viewer that has ended
    with serve_viewer(ViewOptions(folders=(root,))) as address:
        for width, height in SIZES:
            for dark in (False, True):
                browser.size(width, height, dark=dark)
                for name, place in places.items():
                    browser.messages.clear()
                    browser.open(f"{address}#/{place}")
                    browser.wait("!document.querySelector('p[role=status]')?.innerText.includes('Reading')")
                    if target := os.environ.get("NEWSKILLS_SCREENSHOTS"):
                        shade = "dark" if dark else "light"
                        browser.picture(Path(target) / f"{runs}-{name}-{width}-{shade}.png", height=3_000)
                    faults += [f"{name} at {width}, dark {dark}: {fault}" for fault in faults_of(browser, width)]
    assert not faults, "\n".join(sorted(set(faults)))


def faults_of(browser: Browser, width: int) -> list[str]:
    """What is wrong with the page as it stands."""
    faults = [f"no contrast: {text}" for text in browser.run(UNREADABLE)]
    if (whole := browser.run("document.documentElement.scrollWidth")) != width:
        faults.append(f"{whole} pixels wide")
    text = browser.text()
    faults += [f"the text {word!r}" for word in ("undefined", "NaN", "[object", "Infinity") if word in text]
    faults += [f"the console says {json.dumps(message)}" for message in browser.messages]
    return faults
