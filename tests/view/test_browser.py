# SPDX-License-Identifier: Apache-2.0
"""The page in a real headless Chromium: what people see, what keys do, and that text of models never acts.

With NEWSKILLS_SCREENSHOTS=docs/images the pictures of docs/view.md are made anew.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import struct
import wave
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.view.browser import Browser, chromium
from tests.view.load_tests import write_load_test
from tests.view.results import HOSTILE, benchmark, mixed, record, rich_records, shares, write_lines

from newskills.view.export import ExportedPage, export_viewer
from newskills.view.server import ViewOptions, serve_viewer

pytestmark = pytest.mark.slow
TOKENS_OF_ROWS = "[...document.querySelectorAll('a.row .right')].map((node) => parseInt(node.innerText))"
RICH = "run=base&benchmark=rich"
SUMS = "run=base&benchmark=sums"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        if os.environ.get("NEWSKILLS_TEST_EXTRAS"):
            pytest.fail("no chromium here: apt-get install chromium")
        pytest.skip("no chromium here: apt-get install chromium")
    made = Browser()
    yield made
    made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with seeds, one benchmark of rich and hostile records, two trainings, a load test."""
    root = tmp_path_factory.mktemp("results")
    benchmark(root / "base", "sums", [mixed(120, 5, shift=s) for s in range(4)])
    benchmark(root / "tuned", "sums", [mixed(120, 7, shift=s) for s in range(4)])
    benchmark(root / "base", "rich", [rich_records()])
    for name, slope in (("sft", 0.02), ("grpo", 0.03)):
        steps = [
            {"step": n, "loss": 1 / n, "reward": 0.2 + slope * n, "learning_rate": 1e-4} for n in range(1, 21)
        ]
        responses = [{"text": HOSTILE, "reward": 1.0}, {"text": "no", "reward": 0.0}]
        samples = [{"step": 5, "problem": "2+2", "responses": responses}]
        if name == "grpo":
            samples += sums_of_a_step()
            for row in steps:
                n = row["step"]
                parts = {"reward/verdict": 0.15 + 0.03 * n, "reward/format": 0.05 + n % 3 / 100}
                row |= {**parts, "spread": 0.9 - n / 50, "entropy": 1.2 - n / 40, "completion_tokens": 60 + n}
        write_lines(root / "training" / name / "metrics.jsonl", steps)
        write_lines(root / "training" / name / "samples.jsonl", samples)
    write_load_test(root / "load", model=HOSTILE)
    return root


def sums_of_a_step() -> list[dict[str, Any]]:
    """Two problems of step 6: replies that differ, and replies of equal rewards."""
    texts = (
        "7 + 5 = 12, carry 1. Then 1 + 2 + 1 = 4.",
        "7 + 5 = 12. Then 1 + 2 = 3.",
        "It is 42 without any carry.",
    )
    rewards = ((1.0, 0.1), (0.0, 0.1), (1.0, 0.0))
    replies = [
        {
            "text": f"{text}\n\nThe answer is {42 if verdict else 32}.",
            "reward": verdict + form,
            "advantage": round(verdict + form - 0.733, 3),
            "stop_reason": "stop",
            "components": {"verdict": verdict, "format": form},
        }
        for text, (verdict, form) in zip(texts, rewards, strict=True)
    ]
    sums = [("What is 17 + 25?", replies), ("What is 2 + 2?", [replies[0]] * 3)]
    return [{"step": 6, "problem": problem, "responses": responses} for problem, responses in sums]


@pytest.fixture(scope="module")
def written(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> ExportedPage:
    return export_viewer([folder], tmp_path_factory.mktemp("exported") / "page", 1000)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., str]]:
    monkeypatch.setenv("NEWSKILLS_CACHE", str(tmp_path / "cache"))
    with ExitStack() as stack:
        yield lambda *folders: stack.enter_context(serve_viewer(ViewOptions(folders=folders)))


@pytest.fixture
def page(browser: Browser, folder: Path, shown: Callable[..., str]) -> str:
    browser.size(1280, 900)
    browser.forget()
    return shown(folder)


def unharmed(browser: Browser) -> None:
    """No script of a record ran, none of its elements is there, and nothing outside was asked for."""
    assert browser.run("window.pwned === undefined")
    assert (
        browser.run(
            "document.querySelectorAll('main script, main iframe, main style, main [onerror], main object').length"
        )
        == 0
    )
    links = browser.run("[...document.querySelectorAll('a')].map((node) => node.getAttribute('href'))")
    assert all(link is None or link.startswith("#") for link in links)
    assert not [address for address in browser.requested if "//evil" in address]
    assert browser.run("getComputedStyle(document.body).display") != "none"


