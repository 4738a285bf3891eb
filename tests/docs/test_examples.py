# SPDX-License-Identifier: Apache-2.0
"""Examples on pages print what stands below them: on results, those of docs/notebooks/make_results.py; elsewhere, those
that need no model and no cluster, with the files of their page."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.commands.running import ns
from tests.docs.command_examples import examples, missing_line, printed_by, run_line, write_files
from tests.night import NIGHTLY

from newskills.commands.table import command_names

ROOT = Path(__file__).parents[2]
NO_FENCE = r"((?:(?!```).)*)"
EXAMPLE = re.compile(rf"```(?:bash)?\n(ns {NO_FENCE})```\n\n```text\n{NO_FENCE}```", re.DOTALL)
EXAMPLES_BY_PAGE = {"docs/compare.md": 5, "docs/numbers.md": 1, "docs/evaluate.md": 1}
EXAMPLES = [
    pytest.param(command, output, id=f"{name}-{number}")
    for name in EXAMPLES_BY_PAGE
    for number, (command, _, output) in enumerate(EXAMPLE.findall((ROOT / name).read_text(encoding="utf-8")))
]
FEWER_EXAMPLES = {
    "a cluster or a service of others does the work: the page shows the jobs": (
        "evaluate",
        "grpo_nemo_rl",
        "kuberay",
        "nemo_evaluator",
        "nemo_gym_rollouts",
        "ppo_verl",
        "sft_nemo_rl",
        "swe_bench",
        "tinker_rl",
        "tinker_sft",
        "train_megatron_lm",
    ),
    "only prints and runs other commands, whose pages have examples": (
        "aimo_evaluate",
        "aimo_evaluate_all",
        "aimo_evaluate_checkpoints",
        "aimo_train",
        "improve",
    ),
    "shows the containers of this machine": ("environments",),
    "has one or two forms": (
        "average_checkpoints",
        "cancel",
        "completion",
        "compute_metrics",
        "doctor",
        "experiments",
        "gateway",
        "logs",
        "merge_chunks",
        "merge_lora",
        "rehearse",
        "report",
        "robust_eval",
        "sandbox",
        "serve_evals",
        "serve_tinker",
        "setup",
        "summarize_robustness",
        "view",
    ),
    "needs an invocation of `ns evaluate`, results of the recipe, or answers to all problems of CritPt": (
        "aimo_regenerate_summary",
        "critpt",
        "info",
        "resume",
    ),
}
"""Why a command has fewer than three examples → the commands."""
OF_A_MACHINE = re.compile(
    r"/(work|root|home/(?!me/))|/tmp/(?!jobs)|20\d\d[01]\d[0-3]\d-\d{6}|packages/[0-9a-f]{8}"
)
"""Folders and times that are others elsewhere."""
FIRST_COMMANDS = {
    "add-a-benchmark": "ns validate ./sums.py",
    "agents": "ns agents\n",
    "grading": "ns grade",
    "grading-code": "ns grade",
    "models": "ns generate --dry_run",
    "slurm": "ns prepare_data gsm8k",
    "trust": "ns grade",
}
"""Page → beginning of the example that is run."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("examples")
    script = ROOT / "docs" / "notebooks" / "make_results.py"
    subprocess.run([sys.executable, script, "results"], cwd=place, check=True)
    return place


def lines_of(text: str) -> list[str]:
    """Return the lines of an output, without blanks at their ends and without empty lines around them."""
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def test_no_page_loses_an_example() -> None:
    assert len(EXAMPLES) == sum(EXAMPLES_BY_PAGE.values())


@pytest.mark.parametrize(("command", "output"), EXAMPLES)
def test_examples_print_what_they_show(command: str, output: str, folder: Path) -> None:
    done = ns(command, cwd=folder, env={"NEWSKILLS_DATA_DIR": str(folder / "data")})
    # A gate prints the comparison, too: the page shows what it adds.
    printed = lines_of(done.stderr if "--fail_if" in command else done.stdout)
    expected = lines_of(output)
    if expected[-1] == "…":
        expected.pop()
        printed = printed[: len(expected)]
    assert printed == expected


@pytest.mark.parametrize("page", FIRST_COMMANDS)
def test_examples_with_the_files_of_their_page(page: str, tmp_path: Path, mirror: Path) -> None:
    write_files(tmp_path, (page,))
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    commands, _, output = next(it for it in EXAMPLE.findall(text) if it[0].startswith(FIRST_COMMANDS[page]))
    assert "" in [
        missing_line(f"{output}…", text) for text in printed_by(commands, tmp_path, str(mirror), run_line)
    ]


def test_every_command_has_three_examples_with_outputs() -> None:
    counts = Counter(example.section for example in examples())
    fewer = {name for names in FEWER_EXAMPLES.values() for name in names}
    assert {name for name in command_names() if counts[name] < 3} == fewer
    assert [example.commands for example in examples() if not example.output.strip("… \n")] == []
    assert [example.commands for example in examples() if OF_A_MACHINE.search(example.output)] == []


@pytest.mark.slow
@pytest.mark.timeout(7200 if NIGHTLY else 600)
def test_pages_of_commands_show_what_they_print(
    folder: Path, mirror: Path, request: pytest.FixtureRequest
) -> None:
    if NIGHTLY:
        request.getfixturevalue("local_model")
    write_files(folder, ("add-a-benchmark", "grading"))
    wrong = {}
    for example in examples():
        if NIGHTLY or not example.is_nightly:
            try:
                texts = printed_by(example.commands, folder, str(mirror), run_line)
            except AssertionError as failure:
                wrong[example.commands] = [str(failure)]
                continue
            missing = [missing_line(example.output, text) for text in texts]
            if "" not in missing:
                wrong[example.commands] = missing
    assert wrong == {}


def test_other_outputs_are_seen() -> None:
    assert missing_line("a\nb\n", "a\nb") == ""
    assert missing_line("a\nb\n", "a\nc\nb") == "a\nb\n"
    assert missing_line("a\n…\nb …\n", "a\nc\nb d") == ""
    assert missing_line("b\n…\na\n", "a\nb").startswith("a (not behind ")
