# SPDX-License-Identifier: Apache-2.0
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.commands.running import ns
from tests.view.comparison.runs import answers, record, write_run

import newskills
from newskills.base.errors import GateError, UnknownNameError
from newskills.view.comparison import compare_run_folders

BEFORE = "+" * 30 + "-" * 30
AFTER = "-" * 2 + "+" * 28 + "+" * 12 + "-" * 18


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_run(tmp_path / "base", {None: answers(BEFORE)})
    write_run(tmp_path / "tuned", {None: answers(AFTER)})
    return tmp_path


def test_the_same_figures_in_terminal_json_page_and_python(runs: Path) -> None:
    shown = ns("ns compare base tuned --html page.html", cwd=runs)
    assert shown.returncode == 0, shown.stderr
    assert max(map(len, shown.stdout.splitlines())) <= 80
    (item,) = json.loads(ns("ns compare base tuned --json", cwd=runs).stdout)["benchmarks"]
    own = compare_run_folders([runs / "base", runs / "tuned"]).benchmarks[0]
    assert item["difference"] == pytest.approx(own.difference)
    assert len(item["flips"]) == 14
    assert newskills.compare(runs=[str(runs / "base"), str(runs / "tuned")]).benchmarks[0] == own
    page = (runs / "page.html").read_text()
    for text in (item["sentence"], f"[{own.low:.1f}, {own.high:.1f}]"):
        assert " ".join(text.split()) in " ".join(page.split())
        assert " ".join(text.split()) in " ".join(shown.stdout.split())
    assert "12 wrong → right, 2 right → wrong" in shown.stdout
    assert "and 9 more" in shown.stdout


class TagNames(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.add(tag)


def test_a_page_runs_nothing_of_what_a_record_says(tmp_path: Path) -> None:
    evil = '<script>alert(1)</script>"><img src=x onerror=alert(1)>\x1b[31m'
    rows = [
        [{**row, "id": f"{evil}{i}"} for i, row in enumerate(answers(verdicts))] for verdicts in ("+-+", "-++")
    ]
    for name, own in zip(("a", "b"), rows, strict=True):
        write_run(tmp_path / name, {None: own})
    shown = ns("ns compare a b --html page.html", cwd=tmp_path)
    assert "\x1b" not in shown.stdout
    assert "\\x1b[31m" in shown.stdout.replace("\n", "") or "…" in shown.stdout
    tags = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append((tag, dict(attrs)))  # type: ignore[method-assign]
    page = (tmp_path / "page.html").read_text()
    parser = TagNames()
    parser.feed(page)
    assert not {"script", "img"} & parser.names
    assert "default-src 'none'" in page
    assert "\x1b" not in page


@pytest.mark.parametrize(
    ("conditions", "code"),
    [
        ("--fail_if worse", 3),
        ("--fail_if 'gsm8k < -1.0'", 3),
        ("--fail_if 'gsm8k < -20'", 0),
        ("--fail_if 'gsm8k < -20' --fail_if worse", 3),
    ],
)
def test_a_gate(runs: Path, conditions: str, code: int) -> None:
    assert ns(f"ns compare tuned base {conditions}", cwd=runs).returncode == code
    assert ns(f"ns compare base tuned {conditions}", cwd=runs).returncode == 0


def test_a_gate_that_cannot_be_judged_does_not_pass(runs: Path) -> None:
    write_run(runs / "base", {None: answers(BEFORE)}, benchmark="math-500")
    left_out = ns("ns compare base tuned --fail_if worse", cwd=runs)
    assert left_out.returncode == 2
    assert "math-500: tuned has no results of it" in left_out.stderr
    assert ns("ns compare base tuned --fail_if worse --benchmarks gsm8k", cwd=runs).returncode == 0
    assert ns("ns compare base tuned --fail_if 'math-500 < 1'", cwd=runs).returncode == 2
    unknown = ns("ns compare base tuned --fail_if 'gsm8 < 1'", cwd=runs)
    assert unknown.returncode == 2
    assert "did you mean 'gsm8k'" in unknown.stderr
    broken = ns("ns compare base tuned --fail_if 'gsm8k >> 1'", cwd=runs)
    assert broken.returncode == 2
    assert "--fail_if worse" in broken.stderr


def test_the_gate_in_python(runs: Path) -> None:
    with pytest.raises(GateError, match="base is worse on gsm8k"):
        newskills.compare(runs=[str(runs / "tuned"), str(runs / "base")], fail_if=["worse"])
    with pytest.raises(UnknownNameError, match="did you mean 'prompt'"):
        newskills.compare(runs=[str(runs / "tuned"), str(runs / "base")], allow="promt")


def test_the_margin_decides_what_is_not_worse(runs: Path) -> None:
    shown = ns("ns compare base tuned --margin 0", cwd=runs).stdout
    assert "A loss of more than 0 points is excluded" in shown
    assert "A loss of more than 1 point is not excluded" in ns("ns compare tuned base", cwd=runs).stdout


def test_long_names_fit_the_terminal(tmp_path: Path) -> None:
    for name in ("a" * 90, "b" * 90):
        rows = [record(i, i % 2 == 0, id="x" * 100 + str(i)) for i in range(6)]
        write_run(tmp_path / name, {0: rows, 1: rows}, benchmark="long-benchmark." + "y" * 60)
    shown = ns(f"ns compare {'a' * 90} {'b' * 90}", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert max(map(len, shown.stdout.splitlines())) <= 80


@pytest.mark.parametrize("command", ["compare {0} base", "why base {0}", "view {0}", "report {0}", "samples {0}"])
def test_a_file_where_a_folder_is_expected_is_called_a_file(runs: Path, command: str) -> None:
    file = "base/eval-results/gsm8k/output.jsonl"
    done = ns(f"ns {command.format(file)}", cwd=runs)
    assert done.returncode == 2
    assert f"{file} is a file; expected a folder" in done.stderr
    assert "There is no folder none" in ns(f"ns {command.format('none')}", cwd=runs).stderr


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("compare base tuned --benchmarks toy svamp", "--benchmarks=toy,svamp"),
        ("compare base tuned --benchmarks svamp toy", "--benchmarks=svamp,toy"),
        ("compare base --benchmarks=toy SVAMP", "--benchmarks=toy,SVAMP"),
    ],
)
def test_benchmarks_separated_by_a_blank_are_no_runs(runs: Path, line: str, hint: str) -> None:
    """Those that newskills knows and those that only the results have; also beside a folder of the same name."""
    for run in ("base", "tuned"):
        write_run(runs / run, {None: answers(BEFORE)}, benchmark="toy")
    (runs / "svamp").mkdir()
    done = ns(f"ns {line}", cwd=runs)
    assert done.returncode == 2
    assert "is the name of a benchmark, not a folder of results" in done.stderr
    assert f"Separate benchmarks with commas: {hint}" in done.stderr


def test_a_run_may_be_called_like_a_benchmark(runs: Path) -> None:
    write_run(runs / "gsm8k", {None: answers(AFTER)})
    done = ns("ns compare base gsm8k --benchmarks=gsm8k --json", cwd=runs)
    assert done.returncode == 0, done.stderr