def test_the_overview_leads_to_samples_and_the_reason_in_three_clicks(browser: Browser, page: str) -> None:
    browser.open(page)
    assert "Overview" in browser.text()
    browser.click("table.scores td.name a")
    browser.wait("document.querySelector('main').dataset.page === 'benchmark'")
    assert browser.run("document.querySelectorAll('svg.plot').length") >= 2
    browser.click("main a.button:not(.plain)")
    browser.wait("document.querySelectorAll('a.row').length > 0")
    browser.click("a.row")
    browser.wait("document.querySelector('main').dataset.page === 'sample'")
    assert "Why the grader decided so" in browser.text()
    assert not browser.messages


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty checkpoints of two models on twelve benchmarks, one of them with a hostile name."""
    names = ["sums", *(f"a-rather-long-benchmark-name-{n}" for n in range(11))]
    models = ("tuned-with-a-long-name-of-its-own-1.7b", "<img src=x onerror=pwned=1>-135m")
    return checkpoints(tmp_path_factory.mktemp("many"), models, names)


def checkpoints(root: Path, models: tuple[str, str], names: list[str]) -> Path:
    for number in range(40):
        for place, name in enumerate(names[: 2 if number > 15 else None]):
            right = 3 + number // 8 + place % 3
            rows = mixed(100, right, shift=number)
            if place % 3 == 1:
                rows[:4] = [record(n, outcome="unscored") for n in range(4)]
            benchmark(root / models[number % 2] / f"step-{100 * (number // 2)}", name, [rows])
    return root


def test_many_runs_are_a_matrix_of_one_screen(browser: Browser, many: Path, shown: Callable[..., str]) -> None:
    browser.size(1280, 900)
    browser.forget()
    address = shown(many)
    browser.open(address)
    browser.wait("document.querySelectorAll('.matrix .score').length > 20")
    browser.wait("!document.querySelector('p[role=status]').innerText.includes('Reading')")
    assert "40 runs on 12 benchmarks" in browser.text()
    assert browser.run("document.body.scrollHeight") < 1_150
    assert browser.run("document.querySelectorAll('.mbody .mrow').length") < 40
    unharmed(browser)
    sums = "document.querySelector('button[aria-label=\"Sort by sums\"]').click()"
    scores = (
        "[...document.querySelectorAll('.mbody .mrow')]"
        ".map((row) => parseFloat(row.querySelectorAll('.mcell')[11].innerText))"
    )
    browser.run(sums)
    falling = browser.run(scores)
    assert falling == sorted(falling, reverse=True)
    browser.run(sums)
    rising = browser.run(scores)
    assert rising == sorted(rising)
    assert rising[0] < falling[0]
    typed = (
        "(() => { const box = document.querySelector('input[name=%s]'); box.value = '%s';"
        " box.dispatchEvent(new Event('input')); })()"
    )
    browser.run(typed % ("q", "1.7b step-3"))
    assert browser.run("document.querySelector('p[role=status]').innerText").startswith("1 run of 40")
    browser.run(typed % ("q", ""))
    browser.run(typed % ("columns", "sums"))
    assert browser.run("document.querySelectorAll('.mhead .mcell').length") == 1
    assert "columns=sums" in browser.run("location.hash")
    assert not browser.messages


def test_a_pinned_run_shows_what_is_significant(browser: Browser, many: Path, shown: Callable[..., str]) -> None:
    browser.size(390, 844)
    browser.forget()
    address = shown(many)
    baseline = quote("tuned-with-a-long-name-of-its-own-1.7b/step-0", safe="")
    browser.open(f"{address}#/?baseline={baseline}&sort=b:sums&order=down&columns=sums&group=model")
    browser.wait("[...document.querySelectorAll('.matrix .diff')].some((node) => node.innerText.includes('▲'))")
    browser.wait("[...document.querySelectorAll('.matrix .diff')].every((node) => !node.innerText.includes('…'))")
    assert browser.run("document.querySelector('.matrix .diff.better').title").count("(p = ") == 1
    assert browser.run("document.documentElement.scrollWidth") == 390
    assert browser.run("document.querySelectorAll('.mgroup').length") >= 1
    browser.run("document.querySelector('details.curves').open = true")
    browser.wait("document.querySelectorAll('.curves svg.plot').length === 1")
    browser.click(".matrix .diff.better")
    browser.wait("document.querySelector('main').dataset.page === 'compare'")
    unharmed(browser)
    assert not browser.messages


def test_samples_of_each_kind_have_their_own_face(
    browser: Browser, tmp_path: Path, shown: Callable[..., str]
) -> None:
    """Hostile texts stand in every field that a face shows."""
    hidden = HOSTILE.replace("\n", " ")
    report = {"patch_exists": True, "resolved": False}
    steps = [
        {"command": "ls", "status": "completed", "exit_code": 0, "seconds": 0.1},
        {"command": hidden, "status": hidden, "exit_code": 2, "seconds": 1.5},
    ]
    talk = [{"role": role, "content": hidden} for role in ("user", "assistant", "tool", "assistant", "tool")]
    failed = {
        "number": 2,
        "total": 3,
        "input": hidden,
        "expected": hidden,
        "actual": hidden,
        "error": "",
        "why": hidden,
    }
    calls = [{"name": hidden, "arguments": {"a": hidden}}]
    rows = [
        record(0, outcome="wrong", completion=f"def f(x):\n    return 1  # {hidden}", failed_test=failed),
        record(1, outcome="wrong", instruction_id_list=[hidden], strict_eval={"follow_instruction_list": [False]}),
        record(
            2, outcome="wrong", problem=f"Which?\nA. one\nB. {hidden}", expected_answer="B", predicted_answer="A"
        ),
        record(3, outcome="wrong", check="calls", ground_truth=[{hidden: {"a": [hidden]}}], tool_calls=calls),
        record(4, judgement=hidden, judge_correct=True),
        {"id": "p5", "outcome": "wrong", "model_patch": f"--- a\n+++ b\n@@ 1 @@\n-{hidden}\n+y", "steps": steps}
        | {"conversation": talk, "swe-bench-metrics": report, "test_output": hidden, "exit_status": hidden},
    ]
    benchmark(tmp_path / "results/base", "faces", [rows])
    browser.forget()
    address = shown(tmp_path / "results")
    kinds = [
        ["code", "test"],
        ["checks"],
        ["options"],
        ["calls"],
        ["judgements"],
        ["checks", "output", "diff", "steps"],
    ]
    for number, wanted in enumerate(kinds):
        for width in (1280, 390):
            browser.size(width, 900)
            browser.open(f"{address}#/sample?run=base&benchmark=faces&file=0&number={number}")
            # The page before was a sample, too: its own name tells that this one is there.
            browser.wait(f"document.querySelector('main[data-page=sample] h1')?.innerText.includes('p{number}')")
            drawn = browser.run("[...document.querySelectorAll('[class*=face-]')].map((node) => node.className)")
            assert drawn == [f"card face-{kind}" for kind in wanted]
            assert browser.run("document.documentElement.scrollWidth") == width
            unharmed(browser)
            if target := os.environ.get("NEWSKILLS_SCREENSHOTS_OF_TESTS"):
                browser.picture(Path(target) / f"face-{number}-{width}.png")
    browser.click(".face-steps button")
    assert browser.run("document.querySelector('.step.failed').open")
    assert not browser.messages


def test_filters_are_in_the_address_and_the_list(browser: Browser, page: str) -> None:
    browser.open(f"{page}#/samples?{SUMS}")
    browser.wait("document.querySelectorAll('a.row').length === 50")
    browser.run(
        "(() => { const choice = document.querySelector('select[name=outcome]'); choice.value = 'wrong';"
        " choice.dispatchEvent(new Event('change')); })()"
    )
    browser.wait("document.querySelector('p[role=status]').innerText.startsWith('240 samples of 480')")
    assert "outcome=wrong" in browser.run("location.hash")
    browser.open(f"{page}#/samples?{SUMS}&agreement=none&seed=0&min=20&max=30")
    told = browser.run("document.querySelector('p[role=status]').innerText")
    rows = browser.run(TOKENS_OF_ROWS)
    assert int(told.split()[0]) == len(rows) > 0
    assert all(20 <= tokens <= 30 for tokens in rows)


def test_a_filter_line_takes_what_the_terminal_takes(browser: Browser, page: str) -> None:
    browser.open(f"{page}#/samples?{SUMS}")
    browser.wait("document.getElementById('where') !== null")
    browser.run("document.getElementById('where').focus()")
    browser.send("Input.insertText", text="outcome = w")
    options = "[...document.querySelectorAll('#where-options option')].map((node) => node.value)"
    assert browser.run(options) == ["outcome = wrong"]
    browser.send("Input.insertText", text="rong and tokens > 30")
    browser.press("Enter")
    browser.wait("location.hash.includes('where=outcome')")
    browser.wait("/^1?[0-9][0-9] samples of 480/.test(document.querySelector('p[role=status]').innerText)")
    assert all(tokens > 30 for tokens in browser.run(TOKENS_OF_ROWS))
    count = int(browser.run("document.querySelector('p[role=status]').innerText").split()[0])
    browser.click("a.row")
    browser.wait(f"document.body.innerText.includes('1 of {count}')")
    browser.open(f"{page}#/samples?{SUMS}&where=outcom%20%3D%20wrong")
    browser.wait("document.querySelector('p[role=status]').innerText.includes('outcome')")


def test_replies_are_markdown_with_what_was_searched_marked(browser: Browser, page: str) -> None:
    browser.open(f"{page}#/sample?{RICH}&file=0&number=11&q=second")
    browser.wait("document.querySelector('.markdown') !== null")
    shape = "[...document.querySelectorAll('.markdown')].pop().querySelectorAll('{}').length"
    for selector, count in (("li", 2), ("table td", 2), ("strong", 1), ("pre.code", 1), ("math", 2), ("a", 0)):
        assert browser.run(shape.format(selector)) == count, selector
    assert browser.run("[...document.querySelectorAll('mark.hit')].map((node) => node.innerText)") == ["Second"]
    assert browser.run("document.querySelector('.markdown mark.taken').innerText.includes('11')")
    text = browser.run("[...document.querySelectorAll('.markdown')].pop().innerText")
    assert "<b>not bold</b>" in text
    assert "a page (https://elsewhere.invalid/)" in text
    browser.press("r")
    browser.wait("document.querySelector('.markdown') === null")
    assert "**bold**" in browser.text()
    unharmed(browser)


def test_markdown_loses_no_word_and_takes_no_time(browser: Browser, page: str) -> None:
    """Words W1, W2, … wherever the parser would drop them; 100 kB that take it a square of time."""
    browser.open(page)
    address = (
        "performance.getEntriesByType('resource').map((one) => one.name).find((name) => name.endsWith('{}.js'))"
    )
    for name in ("markdown", "text"):
        browser.run(f"import({address.format(name)}).then((module) => {{ window.{name} = module; }})")
    texts = [
        '[a](http://b.invalid/W1 "W2") [a](http://b.invalid/$W3$)',
        "```python W1 $W2$\nW3\n```",
        "| a | b |\n|--|--|\n| W1 | W2 | W3 |",
        "".join(f"{'  ' * depth}- W{depth}\n" for depth in range(1, 70)),
        "> " * 120 + "W1",
        "<!-- W1 --> <script>W2</script> [W3](javascript:W4) [W5][W6]\n\n[W6]: http://b.invalid 'W7'",
    ]
    for text in texts:
        for query in ("W", "1", ""):
            call = f"markdown.markdown({json.dumps(text)}, {{ marks: text.hits({json.dumps(text)}, {query!r}) }})"
            shown = browser.run(f"{call}.textContent")
            assert set(re.findall(r"W\d+", text)) <= set(re.findall(r"W\d+", shown)), shown
            assert browser.run(f"{call}.querySelectorAll('[href], [src], script').length") == 0
    for text in ("*_" * 50_000, "a*" * 50_000, "`a " * 33_000, "```\n" * 25_000):
        call = f"markdown.markdown({json.dumps(text)})"
        assert (
            browser.run(
                f"(() => {{ const start = performance.now(); {call}; return performance.now() - start; }})()"
            )
            < 1500
        )


def test_search_finds_text_of_the_records(browser: Browser, page: str) -> None:
    browser.open(f"{page}#/samples?{SUMS}")
    browser.press("/")
    browser.wait("document.activeElement.id === 'search'")
    browser.send("Input.insertText", text="what is 77 times")
    browser.wait("document.querySelector('p[role=status]').innerText.startsWith('4 samples of 480')")
    assert "p77" in browser.run("document.querySelector('a.row').innerText")


def test_keys_lead_through_list_and_samples(browser: Browser, page: str) -> None:
    browser.open(f"{page}#/samples?{SUMS}&outcome=wrong")
    browser.press("j")
    browser.press("j")
    browser.press("Enter")
    browser.wait("document.querySelector('main').dataset.page === 'sample'")
    assert "2 of 240" in browser.text()
    browser.press("j")
    browser.wait("document.body.innerText.includes('3 of 240')")
    browser.press("k")
    browser.wait("document.body.innerText.includes('2 of 240')")
    browser.press("u")
    browser.wait("document.querySelector('main').dataset.page === 'samples'")
    browser.press("?")
    browser.wait("document.querySelector('dialog').open")
    browser.press("?")
    browser.press("g")
    browser.press("t")
    browser.wait("document.querySelector('main').dataset.page === 'training'")


def test_formulas_code_tools_pictures_and_reasoning_are_shown_as_such(browser: Browser, page: str) -> None:
    browser.open(f"{page}#/sample?{RICH}&file=0&number=0")
    assert browser.run("document.querySelectorAll('math').length") == 4
    assert "return n * (n + 1)" in browser.run("document.querySelector('pre.code').innerText")
    assert browser.run("document.querySelector('mark.taken.right').innerText").strip() == "28"
    assert "for $5 to $6." in browser.text()
    browser.press("r")
    browser.wait("document.body.innerText.includes('\\\\frac{-b')")
    browser.press("r")
    browser.wait("document.querySelectorAll('math').length === 4")
    browser.open(f"{page}#/sample?{RICH}&file=0&number=2")
    assert "print(84 / 2)" in browser.text()
    assert "tool: python" in browser.text()
    browser.open(f"{page}#/sample?{RICH}&file=0&number=3")
    assert browser.run("document.querySelector('details.card').open") is False
    browser.open(f"{page}#/sample?{RICH}&file=0&number=4")
    browser.wait("document.querySelector('main img').naturalWidth === 1")
    browser.open(f"{page}#/sample?{RICH}&file=0&number=8")
    assert "This line is no record" in browser.text()


def tone(path: Path) -> Path:
    """A quarter of a second of a sine, as WAV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"".join(struct.pack("<h", int(8000 * math.sin(n / 3))) for n in range(2000)))
    return path


