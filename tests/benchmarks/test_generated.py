# SPDX-License-Identifier: Apache-2.0
"""What is generated from the benchmark files is up to date, and the files keep what they promise."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from functools import cache

import pytest

from newskills.base.benchmark import Benchmark, Group
from newskills.benchmarks import expand_benchmarks, get_benchmark, get_group, list_all, list_benchmarks
from newskills.benchmarks.evidence import FILE, evidence_of
from newskills.benchmarks.generate_catalog import built_in, built_in_groups, catalog_text
from newskills.benchmarks.listing import CATALOG
from newskills.benchmarks.pages import benchmark_pages, stored_agreements
from newskills.graders import make_grader
from newskills.metrics import make_metric
from newskills.prompts import prompt_names

ALL = [benchmark for _, benchmark in built_in()]
GROUPS = [group for _, group in built_in_groups()]
pages_of_all = cache(benchmark_pages)


def test_the_catalog_is_up_to_date() -> None:
    hint = "run: python -m newskills.benchmarks.generate_catalog"
    assert CATALOG.read_text(encoding="utf-8") == catalog_text(), hint


@pytest.mark.parametrize("benchmark", ALL, ids=lambda benchmark: benchmark.name)
def test_pages_tell_how_far_the_source_is_proven_and_by_what(benchmark: Benchmark) -> None:
    page = pages_of_all()[f"{benchmark.name.partition('.')[0]}.md"]
    state = "schema checked" if evidence_of(benchmark.name) else "not verified"
    lines = [line for line in page.splitlines() if line.startswith("| live source | [")]
    (line,) = [line for line in lines if f"`{benchmark.name}`" in line] or lines
    assert line.startswith(f"| live source | [{state if benchmark.unverified else 'verified'}](")
    for proof in evidence_of(benchmark.name):
        assert f"| source read | {proof.compared}: <{proof.url}> ({proof.date}) |" in page


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("arena-hard", "reading of the judge's verdict (Arena-Hard-Auto"),
        ("simpleqa", "reading of the judge's verdict (simple-evals"),
        ("livecodebench", "comparison of outputs (LiveCodeBench"),
        ("hallusionbench", "figures made of verdicts (HallusionBench"),
        ("gsm8k", "whole scorer (lm-evaluation-harness, `gsm8k.yaml`): [84.3 %"),
    ],
)
def test_pages_say_what_of_the_official_scorer_was_compared(page: str, told: str) -> None:
    (line,) = [line for line in pages_of_all()[f"{page}.md"].splitlines() if "agreement.md" in line]
    assert line.startswith(f"| beside the official scorer | {told}")


def test_every_share_below_all_has_its_reasons() -> None:
    for name, figure in stored_agreements().items():
        counts = [int(reason.partition(":")[0].replace(",", "")) for reason in figure.reasons]
        assert sum(counts) == round((1 - figure.agreement) * figure.attempts), name
        assert all(reason.partition(": ")[2] for reason in figure.reasons), name
    (line,) = [line for line in pages_of_all()["gsm8k.md"].splitlines() if "agreement.md" in line]
    assert "The others: 60: `strict-match` reads what follows" in line


@pytest.mark.parametrize("benchmark", ALL, ids=lambda benchmark: benchmark.name)
def test_evidence_names_a_public_address_and_a_day(benchmark: Benchmark) -> None:
    for proof in evidence_of(benchmark.name):
        assert proof.url.startswith("https://")
        assert proof.compared
        assert date.fromisoformat(proof.date) >= date(2026, 1, 1)


def test_each_line_of_evidence_belongs_to_a_benchmark() -> None:
    names = [line.partition('"name":')[2].split('"')[1] for line in FILE.read_text(encoding="utf-8").splitlines()]
    assert names == sorted({*names})
    assert {*names} <= {benchmark.name for benchmark in ALL}


def test_listing_imports_no_benchmark() -> None:
    code = (
        "import sys; from newskills.benchmarks import list_benchmarks; assert len(list_benchmarks()) > 12;"
        "loaded = {m for m in sys.modules if m.startswith('newskills.benchmarks.')};"
        "assert loaded == {'newskills.benchmarks.listing'}, loaded;"
        "assert not {'yaml', 'rich', 'jinja2', 'reasoning_gym', 'urllib.request'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


USERS_OWN = ("ccc", "icpc")
"""Whose rows their users bring."""


@pytest.mark.parametrize("benchmark", ALL, ids=lambda benchmark: benchmark.name)
def test_every_benchmark_can_be_used(benchmark: Benchmark) -> None:
    assert benchmark.title
    assert benchmark.licence
    assert benchmark.homepage.startswith("https://")
    assert bool(benchmark.sources) != bool(benchmark.generate_rows) or benchmark.name in USERS_OWN
    assert benchmark.items.get(benchmark.split, 0) > 0 or benchmark.unverified or benchmark.name in USERS_OWN
    assert benchmark.prompt in prompt_names() or benchmark.defaults["prompt_format"] == "openai"
    refused = benchmark.solver == "software_agent"  # its patches are graded elsewhere
    assert (
        make_grader(benchmark.grader, benchmark.grader_config) if benchmark.grader else benchmark.judge or refused
    )
    assert make_metric(benchmark.metric, **benchmark.metric_config)
    for source in benchmark.sources:
        assert source.url.startswith("https://") or source.hf or (source.github and source.members)
        assert source.sha256 or not source.revision or source.github or "{" in source.url
    assert get_benchmark(benchmark.name) == benchmark


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_every_group_has_its_members(group: Group) -> None:
    assert group.title
    members = expand_benchmarks(group.name)
    assert [member.name for member in members] == [f"{group.name}.{group.short(name)}" for name in group.members]
    assert get_group(group.name) == group


def test_every_entry_is_a_benchmark() -> None:
    assert [entry.name for entry in list_benchmarks()] == [benchmark.name for benchmark in ALL]
    assert {entry.name for entry in list_all() if entry.members} == {group.name for group in GROUPS}
