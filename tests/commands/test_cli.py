# SPDX-License-Identifier: Apache-2.0
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands.running import ns

from newskills.benchmarks.listing import STATE_MEANING
from newskills.commands.loading import load_command
from newskills.commands.table import command_names, help_page, typed_words


def test_the_overview_names_every_command(tmp_path: Path) -> None:
    done = ns("ns --help", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == help_page()
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    for name in command_names():
        assert f"\n  {typed_words(name)} " in done.stdout


@pytest.mark.parametrize("name", command_names())
def test_every_command_starts(name: str, tmp_path: Path) -> None:
    """In a Python of its own, with nothing imported before."""
    words = [sys.executable, "-m", "newskills", name, "--help"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (0, load_command(name).help()), done.stderr


@pytest.mark.parametrize("name", command_names())
def test_every_command_explains_itself(name: str, tmp_path: Path) -> None:
    for spelling in sorted({name, name.replace("_", "-")}):
        done = ns(f"ns {spelling} --help", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout == load_command(name).help()
    pages = done.stdout + load_command(name).help(full=True)
    assert [line for line in pages.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("word", ["--help=all", "--help-all", "--help_all"])
def test_the_full_page_has_three_spellings(word: str, tmp_path: Path) -> None:
    assert ns(f"ns eval {word} --help", cwd=tmp_path).stdout == load_command("eval").help(full=True)


@pytest.mark.parametrize("name", [name for name in command_names() if load_command(name).essentials])
def test_a_short_page_shows_what_exists_and_how_to_see_the_rest(name: str) -> None:
    command = load_command(name)
    short, full = command.help(), command.help(full=True)
    rows = [
        re.sub(r"^(--|\+\+)", "", line.split()[0]) for line in full.splitlines() if re.match("  (--|\\+\\+)", line)
    ]
    for word in command.essentials:
        assert word.removeprefix("++") in rows
        assert re.search(rf"^  {re.escape(word if word.startswith('+') else '--' + word)}\b", short, re.MULTILINE)
    assert short.splitlines()[-1].endswith(f"ns {name} --help=all")
    assert "--help=all" not in full
    assert len(short.splitlines()) < 100 < len(full.splitlines())


def test_nothing_heavy_is_imported_for_the_front_page() -> None:
    code = (
        "import sys; from newskills.cli import main; main(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for heavy in ("msgspec", "rich", "yaml", "asyncio", "jinja2", "torch", "sympy", "newskills.base.errors"):
        assert f"'{heavy}'" not in done.stderr


@pytest.mark.parametrize("name", ["generate", "eval"])
def test_a_help_page_loads_no_engine(name: str) -> None:
    show = "print(sorted(sys.modules), file=sys.stderr)"
    code = f"import sys; from newskills.cli import main; main(['{name}', '--help=all']); {show}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "++code_execution" in done.stdout
    for heavy in ("asyncio", "jinja2", "yaml", "rich", "newskills.run.engine.loop", "newskills.solve.chat"):
        assert f"'{heavy}'" not in done.stderr


def test_listing_benchmarks_imports_no_benchmark() -> None:
    code = (
        "import sys; from newskills.cli import main; main(['list']); print(sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "gsm8k" in done.stdout
    for heavy in (
        "'newskills.benchmarks.math_natural.gsm8k'",
        "'msgspec'",
        "'rich'",
        "'yaml'",
        "'asyncio'",
        "'reasoning_gym'",
    ):
        assert heavy not in done.stderr


@pytest.mark.parametrize("name", ["--help", "list"])
def test_front_pages_take_little_cpu(name: str) -> None:
    """The limit is 60 ms on an idle machine; ten times that catches a heavy import on a busy one."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "newskills", name], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.6


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ns evl", "did you mean 'eval'"),
        ("ns eval --benchmark=gsm8k", "did you mean '--benchmarks'"),
        ("ns eval", "BENCHMARKS|--benchmarks is missing"),
        ("ns eval --benchmarks=gsm8k --model=m", "--server_type"),
        ("ns eval --benchmarks=gsm8k --server_type=vllm", "--model"),
        ("ns eval --benchmarks=gsm8k --server_type=vlm --model=m", "did you mean 'vllm'"),
        ("ns eval --benchmarks=gms8k --server_type=vllm --model=m", "did you mean 'gsm8k'"),
        ("ns eval --benchmarks=gsm8k,gsm8k:4 --server_type=vllm --model=m", "gsm8k"),
        ("ns eval --benchmarks=gsm8k --server_type=vllm --model=m --cluster=slrum", "Unknown cluster 'slrum'"),
        ("ns eval --benchmarks=aime24 --server_type=vllm --model=m", "ns prepare_data aime24"),
        ("ns list --category=x prompts extra", "unexpected word 'extra'"),
        ("ns grade --grader=mth --input_files a.jsonl", "did you mean 'math'"),
        ("ns grade --input_files none.jsonl", "There is no file none.jsonl"),
        ("ns grade --input_files none.jsonl ++numeric_precison=3", "did you mean 'numeric_precision'"),
        ("ns prepare_data", "ns list benchmarks"),
        ("ns prepare_data gsm9k", "did you mean 'gsm8k'"),
        ("ns list benchmarks ++a=1", r"takes no \+\+ keys"),
        ("ns summarize_results nowhere", "nowhere"),
        ("ns start_server --server_type=openai --model=gpt", "cannot be started here"),
    ],
)
def test_bad_input_is_one_sentence_and_non_zero(line: str, message: str, tmp_path: Path) -> None:
    done = ns(line, cwd=tmp_path, env={"NEWSKILLS_DATA_DIR": str(tmp_path / "data")})
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    errors = [text for text in done.stderr.splitlines() if text.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    import re

    assert re.search(message, errors[0]), errors[0]
    assert list(tmp_path.iterdir()) == []


def test_completion_knows_commands_options_keys_and_benchmarks(tmp_path: Path) -> None:
    def complete(*words: str) -> list[str]:
        return ns("ns completion words --", *words, cwd=tmp_path).stdout.split()

    assert complete("gen") == ["generate"]
    assert complete("eval", "--rerun") == ["--rerun_done"]
    assert complete("eval", "++inference.temp") == ["++inference.temperature="]
    assert "gsm8k" in complete("prepare_data", "gsm")
    assert complete("eval", "--benchmarks=gsm8k,svam") == ["--benchmarks=gsm8k,svamp"]
    assert complete("eval", "--benchmarks", "own=svam") == ["own=svamp"]


def test_the_bash_script_completes(tmp_path: Path) -> None:
    script = (
        f'ns() {{ {sys.executable} -m newskills "$@"; }}; source <(ns completion bash); '
        "COMP_WORDS=(ns eval --rer); COMP_CWORD=2; _ns_complete; echo ${COMPREPLY[0]}"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip() == "--rerun_done"


@pytest.mark.parametrize("words", [["list", "prompts"], ["--version"]])
def test_what_nobody_reads_is_no_error(tmp_path: Path, words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ran = [sys.executable, "-m", "newskills", *words]
    done = subprocess.run(ran, stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, env=env, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    script = f"{sys.executable} -m newskills list prompts | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "Traceback" not in done.stderr


def test_benchmarks_of_installed_packages_are_listed(tmp_path: Path) -> None:
    package = tmp_path / "plug-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[newskills.benchmarks]\nep-sums = plug.sums:BENCHMARK\n")
    done = ns("ns list", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert any(row.split() == ["ep-sums", "plug-in", "plug.sums:BENCHMARK"] for row in done.stdout.splitlines())


def test_the_list_counts_and_explains_the_states_beside_the_table(tmp_path: Path) -> None:
    done = ns("ns list benchmarks", cwd=tmp_path, env={"NEWSKILLS_DATA_DIR": str(tmp_path)})
    rows = done.stdout.splitlines()
    for state in ("not verified", "schema checked"):
        marked = [line for line in rows if line.endswith(f"({state})")]
        told = f"{len(marked)} of {len(rows)} are {state}: {STATE_MEANING[state]}"
        assert (told in done.stderr) == bool(marked)
        assert marked or state == "not verified"


def test_an_error_of_the_python_api_shows_the_callers_line_and_the_sentence(tmp_path: Path) -> None:
    script = "import newskills\nnewskills.evaluate(benchmarks='gsm8l', model='m', server_type='openai')\n"
    (tmp_path / "mine.py").write_text(script, encoding="utf-8")
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "mine.py" in done.stderr
    assert "Unknown benchmark 'gsm8l'; did you mean 'gsm8k'" in done.stderr.splitlines()[-1]
    assert len(done.stderr.splitlines()) <= 6