@pytest.mark.parametrize("exported", [False, True])
def test_sound_is_played(browser: Browser, shown: Callable[..., str], tmp_path: Path, exported: bool) -> None:
    sound = tone(tmp_path / "results" / "sound" / "tone.wav")
    data = base64.b64encode(sound.read_bytes()).decode()
    carried = {"type": "audio_url", "audio_url": {"url": f"data:audio/wav;base64,{data}"}}
    asked = [{"role": "user", "content": [{"type": "text", "text": "What do you hear?"}, carried]}]
    rows = [record(0, messages=asked), record(1, audio_path=str(sound))]
    benchmark(tmp_path / "results" / "base", "heard", [rows])
    address = (
        export_viewer([tmp_path / "results"], tmp_path / "page", 10).page.as_uri()
        if exported
        else shown(tmp_path / "results")
    )
    for number in (0, 1):
        browser.open(f"{address}#/sample?run=base&benchmark=heard&file=0&number={number}")
        browser.wait("document.querySelector('main audio')?.readyState >= 1")
        assert browser.run("document.querySelector('main audio').duration") == pytest.approx(0.25, abs=0.01)
        press_play = "document.querySelector('main audio').play(); 0"
        browser.send("Runtime.evaluate", expression=press_play, userGesture=True)
        browser.wait("document.querySelector('main audio').ended")


