# SPDX-License-Identifier: Apache-2.0
"""Every command that prints a table, on a terminal of 80 columns: no line is longer, no word is cut."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands.clusters import BENCHMARK, answers
from tests.commands.running import ns, write
from tests.launch.jobs import cluster, environment, job, pipeline
from tests.night import by_day
from tests.server import FakeServer
from tests.view.comparison.runs import record, write_run

from newskills.launch.submit import submit_pipeline

LONG = "livebench-instruction_following.paraphrase"
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
FORMS = ("\\boxed{1}", "The answer is 2.", "so we get 3", "\\boxed{9}", "I do not know")
CONFIG = """
defaults: [{{execution: local}}, {{deployment: none}}, _self_]
target: {{api_endpoint: {{url: {url}/v1/chat/completions, model_id: m}}}}
evaluation: {{tasks: [{{name: {folder}/sums.py}}]}}
"""


class Terminal:
    """A folder with runs, jobs and invocations; its name is short, for paths are never cut."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.env = {
            "NEWSKILLS_EXPERIMENTS_DIR": f"{folder}/experiments",
            "NEWSKILLS_DATA_DIR": f"{folder}/data",
            "NEMO_EVALUATOR_EXEC_DB_FILE": f"{folder}/exec.jsonl",
        }

    def shown(self, line: str, columns: int | None = 80) -> str:
        """What `ns <line>` writes to a terminal of 80 columns; `columns`: the variable COLUMNS, None: not set."""
        own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        env = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | self.env
        if columns is not None:
            env["COLUMNS"] = str(columns)
        words = [sys.executable, "-m", "newskills", *shlex.split(line)[1:]]
        with subprocess.Popen(
            words, cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE
        ) as process:
            os.close(theirs)
            pieces = []
            while piece := _read(own):
                pieces.append(piece)
            assert process.stderr is not None
            said = process.stderr.read().decode()
        os.close(own)
        assert process.returncode in (0, 1), said
        text = b"".join(pieces).decode().replace("\r\n", "\n")
        assert "Traceback" not in text + said
        return ANSI.sub("", text.partition("\nfirst prompt of")[0])  # which is shown as it is sent


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so where nobody writes any more
        return b""


def fits(text: str) -> list[str]:
    """The words. Only a path may be longer than the terminal, alone on its line."""
    assert text
    assert [line for line in text.splitlines() if len(line) > 80 and " " in line.strip()] == []
    return words_of(text)


def words_of(text: str) -> list[str]:
    """Without rules and separators; a name before a cell that follows below its row ends with a colon."""
    return [word.removesuffix(":") for word in text.split() if word.strip("-─|")]


@pytest.fixture(scope="module")
def place() -> Iterator[Terminal]:
    folder = Path(tempfile.mkdtemp(prefix="t", dir="/tmp"))
    server = FakeServer(answers())
    try:
        terminal = Terminal(folder, server.url)
        (folder / "sums.py").write_text(BENCHMARK)
        done = ns("ns prepare_data ./sums.py", cwd=folder, env=terminal.env)
        assert done.returncode == 0, done.stderr
        _write_results(folder)
        bad = job("bad-job-of-a-long-name", "echo oops; exit 9", depends_on=("good",))
        submit_pipeline(
            pipeline("long-experiment-name", job("good", "true"), bad), cluster(folder), environment(folder)
        )
        ns("ns logs -f long-experiment-name", cwd=folder, env=terminal.env)
        (folder / "mine.yaml").write_text(CONFIG.format(url=server.url, folder=folder))
        done = ns("ns evaluate -c mine.yaml", cwd=folder, env=terminal.env)
        assert done.returncode == 0, done.stdout + done.stderr
        yield terminal
    finally:
        server.stop()
        shutil.rmtree(folder)


def _write_results(folder: Path) -> None:
    timed = {"generation_start_time": 1.0, "generation_end_time": 90.0}
    for name, right in (("a", 3), ("b", 2)):
        for benchmark in ("gsm8k", LONG):
            lost = [record(40, None)]
            seeds = {
                seed: [*(record(i, (i + seed) % right != 0, **timed) for i in range(40)), *lost]
                for seed in range(4)
            }
            write_run(folder / name, seeds, benchmark=benchmark)
    old = {"grader": "math@1"}
    rows = [record(i, i in (0, 2), generation=text, **old) for i, text in enumerate(FORMS)]
    write_run(folder / "old", {0: rows, 1: rows}, facts={"grader": "math@1 {}"})
    write(folder / "graded.jsonl", [record(i, i % 2 == 0, **timed) for i in range(30)])
    for prompt in ("plain-wording-of-the-question", "angles"):
        rows = [record(i, i % 3 > 0) for i in range(20)]
        write_run(folder / "robust/own-sums" / prompt, {0: rows, 1: rows}, benchmark="own-sums")


