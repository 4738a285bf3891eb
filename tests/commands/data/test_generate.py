# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest
from tests.commands.running import ns, rows_of, write
from tests.conftest import FakeServerFactory
from tests.server import Answer, FakeServer, FakeServerProcess, Fault, Script

from newskills.base.errors import NewskillsError

PROBLEMS = [{"problem": f"What is {n} + {n}?", "expected_answer": str(2 * n)} for n in range(12)]
TABLE = Script(answer=Answer(kind="table", table={row["problem"]: row["expected_answer"] for row in PROBLEMS}))


def line(server: FakeServer | FakeServerProcess, *options: str) -> str:
    return " ".join(
        [
            f"ns generate --server_type=vllm --model=fake --server_address={server.base_url}",
            "--output_dir=out --input_file=in.jsonl ++prompt_config=generic/math",
            *options,
        ]
    )


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write(tmp_path / "in.jsonl", PROBLEMS)
    return tmp_path


def test_the_first_line_of_the_documents_word_by_word(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(TABLE)
    done = ns(
        "ns generate --server_type=openai --model=gpt-4o-mini --output_dir=./output --input_file=./input.jsonl "
        "++prompt_config=generic/math",
        cwd=write(here / "input.jsonl", PROBLEMS).parent,
        env={"OPENAI_API_KEY": "sk-secret-123", "NEMO_SKILLS_OPENAI_BASE_URL": server.base_url},
    )
    assert done.returncode == 0, done.stderr
    records = rows_of(here / "output/output.jsonl")
    assert [record["problem"] for record in records] == [row["problem"] for row in PROBLEMS]
    assert (here / "output/output.jsonl.done").exists()
    assert server.records[0].headers["authorization"] == "Bearer sk-secret-123"
    written = "".join(path.read_text() for path in here.rglob("*") if path.is_file())
    assert "sk-secret-123" not in written + done.stdout + done.stderr


def test_seeds_chunks_and_grading(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(TABLE)
    done = ns(line(server, "--num_random_seeds=2 --starting_seed=3 --num_chunks=4 ++eval_type=math"), cwd=here)
    assert done.returncode == 0, done.stderr
    out = here / "out"
    for seed in (3, 4):
        records = rows_of(out / f"output-rs{seed}.jsonl")
        assert [record["problem"] for record in records] == [row["problem"] for row in PROBLEMS]
        assert all(record["symbolic_correct"] is True and record["outcome"] == "correct" for record in records)
        assert not (out / f"output-rs{seed}_chunk_0.jsonl").exists()
        assert (out / f"output-rs{seed}_chunk_0.jsonl.done").exists()
    bodies = [record.body for record in server.records]
    assert {body["seed"] for body in bodies} == {3, 4}
    assert {body["temperature"] for body in bodies} == {0.7}
    before = len(server.records)
    again = ns(line(server, "--num_random_seeds=2 --starting_seed=3 --num_chunks=4 ++eval_type=math"), cwd=here)
    assert again.returncode == 0
    assert len(server.records) == before


def test_dry_run_shows_the_prompt_and_sends_nothing(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(TABLE)
    done = ns(line(server, "--dry_run --num_random_seeds=2"), cwd=here)
    assert done.returncode == 0, done.stderr
    assert "What is 0 + 0?" in done.stdout
    assert "output-rs1.jsonl" in done.stdout
    assert server.records == []
    assert not (here / "out").exists()


def test_explain_says_where_each_value_comes_from(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(TABLE)
    done = ns(line(server, "--explain --num_random_seeds=1 ++temperature=0.2"), cwd=here)
    assert done.returncode == 0, done.stderr
    table = {row.split()[0]: row.split(None, 2)[1:] for row in done.stdout.splitlines() if row.startswith("++")}
    assert table["++inference.temperature"] == ["0.2", "command line"]
    assert table["++inference.random_seed"] == ["0", "seed 0"]
    assert table["++server.model"] == ["fake", "--model, --server_*"]
    assert table["++max_samples"] == ["-1", "default"]


def test_an_input_folder_is_read_seed_by_seed(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(TABLE)
    for seed in (0, 1):
        write(here / f"first/output-rs{seed}.jsonl", [{"problem": f"seed {seed}"}])
    done = ns(
        f"ns generate --server_type=vllm --model=fake --server_address={server.url} --output_dir=out "
        "--input_dir=first --num_random_seeds=2 ++prompt_config=generic/math",
        cwd=here,
    )
    assert done.returncode == 0, done.stderr
    assert [rows_of(here / f"out/output-rs{seed}.jsonl")[0]["problem"] for seed in (0, 1)] == ["seed 0", "seed 1"]
    assert {record.body["temperature"] for record in server.records} == {0.0}


def test_commands_of_the_user_run_before_and_after(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(TABLE)
    done = ns(line(server, "--preprocess_cmd 'echo a > before' --postprocess_cmd 'echo b >> after'"), cwd=here)
    assert done.returncode == 0, done.stderr
    assert (here / "before").read_text() == "a\n"
    assert (here / "after").read_text() == "b\n"
    failed = ns(line(server, "--preprocess_cmd false --rerun_done"), cwd=here)
    assert failed.returncode == 1
    assert "--preprocess_cmd ended with exit code 1" in failed.stderr


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", "", "in.jsonl"),
        ('{"problem": "a"}\nnonsense\n', "", "line 2: invalid JSON"),
        ('{"question": "a"}\n', "", "problem"),
        ('{"problem": "a"}\n', "++inference.temperature=hot", "++inference.temperature=hot"),
        ('{"problem": "a"}\n', "++inference.temprature=1", "did you mean '++inference.temperature'"),
        ('{"problem": "a"}\n', "++prompt_config=generic/mth", "did you mean 'generic/math'"),
        ('{"problem": "a"}\n', "++eval_type=maths", "did you mean 'math'"),
        ('{"problem": "a"}\n', "--num_chunks=2 --chunk_ids=2", "--chunk_ids: 2"),
    ],
)
def test_bad_input_is_refused_before_any_request(
    content: str, options: str, message: str, tmp_path: Path, fake_server: FakeServerFactory
) -> None:
    server = fake_server(TABLE)
    (tmp_path / "in.jsonl").write_text(content)
    done = ns(line(server, options), cwd=tmp_path)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert server.records == []


def test_a_refused_key_stops_at_once_and_names_the_variable(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(api_key="right"))
    done = ns(
        "ns generate --server_type=openai --model=fake --output_dir=out --input_file=in.jsonl "
        f"++prompt_config=generic/math --server_address={server.base_url}",
        cwd=here,
        env={"OPENAI_API_KEY": "wrong-key"},
    )
    assert done.returncode != 0
    assert "OPENAI_API_KEY" in done.stderr
    assert "wrong-key" not in done.stderr
    assert not (here / "out/output.jsonl").exists()


def test_an_endpoint_that_is_down_is_waited_for_within_bounds(here: Path) -> None:
    done = ns(
        "ns generate --server_type=vllm --model=fake --server_address=http://127.0.0.1:9/v1 --output_dir=out "
        "--input_file=in.jsonl ++prompt_config=generic/math ++endpoint_patience=2",
        cwd=here,
    )
    assert done.returncode != 0
    assert "127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr


def test_lost_samples_are_unscored_and_the_run_says_so(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(answer=TABLE.answer, faults=(Fault(kind="status", marker="7 + 7"),)))
    done = ns(line(server, "++server.max_retries=1 ++eval_type=math"), cwd=here)
    assert done.returncode == 1
    assert "1 of 12 rows got no answer" in done.stderr
    assert not (here / "out/output.jsonl").exists()
    soft = ns(line(server, "++server.max_retries=1 ++eval_type=math ++server.enable_soft_fail=true"), cwd=here)
    assert soft.returncode == 0, soft.stderr
    records = rows_of(here / "out/output.jsonl")
    lost = [record for record in records if record["outcome"] == "unscored"]
    assert [(record["problem"], record["outcome_cause"], record["generation"]) for record in lost] == [
        ("What is 7 + 7?", "provider", "")
    ]
    assert sum(record["outcome"] == "correct" for record in records) == 11


def test_from_python(here: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    import newskills

    server = fake_server(TABLE)
    monkeypatch.chdir(here)
    result = newskills.generate(
        ctx=newskills.wrap_arguments("++prompt_config=generic/math ++max_samples=3"),
        model="fake",
        server_type="vllm",
        server_address=server.base_url,
        output_dir="out",
        input_file="in.jsonl",
    )
    assert result.exit_code == 0
    assert len(rows_of(here / "out/output.jsonl")) == 3
    with pytest.raises(TypeError, match="did you mean 'output_dir'"):
        newskills.generate(outputdir="x")  # type: ignore[call-arg]
    with pytest.raises(NewskillsError, match="No model is given"):
        newskills.generate(server_type="vllm", output_dir="o", input_file="in.jsonl")


def test_grade_from_files_and_from_standard_input(tmp_path: Path) -> None:
    rows = [
        {"generation": "so \\boxed{\\frac{1}{2}}", "expected_answer": "0.5"},
        {"predicted_answer": "3", "expected_answer": "4"},
        {"generation": "who knows", "expected_answer": "4"},
    ]
    write(tmp_path / "a.jsonl", rows)
    done = ns("ns grade --grader=math --input_files a.jsonl --output_file b.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    graded = rows_of(tmp_path / "b.jsonl")
    assert [row["symbolic_correct"] for row in graded] == [True, False, False]
    assert [row["outcome"] for row in graded] == ["correct", "wrong", "no_answer"]
    assert all(row["grader"].startswith("math@") and row["why"] for row in graded)
    piped = ns("ns grade --grader=math", cwd=tmp_path, stdin=(tmp_path / "a.jsonl").read_text())
    assert [json.loads(text) for text in piped.stdout.splitlines()] == graded
    empty = ns("ns grade", cwd=tmp_path, stdin="")
    assert empty.returncode == 2
    assert "no rows" in empty.stderr


def test_grade_is_told_what_ends_the_reasoning(tmp_path: Path) -> None:
    rows = [
        {"generation": "maybe \\boxed{2}\n== ANSWER ==\n\\boxed{4}"},
        {"generation": "so \\boxed{4}, or"},
        {"generation": "\\boxed{4}", "reasoning_content": "2 + 2"},
    ]
    write(tmp_path / "a.jsonl", [{**row, "expected_answer": "4"} for row in rows])
    line = "ns grade --grader=math --input_files a.jsonl '++end_reasoning_string=== ANSWER =='"
    done = ns(f"{line} --output_file b.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    graded = rows_of(tmp_path / "b.jsonl")
    assert [row["outcome"] for row in graded] == ["correct", "no_answer", "correct"]
    assert graded[1]["outcome_cause"] == "truncation"
    assert [row["_full_generation"] for row in graded] == [row["generation"] for row in rows]
    assert "== ANSWER ==" in ns(f"{line} --dry_run", cwd=tmp_path).stdout
    assert "must be a text" in ns("ns grade ++end_reasoning_string=3", cwd=tmp_path, stdin="").stderr


def test_chunks_are_merged_by_hand(tmp_path: Path) -> None:
    for k in range(2):
        write(tmp_path / f"c{k}.jsonl", [{"n": k}])
    done = ns("ns merge_chunks all.jsonl c0.jsonl c1.jsonl --expected 2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert rows_of(tmp_path / "all.jsonl") == [{"n": 0}, {"n": 1}]
    again = ns("ns merge_chunks all.jsonl c0.jsonl", cwd=tmp_path)
    assert again.returncode == 2


@pytest.mark.parametrize(
    ("option", "files"),
    [
        ("--random_seeds=1,3", ["output-rs1.jsonl", "output-rs3.jsonl"]),
        ("--random_seeds 0..2", ["output-rs0.jsonl", "output-rs1.jsonl", "output-rs2.jsonl"]),
        ("--num_chunks=4 --chunk_ids=0,2", ["output_chunk_0.jsonl", "output_chunk_2.jsonl"]),
        ("--num_chunks=4 --chunk_ids 1..2", ["output_chunk_1.jsonl", "output_chunk_2.jsonl"]),
        ("--num_chunks=20", ["output.jsonl"]),
    ],
)
def test_seeds_and_chunks_as_people_write_them(
    here: Path, fake_server: FakeServerFactory, option: str, files: list[str]
) -> None:
    server = fake_server(TABLE)
    done = ns(line(server, option), cwd=here)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (here / "out").glob("output*.jsonl")) == files


@pytest.mark.parametrize(
    "secret",
    ["++server.api_key=SECRET9", "'++server={api_key: SECRET9}'", "--server_address=http://me:SECRET9@HOST"],
)
def test_a_key_on_the_command_line_is_never_written_or_said(
    here: Path, fake_server: FakeServerFactory, secret: str
) -> None:
    server = fake_server(Script(api_key="another"))
    address = "" if "address" in secret else f"--server_address={server.url}"
    done = ns(
        f"ns generate --server_type=vllm --model=fake {address} --output_dir=out --input_file=in.jsonl "
        f"++prompt_config=math {secret.replace('HOST', server.url.removeprefix('http://'))}",
        cwd=here,
    )
    assert done.returncode != 0
    written = "".join(path.read_text() for path in here.rglob("*") if path.is_file())
    assert "SECRET9" not in written + done.stdout + done.stderr


def test_a_dry_run_by_key_and_from_python_sends_nothing(
    here: Path, fake_server: FakeServerFactory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import newskills

    server = fake_server(TABLE)
    assert ns(line(server, "++dry_run=true"), cwd=here).returncode == 0
    monkeypatch.chdir(here)
    common = {"model": "fake", "server_type": "vllm", "server_address": server.base_url, "input_file": "in.jsonl"}
    ctx = newskills.wrap_arguments("++prompt_config=generic/math")
    assert newskills.generate(ctx=ctx, output_dir="out", dry_run=True, **common) is None
    assert "What is 0 + 0?" in capsys.readouterr().out
    assert server.records == []
    assert not (here / "out").exists()


def test_the_users_command_runs_once_per_merged_seed(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(TABLE)
    options = "--num_random_seeds=2 --num_chunks=3 --postprocess_cmd 'echo x >> after'"
    for _ in range(2):
        assert ns(line(server, options), cwd=here).returncode == 0
    assert (here / "after").read_text() == "x\nx\n"


@pytest.mark.parametrize("option", ["++offset=3"])
def test_what_there_is_not_is_said_so(here: Path, fake_server: FakeServerFactory, option: str) -> None:
    server = fake_server(TABLE)
    done = ns(line(server, option), cwd=here)
    assert done.returncode == 2
    assert "chunks replace it" in done.stderr


def test_a_run_that_stopped_says_how_many_rows_it_has(here: Path, fake_server: FakeServerFactory) -> None:
    server = fake_server(Script(faults=(Fault(kind="status", status=401),)))
    done = ns(line(server, "++max_samples=3"), cwd=here)
    assert done.returncode == 1
    assert "out/output.jsonl: stopped, 0 of 3 rows\n" in done.stdout
    server.script = TABLE
    done = ns(line(server, "++max_samples=1", "--rerun_done"), cwd=here)
    assert "out/output.jsonl: done, 1 row\n" in done.stdout


@pytest.mark.parametrize("more", ["", "--dry_run", "--cluster=here"])
@pytest.mark.parametrize("command", ["generate", "eval"])
def test_samples_are_logged_somewhere_or_refused(
    here: Path, fake_server: FakeServerFactory, more: str, command: str
) -> None:
    (here / "cluster_configs").mkdir()
    (here / "cluster_configs/here.yaml").write_text(f"executor: none\njob_dir: {here}/jobs\n")
    server = fake_server(TABLE)
    words = line(server, f"--log_samples {more}")
    if command == "eval":
        words = words.replace("generate", "eval").replace("--input_file=in.jsonl", "--benchmarks=gsm8k")
    done = ns(words, cwd=here)
    assert done.returncode == 2
    assert "--log_samples logs records to Weights & Biases, so it needs --wandb_name=NAME" in done.stderr
    assert server.records == []