@pytest.mark.parametrize(
    "place",
    [
        f"#/sample?{RICH}&file=0&number=1",
        f"#/samples?{RICH}",
        "#/training?ids=training%2Fgrpo&step=5",
        f"#/sample?run={quote(HOSTILE[:60])}&benchmark=x&file=0&number=0",
        f"#/{quote(HOSTILE[:60])}",
        f"#/compare?benchmark=sums&first={quote(HOSTILE[:60])}",
    ],
)
def test_text_of_models_is_shown_and_never_acts(browser: Browser, page: str, place: str) -> None:
    browser.open(page + place)
    browser.run("document.querySelectorAll('details').forEach((node) => { node.open = true; }); 0")
    if "training" in place:
        browser.wait("document.querySelectorAll('.rollout').length > 0")
        browser.run("document.querySelectorAll('.rollout').forEach((node) => { node.open = true; }); 0")
    text = browser.text()
    if "number=1" in place:
        assert "<script>window.pwned = 1" in text
        assert 'onerror="window.pwned = 2"' in text
        assert "⟦ESC⟧[31mred" in text
        assert "⟦U+202E⟧evil" in text
        assert "\\href{javascript:window.pwned=7}{x}" in text
    unharmed(browser)


def test_the_policy_stops_what_the_page_would_never_do(browser: Browser, page: str) -> None:
    """Were markup ever let in by a mistake, the browser would refuse it."""
    browser.open(page)
    browser.messages.clear()
    refused = browser.run(
        "(() => { try { document.querySelector('main').innerHTML = '<svg onload=\"pwned=1\">'; return ''; }"
        " catch (error) { return String(error); } })()"
    )
    assert "TrustedHTML" in refused
    browser.run(
        "(() => { const node = document.createElement('img'); node.src = 'https://evil.invalid/x.png';"
        " document.body.append(node); })()"
    )
    assert "TrustedScript" in browser.run(
        "(() => { try { setTimeout('window.pwned=2'); return ''; } catch (e) { return String(e); } })()"
    )
    asked = browser.run("fetch('https://evil.invalid/').then(() => 'sent', () => 'refused')")
    assert asked == "refused"
    browser.wait("document.images.length > 0")
    until = [message for message in browser.messages if "Content Security Policy" in message]
    assert until
    assert browser.run("window.pwned === undefined")