BY_DAY = ("ns summarize_results", "ns compare", "ns status")
TABLES = {
    "ns summarize_results a --metric_type=math --accept_lost=50": (
        "evaluation_mode",
        "no_answer",
        "gen_seconds",
        LONG,
    ),
    "ns compute_metrics --prediction_jsonl_files graded.jsonl --benchmark=gsm8k": ("no_answer", "num_entries"),
    "ns summarize_robustness robust": ("prompt_sensitivity", "consistency_rate", "plain-wording-of-the-question"),
    "ns compare a b --flips 5": ("before", "after", "verdict"),
    "ns why a b": ("worth",),
    "ns regrade old": ("extraction", "lenient", "unscored"),
    "ns plan_eval a --benchmarks=gsm8k --delta 2": ("answers", "tokens"),
    "ns samples a --outcome wrong -n 2": (),
    "ns status": ("long-experiment-name",),
    "ns status long-experiment-name": ("bad-job-of-a-long-name", "exit", "seconds"),
    "ns experiments": ("commit", "folder"),
    "ns info": ("invocation", "tasks"),
    "ns sandbox doctor": ("yes",),
    "ns validate ./sums.py": ("benchmark", "tried"),
    "ns eval --dry_run --benchmarks=./sums.py:4 --model=m --server_type=vllm --server_address=URL --output_dir=new": (
        "eval-results/own-sums/output-rs3.jsonl",
    ),
    "ns eval --explain --benchmarks=./sums.py:4 --model=m --server_type=vllm --server_address=URL --output_dir=new": (
        "++inference.temperature",
    ),
    "ns summarize_results a --dry_run": ("reads", "writes"),
    "ns prepare_training_data --explain": ("++input_files", "from"),
    "ns aimo train --explain --stage=cot --base_model=a": ("key", "value"),
    "ns list graders": ("math",),
    "ns list": ("code", "164", "sandbox", "OPENAI_API_KEY", "newskills[media]", "own-sums", "*"),
    "ns list benchmarks --category science --search gpqa": ("gpqa", "HF_TOKEN"),
}


@pytest.mark.parametrize("line", by_day(TABLES, [line for line in TABLES if line.startswith(BY_DAY)]))
def test_tables_fit_the_terminal_and_no_word_is_cut(place: Terminal, line: str) -> None:
    typed = line.replace("URL", place.url)
    words = set(fits(place.shown(typed)))
    assert [name for name in TABLES[line] if not any(name in word for word in words)] == []
    assert set(words_of(place.shown(typed, columns=1000))) - words == set()


def test_the_terminal_says_how_wide_it_is(place: Terminal) -> None:
    line = "ns summarize_results a --metric_type=math --accept_lost=50"
    assert place.shown(line, columns=None) == place.shown(line)
    in_a_pipe = ns(line, cwd=place.folder, env=place.env).stdout
    assert in_a_pipe == place.shown(line, columns=1000)
    assert max(map(len, in_a_pipe.splitlines())) > 80


def test_the_list_of_benchmarks_is_filtered_and_explained(place: Terminal) -> None:
    def listed(options: str) -> tuple[list[str], str]:
        done = ns(f"ns list benchmarks {options}", cwd=place.folder, env=place.env)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines(), done.stderr

    rows, said = listed("")
    assert len(rows) > 400
    assert said.startswith(f"{len(rows)} benchmarks listed")
    assert f"* 1 prepared on this machine, in {place.folder}/data: own-sums." in said
    assert said.count("not verified: ") == any(row.endswith("(not verified)") for row in rows)
    assert said.count("schema checked: ") == 1
    rows, said = listed("--prepared")
    assert [row.split() for row in rows] == [["own-sums", "your", "own", "10", "*", "split", "test"]]
    rows, _ = listed("--search 'simple qa' --category factuality")
    assert {row.split()[0] for row in rows} == {"simpleqa", "chinese-simpleqa"}
    wrong = ns("ns list --search gms8k", cwd=place.folder, env=place.env)
    assert (wrong.returncode, "did you mean 'gsm8k'" in wrong.stderr) == (2, True)
    assert ns("ns list graders --search math", cwd=place.folder).stdout.split()[0] == "math"


def test_what_changes_from_call_to_call_fits_too(place: Terminal) -> None:
    run = f"--benchmarks=./sums.py:4 --model=m --server_type=vllm --server_address={place.url}"
    words = fits(place.shown(f"ns eval {run} --output_dir=ours"))
    assert {"own-sums", "evaluation_mode", "pass@1[avg-of-4]", "gen_seconds", "symbolic_correct", "no_answer"} <= {
        *words
    }
    assert {"[ok]", "newskills"} <= {*fits(place.shown("ns doctor"))}
    invocation = fits(place.shown("ns info"))[4]
    assert "replies" in fits(place.shown(f"ns info {invocation}"))
    assert "replies" in fits(place.shown(f"ns status {invocation}"))