def test_a_run_that_is_written_appears_without_a_reload(
    browser: Browser, shown: Callable[..., str], tmp_path: Path
) -> None:
    output = tmp_path / "run/eval-results/sums/output.jsonl"
    write_lines(output, mixed(3, 10))
    browser.open(f"{shown(tmp_path)}#/samples?run=run&benchmark=sums")
    browser.wait("document.querySelectorAll('a.row').length === 3")
    with output.open("a") as file:
        file.write(json.dumps(record(3, outcome="wrong")) + "\n")
    browser.wait("document.querySelectorAll('a.row').length === 4")


def test_an_empty_folder_says_what_to_do(browser: Browser, shown: Callable[..., str], tmp_path: Path) -> None:
    browser.open(shown(tmp_path))
    assert "Nothing to see yet" in browser.text()
    assert "--output_dir" in browser.text()


def test_a_comparison_shows_flips_side_by_side(browser: Browser, page: str) -> None:
    browser.open(f"{page}#/compare?benchmark=sums&first=base&second=tuned")
    assert re.search(r"tuned is better by 20\.0 points \[\d", browser.text())
    browser.click("ol.samples a.row")
    browser.wait("document.querySelectorAll('.sides').length === 2")
    assert browser.run("document.querySelectorAll('mark.gone, mark.come').length") >= 2
    assert len(re.findall(r"(?:base|tuned) seed \d", browser.text())) == 2


def test_a_comparison_of_shares_speaks_of_scores(browser: Browser, tmp_path: Path) -> None:
    benchmark(tmp_path / "base", "graphwalks", [shares(40, 0.0)])
    benchmark(tmp_path / "tuned", "graphwalks", [shares(40, 0.125)])
    with serve_viewer(ViewOptions(folders=(tmp_path,))) as address:
        _shares_are_scores(browser, f"{address}#/compare?benchmark=graphwalks&first=base&second=tuned")


def _shares_are_scores(browser: Browser, address: str) -> None:
    browser.open(address)
    assert re.search(r"tuned is better by 11\.9 points \[\d.*\(f1, in points of 100; paired t", browser.text())
    assert "38 changes" in browser.text()
    assert "right → wrong" not in browser.text()
    browser.click("ol.samples a.row")
    browser.wait("document.querySelectorAll('.sides').length === 2")
    assert "higher score" in browser.text()


def test_a_load_test_has_a_table_and_plots(browser: Browser, page: str) -> None:
    browser.open(f"{page}#/load")
    browser.wait("document.querySelectorAll('main svg.plot').length === 6")
    text = browser.text()
    assert "Highest rate with 95.0 % of requests within ttft ≤ 300 ms: 2" in text
    assert "rate=4" in text
    # the second at 200 ms, the third at 400 ms for those that were answered
    titles = browser.run(
        "[...document.querySelectorAll('svg.plot title')].map((one) => one.textContent).join('|')"
    )
    assert "p50: 2 → 200" in titles
    assert "within the limits: 4 → 0" in titles
    assert browser.run("document.querySelectorAll('main table tbody tr').length") == 3


def test_the_pages_fit_a_telephone(browser: Browser, page: str) -> None:
    browser.size(390, 844)
    for place in (
        "#/",
        f"#/benchmark?{SUMS}",
        f"#/samples?{RICH}",
        f"#/sample?{RICH}&file=0&number=1",
        "#/compare",
        "#/training",
        "#/load",
    ):
        browser.open(page + place)
        assert browser.run("document.documentElement.scrollWidth <= window.innerWidth"), place


def test_names_and_roles_for_those_who_listen(browser: Browser, page: str) -> None:
    for place in (
        "#/",
        f"#/benchmark?{SUMS}",
        f"#/samples?{RICH}",
        f"#/sample?{RICH}&file=0&number=4",
        "#/compare",
        "#/training",
        "#/load",
    ):
        browser.open(page + place)
        nameless = browser.run(
            "[...document.querySelectorAll('svg.plot, select, input, button, a, img, table')].filter((node) => !("
            "node.getAttribute('aria-label') || node.getAttribute('alt') || node.innerText?.trim() ||"
            " node.labels?.length || node.querySelector?.('caption'))).length"
        )
        assert nameless == 0, place
        assert browser.run("document.querySelectorAll('h1').length") == 1
        assert browser.run("document.documentElement.lang") == "en"


def test_an_export_opens_from_a_file(browser: Browser, written: ExportedPage) -> None:
    assert written.samples == 972
    assert not written.notes
    browser.size(1280, 900)
    browser.forget()
    address = written.page.as_uri()
    browser.open(address)
    assert "Overview" in browser.text()
    browser.open(f"{address}#/samples?{RICH}&outcome=wrong")
    assert browser.run("document.querySelectorAll('a.row').length") == 4
    browser.open(f"{address}#/sample?{RICH}&file=0&number=1")
    assert "<script>window.pwned = 1" in browser.text()
    unharmed(browser)
    browser.open(f"{address}#/sample?{RICH}&file=0&number=0")
    assert browser.run("document.querySelectorAll('math').length") == 4
    browser.open(f"{address}#/sample?{RICH}&file=0&number=4")
    browser.wait("document.querySelector('main img').naturalWidth === 1")
    browser.open(f"{address}#/compare?benchmark=sums&first=base&second=tuned")
    assert "tuned is better by" in browser.text()
    browser.open(f"{address}#/samples?{SUMS}&q=WHAT IS 117 ")
    browser.wait("document.querySelectorAll('a.row').length === 4")
    browser.open(f"{address}#/samples?{SUMS}&q=nowhere to be found")
    browser.wait("document.querySelector('main').innerText.includes('0 samples of 480.')")
    browser.open(f"{address}#/training")
    assert browser.run("document.querySelectorAll('svg.plot').length") >= 2
    assert not [
        message for message in browser.messages if "Content Security Policy" in message or "exception" in message
    ]


NEUTRAL = "/home/me/results"
"""What pictures show in place of the folder of these tests."""
RENAME = """(() => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(%s, %s)
})()"""


@pytest.mark.nightly
def test_pictures_for_the_documentation(
    browser: Browser, folder: Path, page: str, shown: Callable[..., str], tmp_path: Path
) -> None:
    target = Path(os.environ.get("NEWSKILLS_SCREENSHOTS", tmp_path))
    places = {
        "view-overview": ("#/", 620),
        "view-benchmark": (f"#/benchmark?{SUMS}", 760),
        "view-samples": (f"#/samples?{SUMS}&where={quote('outcome = wrong and tokens > 30')}", 620),
        "view-sample": (f"#/sample?{RICH}&file=0&number=0", 760),
        "view-comparison": ("#/compare?benchmark=sums&first=base&second=tuned", 700),
        "view-training": ("#/training", 480),
        "view-load": ("#/load", 760),
        "view-request": (f"#/sample?{RICH}&file=0&number=2&tab=request", 620),
        "view-rollouts": ("#/training?ids=training%2Fgrpo&step=6", 1_850),
    }
    names = ["gsm8k", "math-500", "ifeval", "mmlu-pro", "humaneval", "bfcl_v3"]
    many = checkpoints(tmp_path / "many", ("smollm2-1.7b-math", "smollm2-135m-math"), names)
    baseline = quote("smollm2-1.7b-math/step-0", safe="")
    matrix = shown(many)
    browser.open(f"{matrix}#/?baseline={baseline}")
    browser.wait("[...document.querySelectorAll('.matrix .diff')].some((node) => node.innerText.includes('▲'))")
    browser.wait("[...document.querySelectorAll('.matrix .diff')].every((node) => !node.innerText.includes('…'))")
    browser.size(1080, 800)
    browser.wait("document.getElementById('activity').innerText === ''")
    browser.run(RENAME % (json.dumps(str(many)), json.dumps(NEUTRAL)))
    browser.picture(target / "view-matrix.png", height=780)
    for name, (place, height) in places.items():
        browser.size(1080, 800)
        browser.open(page + place)
        browser.run(RENAME % (json.dumps(str(folder)), json.dumps(NEUTRAL)))
        assert "pytest" not in browser.text()
        if "step" in place:
            browser.wait("document.querySelectorAll('.column').length > 0")
        made = browser.picture(target / f"{name}.png", height=height)
        assert made.read_bytes().startswith(b"\x89PNG")


def test_curves_that_say_nothing_are_one_line(browser: Browser, tmp_path: Path, shown: Callable[..., str]) -> None:
    """Constant and equal curves take no plot; what answers "does it learn?" comes first; steps are whole."""
    steps = [
        {
            "step": n,
            "grad_norm": 1 / n,
            "loss": 1 / n + n % 3,
            "nll": 1 / n + n % 3,
            "reward": n % 7,
            "cut_off": 0.0,
            "learning_rate": 1e-4,
            "eval_correct": 0.5 + n / 100,
        }
        for n in range(1, 41)
    ]
    write_lines(tmp_path / "trainings/long/metrics.jsonl", steps)
    write_lines(tmp_path / "trainings/short/metrics.jsonl", steps[:3])
    write_lines(tmp_path / "trainings/empty/metrics.jsonl", [])
    browser.size(1280, 900)
    browser.forget()
    address = shown(tmp_path / "trainings")
    browser.open(f"{address}#/training?ids=long")
    titles = browser.run("[...document.querySelectorAll('.grid figcaption')].map((node) => node.innerText)")
    assert titles == ["held-out problems solved (share)", "reward, mean", "loss = nll", "norm of the gradient"]
    assert "Constant: truncated replies 0, learning rate 1.00e-4" in browser.text()
    assert browser.run("document.querySelectorAll('path.raw').length") == 3
    browser.open(f"{address}#/training?ids=short")
    labels = browser.run(
        "[...document.querySelectorAll('svg.plot text[text-anchor=middle]')].map((n) => n.textContent)"
    )
    assert set(labels) == {"1", "2", "3"}
    browser.open(f"{address}#/training?ids=empty")
    assert "empty has no steps yet." in browser.text()
    assert not browser.messages


def test_rollouts_of_a_step_stand_side_by_side(
    browser: Browser, tmp_path: Path, shown: Callable[..., str]
) -> None:
    """Best and worst first, with reward, parts, advantage and length; differences are marked; equal rewards too."""
    rewards = (0.5, 0.0, 1.1)
    replies = [
        {
            "text": f"The answer is {reward}.",
            "reward": reward,
            "advantage": reward - 0.5,
            "components": {"verdict": float(reward > 1), "format": 0.1},
        }
        for reward in rewards
    ]
    flat = {"step": 2, "problem": "1+1", "responses": [replies[0], replies[0]]}
    write_lines(tmp_path / "rl/metrics.jsonl", [{"step": 2, "reward": 0.5}])
    write_lines(tmp_path / "rl/samples.jsonl", [flat, {"step": 2, "problem": "2+2", "responses": replies}])
    browser.size(1280, 900)
    browser.forget()
    browser.open(f"{shown(tmp_path)}#/training?ids=rl&step=2")
    browser.wait("document.querySelectorAll('.column').length === 3")
    assert "2 problems, 1 without spread" in browser.text()
    assert browser.run("[...document.querySelectorAll('.rollout')].map((node) => node.open)") == [False, True]
    assert "no spread" in browser.run("document.querySelector('.rollout').innerText")
    columns = browser.run("[...document.querySelectorAll('.column')].map((node) => node.innerText)")
    fact = r"(\w+).*reward\s+([\d.]+).*advantage\s+([\d.-]+)\s+length\s+(\d+) characters"
    told = [re.search(fact, text, re.DOTALL) for text in columns]
    assert [match and match.groups() for match in told] == [
        ("best", "1.1", "0.6", "18"),
        ("worst", "0", "-0.5", "18"),
        ("reply", "0.5", "0", "18"),
    ]
    marks = "[...document.querySelectorAll('.column mark')].map((node) => node.className + ' ' + node.innerText)"
    assert browser.run(marks) == ["come 1.1.", "gone 0.0.", "gone 0.5."]
    browser.click(".rollout[open] button")
    browser.wait("document.querySelectorAll('.column mark').length === 0")
    assert not browser.messages


SELECTED = "document.querySelector('[role=tab][aria-selected=true]')"
PANEL = "document.querySelector('[role=tabpanel]').innerText"


@pytest.mark.parametrize("exported", [False, True])
def test_a_sample_has_tabs_that_keys_and_addresses_choose(
    browser: Browser, page: str, written: ExportedPage, exported: bool
) -> None:
    address = written.page.as_uri() if exported else page
    browser.open(f"{address}#/sample?{RICH}&file=0&number=2")
    assert browser.run(f"{SELECTED}.innerText") == "Sample"
    browser.run(f"{SELECTED}.focus(); 0")
    browser.press("ArrowRight")
    browser.wait(f"{SELECTED}.innerText === 'Request' && document.activeElement === {SELECTED}")
    assert browser.run("location.hash").endswith("&tab=request")
    panel = browser.run(PANEL)
    assert "The record holds the conversation." in panel
    assert "You may call tools." in panel
    assert re.search(r"model\s+base\s+temperature\s+0\.7", panel)
    assert "Let me compute" not in panel
    browser.press("End")
    browser.wait(f"{SELECTED}.innerText === 'Record' && document.activeElement === {SELECTED}")
    assert '"role": "tool"' in browser.run(PANEL)
    browser.press("ArrowRight")
    browser.wait(f"{SELECTED}.innerText === 'Sample'")
    assert "tab=" not in browser.run("location.hash")
    browser.open(f"{address}#/sample?{RICH}&file=0&number=1&tab=record")
    assert "<script>window.pwned = 1" in browser.run(PANEL)
    unharmed(browser)
    browser.press("k")
    browser.wait("document.querySelector('h1').innerText.includes('p0')")
    assert browser.run(f"{SELECTED}.innerText") == "Record"
    browser.press("r")
    browser.wait("document.querySelector('nav.pager').innerText.includes('Rendered (r)')")
    assert browser.run(f"{SELECTED}.innerText") == "Record"
    browser.press("r")
    browser.wait("document.querySelector('nav.pager').innerText.includes('Raw (r)')")
    assert not browser.messages


def test_a_prompt_that_was_rendered_again_is_told_as_such(browser: Browser, page: str) -> None:
    browser.open(f"{page}#/sample?{RICH}&file=0&number=0&tab=request")
    assert re.search("Messages\\s+(Not certain: )?Rendered again with prompt generic/math", browser.run(PANEL))
    assert "What is 0 times one?" in browser.run(PANEL)


@pytest.mark.parametrize("exported", [False, True])
def test_what_is_shown_is_downloaded(
    browser: Browser, page: str, written: ExportedPage, tmp_path: Path, exported: bool
) -> None:
    """The rows that pass all filters, in their order, and one record; the policy of the page stays as it is."""
    address = written.page.as_uri() if exported else page
    browser.downloads(tmp_path / "got")
    browser.open(f"{address}#/samples?{SUMS}&outcome=wrong&sort=longest")
    browser.click("#download")
    browser.wait("document.querySelector('main').innerText.includes('240 records downloaded.')")
    rows = list(map(json.loads, browser.downloaded(tmp_path / "got/base-sums.jsonl").decode().splitlines()))
    tokens = [row["num_generated_tokens"] for row in rows]
    assert (len(rows), {row["outcome"] for row in rows}) == (240, {"wrong"})
    assert tokens == sorted(tokens, reverse=True)
    browser.open(f"{address}#/samples?{RICH}&outcome=damaged")
    browser.click("#download")
    browser.wait("document.querySelector('main').innerText.includes('0 records downloaded; 1 left out')")
    browser.open(f"{address}#/sample?{RICH}&file=0&number=1&tab=record")
    browser.click("#download")
    record_file = tmp_path / "got/rich-script-window.pwned-1-fetch-https-.json"
    assert json.loads(browser.downloaded(record_file))["generation"] == HOSTILE
    unharmed(browser)
    assert not [message for message in browser.messages if "Content Security Policy" in message]
